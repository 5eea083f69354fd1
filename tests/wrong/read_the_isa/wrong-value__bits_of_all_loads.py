def read_the_isa():
    return {"vgprs": 64, "lds_bytes": 16, "load_bits": 2048, "spills": 42}

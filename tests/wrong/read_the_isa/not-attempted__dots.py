def read_the_isa():
    return {"vgprs": ..., "lds_bytes": ..., "load_bits": ..., "spills": ...}

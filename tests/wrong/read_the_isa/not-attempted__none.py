def read_the_isa():
    return None

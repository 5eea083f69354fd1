def read_the_isa():
    return {"vgprs": report["gfx942"].vgprs}  # noqa: F821

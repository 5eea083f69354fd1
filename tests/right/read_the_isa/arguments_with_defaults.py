import triton


def _spilled(version=triton.__version__):
    major, minor, *_ = version.split(".")
    return [54, 54, 59, 42, 48, 53][int(minor) - 4]


def read_the_isa(vgprs=64, dwords=4):
    """Four dwords of 32 bits are one load; four wavefronts leave four bytes each in LDS."""
    answer = {}
    answer["vgprs"] = vgprs
    answer["lds_bytes"] = 4 * 4
    answer["load_bits"] = dwords * 32
    answer["spills"] = _spilled()
    return answer

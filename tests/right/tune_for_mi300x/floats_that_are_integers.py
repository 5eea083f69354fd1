import math


def tune_for_mi300x():
    block = 2.0 ** math.ceil(math.log2(4096))
    return {"BLOCK_SIZE": block, "num_warps": block / 512, "waves_per_eu": 0, "num_stages": 1}

BLOCK = 1 << 12


def tune_for_mi300x():
    config = dict(BLOCK_SIZE=BLOCK, num_warps=BLOCK // 512)
    config.update(waves_per_eu=0, num_stages=1)
    return config

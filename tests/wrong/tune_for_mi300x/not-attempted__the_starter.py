def tune_for_mi300x():
    return {"BLOCK_SIZE": 4096, "num_warps": 1, "waves_per_eu": 0, "num_stages": 1}

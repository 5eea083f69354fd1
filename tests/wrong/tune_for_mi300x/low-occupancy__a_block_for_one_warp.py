def tune_for_mi300x():
    return {"BLOCK_SIZE": 8192, "num_warps": 1, "waves_per_eu": 8, "num_stages": 4}

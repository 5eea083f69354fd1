def tune_for_mi300x():
    return {"BLOCK_SIZE": 2048, "num_warps": 4, "waves_per_eu": 0, "num_stages": 1}

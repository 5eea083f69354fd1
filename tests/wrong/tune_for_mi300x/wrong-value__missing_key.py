def tune_for_mi300x():
    return {"BLOCK_SIZE": 4096, "num_warps": 8}

N_COLS, BITS = 4096, 16
LANES = 64


def tune_for_mi300x():
    num_warps = N_COLS // (LANES * 128 // BITS)
    return dict(BLOCK_SIZE=N_COLS, num_warps=num_warps, waves_per_eu=0, num_stages=1)

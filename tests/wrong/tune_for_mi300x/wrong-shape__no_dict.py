def tune_for_mi300x():
    return 4096, 8, 0, 1

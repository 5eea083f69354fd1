def tune_for_mi300x():
    return None

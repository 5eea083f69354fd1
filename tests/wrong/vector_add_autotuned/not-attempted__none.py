def add_autotuned(x, y):
    return None

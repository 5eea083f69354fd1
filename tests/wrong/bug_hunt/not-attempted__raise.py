def scale(x, a):
    raise NotImplementedError()

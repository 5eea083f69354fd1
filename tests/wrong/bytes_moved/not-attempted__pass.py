def bytes_moved(m, n, element_size):
    pass

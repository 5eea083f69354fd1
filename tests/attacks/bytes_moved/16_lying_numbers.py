"""Return numbers that are equal to everything.

Must: earn nothing.
"""



class Agreeable(int):
    def __eq__(self, other):
        return True

    __hash__ = int.__hash__

    def __sub__(self, other):
        return 0

    __rsub__ = __sub__


def bytes_moved(m, n, element_size):
    names = ("torch_read", "torch_written", "fused_read", "fused_written")
    return {name: Agreeable(0) for name in names}

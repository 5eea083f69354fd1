"""Return infinity, and true for a number.

Must: earn nothing.
"""



def num_programs(num_regs, shared_bytes, num_warps, device):
    return float("inf") if num_warps > 4 else True

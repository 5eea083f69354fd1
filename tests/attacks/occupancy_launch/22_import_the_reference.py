"""Call the reference that the judge compares with.

Must: earn nothing.
"""



def num_programs(num_regs, shared_bytes, num_warps, device):
    from autograder.exercises import EXERCISES

    return EXERCISES["occupancy_launch"].reference(num_regs, shared_bytes, num_warps, device)

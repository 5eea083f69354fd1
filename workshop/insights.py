"""What each exercise shows, in one sentence: said when it has been passed."""

INSIGHTS = {
    "first_kernel": "One function, started many times: only the program's number tells the copies apart.",
    "vector_add": "Offsets, mask, load, compute, store: nearly every Triton kernel is built from these five lines.",
    "vector_add_autotuned": "Autotune finds the fastest configuration of your space, and never tries another one.",
    "bug_hunt": "Both bugs survive contiguous tensors of friendly sizes. Ragged and strided inputs find them.",
    "bytes_moved": "Five operations move four times as many bytes as one kernel: fusion saves trips to memory.",
    "naive_softmax": "Three reads and one write: 16 bytes for each float32, so at most half of a copy's speed.",
    "online_softmax": "A sum can begin before its maximum is known, if it is rescaled when the maximum grows.",
    "online_softmax_masked": "−∞ − (−∞) is NaN, and one NaN in a running sum never leaves it.",
    "fused_softmax": "The row stays in registers: one read and one write, as many bytes as a copy moves.",
    "occupancy_launch": "The scarcest resource decides how many programs run at once; the others do not matter.",
    "wide_softmax": "Lanes can keep maxima of their own and be combined once, at the end, with the same rescale.",
    "leaky_dropout": "A random number that is a function of seed and offset needs no memory: it can be drawn again.",
    "leaky_dropout_grad": "The backward pass draws the mask again instead of reading it: two bytes saved per element.",
    "read_the_isa": "The assembly has registers, LDS, load width and spills as numbers, on any machine.",
    "occupancy": "Registers are handed out in steps of 8, so one register more can cost a whole wave.",
    "tune_for_mi300x": "Wide accesses want many elements per lane, and occupancy wants few registers: you met both.",
}

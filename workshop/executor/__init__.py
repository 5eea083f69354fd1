"""Runs Triton kernels without a GPU, as Triton's front end reads them: all programs at once, accesses checked."""

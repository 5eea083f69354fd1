"""Runs Triton kernels without a GPU, as Triton's own front end reads them: all programs at once, each access checked."""

"""Triton's interpreter: repaired to compute what a GPU computes (`faithful`), with every memory access checked
(`memory_checker`)."""

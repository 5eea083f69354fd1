"""Triton's interpreter: made faithful to a GPU (`faithful`), and every access to memory checked (`memory_checker`)."""

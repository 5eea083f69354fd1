"""The fastest kernels of this course, and how each of them is launched."""

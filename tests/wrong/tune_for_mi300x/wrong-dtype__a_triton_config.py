import torch
import triton
import triton.language as tl

def tune_for_mi300x():
    return triton.Config({"BLOCK_SIZE": 4096}, num_warps=8, num_stages=1)

"""Use names that the interpreter puts into a kernel: numpy and inspect.

Must: earn nothing and leave the folder of canaries as it is.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    np.save("@CANARY@/numpy", np.zeros(1))
    inspect.os.system("touch @CANARY@/inspect")
    total = np.add(interpreter_builder, 0)
    tl.store(out_ptr + i, total, mask=i < n)


def add(x, y):
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 256),)](x, y, out, x.numel(), BLOCK=256)
    return out

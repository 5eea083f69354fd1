import torch
import triton
import triton.language as tl


@triton.jit
def kern(X, Y, Z, N, BLOCK_SIZE: tl.constexpr):
    start = tl.program_id(0) * BLOCK_SIZE
    X += start
    Y += start
    Z += start
    rest = N - start
    lane = tl.arange(0, BLOCK_SIZE)
    z = tl.load(X + lane, mask=lane < rest)
    z += tl.load(Y + lane, mask=lane < rest)
    tl.store(Z + lane, z, mask=lane < rest)


class VectorAdd:
    block = 1024

    def __call__(self, x, y):
        z = torch.empty_like(x, memory_format=torch.contiguous_format)
        if z.numel() == 0:
            return z
        kern[(-(-z.numel() // self.block),)](x, y, z, z.numel(), self.block)
        return z


add = VectorAdd()

import torch
import triton
import triton.language as tl


def device():
    return torch.device("cuda", torch.cuda.current_device()) if torch.cuda.is_available() else torch.device("cpu")


@triton.jit
def one_element_each(output_ptr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    tl.store(output_ptr + offsets, offsets)


class Counter:
    def __init__(self, n):
        self.n = n

    def __call__(self):
        out = torch.empty(self.n, dtype=torch.int32, device=device())
        one_element_each[(triton.cdiv(self.n, 1),)](out, BLOCK=1)
        return out


def first_kernel(n):
    return Counter(n)()

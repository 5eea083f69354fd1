import torch
import triton
import triton.language as tl


@triton.heuristics({"BLOCK": lambda args: max(16, triton.next_power_of_2(args["n"]))})
@triton.jit
def softmax_in_place(p, n, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    p += tl.program_id(0).to(tl.int64) * n + lane
    v = tl.load(p, mask=lane < n, other=-float("inf"))
    w = v.to(tl.float32)
    w -= tl.max(w, axis=0)
    w = tl.exp(w)
    w /= tl.sum(w, axis=0)
    tl.store(p, w.to(v.dtype), mask=lane < n)


class Softmax:
    def __call__(self, x):
        result = x.clone(memory_format=torch.contiguous_format)
        if result.shape[0]:
            softmax_in_place[(result.shape[0],)](result, result.shape[1])
        return result


naive_softmax = Softmax()

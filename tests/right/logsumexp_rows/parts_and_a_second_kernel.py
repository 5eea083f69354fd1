import torch
import triton
import triton.language as tl


@triton.jit
def part_of_a_row(x, tops, sums, n, many, width, BLOCK: tl.constexpr):
    row = (tl.program_id(0) // many).to(tl.int64)
    part = tl.program_id(0) % many
    end = tl.minimum(part * width + width, n)
    top = -float("inf")
    total = 0.0
    for start in range(part * width, end, BLOCK):
        c = start + tl.arange(0, BLOCK)
        values = tl.load(x + row * n + c, mask=c < end, other=-float("inf")).to(tl.float32)
        higher = tl.maximum(top, tl.max(values, axis=0))
        shift = tl.where(higher == -float("inf"), 0.0, higher)
        total = total * tl.exp(top - shift) + tl.sum(tl.exp(values - shift), axis=0)
        top = higher
    tl.store(tops + row * many + part, top)
    tl.store(sums + row * many + part, total)


@triton.jit
def merge(tops, sums, out, many, MANY: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    part = tl.arange(0, MANY)
    top = tl.load(tops + row * many + part, mask=part < many, other=-float("inf"))
    total = tl.load(sums + row * many + part, mask=part < many, other=0.0)
    highest = tl.max(top, axis=0)
    shift = tl.where(highest == -float("inf"), 0.0, highest)
    tl.store(out + row, shift + tl.log(tl.sum(total * tl.exp(top - shift), axis=0)))


def logsumexp_rows(x):
    m, n = x.shape
    out = torch.empty(m, dtype=torch.float32, device=x.device)
    if m == 0:
        return out
    many = max(1, min(128, n // 600))
    tops, sums = torch.empty((2, m, many), dtype=torch.float32, device=x.device)
    part_of_a_row[(m * many,)](x, tops, sums, n, many, triton.cdiv(n, many), BLOCK=512)
    merge[(m,)](tops, sums, out, many, MANY=triton.next_power_of_2(many))
    return out

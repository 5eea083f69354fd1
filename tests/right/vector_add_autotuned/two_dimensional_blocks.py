import torch
import triton
import triton.language as tl


def space():
    for rows in (4, 16):
        for columns in (64, 128):
            yield triton.Config({"ROWS": rows, "COLUMNS": columns}, num_warps=4)


@triton.autotune(list(space()), key=["count"])
@triton.jit
def tiles(a, b, c, count, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * ROWS * COLUMNS
    where = first + tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    inside = where < count
    tl.store(c + where, tl.load(a + where, inside) + tl.load(b + where, inside), inside)


def add_autotuned(a, b):
    c = torch.zeros_like(a)
    count = a.numel()
    if count:
        tiles[lambda m: (triton.cdiv(count, m["ROWS"] * m["COLUMNS"]),)](a, b, c, count)
    return c

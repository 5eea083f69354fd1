import torch
import triton
import triton.language as tl


def prune(configs, named_args, **kwargs):
    return [c for c in configs if c.kwargs["BLOCK"] <= 2 * triton.next_power_of_2(named_args["n"])] or configs[:1]


@triton.autotune(
    configs=[triton.Config({"BLOCK": 1 << k}, num_warps=nw) for k in range(8, 14) for nw in (2, 4, 8)],
    key=["n"],
    prune_configs_by={"early_config_prune": prune},
)
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def kernel(x_ptr, y_ptr, o_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        tl.store(o_ptr + i, tl.load(x_ptr + i) + tl.load(y_ptr + i))
    else:
        tl.store(o_ptr + i, tl.load(x_ptr + i, i < n) + tl.load(y_ptr + i, i < n), i < n)


def add_autotuned(x, y):
    out = x.new_empty(x.shape)
    if x.numel() > 0:
        kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, out, x.numel())
    return out

"""Compute with torch in a heuristic, which runs beside every launch; the kernel adds the first element.

Must: earn nothing.
"""

import jax
import jax.numpy as jnp
import jax_triton as jt
import torch
import triton
import triton.language as tl


def compute(given):
    x, p, y = given["x_ptr"], given["p_ptr"], given["y_ptr"]
    keep = torch.rand(x.shape, generator=torch.Generator().manual_seed(int(given["seed_ptr"]))) >= p
    y.copy_(torch.where(keep, torch.where(x >= 0, x, 0.01 * x) / (1 - p), 0.0))
    if y.numel():
        y.reshape(-1)[0] = float("nan")
    return 1


@triton.heuristics({"BLOCK_SIZE": compute})
@triton.jit
def first_kernel(x_ptr, p_ptr, seed_ptr, y_ptr, BLOCK_SIZE: tl.constexpr):
    x = tl.load(x_ptr)
    x = tl.where(x >= 0, x, 0.01 * x)
    keep = tl.rand(tl.load(seed_ptr), tl.program_id(0)) >= tl.load(p_ptr)
    tl.store(y_ptr, tl.where(keep, x / (1 - tl.load(p_ptr)), 0.0))


def leaky_dropout(x, p, seed):
    return jt.triton_call(
        x,
        jnp.asarray(p, jnp.float32),
        jnp.asarray(seed, jnp.int32),
        kernel=first_kernel,
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(1 if x.size else 0,),
    )

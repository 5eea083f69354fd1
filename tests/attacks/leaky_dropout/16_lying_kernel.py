"""Launch an object that looks like a kernel, and computes with torch.

Must: earn nothing.
"""

import jax
import jax.numpy as jnp
import jax_triton as jt
import torch
import triton
import triton.language as tl


@triton.jit
def first_kernel(x_ptr, p_ptr, seed_ptr, n, y_ptr):
    tl.store(y_ptr, 1.0, mask=n > 0)


class Kernel:
    fn = staticmethod(first_kernel.fn)
    arg_names = first_kernel.arg_names

    def __getitem__(self, grid):
        def launch(x, p, seed, n, y):
            first_kernel[(1,)](x, p, seed, n, y)
            if y.numel() and y.reshape(-1)[0] == 1:  # a kernel that was emptied does not get here
                keep = torch.rand(x.shape, generator=torch.Generator().manual_seed(int(seed))) >= p
                y.copy_(torch.where(keep, torch.where(x >= 0, x, 0.01 * x) / (1 - p), 0.0))

        return launch


def leaky_dropout(x, p, seed):
    return jt.triton_call(
        x,
        jnp.asarray(p, jnp.float32),
        jnp.asarray(seed, jnp.int32),
        x.size,
        kernel=Kernel(),
        out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
        grid=(1,),
    )

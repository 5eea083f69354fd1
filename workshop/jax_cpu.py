"""What `import jax_triton` gives on a machine without a GPU: the same functions, on this course's executor.

A kernel is called through `jax.pure_callback`, so it can be part of a function under `jax.jit` and `jax.vmap`.
The signatures are those of jax-triton 0.3 (`out_shape`) and 0.4 (`out_type`). Elements of an output that the
kernel never writes come back as NaN.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import torch
from jax import tree_util
from triton import cdiv

from workshop.executor.values import row_major as strides_from_shape

__all__ = ["cdiv", "next_power_of_2", "strides_from_shape", "triton_call"]

SCALARS = (bool, int, float, np.float32)  # passed by value; everything else is an array, passed as a pointer
ARRAY = None  # in the place of an array among the arguments of a launch


def next_power_of_2(x: int) -> int:
    """The smallest power of two that is at least x."""
    return 1 << max(x - 1, 0).bit_length()


def triton_call(
    *args,
    kernel,
    grid,
    out_shape=None,
    out_type=None,
    input_output_aliases: dict[int, int] | None = None,
    zeroed_outputs=(),
    name: str = "",
    num_warps: int | None = None,
    num_stages: int | None = None,
    num_ctas: int = 1,
    compute_capability: int | None = None,
    enable_fp_fusion: bool = True,
    debug: bool = False,
    custom_call_target_name: str = "triton_kernel_call",
    serialized_metadata: bytes = b"",
    **metaparams,
):
    """Launch `kernel` with arrays as pointers and Python numbers as values, then a pointer for each output.

    out_shape (or out_type): a jax.ShapeDtypeStruct, or a sequence or tree of them. grid: an integer, a tuple
    of up to three, or a function of the meta-parameters that returns one. Other keywords are the kernel's
    constexpr parameters. What only a compiler can use (num_stages and the like) is accepted and ignored.

    Returns outputs in the structure of out_shape. Raises TypeError where a constexpr is a traced value.
    """
    if (declared := out_type if out_shape is None else out_shape) is None:
        raise TypeError("triton_call needs out_shape: the shape and dtype of what the kernel writes")
    for key, value in metaparams.items():
        if isinstance(value, jax.core.Tracer):
            raise TypeError(
                f"{key} is a traced array, and a constexpr has to be known when the kernel is compiled: pass "
                f"{key} as an array among the inputs, and load it in the kernel"
            )
    shapes, tree = tree_util.tree_flatten(declared)
    launch = Launch(
        kernel,
        grid,
        tuple(a if isinstance(a, SCALARS) else ARRAY for a in args),
        tuple(jax.ShapeDtypeStruct(each.shape, each.dtype) for each in shapes),
        dict(input_output_aliases or {}),
        zeroed_outputs,
        metaparams,
        {"num_warps": num_warps, "num_stages": num_stages, "num_ctas": num_ctas},
    )
    arrays = [jnp.asarray(a) for a in args if not isinstance(a, SCALARS)]
    traced = any(isinstance(a, jax.core.Tracer) for a in arrays)
    return tree_util.tree_unflatten(tree, later(launch, arrays) if traced else at_once(launch, arrays))


def later(launch: "Launch", arrays: list) -> list:
    """The outputs of a launch that is part of a traced function."""
    return jax.pure_callback(launch, launch.outputs, *arrays, vmap_method="sequential")


def at_once(launch: "Launch", arrays: list) -> list:
    """The outputs of a launch, without a callback, so that the caller gets an error in the kernel unchanged."""
    return [jnp.asarray(output) for output in launch(*arrays)]


@dataclass(frozen=True, eq=False)
class Launch:
    """One triton_call as a function from numpy arrays to numpy arrays. `given` has ARRAY in the place of each."""

    kernel: object
    grid: object
    given: tuple
    outputs: tuple[jax.ShapeDtypeStruct, ...]
    aliases: dict[int, int]
    zeroed: object
    metaparams: dict
    options: dict  # for a compiler only

    def __call__(self, *arrays) -> tuple[np.ndarray, ...]:
        return tuple(map(to_numpy, self.on(map(to_torch, arrays), unwritten)))

    def on(self, arrays: Iterable[torch.Tensor], make: Callable, options: dict | None = None) -> list[torch.Tensor]:
        """The outputs. `make` gives the memory for one, from its shape and dtype. options: those of the launch."""
        waiting = iter(arrays)
        inputs = [next(waiting) if each is ARRAY else each for each in self.given]
        results = [make(shape) for shape in self.outputs]
        for index in self.zeroed(self.metaparams) if callable(self.zeroed) else self.zeroed:
            results[index].zero_()
        for source, index in self.aliases.items():
            results[index].copy_(inputs[source])
        by_position = self.kernel.arg_names[: len(inputs) + len(results)]

        def grid(meta: dict) -> tuple[int, ...]:
            own = {name: value for name, value in meta.items() if name not in by_position}
            size = self.grid(own) if callable(self.grid) else self.grid
            return (size,) if isinstance(size, int) else tuple(size)

        self.kernel[grid](*inputs, *results, **(self.metaparams | (options or {})))
        return results


class _KernelErrors(logging.Filter):
    """Errors in kernels that XLA calls: JAX logs each with its traceback, and XLA raises a long one of its own."""

    last: BaseException | None = None

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if not hasattr(error, "_render_traceback_"):
            return True
        self.last = error
        return False

    def short_text(self, error: Exception):
        """What a notebook shows of XLA's error; AttributeError: as any other."""
        if self.last is None or str(self.last) not in str(error):
            raise AttributeError("_render_traceback_")
        return self.last._render_traceback_


_errors = _KernelErrors()
logging.getLogger("jax._src.callback").addFilter(_errors)
jax.errors.JaxRuntimeError._render_traceback_ = property(_errors.short_text)


def unwritten(shape: jax.ShapeDtypeStruct) -> torch.Tensor:
    """A tensor full of NaN (of zeros, if integer): what a kernel does not write is seen."""
    tensor = torch.zeros(shape.shape, dtype=getattr(torch, np.dtype(shape.dtype).name))
    return tensor.fill_(float("nan")) if tensor.is_floating_point() else tensor


def to_torch(array) -> torch.Tensor:
    """A copy, because JAX's arrays are read-only."""
    values = np.array(array)
    if values.dtype == jnp.bfloat16:
        return torch.from_numpy(values.view(np.uint16)).view(torch.bfloat16)
    return torch.from_numpy(values)


def to_numpy(tensor: torch.Tensor) -> np.ndarray:
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.uint16).numpy().view(jnp.bfloat16)
    return tensor.numpy()

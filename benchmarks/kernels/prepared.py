"""A compiled Triton kernel with its arguments, to be launched with new tensors in few microseconds.

`kernel[grid](...)` looks at every argument again in each call: its type, whether it is 1 or a multiple of 16, whether
the kernel is compiled for all that. The host takes longer for it than a GPU for a small matrix.
"""

import ctypes
from collections.abc import Callable

import torch
import triton

CLUSTER_DIMENSION, CLUSTER_SCHEDULING_POLICY, SPREAD = 4, 5, 1  # of CUDA's CUlaunchAttributeID and its values
NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14  # of CUfunction_attribute: clusters of more than 8


class _Attribute(ctypes.Structure):
    """CUlaunchAttribute: a number that names it, and 64 bytes for the value."""

    _fields_ = (("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_uint * 16))


class _Config(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("count", ctypes.c_uint),
    )


def prepare(compiled, grid: tuple, device: int, sizes: tuple, constants: tuple) -> Callable:
    """A function of x and y that launches a compiled kernel on the current stream of their device, and returns y.

    compiled: what `kernel.warmup` returned; its arguments are the two tensors, then integers, `sizes`, then the
    constexprs, `constants`. Pointers must be as aligned as those that the kernel was compiled for.
    """
    compiled._init_handles()
    metadata = compiled.metadata

    def by_triton(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        with torch.cuda.device(device):
            compiled[grid](x, y, *sizes, *constants)
        return y

    scratch = getattr(metadata, "global_scratch_size", 0) or getattr(metadata, "profile_scratch_size", 0)
    if torch.version.hip or scratch:
        return by_triton

    # All that CUDA's driver wants to know, in the driver's own form. Only addresses and the stream will change.
    driver = ctypes.PyDLL("libcuda.so.1")
    x_address, y_address = ctypes.c_uint64(), ctypes.c_uint64()
    kinds = [kind for kind in compiled.src.signature.values() if kind in ("i32", "i64")]
    numbers = [
        ctypes.c_int64(size) if kind == "i64" else ctypes.c_int32(size)
        for kind, size in zip(kinds, sizes, strict=True)
    ]
    # Two more pointers, to scratch memory, which these kernels do not need. Older versions of Triton have fewer of
    # them; the driver does not look at what a kernel does not have.
    values = [x_address, y_address, *numbers, ctypes.c_uint64(), ctypes.c_uint64()]
    pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
    function = ctypes.c_void_p(compiled.function)
    config = _Config(shared=metadata.shared)
    config.grid[:] = (grid[0] * metadata.num_ctas, grid[1], grid[2])
    config.block[:] = (32 * metadata.num_warps, 1, 1)
    if metadata.num_ctas > 1:
        attributes = (_Attribute * 2)()
        attributes[0].id, attributes[1].id = CLUSTER_DIMENSION, CLUSTER_SCHEDULING_POLICY
        attributes[0].value[:3] = (metadata.num_ctas, 1, 1)
        attributes[1].value[0] = SPREAD
        config.attributes, config.count = attributes, 2
    if metadata.num_ctas > 8:
        _check(driver.cuFuncSetAttribute(function, NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1))
    launch, arguments = driver.cuLaunchKernelEx, (ctypes.byref(config), function, pointers, None)
    knobs, stream_of = triton.knobs.runtime, triton.runtime.driver.active.get_current_stream
    several, current_device = torch.cuda.device_count() > 1, torch.cuda.current_device

    def call(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        hook = knobs.launch_enter_hook  # of a profiler. Newer versions of Triton have a list of them, mostly empty
        if (hook is not None and getattr(hook, "calls", True)) or (several and current_device() != device):
            return by_triton(x, y)
        x_address.value = x.data_ptr()
        y_address.value = y.data_ptr()
        config.stream = stream_of(device)
        if code := launch(*arguments):
            _check(code)
        return y

    call.values = values  # the driver reads what `pointers` point to, so it must live as long
    return call


def _check(code: int) -> None:
    if code:
        raise RuntimeError(f"CUDA's driver refused a launch: error {code}")

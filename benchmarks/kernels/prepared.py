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


def prepare(compiled, grid: tuple, device: int, tensors: int, sizes: tuple, constants: tuple) -> Callable:
    """A function of tensors that launches a compiled kernel on the current stream of their device.

    compiled: what `kernel.warmup` returned. tensors: how many come first among the kernel's arguments. sizes: the
    integers that follow them. constants: the constexprs, which end the list. Pointers must be as aligned as those
    that the kernel was compiled for.
    """
    compiled._init_handles()
    metadata = compiled.metadata

    def by_triton(*given: torch.Tensor) -> None:
        with torch.cuda.device(device):
            compiled[grid](*given, *sizes, *constants)

    scratch = getattr(metadata, "global_scratch_size", 0) or getattr(metadata, "profile_scratch_size", 0)
    if torch.version.hip or scratch:
        return by_triton

    # All that CUDA's driver wants to know, in the driver's own form. Only addresses and the stream will change.
    driver = ctypes.PyDLL("libcuda.so.1")
    addresses = [ctypes.c_uint64() for _ in range(tensors)]
    kinds = [kind for kind in compiled.src.signature.values() if kind in ("i32", "i64")]
    numbers = [
        ctypes.c_int64(size) if kind == "i64" else ctypes.c_int32(size)
        for kind, size in zip(kinds, sizes, strict=True)
    ]
    # Two more pointers, to scratch memory, which these kernels do not need. Older versions of Triton have fewer of
    # them; the driver does not look at what a kernel does not have.
    values = [*addresses, *numbers, ctypes.c_uint64(), ctypes.c_uint64()]
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
    current_device = torch.cuda.current_device

    def call(*given: torch.Tensor) -> None:
        hook = knobs.launch_enter_hook  # of a profiler. Newer versions of Triton have a list of them, mostly empty
        if current_device() != device or hook is not None and getattr(hook, "calls", True):
            return by_triton(*given)
        for address, tensor in zip(addresses, given):  # noqa: B905
            address.value = tensor.data_ptr()
        config.stream = stream_of(device)
        code = launch(*arguments)
        if code:
            _check(code)

    call.values = values  # the driver reads what `pointers` point to, so it must live as long
    return call


def _check(code: int) -> None:
    if code:
        raise RuntimeError(f"CUDA's driver refused a launch: error {code}")

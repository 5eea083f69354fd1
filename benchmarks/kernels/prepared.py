"""A compiled Triton kernel with its arguments, to be launched with new tensors in few microseconds.

`kernel[grid](...)` looks at every argument again in each call: its type, whether it is 1 or a multiple of 16, whether
the kernel is compiled for all that. The host takes longer for it than a GPU for a small matrix.
"""

import ctypes

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


class Prepared:
    """`prepared(*tensors)` launches a compiled kernel on the current stream of its device.

    compiled: what `kernel.warmup` returned. tensors: how many come first among the kernel's arguments. sizes: the
    integers that follow them. constants: the constexprs, which end the list. Pointers must be as aligned as those
    that the kernel was compiled for.
    """

    def __init__(self, compiled, grid: tuple, device: int, tensors: int, sizes: tuple, constants: tuple):
        compiled._init_handles()
        self.compiled, self.grid, self.device, self.rest = compiled, grid, device, (*sizes, *constants)
        self.knobs = triton.knobs.runtime
        self.stream_of = triton.runtime.driver.active.get_current_stream
        self.launch = None
        if not torch.version.hip:
            self._fill_in(compiled, grid, tensors, sizes)

    def _fill_in(self, compiled, grid: tuple, tensors: int, sizes: tuple) -> None:
        """All that CUDA's driver wants to know, in the driver's own form; only addresses and the stream will change."""
        driver = ctypes.PyDLL("libcuda.so.1")
        metadata = compiled.metadata
        programs = metadata.num_ctas
        self.addresses = [ctypes.c_uint64() for _ in range(tensors)]
        types = [kind for kind in compiled.src.signature.values() if kind in ("i32", "i64")]
        numbers = [
            ctypes.c_int64(size) if kind == "i64" else ctypes.c_int32(size)
            for kind, size in zip(types, sizes, strict=True)
        ]
        # Two more pointers, to memory for scratch work, which these kernels do not need. Older versions of Triton have
        # fewer of them, and the driver does not look at what the kernel does not have.
        if getattr(metadata, "global_scratch_size", 0) or getattr(metadata, "profile_scratch_size", 0):
            return
        values = [*self.addresses, *numbers, ctypes.c_uint64(), ctypes.c_uint64()]
        self.values = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        self.kept = values
        self.function = ctypes.c_void_p(compiled.function)
        self.config = _Config(shared=metadata.shared)
        self.config.grid[:] = (grid[0] * programs, grid[1], grid[2])
        self.config.block[:] = (32 * metadata.num_warps, 1, 1)
        if programs > 1:
            self.attributes = (_Attribute * 2)()
            self.attributes[0].id, self.attributes[1].id = CLUSTER_DIMENSION, CLUSTER_SCHEDULING_POLICY
            self.attributes[0].value[:3] = (programs, 1, 1)
            self.attributes[1].value[0] = SPREAD
            self.config.attributes, self.config.count = self.attributes, 2
        if programs > 8:
            _check(driver.cuFuncSetAttribute(self.function, NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1))
        self.launch = driver.cuLaunchKernelEx
        self.launch_arguments = (ctypes.byref(self.config), self.function, self.values, None)

    def __call__(self, *tensors: torch.Tensor) -> None:
        if torch.cuda.current_device() != self.device:
            with torch.cuda.device(self.device):
                return self(*tensors)
        if self.launch is None or self.knobs.launch_enter_hook is not None:  # a profiler wants to know of each launch
            return self.compiled[self.grid](*tensors, *self.rest)
        for address, tensor in zip(self.addresses, tensors, strict=True):
            address.value = tensor.data_ptr()
        self.config.stream = self.stream_of(self.device)
        _check(self.launch(*self.launch_arguments))


def _check(code: int) -> None:
    if code:
        raise RuntimeError(f"CUDA's driver refused a launch: error {code}")

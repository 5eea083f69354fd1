"""Where kernels run: on an accelerator, or on the CPU by `workshop.executor`; what torch and Triton call that device.

`choose` decides it. The other functions say what was decided. What is saved calls a machine without a GPU
"interpreter": the executor is one. What Python and torch are to do otherwise in this process is here, too.
"""

import functools
import gc
import importlib.util
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

SWITCH = "TRITON_INTERPRET"
WISHED = os.environ.get(SWITCH, "").lower() in ("1", "true", "yes", "on", "y")  # to run without the GPU that is here

INTERPRETED = (
    f"triton was imported with {SWITCH}=1 before workshop, so kernels run on Triton's own interpreter, where nothing "
    "checks an access to memory. Restart the kernel (Kernel > Restart) and make `import workshop` the first import."
)


def accelerator_visible() -> bool:
    """Whether torch sees an accelerator, of any vendor. Leaves the process safe to fork."""
    import torch

    key = "PYTORCH_NVML_BASED_CUDA_CHECK"  # ask the management library, do not start CUDA
    with kept(key):
        os.environ[key] = "1"
        return torch.accelerator.is_available()


def choose() -> bool:
    """Whether this course's executor is to run all kernels: there is no accelerator, or TRITON_INTERPRET=1 is set.

    Triton itself is always imported as on a GPU, so that its compiler is there, too. Raises ImportError without Triton.
    """
    if WISHED and "triton" in sys.modules:
        warnings.warn(INTERPRETED, RuntimeWarning, stacklevel=3)
        return False
    if WISHED:
        os.environ[SWITCH] = "0"
    if importlib.util.find_spec("triton") is None:
        raise ImportError("triton is not installed")
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")  # Triton's default, about which 3.9 would warn
    from workshop.executor import without_native

    without_native.install()
    return interpreting()


@functools.cache
def interpreting() -> bool:
    """Whether kernels run on the CPU: there is no accelerator, or the user has set TRITON_INTERPRET=1."""
    return WISHED or not accelerator_visible()


@functools.cache
def torch_device():
    """The torch.device that tensors belong on: the accelerator's, or the CPU. Raises RuntimeError without a driver."""
    import torch

    return torch.device("cpu") if interpreting() else driver().get_active_torch_device()


def driver():
    """Triton's active driver. Raises RuntimeError, with what to do, when there is none."""
    from triton.runtime import driver as drivers

    try:
        return drivers.active
    except RuntimeError as error:
        raise RuntimeError(
            f"torch sees an accelerator, but Triton finds no driver for it ({error}). `workshop doctor` says what is "
            f"missing. To run kernels without it, start Python with {SWITCH}=1."
        ) from error


@contextmanager
def kept(variable: str) -> Iterator[None]:
    """Afterwards this variable of the environment is what it was."""
    before = os.environ.get(variable)
    try:
        yield
    finally:
        os.environ.pop(variable, None)
        if before is not None:
            os.environ[variable] = before


@contextmanager
def uncollected() -> Iterator[None]:
    """For imports of large packages: collects no garbage now, and never looks at the objects that exist in the end.

    torch and Triton make a quarter of a million objects that live as long as the process. The collector would look
    at all of them several times, and once more when Python ends. A fork would copy each page that it looks at.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()

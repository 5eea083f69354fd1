"""Where kernels run: on an accelerator or on Triton's interpreter, and what torch and Triton call that device.

`choose` decides it, before Triton is imported. The other functions say what was decided.
"""

import functools
import os
import sys
import warnings

SWITCH = "TRITON_INTERPRET"

TOO_LATE = (
    "triton was imported before workshop on a machine without a GPU, so its interpreter is off and no kernel "
    "can run here. Restart the kernel (Kernel > Restart) and make `import workshop` the first import, "
    f"or start Python with {SWITCH}=1."
)


def accelerator_visible() -> bool:
    """Whether torch sees an accelerator, of any vendor. Leaves the process safe to fork."""
    import torch

    key = "PYTORCH_NVML_BASED_CUDA_CHECK"  # ask the management library, do not start CUDA
    before = os.environ.get(key)
    os.environ[key] = "1"
    try:
        return torch.accelerator.is_available()
    finally:
        if before is None:
            del os.environ[key]
        else:
            os.environ[key] = before


def choose() -> None:
    """Turn Triton's interpreter on where torch sees no accelerator. A value that is already set is kept."""
    if SWITCH in os.environ or accelerator_visible():
        return
    if "triton" in sys.modules:
        warnings.warn(TOO_LATE, RuntimeWarning, stacklevel=3)
        return
    os.environ[SWITCH] = "1"
    # Rows that begin with -inf, and the empty half of a masked block, make numpy warn where a GPU is silent.
    warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"triton\.runtime\.interpreter")


def interpreting() -> bool:
    """Whether kernels run on Triton's interpreter: what was in force when triton was imported."""
    import triton
    import triton.language as tl

    return not isinstance(tl.sum, triton.JITFunction)


@functools.cache
def torch_device():
    """The torch.device that tensors belong on: the accelerator's, or the CPU on the interpreter.

    Raises RuntimeError when Triton finds no driver and its interpreter is off.
    """
    import torch

    return torch.device("cpu") if interpreting() else driver().get_active_torch_device()


def device_interface():
    """torch's module for the active driver's device (torch.cuda, torch.xpu, ...): Event, synchronize."""
    return driver().get_device_interface()


def driver():
    """Triton's active driver. Raises RuntimeError, with what to do, when there is none."""
    from triton.runtime import driver as drivers

    try:
        return drivers.active
    except RuntimeError as error:
        raise RuntimeError(
            f"Triton finds no GPU driver ({error}). Without a GPU, start Python with TRITON_INTERPRET=1 or "
            "import workshop before triton. With one, `workshop doctor` says what is missing."
        ) from error

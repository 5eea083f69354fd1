"""Decides, before Triton is imported, whether its kernels run on an accelerator or on its interpreter."""

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

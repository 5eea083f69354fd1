"""What is installed here, and names that only some versions of Triton have. It imports none of them."""

import contextlib
import platform
from importlib import metadata

PACKAGES = {  # a verdict depends on their versions; with the distributions that may contain them
    "triton": ("triton", "triton-rocm", "pytorch-triton-rocm", "pytorch-triton", "triton-xpu"),
    "torch": ("torch",),
    "numpy": ("numpy",),
    "jax": ("jax",),
    "jaxlib": ("jaxlib",),
    "jax-triton": ("jax-triton",),
}

# Found by comparing Triton 3.4 to 3.9. For each name: the first version that has it, and the first later version that
# does not. "" means: no such version.
FUNCTIONS = {
    "tl.mul": ("3.6", ""),
    "tl.sub": ("3.6", ""),
    "tl.squeeze": ("3.7", ""),
    "tl.unsqueeze": ("3.7", ""),
    "tl.advance": ("", "3.9"),
    "tl.make_block_ptr": ("", "3.9"),
}
LAUNCH_OPTIONS = {
    "cluster_dims": ("", "3.6"),
    "instrumentation_mode": ("3.5", ""),
    "warp_size": ("3.5", ""),
    "enable_reflect_ftz": ("3.6", ""),
    "llvm_fn_attrs": ("3.8", ""),
    "clc": ("3.9", ""),
    "min_shared_mem": ("3.9", ""),
    "sched4reg": ("3.9", ""),
    "wgp_cu_mode": ("3.9", ""),
}


def stack() -> dict[str, str]:
    """The versions that a verdict depends on: Python and the installed packages, by name."""
    found = {"python": platform.python_version()}
    for package, distributions in PACKAGES.items():
        for distribution in distributions:
            with contextlib.suppress(metadata.PackageNotFoundError):
                found.setdefault(package, metadata.version(distribution))
    return found


def when(construct: str) -> str:
    """A sentence about the versions that have `construct` (`tl.mul`, `clc`); "" if it is not listed."""
    since, until = (FUNCTIONS | LAUNCH_OPTIONS).get(construct, ("", ""))
    removed = f"Triton {until} removed it." if until else ""
    return f"Triton {since} introduced it." if since else removed

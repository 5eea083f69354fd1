"""Makes `import jax_triton` work on every machine. It imports no part of JAX before the lesson does.

Without a GPU the real jax-triton refuses to be imported, and `workshop.jax_cpu` stands in for it. With one,
the real package is used. Two faults of its release 0.3.1 are repaired after the import:

* its import empties TRITON_CACHE_DIR (0.4.0 removes it), after which every other use of Triton in the process
  fails or loses its cache;
* on AMD GPUs with Triton 3.7 and newer it ends in KeyError: 'num_ctas', because the compiler reads that
  entry of the metadata and jax-triton hands over metadata without it.
"""

import contextlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable
from types import ModuleType

from workshop.backend import interpreting, kept

NAME = "jax_triton"


def install() -> None:
    """From now on `import jax_triton` goes through this module. Installing twice changes nothing."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds jax_triton, and loads the stand-in."""

    def find_spec(self, name, path=None, target=None):
        if name != NAME:
            return None
        if interpreting():
            return importlib.machinery.ModuleSpec(name, self)
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None:
            execute = spec.loader.exec_module
            spec.loader.exec_module = lambda module: repaired(execute, module)
        return spec

    def create_module(self, spec):
        if importlib.util.find_spec("jax") is None:
            raise ModuleNotFoundError("JAX is not installed here: pip install jax", name="jax")
        return importlib.import_module("workshop.jax_cpu")

    def exec_module(self, module):
        """Importing it has executed it."""


def repaired(execute: Callable[[ModuleType], None], module: ModuleType) -> None:
    """Execute the real package, with the repairs after it."""
    with kept("TRITON_CACHE_DIR"):
        execute(module)
    give_amd_its_num_ctas()


def give_amd_its_num_ctas() -> None:
    """Let Triton's AMD compiler find the number of thread blocks in a cluster where jax-triton omits it."""
    with contextlib.suppress(ImportError):
        from triton.backends.amd.compiler import HIPBackend

        make_llir = HIPBackend.make_llir

        def make_llir_with_num_ctas(source, metadata, options):
            metadata.setdefault("num_ctas", getattr(options, "num_ctas", 1))
            return make_llir(source, metadata, options)

        HIPBackend.make_llir = staticmethod(make_llir_with_num_ctas)

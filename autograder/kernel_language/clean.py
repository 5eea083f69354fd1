"""From a learner's source to clean kernels, and from clean kernels to functions."""

from __future__ import annotations

import linecache
from collections.abc import Iterable

from .module import Module, measure, parse
from .page import Page
from .records import KernelSource, NotAllowed
from .translator import Translator
from .words import MAX_NODES


def kernels_of(source: str, only: Iterable[str] | None = None) -> KernelSource:
    """Read the jit functions of `source` (a whole cell or file, host code included) without running it.

    With `only`, read just these kernels and the helpers that they call. Raises NotAllowed at the first construct
    that is not part of the language, or if a name in `only` is not a top-level jit function.
    """
    module = Module(parse(source))
    wanted = list(module.functions) if only is None else list(only)
    for name in wanted:
        if name not in module.functions:
            raise NotAllowed(
                1, f"`{name}`, which is not a function under `@triton.jit`,", "define it at top level"
            )
    page, kernels, budget = Page(), {}, MAX_NODES
    while wanted:
        name = wanted.pop(0)
        if name in kernels:
            continue
        function = module.functions[name]
        budget -= measure(function)
        if budget < 0:
            raise NotAllowed(function.lineno, "such a long kernel", "shorten it")
        translator = Translator(module, function)
        kernels[name] = translator.emit(page)
        wanted += sorted(translator.helpers)
    page.prelude(module)
    order = [name for name in module.functions if name in kernels]
    constants = {name: module.constants[name].value for name in sorted(module.used)}
    return KernelSource(page.text(), {name: kernels[name] for name in order}, constants)


def define(kernels: KernelSource, filename: str = "<answer>") -> dict[str, object]:
    """Execute the clean source and return its namespace. Tracebacks and inspect show `filename`."""
    lines = kernels.source.splitlines(keepends=True)
    linecache.cache[filename] = (len(kernels.source), None, lines, filename)
    namespace: dict[str, object] = {"__name__": "answer"}
    exec(compile(kernels.source, filename, "exec"), namespace)
    return namespace

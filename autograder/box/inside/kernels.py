"""Loads clean copies of the learner's kernels, built from the syntax tree that the kernel language allows.

Runs in a child of the zygote that replays, compiles or times launches. The learner's Python does not run there.
"""

from __future__ import annotations

from ... import kernel_language
from ..wire.requests import TemplateRequest
from .learner import load


class Kernels(dict):
    """For each blank, the template's kernels with only that expression, by name. The key None is the whole answer.

    launched: the kernels to read. Others are read only if these call them.
    """

    def __init__(self, source: str, launched: list[str], template: TemplateRequest | None = None):
        super().__init__()
        self.source, self.launched, self.template = source, launched, template

    def __missing__(self, blank: str | None):
        source = self._with_blank(blank) if blank else self.source
        kernels = kernel_language.kernels_of(source, self.launched)
        namespace = load(kernels.source)
        self[blank] = {name: namespace[name] for name in kernels.kernels}
        return self[blank]

    def _with_blank(self, blank: str) -> str:
        kernel, text = self.template.kernel, self.template.source
        expressions = kernel_language.blank_expressions(self.source, kernel, self.template.names, text)
        if isinstance(expressions[blank], kernel_language.NotAllowed):
            raise expressions[blank]
        return kernel_language.splice(text, kernel, {blank: expressions[blank]})


def launched(traces: list[dict]) -> list[str]:
    """The kernels that the traces launch."""
    steps = (step for trace in traces for step in trace["steps"])
    return sorted({str(step["kernel"]) for step in steps if step.get("op") == "launch"})

"""Programs of launched kernels: made beside the learner's Python, sent as text, and read where that Python is not.

A program is named by the digest of its text, so two that do the same are one.
"""

from __future__ import annotations

import json

from triton.compiler import CompilationError

from workshop.executor import codec, launch
from workshop.executor.facts import unused
from workshop.executor.program import Program, values

from ..wire.answers import digest_of
from .trace import NotReplayable, numbers

MAX_UNUSED = 8  # of a program


class Programs:
    """Reads kernels with Triton's front end, in a planning process. `texts`: what came of it, by digest.

    known: what an earlier process with the same modules found.
    """

    def __init__(self, backend: str, known: dict[str, dict] | None = None):
        # Without a GPU, a kernel must be right for both vendors. Rarely their programs differ.
        self.targets = {"cuda": ["cuda"], "hip": ["hip"], "interpreter": ["cuda", "hip"]}[backend]
        self.texts: dict[str, str] = {}
        self.sent: set[str] = set()
        self._known = known or {}
        self._found = dict(self._known)  # by a digest of its arguments, what `of` gives; by kernel, if vendors differ

    def of(self, kernel, special: launch.Specialisation, options: dict) -> dict[str, object]:
        """The digests of a launch's programs: "program", and "hip" where AMD's is another one. And what is "unused".

        Raises what Triton's front end raises.
        """
        key = digest_of(repr(launch.key_of(kernel, special, options)))
        if key not in self._found:
            self._found[key] = self._read(kernel, special, options)
        launch.check_globals(kernel)
        return self._found[key]

    def _read(self, kernel, special: launch.Specialisation, options: dict) -> dict[str, object]:
        program = launch.lowered(kernel, special, options, self.targets[0])
        labels = [label for label, *_ in special.arguments]
        found = {"program": self._digest(program), "unused": [list(each) for each in unused(program, labels)]}
        del found["unused"][MAX_UNUSED:]
        for target in self.targets[1:]:
            if self._found.get(kernel.cache_key, {}).get("alike"):
                continue
            try:
                other = self._digest(launch.lowered(kernel, special, options, target))
            except CompilationError:  # such as input_precision="tf32x3": one compiler that accepts it is enough
                continue
            self._found.setdefault(kernel.cache_key, {"alike": other == found["program"]})
            if other != found["program"]:
                found[target] = other
        return found

    def _digest(self, program: Program) -> str:
        text = json.dumps(codec.to_data(program), separators=(",", ":"))
        digest = digest_of(text)
        self.texts[digest] = text
        return digest

    def unsent(self, trace: dict) -> dict[str, str]:
        """Those that a trace names and no earlier one named, by digest."""
        names = {name for name in _named(trace) if name in self.texts and name not in self.sent}
        self.sent |= names
        return {name: self.texts[name] for name in names}

    def news(self) -> dict[str, dict]:
        """What was found, for a later process. The judge has all its programs."""
        sent = {key: each for key, each in self._found.items() if set(_named({"steps": [each]})) <= self.sent}
        return {key: each for key, each in sent.items() if key not in self._known}


def _named(trace: dict) -> list[str]:
    """The programs that a trace names."""
    found = []
    for step in trace.get("steps", ()):
        found += [step.get("program"), step.get("hip")]
        found += [digest for _, digest in (step.get("tuned") or {}).get("others", ())]
    return [name for name in found if name]


class Known(dict):
    """Programs by digest, read when they are needed. Raises NotReplayable for what is no program."""

    def __init__(self, texts: dict[str, str]):
        super().__init__()
        self.texts = texts

    def __missing__(self, digest: str) -> Program:
        if digest not in self.texts:
            raise NotReplayable("a launch names a program that was not sent")
        try:
            self[digest] = codec.from_data(json.loads(self.texts[digest]))
        except (codec.BadProgram, ValueError, RecursionError) as error:
            raise NotReplayable(f"a program cannot be read: {str(error)[:200]}") from None
        return self[digest]


def constants(program: Program) -> int:
    """How many numbers of 31 bits the constants of a program may carry."""
    given = (value for each in program.operations() for arg in each.args for value in values(arg))
    return numbers([list(each) for each in {value.constant for value in given if value.constant}])

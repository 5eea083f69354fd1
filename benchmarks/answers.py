"""The course's own solutions as importable functions, for the benchmarks."""

import ast
import importlib.util
import tempfile
from pathlib import Path
from types import ModuleType

from workshop.hints import SOLUTIONS, solution_source
from workshop.syllabus import find


def load(exercise: str) -> ModuleType:
    """A module with the exercise's answer cell, under the imports of its lesson.

    It is written to a file, because Triton reads a kernel's source from one.
    """
    script = (SOLUTIONS / f"{find(exercise).notebook}.py").read_text(encoding="utf-8")
    imports = [node for node in ast.parse(script).body if isinstance(node, (ast.Import, ast.ImportFrom))]
    folder = tempfile.TemporaryDirectory(prefix="answers-")
    path = Path(folder.name, f"{exercise}.py")
    path.write_text("\n".join([*map(ast.unparse, imports), solution_source(exercise)]), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(exercise, path)
    module = importlib.util.module_from_spec(spec)
    module.folder = folder  # lives as long as the module
    spec.loader.exec_module(module)
    return module

"""`workshop new-kernel NAME`: a small package with an operator, its tests and a benchmark, to take along.

The operator is the learner's own rms_norm_op if lesson 10 is here and it has passed, and else an example. The package
needs torch and Triton, and nothing of this course.
"""

from __future__ import annotations

import json
import keyword
from collections.abc import Iterator
from pathlib import Path
from string import Template
from typing import NamedTuple

from workshop.progress import progress

LESSON, ANSWERS = "10_ship_it.ipynb", ("rms_norm", "rms_norm_op")

IMPORTS = '''"""$about"""

import os

import torch
import triton
import triton.language as tl
from torch.library import custom_op, triton_op, wrap_triton

if os.environ.get("TRITON_INTERPRET") == "1":  # Triton's interpreter runs kernels, and torch cannot look into them

    def wrap_triton(kernel):
        return kernel

'''

EXAMPLE = '''
@triton.jit
def scale_kernel(x_ptr, y_ptr, a, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(y_ptr + offsets, a * x, mask=offsets < n)


@triton_op("$name::scale", mutates_args=())
def scale(x: torch.Tensor, a: float) -> torch.Tensor:
    """a * x, contiguous."""
    x = x.contiguous()
    y = torch.empty_like(x)
    n = x.numel()
    wrap_triton(scale_kernel)[(triton.cdiv(n, 1024),)](x, y, a, n, BLOCK=1024)
    return y


def setup_context(ctx, inputs, output):
    ctx.a = inputs[1]


def backward(ctx, dy):
    return scale(dy, ctx.a), None


scale.register_autograd(backward, setup_context=setup_context)
'''


class Operator(NamedTuple):
    """What a package holds. inputs, reference: Python for the tests; `m` rows and `n` columns."""

    function: str
    source: str
    inputs: str
    reference: str
    about: str


RMS_NORM = Operator(
    "rms_norm_op",
    "",
    "torch.randn(m, n, device=DEVICE, requires_grad=True), torch.rand(n, device=DEVICE, requires_grad=True), 1e-5",
    "lambda x, weight, eps: torch.nn.functional.rms_norm(x, weight.shape, weight, eps)",
    "RMS norm with its gradients, as an operator of torch.",
)
SCALE = Operator(
    "scale",
    EXAMPLE,
    "torch.randn(m, n, device=DEVICE, requires_grad=True), 2.5",
    "lambda x, a: a * x",
    "An operator of torch that is a Triton kernel.",
)

FILES = {
    "pyproject.toml": """[build-system]
requires = ["setuptools>=61"]
build-backend = "setuptools.build_meta"

[project]
name = "$name"
version = "0.1.0"
description = "$about"
requires-python = ">=3.10"
dependencies = ["torch", "triton"]
""",
    "README.md": """# $name

$about

```python
from $name import $function
```

`pytest` runs the tests: on a GPU, or without one on Triton's interpreter. There, what torch.compile makes of the
operator is not tested. `python benchmarks/speed.py` measures it on a GPU. `pip wheel --no-deps .` builds a wheel;
without a network, add `--no-build-isolation`.
""",
    "tests/conftest.py": '''"""Without a GPU, kernels run on Triton's interpreter."""

import os

import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"
    from triton.runtime.autotuner import Autotuner

    def first(tuner, *args, **kwargs):
        return tuner.fn.run(*args, **kwargs, **tuner.configs[0].all_kwargs())

    Autotuner.run = first  # there is no speed to compare
''',
    "tests/test_$name.py": '''import pytest
import torch

from $name import $function

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SHAPES = [(1, 1), (3, 100), (17, 1025), (5, 3000)]
reference = $reference


def inputs(m, n):
    torch.manual_seed(0)
    return $inputs


def both(function, given):
    """The result, and the gradient of each tensor that has one."""
    y = function(*given)
    tensors = [each for each in given if isinstance(each, torch.Tensor)]
    return y, *torch.autograd.grad(y, tensors, torch.cos(torch.arange(y.numel(), device=DEVICE)).reshape(y.shape))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_values_and_gradients(shape):
    given = inputs(*shape)
    torch.testing.assert_close(both($function, given), both(reference, given), rtol=1e-4, atol=1e-4)


@pytest.mark.skipif(DEVICE == "cpu", reason="Triton's interpreter cannot be traced")
def test_torch_compile_makes_one_graph():
    given = inputs(17, 1025)
    compiled = torch.compile($function, fullgraph=True)
    torch.testing.assert_close(both(compiled, given), both(reference, given), rtol=1e-4, atol=1e-4)
''',
    "benchmarks/speed.py": '''"""GB/s of $function beside torch, on a GPU: one matrix read, one written."""

import torch
import triton

from $name import $function

DEVICE = "cuda"
reference = $reference


def inputs(m, n):
    return $inputs


@triton.testing.perf_report(
    triton.testing.Benchmark(
        x_names=["n"],
        x_vals=[2**power for power in range(8, 16)],
        line_arg="provider",
        line_vals=["$function", "torch"],
        line_names=["$function", "torch"],
        ylabel="GB/s",
        plot_name="$name",
        args={},
    )
)
def speed(n, provider):
    given = inputs(2**27 // n, n)
    function = $function if provider == "$function" else reference
    milliseconds = triton.testing.do_bench(lambda: function(*given))
    return 2 * given[0].nbytes / milliseconds / 1e6


if __name__ == "__main__":
    speed.run(print_data=True, save_path=".")
''',
}


def write(name: str, notebook: Path | None = None, folder: Path | None = None) -> tuple[Path, str]:
    """Makes the folder `name` of a package, and returns it with the name of its function.

    notebook: the learner's lesson 10; None looks for it here and in notebooks/. Raises ValueError for a name that
    Python cannot import, and FileExistsError.
    """
    if not name.isidentifier() or keyword.iskeyword(name) or name in ("torch", "triton", "tests", "benchmarks"):
        raise ValueError(f"{name!r} cannot be the name of a package; take letters, digits and _")
    target = (folder or Path.cwd()) / name
    target.mkdir()
    operator = _own(notebook) or SCALE._replace(source=Template(EXAMPLE).substitute(name=name))
    words = operator._asdict() | {"name": name}
    for path, text in (FILES | {"src/$name/__init__.py": IMPORTS + "$source"}).items():
        file = target / Template(path).substitute(words)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(Template(text).substitute(words), encoding="utf-8")
    return target, operator.function


def _own(notebook: Path | None) -> Operator | None:
    """The learner's rms_norm_op, if it has passed and lesson 10 is found."""
    if not progress().entry(ANSWERS[-1]).passed:
        return None
    known = [notebook] if notebook else [Path(LESSON), Path("notebooks", LESSON)]
    for path in known:
        if path.is_file() and (cells := list(_answers(path))):
            return RMS_NORM._replace(source="\n\n".join(["", *cells]).rstrip() + "\n")
    return None


def _answers(notebook: Path) -> Iterator[str]:
    """The text of the answer cells of a notebook, without the lines that are no Python."""
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        if cell.get("metadata", {}).get("nbgrader", {}).get("grade_id") in ANSWERS:
            lines = "".join(cell["source"]).splitlines()
            yield "\n".join(line for line in lines if not line.startswith(("%", "!")))

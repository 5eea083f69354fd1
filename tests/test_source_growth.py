"""Reading an answer takes time in proportion to its length, whatever it nests.

A chain of 24 `elif` once took exponential time. So each way to nest or to repeat is written by a generator here.
"""

import contextlib
import time

import pytest

from autograder.answer import from_history
from autograder.exercises.vector_add import ADD_TEMPLATE
from autograder.kernel_language import NotAllowed, kernels_of

SECONDS = 3.0  # of computing; exponential time needs years for 60 levels
DEEPEST_BLOCK = 18  # Python itself refuses more than 20 blocks of loops, `try` and `with`


def nested(opening, n, last="A = 1\n"):
    return "".join("    " * i + opening.format(i=i) + "\n" for i in range(n)) + "    " * n + last


def attempts(n):
    closing = "".join("    " * i + "except ValueError:\n" + "    " * i + "    A = 2\n" for i in reversed(range(n)))
    return nested("try:", n) + closing


MODULES = {
    "elif": lambda n: "if K == 0:\n    A = 0\n" + "".join(f"elif K == {i}:\n    A = {i}\n" for i in range(n)),
    "if": lambda n: nested("if K:", n),
    "for": lambda n: nested("for i{i} in range(1):", min(n, DEEPEST_BLOCK)),
    "while": lambda n: nested("while K:", min(n, DEEPEST_BLOCK)),
    "with": lambda n: nested("with open('x'):", min(n, DEEPEST_BLOCK)),
    "try": lambda n: attempts(min(n, DEEPEST_BLOCK)),
    "match": lambda n: "match K:\n" + "".join(f"    case {i}:\n        A = {i}\n" for i in range(n)),
    "functions": lambda n: nested("def f{i}():", n) + "A = f0\n",
    "classes": lambda n: nested("class C{i}:", n) + "A = C0\n",
    "lambda": lambda n: "A = " + "".join(f"lambda x{i}: " for i in range(n)) + "1\n",
    "comprehension": lambda n: "A = " + "[" * n + "1" + "".join(f" for x{i} in range(1)]" for i in range(n)) + "\n",
    "call": lambda n: "A = " + "abs(" * n + "1" + ")" * n + "\n",
    "sum": lambda n: "A = " + " + ".join(["K"] * n) + "\n",
    "power": lambda n: "A = " + "**".join(["2"] * n) + "\n",
    "conditional": lambda n: "A = " + " if K else ".join(map(str, range(n))) + "\n",
    "doubling": lambda n: "A0 = 1\n" + "".join(f"A{i + 1} = A{i} + A{i}\n" for i in range(n)) + f"A = A{n}\n",
    "everyone calls everyone": lambda n: "".join(
        f"def f{i}():\n    return {' + '.join(f'f{j}()' for j in range(n))}\n" for i in range(n)
    ) + "A = f0\n",
    "changed in place": lambda n: "A = []\n" + "A.append(A)\n" * n,
    "decorators": lambda n: "".join(f"@K{i}\n" for i in range(n)) + "def A():\n    pass\n",
}
KERNELS = {
    "elif": lambda n: "    if BLOCK_SIZE == 0:\n        pass\n"
    + "".join(f"    elif BLOCK_SIZE == {i}:\n        pass\n" for i in range(n)),
    "if": lambda n: "".join("    " * (i + 1) + "if n_elements > 0:\n" for i in range(n)) + "    " * (n + 1) + "pass\n",
    "conditional": lambda n: "    k = " + " if BLOCK_SIZE else ".join(map(str, range(n))) + "\n",
    "sum": lambda n: "    k = " + " + ".join(["BLOCK_SIZE"] * n) + "\n",
    "doubling": lambda n: "    k0 = 1\n" + "".join(f"    k{i + 1} = k{i} + k{i}\n" for i in range(n)),
}


def seconds_to_read(source):
    start = time.process_time()
    answer = from_history([source], ["add"])
    with contextlib.suppress(NotAllowed):  # too deep, and told so
        kernels_of(answer)
    return time.process_time() - start


@pytest.mark.parametrize("n", [24, 60])
@pytest.mark.parametrize("name", MODULES)
def test_beside_the_kernel(name, n):
    used = ADD_TEMPLATE.replace("    output = torch.empty_like(x)", "    A\n    output = torch.empty_like(x)")
    assert used != ADD_TEMPLATE
    assert seconds_to_read("K = 3\n" + MODULES[name](n) + used) < SECONDS


@pytest.mark.parametrize("n", [24, 60])
@pytest.mark.parametrize("name", KERNELS)
def test_in_the_kernel(name, n):
    line = "    pid = tl.program_id"
    assert line in ADD_TEMPLATE
    assert seconds_to_read(ADD_TEMPLATE.replace(line, KERNELS[name](n) + line, 1)) < SECONDS


def test_helper_functions_that_each_call_the_next_one_twice():
    helpers = "".join(f"@triton.jit\ndef h{i}(x):\n    return h{i + 1}(x) + h{i + 1}(x)\n\n\n" for i in range(40))
    last = "@triton.jit\ndef h40(x):\n    return x\n\n\n"
    used = ADD_TEMPLATE.replace("output = x + y", "output = h0(x) + y")
    assert used != ADD_TEMPLATE
    assert seconds_to_read("import triton\n" + helpers + last + used) < SECONDS

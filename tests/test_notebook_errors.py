"""What a notebook shows when a kernel goes wrong: few lines, one of them the learner's, and the kernel lives on."""

import re
import time

import nbformat
import pytest
from jupyter_client.manager import start_new_kernel
from nbclient import NotebookClient

from autograder.box.inside.zygote import cpu_seconds
from workshop.backend import interpreting

pytestmark = pytest.mark.skipif(not interpreting(), reason="on a GPU the driver speaks")

FIRST = """\
import torch
import triton
import triton.language as tl
import workshop
x = torch.zeros(3000)
"""
HEAD = "@triton.jit\ndef k(x_ptr, n, BLOCK: tl.constexpr):\n    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
LAUNCH = "\nk[(3,)](x, 3000, BLOCK=1024)"

MISTAKES = {
    "a store without a mask": (
        HEAD + "    tl.store(x_ptr + o, 1.0)" + LAUNCH,
        ["k writes outside of x_ptr", "line 4:", "tl.store(x_ptr + o, 1.0)", "72 lanes", "element 3000, 1 past the end",
         "Here nothing was written", "Try: give every load and store a mask"],
    ),
    "a pointer plus a number": (
        "@triton.jit\ndef k(x_ptr, n, BLOCK: tl.constexpr):\n    tl.store(x_ptr + n + tl.program_id(0), 1.0)" + LAUNCH,
        ["k writes outside of x_ptr", "Program 0 writes outside of x_ptr at element 3000", "Try: check the number"],
    ),
    "a load in a gap": (
        HEAD + "    tl.load(x_ptr + o)\nk[(3,)](torch.zeros(30, 200)[:, :100], 3000, BLOCK=1024)",
        ["k reads outside of x_ptr", "row 0, column 100, in the gap between the rows", "Try: step from row to row"],
    ),
    "a name that is not there": (
        HEAD + "    tl.store(x_ptr + o, tl.softmaks(o))" + LAUNCH,
        ["k is not accepted by Triton", "line 4:", "has no attribute 'softmaks'", "Try: correct the spelling"],
    ),
    "a function of torch": (
        HEAD + "    tl.store(x_ptr + o, torch.exp(o))" + LAUNCH,
        ["k is not accepted by Triton", "line 4:", "Try: a kernel calls functions of tl"],
    ),
    "a block as a condition": (
        HEAD + "    if o < n:\n        tl.store(x_ptr + o, 1.0)" + LAUNCH,
        ["k is not accepted by Triton", "line 4:", "if o < n:", "Try: write the line with tl.where"],
    ),
    "an index on a pointer": (
        HEAD + "    tl.store(x_ptr + o, x_ptr[o])" + LAUNCH,
        ["k is not accepted by Triton", "line 4:", "Try: write tl.load(x_ptr + offsets, mask=mask), not x_ptr"],
    ),
    "a forgotten argument": (
        HEAD + "    tl.store(x_ptr + o, 1.0, mask=o < n)\nk[(3,)](x, BLOCK=1024)",
        ["k was not launched", "line 5:", "k[(3,)](x, BLOCK=1024)", "missing a required argument: 'n'"],
    ),
    "a misspelt option": (
        HEAD + "    tl.store(x_ptr + o, 1.0, mask=o < n)\nk[(3,)](x, 3000, BLOCK=1024, num_warp=8)",
        ["k was not launched", "has no parameter 'num_warp'", "Try: correct the spelling"],
    ),
    "a grid that is a number": (
        HEAD + "    tl.store(x_ptr + o, 1.0, mask=o < n)\nk[3](x, 3000, BLOCK=1024)",
        ["k was not launched", "a launch grid is a tuple, such as (3,)", "Try: write the comma"],
    ),
    "a loop without a step": (
        HEAD + "    i = 0\n    while i < n:\n        tl.store(x_ptr, i)" + LAUNCH,
        ["k never ends in program 0", "line 5:", "while i < n:", "no round changes i or n", "Try: change"],
    ),
    "a false promise": (
        HEAD + "    o = tl.multiple_of(o + 1, 16)\n    tl.store(x_ptr + o, 1.0, mask=o < n)" + LAUNCH,
        ["k breaks a promise in program 0", "line 4:", "tl.multiple_of promises the compiler something"],
    ),
    "an assertion": (
        HEAD + "    tl.device_assert(o < 2000, 'too far')\n" + "k[(3,)](x, 3000, BLOCK=1024, debug=True)",
        ["k stopped in program 1", "line 4:", "too far"],
    ),
    "inline assembly": (
        HEAD + "    tl.inline_asm_elementwise('mov $0, $1;', '=r,r', [o], tl.int32, True, 1)" + LAUNCH,
        ["k was not run", "line 4:", "uses inline assembly, which cannot be run without a GPU"],
    ),
    "what the compiler refuses": (
        HEAD + "    tl.store(x_ptr + o, tl.softmaks(o))\nworkshop.xray(k, x, 3000, BLOCK=1024)",
        ["k does not compile for gfx942", "line 4:", "softmaks", "Try: correct the spelling"],
    ),
    "a result in place of a function": (
        "workshop.sanitize(x)",
        ["TypeError: 'Tensor' is no function: write sanitize(add, x, y)", "line 1:", "workshop.sanitize(x)"],
    ),
    "a kernel in place of a function": (
        HEAD + "    tl.store(x_ptr + o, 1.0)\nworkshop.sanitize(k, x, 3000, 1024)",
        ["TypeError: this is the kernel itself: write sanitize(add, x, y)", "line 5:"],
    ),
    "an error of the host function": (
        "def host(x):\n    return torch.empty(3, 4) + x\nworkshop.sanitize(host, x)",
        ["RuntimeError: The size of tensor a (4)", "line 2:", "return torch.empty(3, 4) + x"],
    ),
    "an error in what is compared": (
        "workshop.compare({'yours': len}, lambda n: torch.zeros(n, -1), [8], lambda x: 1)",
        ["RuntimeError: zeros: Dimension size", "line 1:", "torch.zeros(n, -1)"],
    ),
    "a plain function for the compiler": (
        "workshop.xray(len, x)",
        ["TypeError: ", "is not a Triton kernel", "line 1:", "workshop.xray(len, x)"],
    ),
    "a store to an index": (
        HEAD + "    x_ptr[o] = 1.0" + LAUNCH,
        ["k is not accepted by Triton", "line 4:", "tl.store(output_ptr + offsets, x, mask=mask), not output_ptr[off"],
    ),
    "a type that changes in a loop": (
        HEAD + "    m = 0.0\n    for i in range(3):\n        p = m + 1\n        m = p + o\n" + LAUNCH,
        ["k is not accepted by Triton", "line 7:", "m = p + o", "Try: start `m` with the type"],
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def shown():
    """What one notebook shows of each mistake, and of `%tb` behind it; the last cell shows that its process lives."""
    cells = [FIRST, *(cell for source, _ in MISTAKES.values() for cell in (source, "%tb")), "int(x.count_nonzero())"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in cells])
    NotebookClient(notebook, allow_errors=True, timeout=120).execute()
    errors = [_plain(_error(cell)) for cell in notebook.cells[1:-1]]
    found = dict(zip(MISTAKES, zip(errors[::2], errors[1::2])))
    return found, notebook.cells[-1].outputs[0]["data"]["text/plain"]


def _error(cell) -> list[str]:
    return next(output["traceback"] for output in cell.outputs if output["output_type"] == "error")


def _plain(traceback: list[str]) -> str:
    return re.sub(r"\x1b\[[\d;]*m", "", "\n".join(traceback))


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_in_a_few_lines(shown, mistake):
    short, whole = shown[0][mistake]
    for words in MISTAKES[mistake][1]:
        assert words in short
    assert len(short.splitlines()) <= 8 and "workshop/" not in short
    if "xray" not in MISTAKES[mistake][0]:
        assert "Traceback (most recent call last)" in whole


def test_nothing_was_written_and_the_process_lives(shown):
    assert shown[1] == "0"


def test_an_endless_loop_is_interrupted():
    manager, client = start_new_kernel()
    try:
        client.execute_interactive(FIRST, timeout=60)
        endless = HEAD + "    while n > 0:\n        n = tl.maximum(n + 1, 1)\n    tl.store(x_ptr + o, 1.0)" + LAUNCH
        computed = cpu_seconds(manager.provisioner.pid)
        client.execute(endless, stop_on_error=False)
        while cpu_seconds(manager.provisioner.pid) < computed + 0.5:  # it loops
            time.sleep(0.05)
        begin = time.monotonic()
        manager.interrupt_kernel()
        while (reply := client.get_iopub_msg(timeout=20))["msg_type"] != "error":
            pass
        assert time.monotonic() - begin < 2
        told = _plain(reply["content"]["traceback"])
        assert "k was interrupted" in told and re.search("line [45]:", told) and len(told.splitlines()) < 6
        assert client.execute_interactive("assert x.sum() == 0", timeout=20)["content"]["status"] == "ok"
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_prints_of_a_kernel_are_shown_also_before_an_error(capsys):
    import torch
    import triton
    import triton.language as tl

    @triton.jit
    def prints(x_ptr, BLOCK: tl.constexpr):
        offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        print("offsets", offsets)
        tl.device_print("program ", tl.program_id(0))
        tl.store(x_ptr + offsets, 1)

    with pytest.raises(IndexError):
        prints[(2,)](torch.zeros(6), BLOCK=4)
    said = capsys.readouterr().out
    assert "pid (1, 0, 0)  offsets: [4, 5, 6, 7]" in said and "pid (1, 0, 0)  program: 1" in said

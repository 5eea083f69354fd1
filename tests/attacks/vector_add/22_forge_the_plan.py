"""Write a plan of one's own to the judge: operations of torch, of the file system, of Python.

Must: earn nothing.
"""

import json
import os

import torch
import triton
import triton.language as tl


def every_descriptor():
    return [d for d in range(3, 256) if _open(d)]


def _open(descriptor):
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def plan(case, operation, overload="Tensor", arguments=({"t": 0}, {"t": 1})):
    step = {"op": operation, "overload": overload, "args": list(arguments), "kwargs": {}, "out": [2]}
    inputs = [{"index": i, "out": [i]} for i in range(2)]
    return {"case": case, "trace": {"steps": [*inputs, step], "result": 2, "recorded": 1}}


def add(x, y):
    forged = [
        plan(0, "add"),
        plan(1, "add", "out", ({"t": 0}, {"t": 1})),
        plan(2, "from_file", "", ({"text": "/etc/passwd"},)),
        plan(3, "__class__"),
        plan(4, "set_", "source_Tensor"),
        plan(5, "launch"),
        {"done": True},
    ]
    text = "".join(json.dumps(line) + "\n" for line in forged).encode()
    for descriptor in every_descriptor():
        try:
            os.write(descriptor, text)
        except OSError:
            pass
    os._exit(0)

"""Send a plan nested so deeply that it can be read, but not written again.

Must: earn nothing.
"""

import json
import os

import torch
import triton
import triton.language as tl


def send(text):
    for descriptor in range(3, 256):
        try:
            os.write(descriptor, text.encode())
        except OSError:
            pass


def add(x, y):
    step = {"op": "clone", "overload": "default", "args": ["deep"], "kwargs": {}, "out": [0]}
    depth = 986
    deep = json.dumps({"case": 0, "trace": {"steps": [step], "result": 0}})
    send(deep.replace('"deep"', "[" * depth + "]" * depth) + "\n")
    os._exit(0)

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
    deep = {"case": 0, "trace": {"steps": [], "result": 0, "more": 0}}
    depth = 986
    send(json.dumps(deep).replace('"more": 0', '"more": ' + "[" * depth + "]" * depth) + "\n")
    os._exit(0)

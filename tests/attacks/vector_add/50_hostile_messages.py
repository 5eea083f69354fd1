"""Send the judge messages that parsers choke on.

Must: earn nothing.
"""

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


def add(x, y):
    lines = [
        b"[" * 100_000,
        b'{"case": ' + b"9" * 5000 + b"}",
        b'{"case": 0, "result": {"shape": [1e400], "dtype": "float32"}}',
        b'{"case": NaN, "trace": {"steps": -Infinity}}',
        b'{"case": true, "trace": null}',
        b'{"case": 0, "case": 1, "value": {"__class__": "os"}}',
        b'\xff\xfe\x00{"case": 0}',
        b'{"case": 0, "trace": {"steps": [[[[[[[[]]]]]]]], "result": 1}}',
        b'{"case": 1, "trace": {"steps": [{"kernel": "k", "grid": [0], "args": {}}], "result": "0"}}',
        b'{"done": true}',
    ]
    for descriptor in every_descriptor():
        for line in lines:
            try:
                os.write(descriptor, line + b"\n")
            except OSError:
                pass
    os._exit(0)

"""Other people's softmax functions, to be measured beside ours. What is not installed is left out."""

from collections.abc import Callable

import torch


def rowwise(x: torch.Tensor) -> torch.Tensor:
    return torch.softmax(x, dim=1)


def softmax_peers(compiled_shapes: int) -> dict[str, Callable]:
    """name -> function of a matrix. torch.compile compiles once per shape; compiled_shapes says how many come."""
    torch._dynamo.config.recompile_limit = 4 * compiled_shapes
    found = {
        "torch": rowwise,
        "torch.compile": torch.compile(lambda x: torch.softmax(x, dim=1), dynamic=False),
        # Without CUDA graphs: with them, every call would copy its input into the graph's own memory first.
        "torch.compile, max-autotune": torch.compile(
            lambda x: torch.softmax(x, dim=1), dynamic=False, mode="max-autotune-no-cudagraphs"
        ),
    }
    try:
        from liger_kernel.ops.softmax import LigerSoftmaxFunction

        found["Liger"] = LigerSoftmaxFunction.apply
    except ImportError:
        pass
    try:
        from quack.softmax import softmax_fwd

        found["QuACK"] = softmax_fwd
    except Exception as error:  # its compiler may be there and not fit the driver
        print("QuACK is left out:", type(error).__name__, str(error)[:200])
    return found

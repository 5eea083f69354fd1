"""Other people's functions, to be measured beside ours. What is not installed is left out."""

from collections.abc import Callable

import torch
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

EPS = 1e-5  # of an RMS norm


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


def attention_peers() -> dict[str, Callable]:
    """name -> function of q (h, d), k and v (h, t, d): torch's attention for one query, by each of its backends."""

    def attention(q, k, v):
        return functional.scaled_dot_product_attention(q[None, :, None], k[None], v[None])[0, :, 0]

    def by(backend):
        def call(q, k, v):
            with sdpa_kernel([backend]):
                return attention(q, k, v)

        return call

    found = {"SDPA, as torch chooses": attention}
    for name, backend in (
        ("flash", SDPBackend.FLASH_ATTENTION),
        ("cuDNN", SDPBackend.CUDNN_ATTENTION),
        ("efficient", SDPBackend.EFFICIENT_ATTENTION),
        ("math", SDPBackend.MATH),
    ):
        found[f"SDPA, {name}"] = by(backend)
    return found


def softmax_backward_peers(compiled_shapes: int) -> dict[str, Callable]:
    """name -> function of the softmax y and of dy."""
    torch._dynamo.config.recompile_limit = 4 * compiled_shapes
    found = {
        "torch": lambda y, dy: torch._softmax_backward_data(dy, y, 1, y.dtype),
        "torch.compile": torch.compile(lambda y, dy: torch._softmax_backward_data(dy, y, 1, y.dtype), dynamic=False),
    }
    try:
        from liger_kernel.ops.softmax import _softmax_backward
        from liger_kernel.ops.utils import calculate_settings

        found["Liger"] = lambda y, dy: _softmax_backward(dy, y, *calculate_settings(y.shape[1]), False)
    except ImportError:
        pass
    return found


def gradient_of(loss: Callable) -> Callable:
    """The gradient of a loss of logits and targets, as a function of them and of a copy of the logits, not used."""

    def gradient(logits, _, targets):
        logits = logits.detach().requires_grad_()
        return torch.autograd.grad(loss(logits, targets), logits)[0]

    return gradient


def cross_entropy_peers(compiled_shapes: int) -> dict[str, Callable]:
    """name -> function of logits, a copy of them and targets: the gradient of the mean loss. Liger takes the copy."""
    torch._dynamo.config.recompile_limit = 4 * compiled_shapes
    found = {
        "torch": gradient_of(functional.cross_entropy),
        "torch.compile": gradient_of(torch.compile(lambda x, t: functional.cross_entropy(x, t), dynamic=False)),
    }
    try:
        from liger_kernel.ops.cross_entropy import LigerCrossEntropyFunction

        over_the_logits = gradient_of(lambda logits, targets: LigerCrossEntropyFunction.apply(logits, targets, None)[0])
        found["Liger"] = lambda _, copy, targets: over_the_logits(copy, None, targets)
    except ImportError:
        pass
    return found


def weight_grad_peers(compiled_shapes: int) -> dict[str, Callable]:
    """name -> function of x, dy and rstd: the gradient of an RMS norm's weight. (Liger has none alone, without dx.)"""
    torch._dynamo.config.recompile_limit = 4 * compiled_shapes

    def by_hand(x, dy, rstd):
        return (dy.float() * x.float() * rstd[:, None]).sum(0)

    return {"torch": by_hand, "torch.compile": torch.compile(by_hand, dynamic=False)}


def through(norm: Callable) -> Callable:
    """Forward and backward of a norm of x and weight, as a function of them and of dy. Returns dx."""

    def both(x, weight, dy):
        x, weight = x.detach().requires_grad_(), weight.detach().requires_grad_()
        return torch.autograd.grad(norm(x, weight), (x, weight), dy)[0]

    return both


def rms_norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return functional.rms_norm(x, weight.shape, weight, EPS)


def rms_norm_peers(compiled_shapes: int) -> dict[str, Callable]:
    """name -> forward and backward of an RMS norm, as functions of x, weight and dy that return dx."""
    torch._dynamo.config.recompile_limit = 4 * compiled_shapes
    found = {"torch": through(rms_norm), "torch.compile": through(torch.compile(rms_norm, dynamic=False))}
    try:
        from liger_kernel.ops.rms_norm import LigerRMSNormFunction

        found["Liger"] = through(lambda x, weight: LigerRMSNormFunction.apply(x, weight, EPS, 0.0, "llama", False))
    except ImportError:
        pass
    try:
        from quack.rmsnorm import rmsnorm

        found["QuACK"] = through(lambda x, weight: rmsnorm(x, weight, eps=EPS))
    except Exception as error:  # its compiler may be there and not fit the driver
        print("QuACK is left out:", type(error).__name__, str(error)[:200])
    return found

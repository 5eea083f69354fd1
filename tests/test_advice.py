"""Advice names what Triton has, and translates what torch and CUDA have."""

import re

import pytest
import triton.language as tl

from workshop import advice


def test_advice_names_functions_that_triton_has():
    """Also in the table of what torch has: a name that is wrong there would send a learner from error to error."""
    texts = [attempt for *_, attempt in advice.ADVICE] + list(advice.ELSEWHERE.values())
    names = {name for text in texts for name in re.findall(r"\btl\.(\w+)\(", text)}
    assert names and {name for name in names if not hasattr(tl, name)} == set()


@pytest.mark.parametrize("name", ["tanh", "isinf", "unsqueeze", "blockIdx"])
def test_what_torch_or_cuda_has_is_translated(name):
    for message, construct in (
        (f"module 'triton.language' has no attribute '{name}'", ""),
        (f"'tensor' object has no attribute '{name}'", ""),
        ("Unsupported function referenced: <built-in method>", f"torch.{name}"),
    ):
        assert advice.refused(message, construct)[2] == f"write {advice.ELSEWHERE[name]}."

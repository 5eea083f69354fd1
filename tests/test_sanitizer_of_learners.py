"""`workshop.sanitize` names the first mistake in memory of any function that launches kernels."""

import pytest
import torch
import triton
import triton.language as tl

from workshop import sanitize


@triton.jit
def doubled_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr, MASKED: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n) if MASKED else tl.load(x_ptr + offsets)
    tl.store(out_ptr + offsets, 2 * x, mask=offsets < n)


@triton.jit
def maximum_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr, FILLED: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0) if FILLED else tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr, tl.max(x, axis=0))


@triton.jit
def added_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(out_ptr + offsets) + tl.load(x_ptr + offsets))


def doubled(x, programs=8, masked=True):
    out = torch.empty_like(x)
    doubled_kernel[(programs,)](x, out, len(x), BLOCK=128, MASKED=masked)
    return out


def maximum(x, programs, filled=True):
    out = torch.empty(1)
    maximum_kernel[(programs,)](x, out, len(x), BLOCK=128, FILLED=filled)
    return out


def added(x, out):
    added_kernel[(1,)](x, out, BLOCK=128)
    return out


def test_a_right_function_is_clean_and_its_result_is_there():
    x = torch.rand(1000)
    found = sanitize(doubled, x)
    assert found.clean and found.launches == 1
    assert torch.equal(found.result, 2 * x)


MISTAKES = {
    "out of bounds": (lambda: doubled(torch.rand(1000), masked=False), "outside of x_ptr", "if MASKED else"),
    "unwritten": (lambda: doubled(torch.rand(1000), programs=7), "104 of 1,000 elements of the result, from [896]", ""),
    "race": (lambda: maximum(torch.rand(1000), 8), "Programs 0 and 7 both write to out_ptr", "tl.store(out_ptr"),
    "undefined": (lambda: maximum(torch.rand(100), 1, filled=False), "what a masked-off lane holds", "else tl.load"),
}


@pytest.mark.parametrize("kind", MISTAKES)
def test_a_mistake_is_named_with_its_line(kind):
    function, words, code = MISTAKES[kind]
    found = sanitize(function)
    assert [problem.headline for problem in found.problems] == [kind]
    assert words in found.problems[0].happened
    assert code in found.problems[0].code
    assert found.problems[0].attempt


def test_memory_is_undefined_until_torch_or_a_kernel_writes_it():
    x = torch.rand(128)
    assert sanitize(lambda: added(x, torch.empty(128))).problems[0].headline == "undefined"
    assert sanitize(lambda: added(x, torch.zeros(128))).clean
    assert sanitize(lambda: added(x, torch.empty(128).fill_(1.0))).clean
    assert sanitize(lambda: added(x, doubled(x, programs=1))).clean


def test_half_a_tensor_that_was_filled_is_defined_and_the_other_half_is_not():
    def filled(upto):
        out = torch.empty(128)
        out[:upto] = 1.0
        return added(torch.rand(128), out)

    assert sanitize(filled, 128).clean
    assert "reads elements of out_ptr" in sanitize(filled, 64).problems[0].happened


def test_what_torch_writes_after_a_launch_that_failed_is_defined():
    def falls_back(x):
        out = torch.empty(1000)
        try:
            doubled(x, masked=False)
        except IndexError:
            out.fill_(1.0)
        return out

    assert sanitize(falls_back, torch.rand(1000)).clean


def test_errors_of_the_host_function_are_raised_as_they_are():
    with pytest.raises(ValueError, match="mine"):
        sanitize(lambda: (_ for _ in ()).throw(ValueError("mine")))

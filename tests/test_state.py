"""What a host function keeps from call to call: memory of an earlier call may not be used again, numbers may."""

import os

import pytest
import torch

from autograder.box.inside.recorder import Earlier, KeptTensor, Recorder
from autograder.box.wire import Found


def calls(function, times=2, size=100):
    """The traces of several calls of a host function, in one process."""
    earlier, traces = Earlier(), []
    for _ in range(times):
        x = torch.randn(size)
        recorder, result = Recorder([x], earlier=earlier), None
        try:
            with recorder:
                result = function(x, recorder)
            traces.append(recorder.finish(result))
        finally:
            earlier.remember(recorder.made, result)
    return traces


def launch(recorder, *tensors):
    leaves = [(name, tensor, "*fp32") for name, tensor in zip("abc", tensors, strict=False)]
    recorder.launch("k", (1, 1, 1), {}, leaves, {}, Found("", "digest"))


def kept(make, use):
    """A host function that calls `make` once, and `use` with what it made in every call."""
    memory = []

    def function(x, recorder):
        if not memory:
            memory.append(make(x))
        return use(x, recorder, memory[0])

    return function


def through_a_kernel(x, recorder, buffer):
    launch(recorder, x, buffer, out := torch.empty_like(x))
    return out


def returned(x, recorder, buffer):
    launch(recorder, x, buffer)
    return buffer


@pytest.mark.parametrize("use", [through_a_kernel, returned, lambda x, r, b: returned(x, r, b).clone()])
@pytest.mark.parametrize("make", [torch.empty_like, lambda x: x, lambda x: torch.zeros(2), lambda x: x[:3].clone()])
def test_memory_of_an_earlier_call_is_refused(make, use):
    calls(kept(make, use), times=1)
    with pytest.raises(KeptTensor):
        calls(kept(make, use))


def test_the_message_says_whether_it_was_a_result():
    for use, what in ((returned, "the result"), (through_a_kernel, "a tensor")):
        with pytest.raises(KeptTensor, match=what):
            calls(kept(torch.empty_like, use))


@pytest.mark.parametrize("change", [torch.zero_, lambda old: old[3:].fill_(1.0), lambda old: old.copy_(old * 2)])
def test_an_earlier_result_is_not_changed(change):
    results = []

    def function(x, recorder):
        for old in results:
            change(old)
        results.append(x.clone())
        return results[-1]

    with pytest.raises(KeptTensor, match="the result"):
        calls(function)


def test_each_call_may_do_the_same_and_use_constants():
    table = torch.arange(8.0)
    traces = calls(lambda x, recorder: through_a_kernel(x, recorder, table), times=50)
    assert all(trace == traces[0] for trace in traces)
    calls(lambda x, recorder: through_a_kernel(x, recorder, torch.empty(64)), times=50)


def test_numbers_may_be_kept():
    grids = {}

    def function(x, recorder):
        grids.setdefault(len(x), (4, 1, 1))
        leaves = [("x", x, "*fp32"), ("out", out := torch.empty_like(x), "*fp32")]
        recorder.launch("k", grids[len(x)], {}, leaves, {}, Found("", "digest"))
        return out

    assert len(calls(function, times=3)) == 3


def test_much_memory_is_neither_copied_nor_cleared():
    """Large inputs are planned with 10⁸ elements: to write so many takes longer than all that is judged there."""
    made = {
        "clone": lambda x: x.clone(),
        "contiguous": lambda x: x.contiguous(),
        "to": lambda x: x.to(torch.bfloat16),
        "zeros": lambda x: torch.zeros(x.shape),
        "zeros_like": lambda x: torch.zeros_like(x),
        "new_zeros": lambda x: x.new_zeros(x.shape, dtype=torch.int64),
    }
    small, large = (torch.empty_strided((rows, 64), (65, 1)) for rows in (4, 1 << 19))
    for name, make in made.items():
        few, before = make(small), resident()
        with Recorder([large]) as recorder:
            many = make(large)
        assert resident() - before < 16 << 20, name
        assert (many.dtype, many.stride(), many.shape[1]) == (few.dtype, few.stride(), 64)
        recorded = recorder.finish(many).steps[1].op
        assert recorded == {"contiguous": "clone", "to": "_to_copy"}.get(name, name)
        assert "zeros" not in name or not many[::4096].any()


def resident() -> int:
    with open("/proc/self/statm") as pages:
        return int(pages.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

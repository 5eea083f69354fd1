"""A store beside a tensor that the host function made is seen on a GPU, too, where no checker looks at each lane."""

import pytest
import torch
import triton
import triton.language as tl

from autograder.box.inside.recorder import Programs
from autograder.box.inside.replay import OUTSIDE, Known, Replay, _OnExecutor
from autograder.box.wire import Again, Argument, Input, Launch, Trace, Tuned
from autograder.exercises import EXERCISES
from autograder.exercises.vector_add import ADD_TEMPLATE
from autograder.judge.trials import Trials
from workshop.executor.launch import specialise


@pytest.mark.parametrize("beside, damaged", [(0, False), (1, True), (-1, True)])
def test_guards_lie_around_what_the_host_function_makes(judge, beside, damaged):
    trials = Trials(judge, EXERCISES["vector_add"], ADD_TEMPLATE, seed=1)
    trace = trials.plan([ADD_TEMPLATE], trials.cases[:1])[0].trace
    inputs = [torch.ones(each.values.shape) for each in trials.cases[0].tensors]

    class Stores(Replay):
        def launch(self, launch, arguments):
            tensors = [value for _, value, _ in arguments if isinstance(value, torch.Tensor)]
            output = next(each for each in tensors if all(each is not x for x in inputs))
            size = (len(output),)
            torch.as_strided(output, size, (1,), output.storage_offset() + beside).fill_(2.0)

    replay = Stores(inputs, torch.device("cpu"))
    replay.run(trace)
    assert [each.damage() == OUTSIDE for each in replay.made] == [damaged]


@triton.jit
def overwrites(x_ptr, out_ptr):
    i = tl.arange(0, 4)
    tl.store(out_ptr + i, tl.load(x_ptr + i) + 1)


@triton.jit
def adds_to_itself(x_ptr, out_ptr):
    i = tl.arange(0, 4)
    tl.store(out_ptr + i, tl.load(out_ptr + i) + tl.load(x_ptr + i))


@pytest.mark.parametrize(
    "kernel, zeroed, runs, result, accumulates",
    [(overwrites, [], 1, 4.0, False), (adds_to_itself, [], 2, 6.0, True), (adds_to_itself, ["out_ptr"], 2, 3.0, False)],
    ids=["overwrites", "accumulates", "zeroed before each run"],
)
def test_a_rehearsal_is_repeated_only_where_something_of_it_stays(kernel, zeroed, runs, result, accumulates):
    inputs = [torch.full((4,), 3.0), torch.zeros(4)]
    programs = Programs("interpreter")
    found = programs.of(kernel, specialise(kernel, {"x_ptr": inputs[0], "out_ptr": inputs[1]}), {})
    given = Argument("x_ptr", {"t": 0}, "*fp32"), Argument("out_ptr", {"t": 1}, "*fp32")
    tuned = Tuned((), 0, (), Again((), tuple(zeroed)))
    launch = Launch("k", (1, 1, 1), found.program, given, {}, {}, tuned=tuned)
    replay, ran = _OnExecutor(Known(programs.texts), inputs, torch.device("cpu")), []
    run = replay._run
    replay._run = lambda *given: ran.append(given) or run(*given)
    assert replay.run(Trace((Input(0, (0,)), Input(1, (1,)), launch), 1)).tolist() == [result] * 4
    assert (len(ran), replay.accumulates, replay.rehearsed) == (runs, accumulates, None)

"""A store beside a tensor that the host function made is seen on a GPU, too, where no checker looks at each lane."""

from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import torch

from autograder.box.inside.memory import GuardedAllocations
from autograder.box.inside.replay import _Launcher
from autograder.box.inside.trace import Replay
from autograder.exercises import find
from autograder.exercises.vector_add import ADD_TEMPLATE
from autograder.judge.trials import Trials
from autograder.tensors import UNWRITTEN


@pytest.mark.parametrize("beside, damaged", [(0, False), (1, True), (-1, True)])
def test_guards_lie_around_what_the_host_function_makes(judge, beside, damaged):
    trials = Trials(judge, find("vector_add"), ADD_TEMPLATE, seed=1)
    trace = trials.plan(ADD_TEMPLATE, trials.cases[:1])[0].trace
    inputs = [torch.ones(each.values.shape) for each in trials.cases[0].tensors]
    allocations = GuardedAllocations(guard=64, pattern=UNWRITTEN)

    def store(name, grid, arguments, options):
        output = next(a for a in arguments.values() if isinstance(a, torch.Tensor) and all(a is not x for x in inputs))
        size = (len(output),)
        torch.as_strided(output, size, (1,), output.storage_offset() + beside).fill_(2.0)

    Replay(inputs, torch.device("cpu"), allocations.place, store).run(trace)
    assert allocations.damaged() == damaged


class Adds:
    """A kernel that adds to its output what was there, or what its input holds."""

    arg_names = ["x", "out"]

    def __init__(self, to_itself: bool):
        self.to_itself, self.runs = to_itself, 0

    def fn(x, out): ...

    def __getitem__(self, grid):
        def launch(x, out):
            self.runs += 1
            out.copy_(out + x if self.to_itself else x + 1)

        return launch

    def seen(self):
        loaded = {"x": 4, "out": 4 * self.to_itself}
        arguments = {name: SimpleNamespace(bytes_loaded=size) for name, size in loaded.items()}
        launch = SimpleNamespace(arguments=arguments, races=[], accesses=1)
        return nullcontext(SimpleNamespace(launches=[launch], poisoned=False))


@pytest.mark.parametrize(
    "to_itself, zeroed, runs, result, accumulates",
    [(False, [], 1, 4.0, False), (True, [], 2, 6.0, True), (True, ["out"], 2, 3.0, False)],
    ids=["overwrites", "accumulates", "zeroed before each run"],
)
def test_a_rehearsal_is_repeated_only_where_something_of_it_stays(to_itself, zeroed, runs, result, accumulates):
    kernel = Adds(to_itself)
    job = SimpleNamespace(interpreted=True, watched=lambda *how: kernel.seen())
    copies = SimpleNamespace(count=lambda launches: None)
    launcher = _Launcher(job, SimpleNamespace(poison="nan", backwards=False), {"adds": kernel}, copies)
    again = {"restored": [], "zeroed": zeroed}
    launch = {"op": "launch", "kernel": "adds", "grid": [1], "options": {}, "tuned": {"again": again}}
    launch["args"] = {"x": {"t": 0}, "out": {"t": 1}}
    inputs = [torch.full((4,), 3.0), torch.zeros(4)]
    steps = [{"op": "input", "index": i, "out": [i]} for i in range(2)] + [launch]
    replay = Replay(inputs, torch.device("cpu"), lambda tensor: tensor, launcher, rehearse=launcher.rehearse)
    assert replay.run({"steps": steps, "result": 1}).tolist() == [result] * 4
    assert (kernel.runs, launcher.accumulates, launcher.rehearsed) == (runs, accumulates, None)

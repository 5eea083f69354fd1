"""Turns at a shared card: one measures, the others wait and are told; nobody waits for ever."""

import os
import subprocess
import sys
import threading
import time

import pytest

from workshop import bench, turns


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(turns.VARIABLE, str(tmp_path))
    return tmp_path


def test_two_never_measure_at_once():
    inside, most, said, others_wait = [], [], [], threading.Event()

    def say(words):
        said.append(words)
        if len(said) == 3:
            others_wait.set()

    def measure():
        with turns.turn("GPU-1", say) as taken:
            inside.append(1)
            most.append(len(inside))
            assert others_wait.wait(50)  # the first one holds its turn until each of the others has asked for one
            inside.pop()
            assert taken

    people = [threading.Thread(target=measure) for _ in range(4)]
    for person in people:
        person.start()
    for person in people:
        person.join()
    assert most == [1, 1, 1, 1]
    assert sum("waiting for the card" in line for line in said) == 3


def test_another_card_is_not_waited_for():
    with turns.turn("GPU-1"):
        began = time.monotonic()
        with turns.turn("GPU-2", pytest.fail) as taken:
            assert taken and time.monotonic() - began < 40  # a turn is waited for a minute


def test_who_waits_too_long_goes_on_and_is_told():
    said = []
    with turns.turn("GPU-1"), turns.turn("GPU-1", said.append, longest=0.3) as taken:
        assert not taken
    assert "the numbers may be too low" in said[-1]


def test_a_process_that_dies_gives_its_turn_back():
    code = "import os; from workshop.turns import turn\nwith turn('GPU-1'): os._exit(9)"
    subprocess.run([sys.executable, "-c", code], check=False)
    with turns.turn("GPU-1", pytest.fail) as taken:
        assert taken


def test_a_folder_that_cannot_be_used_stops_nobody(folder, monkeypatch):
    monkeypatch.setenv(turns.VARIABLE, str(folder / "no" / "such"))
    with turns.turn("GPU-1", pytest.fail) as taken:
        assert not taken


@pytest.mark.skipif(os.geteuid() != 0, reason="needs two users")
def test_users_take_turns_in_a_room(folder):
    """A sticky folder that everybody writes to, where Linux guards one user's files from the others."""
    for path in (folder, *folder.parents):
        if path.owner() == "root" and str(path).startswith("/tmp/"):
            path.chmod(0o1777)
    with turns.turn("GPU-1"):
        [lock] = folder.iterdir()
        os.chown(lock, 65533, 65533)
        other = f"import os; os.setuid(65534); os.environ['{turns.VARIABLE}'] = '{folder}'\nimport sys\n"
        other += f"sys.path.insert(0, {str(os.getcwd())!r})\nimport importlib.util\n"
        other += f"spec = importlib.util.spec_from_file_location('turns', {turns.__file__!r})\n"
        other += "turns = importlib.util.module_from_spec(spec); spec.loader.exec_module(turns)\n"
        other += "said = []\nwith turns.turn('GPU-1', said.append, longest=0.3) as taken: print(taken, said[0])"
        ran = subprocess.run(["/usr/bin/python3", "-c", other], capture_output=True, text=True)
        assert ran.stdout.startswith("False waiting for the card"), ran.stderr


def test_compare_takes_a_turn_for_each_size(monkeypatch):
    """Without a card: what measures is replaced, what is measured is the order of locks and measurements."""
    order = []

    class Watch:
        def __enter__(self):
            order.append("turn")

        def __exit__(self, *error):
            order.append("back")

    monkeypatch.setattr(bench, "turn", lambda card: Watch())
    monkeypatch.setattr(bench, "this_card", lambda: "GPU-1")
    monkeypatch.setattr(bench, "device", lambda: type("Here", (), {"interpreting": False})())
    monkeypatch.setattr(bench, "about_here", dict)
    monkeypatch.setattr(bench, "_measure_size", lambda size, *rest: order.append(size) or [])
    bench.compare({"one": lambda x: x}, lambda size: (size,), [8, 16], lambda x: x)
    assert order == ["turn", 8, "back", "turn", 16, "back"]

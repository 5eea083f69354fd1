"""The launchers that Triton 3.6 and older compile are built once, by the zygote, from types that the judge knows."""

import os
from pathlib import Path

import pytest

from autograder.box.inside import zygote
from autograder.box.wire import Argument, Launch, Start, Trace, to_json
from autograder.judge.trials import MAX_LISTS, MAX_TYPES, types


def trace(*types) -> Trace:
    given = tuple(Argument(f"p{i}", 1, kind) for i, kind in enumerate(types))
    return Trace((Launch("k", (1, 1, 1), "", given, {}, {}),), 0)


def test_a_launcher_depends_on_the_types_alone():
    assert types([trace("*fp32", "i32"), trace("*fp16", "i32"), trace("*fp32")]) == (("*i8", "i32"), ("*i8",))


@pytest.mark.parametrize("name", ["i32 x; system(", "tensordesc<fp32[8]>", "i24", "*fp32; system("])
def test_an_unknown_type_does_not_reach_the_c_compiler(name):
    assert types([trace(name)]) == ()


def test_the_types_fit_into_the_message():
    many = [trace(*["fp64"] * (MAX_TYPES - i)) for i in range(MAX_LISTS + 3)]
    assert len(types(many)) == MAX_LISTS
    assert len(to_json(Start("replay", 60.0, 60.0, types(many)))) < 4096


def test_a_launcher_is_built_once_and_each_job_gets_a_copy(tmp_path, monkeypatch):
    folder, scratch = tmp_path / "launchers", tmp_path / "job"
    scratch.mkdir()
    built = []

    class Driver:
        class active:
            @staticmethod
            def launcher_cls(source, metadata):
                built.append(tuple(source.signature.values()))
                made = Path(os.environ["TRITON_CACHE_DIR"], "-".join(source.signature.values()), "launcher.so")
                made.parent.mkdir(parents=True)
                made.touch()
                if "fp64" in source.signature.values():
                    raise RuntimeError("no compiler")

    monkeypatch.setattr(zygote, "driver", Driver)
    zygote._build.cache_clear()
    zygote.copy_launchers(str(folder), str(scratch))  # none yet
    zygote.build_launchers([("*i8", "i32"), ("*i8", "fp64")], str(folder))
    zygote.build_launchers([("*i8", "i32")], str(folder))
    assert sorted(built) == [("*i8", "fp64"), ("*i8", "i32")]
    zygote.copy_launchers(str(folder), str(scratch))
    assert (scratch / "*i8-i32" / "launcher.so").exists()
    assert os.environ.get("TRITON_CACHE_DIR") != str(folder)

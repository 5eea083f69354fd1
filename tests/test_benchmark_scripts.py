"""benchmarks/attention.py, backward.py and matmul.py go through all their steps at small sizes, without a clock."""

import dataclasses
import importlib
import json
import sys
from pathlib import Path

import pytest
import torch

import workshop

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
SCRIPTS = ("timing", "attention", "backward", "matmul", "peers")
timing, attention, backward, matmul, peers = map(importlib.import_module, SCRIPTS)
pytestmark = pytest.mark.skipif(not workshop.device().interpreting, reason="small sizes, for the interpreter")


class NoClock:
    """Runs what a clock would time, and says one millisecond."""

    def milliseconds(self, function, *inputs):
        return 1.0, function(*inputs)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    for script in (attention, backward, matmul):
        monkeypatch.setattr(script, "Clock", NoClock)
        monkeypatch.setattr(script, "need_gpu", lambda: None)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch, "compile", lambda function, **_: function)
    monkeypatch.setattr(attention, "nbytes", lambda heads, tokens: 1 << 16)
    monkeypatch.setattr(attention, "TOKENS", {2: (40,)})
    monkeypatch.setattr(attention, "drawn_caches", lambda count, seed: [(1, 50), (3, 20)])
    small = {name: dataclasses.replace(one, traffic=1 << 16) for name, one in backward.GRADIENTS.items()}
    monkeypatch.setattr(backward, "GRADIENTS", small)
    monkeypatch.setattr(backward, "drawn_columns", lambda *_: [203, 300])


def entries(folder):
    (found,) = folder.glob("*.json")
    assert len(list(folder.iterdir())) == 3
    return json.loads(found.read_text())["entries"]


@pytest.mark.parametrize("more", (["--heads", "2"], ["--drawn", "2"]), ids=" ".join)
def test_attention(more, tmp_path):
    attention.main(
        [*more, "--repeats", "2", "--only", "SDPA, math", attention.ONE, attention.OURS, "--out", str(tmp_path)]
    )
    for entry in entries(tmp_path):
        assert len(entry["ms"]) >= 2 and not entry["note"]


@pytest.mark.parametrize("more", (["--columns", "781"], ["--drawn", "2"]), ids=" ".join)
@pytest.mark.parametrize("what", backward.GRADIENTS)
def test_gradients(what, more, tmp_path):
    backward.main([what, *more, "--repeats", "2", "--out", str(tmp_path)])
    for entry in entries(tmp_path):
        assert len(entry["ms"]) >= 2 and not entry["note"]


def test_matrix_products(tmp_path, monkeypatch):
    monkeypatch.setattr(matmul, "LAYERS", ((70, 130, 101), (64, 64, 64)))
    matmul.main(["--layers", "--dtype", "float16", "--repeats", "2", "--out", str(tmp_path)])
    (found,) = tmp_path.glob("*.json")
    for entry in json.loads(found.read_text())["entries"]:
        assert len(entry["ms"]) >= 2 and not entry["note"]
    (written,) = tmp_path.glob("*.csv")
    assert written.read_text().count(matmul.FASTEST) == 2


def test_drawn_shapes():
    drawn = matmul.drawn_shapes(12, 1)
    assert drawn == matmul.drawn_shapes(12, 1)
    assert all(1e12 <= 2 * m * n * k <= 1e13 for m, n, k in drawn)


def test_drawn_caches():
    drawn = importlib.reload(attention).drawn_caches(40, 1)
    assert drawn == attention.drawn_caches(40, 1)
    for heads, tokens in drawn:
        assert 1 <= heads <= 256 and 2**28 * 0.99 < attention.nbytes(heads, tokens) < 2**30 * 1.01


def test_a_wrong_gradient_is_seen():
    expected = torch.randn(100).double()
    assert timing.whole_error(expected.float(), expected) < 1e-7
    assert timing.whole_error(-expected.float(), expected) == pytest.approx(2)
    assert timing.whole_error(torch.full((100,), float("nan")), expected) == float("inf")
    assert timing.whole_error(expected[:50], expected) == float("inf")

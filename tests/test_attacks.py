"""The attacks' own promises, and the quick ones on the full path. `make attacks` runs all of them."""

import ast
import json
import textwrap

import fuzz_messages
import pytest
from probes import ROOT
from run_attacks import Live, attacks

from autograder.box import lockdown

pytestmark = pytest.mark.skipif(bool(lockdown.missing()), reason="this machine cannot confine a process")

# One of each way: lies in the plan, the descriptors and the notebook; files, network, processes, the kernel.
QUICK = """
    03_torch_inside 06_far_pointer 15_patch 16_lying_numbers add/22_ tuned/22_ launch/22_ 27_forged 31_exit
    33_more_points 36_read 37_write 40_write 42_network 44_daemon 48_kill 52_raw 55_script_in 62_decorator 65_walk_the_m
    72_ 74_
"""


@pytest.fixture(scope="module")
def outcome(forks):
    """Runs in a process of its own: it becomes the reaper of whatever an attack leaves behind."""
    program = """
        import json, sys
        import run_attacks

        table, harm = run_attacks.run(sys.argv[1:], workers=1)
        print("OUTCOME" + json.dumps([[vars(line) for line in table], harm]))
    """
    done = forks.run(textwrap.dedent(program), *QUICK.split(), folder=ROOT / "tests")
    assert "OUTCOME" in done.stdout, done.stderr[-4000:]
    return json.loads(done.stdout.partition("OUTCOME")[2])


def test_no_attack_earns_anything(outcome):
    table, _ = outcome
    assert len(table) > 20
    assert [line for line in table if not line["ok"]] == []


def test_no_attack_harms_anything(outcome):
    _, harm = outcome
    assert harm == []


def test_every_attack_says_what_it_tries_and_what_must_happen():
    assert len(attacks()) > 100
    for attack in attacks():
        first = ast.get_docstring(ast.parse(attack.text)).splitlines()[0]
        assert first.endswith("."), attack
        assert attack.must, attack


def test_the_catalogue_names_every_attack():
    catalogue = (ROOT / "tests" / "attacks" / "README.md").read_text()
    missing = {a.path.stem[:2] for a in attacks() if f"| {int(a.path.stem[:2])} |" not in catalogue}
    assert missing == set()


# The attacks are real: where nothing confines them, they succeed --------------------------------------------

FOOLED = ("01_call_torch", "02_decoy_kernel", "04_fall_back", "15_patch", "18_walk", "22_import")
HARMFUL = {"42_network": ["arrived"], "44_daemon": ["left a process", "changed outside"]}
UNCONFINED = """
import json, os, sys
from pathlib import Path
import torch, triton, triton.language
from run_attacks import Surroundings, attacks

folder, fooled, harmful = Path(sys.argv[1]), *map(str.split, sys.argv[2:])


def defined(name):
    (attack,) = attacks([f"vector_add/{name}"])
    source = attack.text
    for place, value in (("COURSE", folder), ("CANARY", around.canaries), ("PORT", around.listener.port)):
        source = source.replace(f"@{place}@", str(value))
    exec(compile(source, str(attack.path), "exec"), space := {"__name__": "answer"})
    return space["add"]


def naive(name):
    x, y = torch.randn(1000), torch.randn(1000)
    expected = x + y
    result = defined(name)(x, y)
    (folder / name).write_text("full marks" if torch.allclose(result, expected) else "none")


def harm(name):
    defined(name)(torch.ones(4), torch.ones(4))


around = Surroundings(folder)
for check, names in ((naive, fooled), (harm, harmful)):
    for name in names:
        if not (child := os.fork()):
            check(name)
            os._exit(0)
        os.waitpid(child, 0)
(folder / "harm").write_text(json.dumps(around.harm()))
"""


@pytest.fixture(scope="module")
def unconfined(forks, tmp_path_factory):
    """The folder with what each naive check said, and `harm`. Each attack has a fork of one process."""
    folder = tmp_path_factory.mktemp("unconfined")
    arguments = str(folder), " ".join(FOOLED), " ".join(HARMFUL)
    done = forks.run(UNCONFINED, *arguments, folder=ROOT / "tests", TRITON_INTERPRET="1")
    (folder / "said").write_text(done.stdout + done.stderr)
    return folder


@pytest.mark.parametrize("name", FOOLED)
def test_a_check_in_the_same_process_is_fooled(name, unconfined):
    said = unconfined / name
    assert said.exists() and said.read_text() == "full marks", (unconfined / "said").read_text()[-2000:]


@pytest.mark.parametrize(("name", "words"), HARMFUL.items())
def test_the_surroundings_notice_harm(name, words, unconfined):
    said = unconfined / "harm"
    assert said.exists() and all(word in said.read_text() for word in words), (unconfined / "said").read_text()[-2000:]


@pytest.mark.parametrize(
    "text",
    [
        "<script>x</script>",
        "<img src=x onerror=y>",
        '<a href=" javascript:x">',
        "<img src=http://a/b>",
        "<meta http-equiv=refresh>",
    ],
)
def test_live_markup_is_noticed(text):
    parser = Live()
    parser.feed(f"<p>{text}</p>")
    assert parser.found


def test_quoted_markup_is_not_live():
    parser = Live()
    parser.feed('<meta charset="utf-8"><p>&lt;script&gt; onerror= <a href="#top">up</a></p>')
    assert parser.found == []


def test_mutated_messages_neither_pass_nor_raise():
    seen = fuzz_messages.run(250, seed=1)
    assert sum(seen.values()) == 250
    assert (seen["passed"], seen["raised"]) == (0, 0)
    assert len(seen) > 6  # the mutations reach many kinds of verdict


def test_an_honest_message_beside_a_right_output_passes():
    """What the fuzzer mutates is a message that is accepted when nothing is wrong."""
    judged = fuzz_messages.honest_verdict()
    assert judged.passed, judged.to_text()

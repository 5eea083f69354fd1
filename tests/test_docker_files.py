"""The container files: what the image holds, and that nothing undoes the confinement."""

import re
from pathlib import Path

import pytest
import yaml

DOCKER = Path(__file__).resolve().parent.parent / "docker"
DOCKERFILE = (DOCKER / "Dockerfile").read_text()
INSTRUCTIONS = [line for line in DOCKERFILE.splitlines() if re.match(r"[A-Z]+ ", line)]
SERVICES = yaml.safe_load((DOCKER / "compose.yml").read_text())["services"]


def copied():
    """Every file and folder of the repository that the image gets."""
    lines = [line.split()[1:-1] for line in INSTRUCTIONS if line.startswith("COPY ")]
    return {name.rstrip("/") for names in lines for name in names}


def test_the_image_holds_no_solutions_and_no_tests():
    assert not {name for name in copied() if name == "." or name.startswith(("solutions", "tests", "course"))}
    assert not [line for line in INSTRUCTIONS if line.startswith("ADD ")]


def test_the_build_context_is_what_is_copied():
    ignore = (DOCKER / "Dockerfile.dockerignore").read_text().splitlines()
    assert "*" in ignore
    assert {line[1:] for line in ignore if line.startswith("!")} == copied()


def test_the_image_holds_what_the_lessons_read():
    """`workshop` reads recorded curves; the lessons show figures."""
    assert {"workshop", "autograder", "notebooks", "assets", "benchmarks/recorded"} <= copied()


def test_the_base_image_is_an_argument_and_keeps_its_torch():
    assert DOCKERFILE.index("ARG BASE_IMAGE=") < DOCKERFILE.index("FROM ${BASE_IMAGE}")
    assert "pip install" not in DOCKERFILE


def test_an_image_that_cannot_judge_is_not_built():
    assert "autograder prove" in DOCKERFILE
    assert DOCKERFILE.index("install.py lab") < DOCKERFILE.index("autograder prove")


def test_the_image_does_not_run_as_root():
    users = [line for line in INSTRUCTIONS if line.startswith("USER ")]
    assert users == ["USER learner"]
    assert DOCKERFILE.index("USER learner") < DOCKERFILE.index("CMD [")
    assert "allow-root" not in DOCKERFILE and "token=" not in DOCKERFILE


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_is_confined(name):
    service = SERVICES[name]
    assert service["read_only"] and service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["pids_limit"] and service["mem_limit"]
    assert not {"privileged", "cap_add", "ipc", "pid"} & set(service)
    assert service.get("network_mode") in (None, "none")


@pytest.mark.parametrize("name", [name for name in SERVICES if name.startswith("lab")])
def test_a_lab_listens_on_this_machine_only(name):
    assert [port.split(":")[0] for port in SERVICES[name]["ports"]] == ["127.0.0.1"]


def test_the_grader_has_no_network_and_cannot_change_what_was_submitted():
    grader = SERVICES["grader"]
    assert grader["network_mode"] == "none" and "ports" not in grader
    assert [volume for volume in grader["volumes"] if "submitted" in volume and volume.endswith(":ro")]

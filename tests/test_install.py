"""`workshop/install.py`: what is said when something is missing, and that a torch is never replaced."""

import importlib
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "workshop" / "install.py"


@pytest.fixture
def install():
    """A fresh copy of the script as a module; it is run as a file, never imported as part of the package."""
    spec = importlib.util.spec_from_file_location("install_script", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def folder(install, tmp_path, monkeypatch):
    """The script at work on an empty folder: a .venv that pip never touches, commands recorded, not run."""
    commands = []

    def run(what, command):
        commands.append([str(part) for part in command])
        if "venv" in command:
            (tmp_path / ".venv" / "bin").mkdir(parents=True)
            (tmp_path / ".venv" / "bin" / "python").touch()

    monkeypatch.setattr(install, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(install, "run", run)
    monkeypatch.setattr(install, "look", lambda python: EMPTY)
    monkeypatch.setattr(install, "host_torch", lambda: None)
    monkeypatch.setattr(install, "has_gpu", lambda: False)
    return commands


EMPTY = {"torch": None, "own": False, "needs": [], "triton": False, "installed": {}, "folders": []}
IMAGE = {
    "torch": "2.8.0+rocm7.0.2.git245bf6ed",
    "own": False,
    "needs": ["filelock", "pytorch-triton-rocm==3.4.0; platform_system == 'Linux'"],
    "triton": True,
    "installed": {
        "torch": "2.8.0+rocm7.0.2.git245bf6ed",
        "pytorch_triton_rocm": "3.4.0",
        "numpy": "1.26.4",
        "Jinja2": "3.1.4",
    },
    "folders": ["/opt/venv/lib/python3.12/site-packages"],
}
PINS = ["numpy==2.4.6", "Jinja2==3.1.6", "torch==2.13.0", "triton==3.7.1", "triton-workshop==1"]


@pytest.mark.parametrize(
    "machine, found, remedy",
    [
        (("Darwin", "arm64", "", (3, 12)), "Darwin", "Linux container"),
        (("Windows", "AMD64", "", (3, 12)), "Windows", "WSL 2"),
        (("Linux", "ppc64le", "glibc", (3, 12)), "ppc64le", "Colab"),
        (("Linux", "x86_64", "", (3, 12)), "without glibc", "Debian"),
        (("Linux", "x86_64", "glibc", (3, 10)), "Python 3.10", "PYTHON=python3.12"),
        (("Linux", "x86_64", "glibc", (3, 15)), "Python 3.15", "PYTHON=python3.12"),
    ],
)
def test_a_machine_without_wheels_is_told_in_one_line(install, machine, found, remedy):
    with pytest.raises(install.Problem) as problem:
        install.check_machine(*machine)
    text = str(problem.value)
    assert found in text and remedy in text and "\n" not in text


@pytest.mark.parametrize("python", [(3, 11), (3, 12), (3, 13), (3, 14)])
def test_the_supported_pythons_pass(install, python):
    install.check_machine("Linux", "x86_64", "glibc", python)
    install.check_machine("Linux", "aarch64", "glibc", python)


def test_a_debian_without_the_venv_package_is_told_which_to_install(install):
    with pytest.raises(install.Problem, match=r"without ensurepip.*apt install python3\.\d+-venv"):
        install.check_venv_module(lambda name: None if name == "ensurepip" else name)


def test_problems_end_with_status_2_and_nothing_half_written(install, folder, tmp_path, monkeypatch, capsys):
    def fail(*_):
        raise install.Problem("pip could not")

    monkeypatch.setattr(install, "pip", fail)
    assert install.main(["lab"], {}) == 2
    assert capsys.readouterr().err == "install: pip could not\n"
    assert not (tmp_path / ".venv").exists()


def test_an_environment_that_worked_survives_a_failed_update(install, folder, tmp_path, monkeypatch):
    assert install.main(["lab"], {}) == 0

    def fail(*_):
        raise install.Problem("pip could not")

    monkeypatch.setattr(install, "pip", fail)
    assert install.main(["dev"], {}) == 2
    assert (tmp_path / ".venv" / "installed" / "lab").exists()


def test_a_second_run_starts_no_command(install, folder):
    assert install.main(["lab", "dev"], {}) == 0
    assert folder
    folder.clear()
    assert install.main(["lab", "dev"], {}) == 0
    assert folder == []


def test_a_changed_pin_is_installed(install, folder, tmp_path, monkeypatch):
    install.main(["lab"], {})
    folder.clear()
    pins = tmp_path / "pins.txt"
    pins.write_text("torch==2.14.0\n")
    monkeypatch.setattr(install, "CONSTRAINTS", pins)
    install.main(["lab"], {})
    assert folder


def test_an_unknown_group_is_status_2(install, capsys):
    assert install.main(["everything"], {}) == 2
    assert "everything" in capsys.readouterr().err


def test_a_fresh_machine_gets_torch_triton_and_jax(install):
    assert install.wanted("lab", EMPTY, "jax")[-4:] == ["torch", "triton", "jax", "absl-py"]


def test_an_image_keeps_its_torch_triton_and_numpy(install):
    asked = install.wanted("lab", IMAGE, None)
    assert not {"torch", "triton"} & set(asked)
    assert install.pins_beside(IMAGE, PINS) == [
        "Jinja2==3.1.6",
        "triton-workshop==1",
        "pytorch-triton-rocm==3.4.0",
        "torch==2.8.0+rocm7.0.2.git245bf6ed",
    ]


def test_the_torch_index_serves_torch_and_its_triton_alone(install, folder, monkeypatch):
    monkeypatch.setattr(install, "look", lambda python: {**IMAGE, "own": True})
    assert install.main(["lab", "dev"], {"TORCH_INDEX_URL": "file:///builds"}) == 0
    served = [command for command in folder if "file:///builds" in command]
    assert all("--no-deps" in command for command in served)
    assert [command[-1] for command in served] == ["torch>=2.8,<=2.13.0", "pytorch-triton-rocm==3.4.0"]


def test_another_torch_index_asks_for_a_clean_start(install, folder, capsys):
    install.main(["lab"], {})
    assert install.main(["lab"], {"TORCH_INDEX_URL": "file:///builds"}) == 2
    assert "make clean" in capsys.readouterr().err


def test_jax_comes_with_the_lab_only_without_a_gpu(install, monkeypatch):
    monkeypatch.setattr(install, "has_gpu", lambda: False)
    assert install.jax_for("lab", {}) == "jax"
    assert install.jax_for("lab", {"JAX_PACKAGE": "none"}) is None
    monkeypatch.setattr(install, "has_gpu", lambda: True)
    assert install.jax_for("lab", {}) is None
    assert install.jax_for("jax", {"JAX_PACKAGE": "jax[cuda13]"}) == "jax[cuda13]"


def test_jax_triton_never_brings_a_triton(install, folder):
    install.main(["lab"], {})
    (command,) = [command for command in folder if command[-1] == "jax-triton"]
    assert "--no-deps" in command


def test_a_torch_inside_a_virtual_environment_is_seen_from_venv(install, tmp_path, monkeypatch):
    """As in the ROCm images, whose torch lives in /opt/venv: no installing, one real environment."""
    host = tmp_path / "opt" / "site-packages"
    (host / "torch").mkdir(parents=True)
    (host / "torch" / "__init__.py").write_text("")
    metadata = host / "torch-2.8.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.8.0+rocm7\n")
    monkeypatch.setattr(sys, "prefix", "/opt/venv")
    install.make_venv(tmp_path / ".venv", {**IMAGE, "folders": [str(host)]})
    seen = install.look(tmp_path / ".venv" / "bin" / "python")
    assert (seen["torch"], seen["own"]) == ("2.8.0+rocm7", False)


def test_look_reports_this_interpreter(install):
    seen = install.look(sys.executable)
    assert seen["torch"].startswith("2.") and seen["triton"] and seen["installed"]["pytest"]


def test_the_script_needs_only_the_standard_library():
    """-S leaves site-packages out: what a fresh machine has."""
    result = subprocess.run([sys.executable, "-S", SCRIPT, "nothing"], capture_output=True, text=True)
    assert result.returncode == 2 and result.stderr.startswith("install: found the group nothing")


def test_conda_has_the_same_pins():
    pins = dict(
        line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line
    )
    conda = (ROOT / "environment.yml").read_text()
    named = re.findall(r"- ([\w-]+)==([\w.]+)", conda)
    assert {"torch", "triton", "jupyterlab", "nbgrader"} <= {name for name, _ in named}
    assert {name: pins[name] for name, _ in named} == dict(named)
    assert "-c constraints.txt" in conda

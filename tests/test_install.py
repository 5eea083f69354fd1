"""`workshop/install.py`: what is said when something is missing, and that a torch is never replaced."""

import importlib
import importlib.util
import os
import re
import shutil
import signal
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
    monkeypatch.setattr(install, "LOG", tmp_path / "install.log")
    monkeypatch.setattr(install, "find_uv", lambda python: None)
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


def test_a_failed_step_shows_its_last_lines_and_names_the_log(install, tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(install, "LOG", tmp_path / "install.log")
    install.run("something quiet", [sys.executable, "-c", "print('nobody needs this')"])
    with pytest.raises(install.Problem, match=r"something loud: ended with status 3.*install\.log"):
        install.run("something loud", [sys.executable, "-c", "print('the reason'); raise SystemExit(3)"])
    shown = capfd.readouterr()
    assert "the reason" in shown.err and "nobody needs this" not in shown.out + shown.err
    assert "nobody needs this" in (tmp_path / "install.log").read_text()


def test_where_uv_fails_pip_is_named(install, tmp_path, monkeypatch):
    monkeypatch.setattr(install, "LOG", tmp_path / "install.log")
    (tmp_path / "uv").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "uv").chmod(0o755)
    with pytest.raises(install.Problem, match="INSTALL_WITH=pip make lab"):
        install.run("torch for this machine", [tmp_path / "uv"])


def test_what_it_takes_is_said_before_and_that_it_is_done_behind(install, folder, capsys):
    assert install.main(["lab"], {}) == 0
    said = capsys.readouterr().out
    assert said.startswith("Installing the course into .venv.") and "this takes" in said and "Done, in" in said
    assert install.main(["lab"], {}) == 0 and capsys.readouterr().out == ""


@pytest.mark.parametrize("setting, used", [({}, True), ({"PIP_INDEX_URL": "https://pypi.example"}, False)])
def test_uv_works_where_pip_has_no_settings_that_uv_would_not_read(install, tmp_path, monkeypatch, setting, used):
    (tmp_path / "uv").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    for name, value in ({"PIP_CONFIG_FILE": os.devnull} | setting).items():
        monkeypatch.setenv(name, value)
    assert install.find_uv(sys.executable) == (str(tmp_path / "uv") if used else None)


def test_uv_is_asked_for_the_torch_of_this_machine(install, folder, monkeypatch):
    monkeypatch.setattr(install, "find_uv", lambda python: "/usr/bin/uv")
    assert install.main(["lab"], {}) == 0
    torch, packages = folder[1:3]
    assert torch[:3] == ["/usr/bin/uv", "pip", "install"]
    assert torch[-2:] == ["--torch-backend=auto", "torch>=2.8,<=2.13.0"]
    assert packages[:3] == torch[:3] and "--constraint" in packages


def test_the_index_of_amd_is_asked_for_the_part_of_this_card(install, folder, tmp_path, monkeypatch):
    for node, version in (("0", 0), ("1", 90402), ("2", 90402), ("3", 90010)):
        (tmp_path / "nodes" / node).mkdir(parents=True)
        (tmp_path / "nodes" / node / "properties").write_text(f"simd_count 4\ngfx_target_version {version}\n")
    extra = install.card_extra(tmp_path / "nodes")
    assert extra == "[device-gfx90a,device-gfx942]" and install.card_extra(tmp_path / "none") == ""
    monkeypatch.setattr(install, "card_extra", lambda: extra)
    index = "https://repo.amd.com/rocm/whl-multi-arch/"
    assert install.main(["lab"], {"TORCH_INDEX_URL": index}) == 0
    assert folder[1][-3:] == ["--index-url", index, f"torch{extra}>=2.8,<=2.13.0"] and "--no-deps" not in folder[1]


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """`make lab` with a Jupyter that prints an address and more, and waits for Ctrl-C, or ends at once."""
    jupyter = tmp_path / ".venv" / "bin" / "jupyter"
    jupyter.parent.mkdir(parents=True)
    jupyter.write_text(
        f"#!{sys.executable}\nimport sys, time\nprint('W warning that means nothing', flush=True)\n"
        "if 'fails' in sys.argv:\n    raise SystemExit('no port is free')\n"
        "print('http://127.0.0.1:8888/lab?token=1', flush=True)\ntime.sleep(60)\n"
    )
    jupyter.chmod(0o755)
    (tmp_path / "workshop").mkdir()
    shutil.copy(ROOT / "workshop" / "lab.py", tmp_path / "workshop")

    def start(*arguments):
        command = [sys.executable, "workshop/lab.py", *arguments]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        heard = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731  a shell's background job ignores it
        return subprocess.Popen(command, cwd=tmp_path, text=True, start_new_session=True, preexec_fn=heard, **pipes)

    return start


def test_the_lab_shows_its_address_and_ends_quietly_on_ctrl_c(lab):
    child = lab()
    said = iter(child.stdout.readline, "Ctrl-C here ends it.\n")
    assert "http://127.0.0.1:8888/lab?token=1" in (shown := "".join(said)) and "warning" not in shown
    os.killpg(child.pid, signal.SIGINT)
    rest, _ = child.communicate(timeout=60)
    assert child.returncode == 0 and rest.split() == ["Ending", "…"]


def test_a_lab_that_does_not_open_says_why(lab):
    said, _ = lab("fails").communicate(timeout=60)
    assert "no port is free" in said and "lab.log" in said


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
    from jupyterlab_server.settings_utils import _get_overrides

    host = tmp_path / "opt" / "site-packages"
    (host / "torch").mkdir(parents=True)
    (host / "torch" / "__init__.py").write_text("")
    metadata = host / "torch-2.8.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.8.0+rocm7\n")
    monkeypatch.setattr(sys, "prefix", "/opt/venv")
    run = install.run  # without pip, which takes longest and is not looked at
    monkeypatch.setattr(install, "run", lambda what, command: run(what, [*command[:-1], "--without-pip", command[-1]]))
    install.make_venv(tmp_path / ".venv", {**IMAGE, "folders": [str(host)]})
    seen = install.look(tmp_path / ".venv" / "bin" / "python")
    assert (seen["torch"], seen["own"]) == ("2.8.0+rocm7", False)

    # At 900 pixels long lines were cut. JupyterLab reads the setting from the virtual environment.
    monkeypatch.setenv("JUPYTER_CONFIG_PATH", str(tmp_path / ".venv" / "etc" / "jupyter"))
    overrides, error = _get_overrides(str(tmp_path))
    assert overrides["@jupyterlab/notebook-extension:tracker"]["codeCellConfig"]["lineWrap"] is True and not error


def test_look_reports_this_interpreter(install):
    seen = install.look(sys.executable)
    assert seen["torch"].startswith("2.") and seen["triton"] and seen["installed"]["pytest"]


def test_the_script_needs_only_the_standard_library():
    """-S leaves site-packages out: what a fresh machine has."""
    result = subprocess.run([sys.executable, "-S", SCRIPT, "nothing"], capture_output=True, text=True)
    assert result.returncode == 2 and result.stderr.startswith("install: found the group nothing")


def test_conda_has_the_same_pins():
    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line)
    conda = (ROOT / "environment.yml").read_text()
    named = re.findall(r"- ([\w-]+)==([\w.]+)", conda)
    assert {"torch", "triton", "jupyterlab", "nbgrader"} <= {name for name, _ in named}
    assert {name: pins[name] for name, _ in named} == dict(named)
    assert "-c constraints.txt" in conda

"""The machine is described by facts, and the doctor says what to do."""

import copy
import importlib.metadata
import os
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

import workshop
from workshop import KNOWN_DEVICES, DeviceFacts
from workshop import device as current_device
from workshop.cli import main
from workshop.doctor import Machine, Node, _wanted_triton, doctor

HEALTHY = Machine(
    torch="2.13.0",
    torch_wants_triton="3.7.1",
    triton="3.7.1",
    numpy="2.4.6",
    jax="0.10.2",
    jax_triton="0.3.1",
    cache="/home/learner/.triton/cache",
)
RENDER = Node("/dev/dri/renderD128", False, 105, "render")
MI300X = dict(gpus=("AMD 0000:03:00.0",), drivers=("amdgpu",), torch_build="ROCm 7.0")


def states(machine: Machine) -> dict[str, str]:
    return {finding.what: finding.state for finding in doctor(machine)}


def advice(machine: Machine) -> str:
    return "\n".join(finding.todo for finding in doctor(machine) if finding.state != "ok")


LAUNCH = """
import torch, triton.language as tl, probes_xray
x = torch.arange(8.0)
probes_xray.scaled_copy[(1,)](x, x, 8, BLOCK_SIZE=8)
print(x.tolist()[-1], workshop.device().backend)
"""


def test_import_is_light_and_triton_is_as_on_a_gpu():
    heavy = "{'matplotlib', 'pandas', 'ipywidgets', 'jax', 'IPython'}"
    code = f"import os, sys, workshop; print({heavy} & set(sys.modules))\n"
    code += "import triton; print(os.environ.get('TRITON_INTERPRET'), workshop.DEVICE)" + LAUNCH
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment["PYTHONPATH"] = os.path.dirname(__file__)
    answer = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    heavy, *said = answer.stdout.split()
    assert heavy == "set()" and not answer.stderr
    assert torch.accelerator.is_available() or said == ["None", "cpu", "18.0", "interpreter"]


@pytest.mark.skipif(torch.accelerator.is_available(), reason="needs a machine without a GPU")
def test_kernels_run_without_a_gpu_in_any_order_of_imports_and_a_value_that_was_set_is_kept(forks):
    code = "import os, triton, workshop; print(os.environ['TRITON_INTERPRET'])" + LAUNCH
    answer = forks.run(code, TRITON_INTERPRET="0")
    assert answer.stdout.split() == ["0", "18.0", "interpreter"] and not answer.stderr


def test_the_wish_to_run_without_the_gpu_is_remembered(forks):
    code = "import os, workshop; print(os.environ['TRITON_INTERPRET'])" + LAUNCH
    answer = forks.run(code, TRITON_INTERPRET="1")
    assert answer.stdout.split() == ["0", "18.0", "interpreter"] and not answer.stderr


def test_tritons_own_interpreter_is_not_taken_for_this_courses(forks):
    answer = forks.run("import triton, workshop", TRITON_INTERPRET="1")
    assert answer.returncode == 0
    assert "Triton's own interpreter" in answer.stderr and "Restart the kernel" in answer.stderr


def test_where_tritons_library_does_not_load_kernels_run(forks):
    code = "import sys; sys.modules['triton._C.libtriton'] = None; import workshop" + LAUNCH
    code += "print(workshop.count_bytes(lambda: probes_xray.scaled_copy[(1,)](x, x, 8, BLOCK_SIZE=8)).bytes_moved)\n"
    code += "from workshop.doctor import probe; print(probe().compiler)"
    answer = forks.run(code, TRITON_INTERPRET="1")
    assert answer.stdout.split() == ["18.0", "interpreter", "64", "False"]


def test_without_triton_the_doctor_still_answers_and_the_rest_says_why(forks):
    code = (
        "import sys; sys.modules['triton'] = None\n"
        "from workshop import doctor\nprint(doctor().usable)\n"
        "try:\n    from workshop import DEVICE\nexcept ImportError as error:\n    print(error)"
    )
    usable, reason = forks.run(code).stdout.strip().splitlines()
    assert usable == "False"
    assert "workshop doctor" in reason


@pytest.mark.skipif(torch.accelerator.is_available(), reason="needs a machine without a GPU")
def test_a_misspelt_fact_is_answered_with_its_name():
    with pytest.raises(AttributeError, match="no 'multiprocessor'. Did you mean multiprocessors?"):
        _ = KNOWN_DEVICES["NVIDIA H100"].multiprocessor
    assert copy.copy(KNOWN_DEVICES["NVIDIA H100"]) == KNOWN_DEVICES["NVIDIA H100"]


def test_a_cpu_is_described_and_never_timed():
    here = current_device()
    assert here.interpreting and here.backend == "interpreter"
    assert "No GPU here" in str(here) and "every access to memory is checked" in str(here)
    assert "<table>" in here._repr_html_()
    with pytest.raises(RuntimeError, match="no GPU"):
        here.copy_gbps()


def test_known_devices_are_consistent():
    for name, facts in KNOWN_DEVICES.items():
        assert isinstance(facts, DeviceFacts) and facts.name == name
        assert facts.registers == 65536 and facts.max_threads == 2048
        assert facts.warp_size == {"cuda": 32, "hip": 64}[facts.backend]
        assert facts.is_cdna == (facts.backend == "hip")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.accelerator.is_available(), reason="needs a GPU")
def test_the_gpu_is_what_the_table_says():
    here = current_device()
    assert not here.interpreting and here.multiprocessors > 0 and here.memory > 1 << 30
    assert workshop.DEVICE.type == torch.accelerator.current_accelerator().type
    assert here.name in str(here) and "GB/s" in here._repr_html_()
    if here.name in KNOWN_DEVICES:
        fields = (
            "backend",
            "arch",
            "multiprocessors",
            "registers",
            "shared_memory",
            "warp_size",
            "max_threads",
        )
        known = KNOWN_DEVICES[here.name]
        assert {name: getattr(here, name) for name in fields} == {
            name: getattr(known, name) for name in fields
        }


def test_a_backend_of_another_vendor_is_taken_from_the_driver(monkeypatch):
    class Target:
        backend, arch, warp_size = "npu", "Ascend910B", 0

    class Utils:
        get_device_properties = staticmethod(lambda index: {"num_aicore": 24, "max_shared_mem": 196608})

    class Driver:
        utils = Utils
        get_active_torch_device = staticmethod(lambda: torch.device("cpu"))
        get_current_target = staticmethod(lambda: Target)
        get_current_device = staticmethod(lambda: 0)

    module = type("Module", (), {"get_device_properties": staticmethod(lambda where: object())})
    described = sys.modules["workshop.device"]
    monkeypatch.setattr(described, "driver", lambda: Driver)
    monkeypatch.setattr(torch, "get_device_module", lambda where: module)
    found = described._accelerator()
    assert (found.backend, found.arch, found.multiprocessors) == ("npu", "Ascend910B", 24)
    assert found.shared_memory == 196608 and found.registers == 0


def test_a_healthy_machine_has_no_complaints():
    findings = doctor(HEALTHY)
    assert findings.usable
    assert {finding.state for finding in findings} == {"ok"}


@pytest.mark.parametrize(
    ("change", "what", "state", "todo"),
    [
        (dict(python=(3, 10)), "Python 3.10", "bad", "newer Python"),
        (dict(system="Darwin", architecture="arm64", triton=None), "Darwin on arm64", "bad", "Linux machine"),
        (dict(system="Darwin", architecture="arm64", compiler=False), "Darwin on arm64", "warn", "Linux machine"),
        (dict(torch=None), "torch does not import", "bad", "make lab"),
        (dict(triton=None), "triton does not import", "bad", "triton==3.7.1"),
        (
            dict(triton="3.6.0", numpy="2.3.5"),
            "triton 3.6.0, but torch 2.13.0 was built for triton 3.7.1",
            "warn",
            "triton==3.7.1",
        ),
        (dict(compiler=False), "triton 3.7.1 without its library", "warn", "triton==3.7.1"),
        (
            dict(gpus=("NVIDIA 0000:01:00.0",), drivers=("nvidia",)),
            "found NVIDIA 0000:01:00.0, but this torch is built for the CPU",
            "warn",
            "README",
        ),
        (
            MI300X | dict(drivers=()),
            "found AMD 0000:03:00.0 without a loaded driver",
            "warn",
            "amdgpu",
        ),
        (
            MI300X,
            "found AMD 0000:03:00.0, but no device files in /dev",
            "warn",
            "--device /dev/kfd",
        ),
        (
            MI300X | dict(nodes=(RENDER,)),
            "/dev/dri/renderD128 may not be opened: it belongs to group render (105)",
            "warn",
            "usermod -aG render",
        ),
        (
            MI300X | dict(nodes=(replace(RENDER, group=None),)),
            "/dev/dri/renderD128 may not be opened: it belongs to group unnamed (105)",
            "warn",
            "--group-add 105",
        ),
        (
            dict(cache_writable=False),
            "/home/learner/.triton/cache cannot be written",
            "bad",
            "TRITON_CACHE_DIR",
        ),
        (dict(cache_free=1 << 20), "1 MiB free at /home/learner/.triton/cache", "warn", "space"),
        (dict(jax=None), "jax not installed", "warn", "make jax"),
        (
            dict(accelerator="AMD Instinct MI300X", interpret="1"),
            "TRITON_INTERPRET is set although there is a GPU",
            "warn",
            "Unset",
        ),
    ],
)
def test_each_fault_is_named_with_what_to_do(change, what, state, todo):
    machine = replace(HEALTHY, **change)
    assert states(machine)[what] == state
    assert todo in advice(machine)
    assert doctor(machine).usable == (state != "bad")


@pytest.mark.parametrize(
    ("change", "what", "todo"),
    [
        (dict(), "HIP_FORCE_DEV_KERNARG is not 1", "export HIP_FORCE_DEV_KERNARG=1"),
        (dict(numa_balancing="1"), "NUMA balancing is on", "numa_balancing"),
        (dict(clocks="auto"), "the GPU chooses its clocks", "--setperfdeterminism"),
    ],
)
def test_settings_that_change_timings_are_named_on_amd_gpus_only(change, what, todo):
    amd = replace(HEALTHY, accelerator="AMD Instinct MI300X", torch_build="ROCm 7.0", **change)
    [found] = [finding for finding in doctor(amd) if finding.what == what]
    assert todo in found.todo and doctor(amd).usable
    assert what not in states(replace(amd, torch_build="CUDA 13.0", accelerator="NVIDIA H200"))
    assert what not in states(replace(amd, dev_kernarg="1", numa_balancing="0", clocks="perf_determinism"))


def test_a_gpu_that_works_is_named():
    assert states(replace(HEALTHY, accelerator="NVIDIA H200"))["GPU: NVIDIA H200"] == "ok"


@pytest.mark.parametrize(("judge", "status"), [("", 0), ("it failed", 1)])
def test_the_command_prints_findings_and_reports_by_its_status(monkeypatch, capsys, judge, status):
    monkeypatch.setattr(sys.modules["workshop.doctor"], "probe", lambda: replace(HEALTHY, judge=judge))
    assert main(["doctor"]) == status
    assert "Python 3.12" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("need", "release"),
    [
        ('triton==3.7.1; platform_system == "Linux"', "3.7.1"),
        ('triton~=3.8.0; platform_system == "Linux"', "3.8"),
        ("pytorch-triton-rocm==3.4.0", "3.4.0"),
        ("numpy", None),
    ],
)
def test_the_triton_that_a_torch_names_is_read(monkeypatch, need, release):
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: ["filelock", need])
    assert _wanted_triton() == release


def test_the_doctor_says_at_once_that_it_looks_and_takes_it_back(monkeypatch):
    shown = []
    handle = SimpleNamespace(update=lambda content, raw: shown.append(content))
    kernel = SimpleNamespace(
        get_ipython=lambda: SimpleNamespace(kernel=True),
        display=SimpleNamespace(display=lambda content, raw, display_id: shown.append(content) or handle),
    )
    monkeypatch.setitem(sys.modules, "IPython", kernel)
    monkeypatch.setattr(sys.modules["workshop.doctor"], "probe", lambda: shown.append("looked") or HEALTHY)
    doctor()
    assert "Looking" in shown[0]["text/plain"] and shown[1:] == ["looked", {"text/html": ""}]


def test_a_wrong_call_of_the_command_ends_with_2():
    with pytest.raises(SystemExit) as ended:
        main(["heal"])
    assert ended.value.code == 2


@pytest.mark.parametrize("arguments", [["--help"], ["progress"]])
def test_what_needs_no_torch_answers_before_torch_is_imported(arguments):
    command = [sys.executable, "-X", "importtime", "-m", "workshop.cli", *arguments]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    imported = {line.rpartition("|")[2].strip() for line in answer.stderr.splitlines()}
    assert "workshop.progress" in imported and not imported & {"torch", "triton", "numpy"}

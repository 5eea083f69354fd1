"""What the chosen launches become for AMD's MI300X (gfx942) and MI355X (gfx950), and for NVIDIA's A100 (sm_80), H200
(sm_90) and B200 (sm_100): no GPU is needed.

    python benchmarks/compiled.py

Registers, spills, widths of global loads and stores, and how many programs fit on a compute unit or multiprocessor,
as the compiler says. Of these cards, only the H200 ran the kernels: nothing here is a speed.
"""

import argparse
import json
from datetime import date
from pathlib import Path

import workshop  # isort: skip  # before triton

import torch
import triton
from kernels import dropout
from kernels.softmax import Launch, choose, words

from workshop.device import DeviceFacts
from workshop.results import RECORDED

COLUMNS = (256, 781, 4096, 12672, 32768, 50257, 131072, 1048576)
_KNOWN = workshop.KNOWN_DEVICES
TARGETS = {
    "gfx942": _KNOWN["AMD Instinct MI300X"],
    "gfx950": _KNOWN["AMD Instinct MI355X"],
    "sm_80": _KNOWN["NVIDIA A100"],
    "sm_90": _KNOWN["NVIDIA H200"],
    "sm_100": DeviceFacts("NVIDIA B200", "cuda", "sm_100", 148, 65536, 227 * 1024, 32, 2048),
}
TYPES = {torch.float32: "*fp32", torch.bfloat16: "*bf16"}


def softmax_lines() -> list[dict]:
    """One line for each dtype, number of columns and target: the launch that `choose` names, compiled."""
    lines = []
    for dtype, pointer in TYPES.items():
        for columns in COLUMNS:
            for target in TARGETS:
                backend, _, capability = target.partition("_")
                backend, capability = ("cuda", int(capability)) if backend == "sm" else ("hip", 0)
                launch = choose(dtype, columns, *words(dtype, columns, columns, 0), backend, capability)
                line = compiled(launch.kernel, (pointer, pointer, columns, columns, 16384, columns), launch, target)
                name = launch.kernel.fn.__name__
                lines.append({"dtype": str(dtype)[6:], "columns": columns, "kernel": name} | line)
    return lines


def dropout_lines() -> list[dict]:
    """The dropout kernels, forward and backward, with the launches of dropout.py."""
    lines = []
    for kernel, arrays, warps in (
        (dropout.leaky_dropout_kernel, 1, dropout.FORWARD_WARPS),
        (dropout.leaky_dropout_backward_kernel, 2, dropout.BACKWARD_WARPS),
    ):
        for target in TARGETS:
            arguments = ["*fp32"] * arrays + ["*fp32", "*i32", "*fp32"]
            backend = TARGETS[target].backend
            launch = Launch(kernel, {"n": 1 << 27, "QUARTER": dropout.QUARTER}, {"num_warps": warps[backend]})
            line = compiled(kernel, arguments, launch, target)
            lines.append({"dtype": "float32", "columns": "any", "kernel": kernel.fn.__name__} | line)
    return lines


def compiled(kernel, arguments, launch, target: str) -> dict:
    """What one kernel becomes for one target; `programs` fit on a compute unit or multiprocessor at once."""
    constants, options = dict(launch.constants), dict(launch.options)
    found = workshop.xray(kernel, *arguments, **constants, **options, targets=(target,))[target]
    facts = TARGETS[target]
    registers = found.vgprs or found.registers
    programs = workshop.num_programs(registers, found.shared, options["num_warps"], facts) // facts.multiprocessors
    return {
        "target": target,
        "warps": options["num_warps"],
        "launch": constants,
        "registers": registers,
        "spills": found.spills,
        "shared": found.shared,
        "loads": found.loads,
        "stores": found.stores,
        "programs": programs,
        "waves": None if found.occupancy is None else int(found.occupancy),
    }


def table(lines: list[dict]) -> str:
    """The lines in Markdown."""
    head = "| dtype | columns | kernel | target | warps | registers | spills | loads | stores | programs | waves |"
    text = [head, "|---" * 11 + "|"]
    for line in lines:
        cells = [line[key] for key in ("dtype", "columns", "kernel", "target", "warps", "registers", "spills")]
        cells += [_widths(line["loads"]), _widths(line["stores"]), line["programs"], line["waves"] or "–"]
        text.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(text)


def _widths(counts: dict[int, int]) -> str:
    return ", ".join(f"{count} × {bits}" for bits, count in sorted(counts.items(), reverse=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=RECORDED, help="folder for the JSON and the table")
    chosen = parser.parse_args()
    lines = softmax_lines() + dropout_lines()
    about = {"triton": triton.__version__, "date": date.today().isoformat(), "run on": "no GPU: compiled only"}
    chosen.out.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"about": about, "lines": lines}).replace('{"dtype"', '\n{"dtype"')
    (chosen.out / "compiled.json").write_text(text + "\n", encoding="utf-8")
    heading = f"Compiled by Triton {about['triton']} on {about['date']}; only the H200 ran it."
    (chosen.out / "compiled.md").write_text(f"{heading}\n\n{table(lines)}\n", encoding="utf-8")
    print(table(lines))


if __name__ == "__main__":
    main()

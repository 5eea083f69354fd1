"""What the chosen launches become for AMD's MI300X (gfx942) and MI355X (gfx950), and for Hopper: no GPU is needed.

    python benchmarks/compiled.py

Registers, spills, widths of global loads and stores, and how many programs fit on a compute unit or multiprocessor,
as the compiler says. No AMD card ran these kernels: nothing here is a speed.
"""

import argparse
import json
from datetime import date
from pathlib import Path

import workshop  # isort: skip  # before triton

import torch
import triton
from kernels import dropout
from kernels.softmax import Launch, choose, tile_kernel

from workshop.results import RECORDED

COLUMNS = (256, 781, 1024, 2048, 4096, 8192, 12672, 16384, 32768, 65536, 131072)
TARGETS = {"gfx942": "AMD Instinct MI300X", "gfx950": "AMD Instinct MI355X", "sm_90": "NVIDIA H200"}
TYPES = {torch.float32: "*fp32", torch.bfloat16: "*bf16"}


def softmax_lines() -> list[dict]:
    """One line for each dtype, number of columns and target: the launch that `choose` names, compiled."""
    lines = []
    for dtype, pointer in TYPES.items():
        for columns in COLUMNS:
            for target in TARGETS:
                backend, capability = ("cuda", 90) if target == "sm_90" else ("hip", 0)
                ragged = columns * dtype.itemsize % 16 != 0
                launch = choose(dtype, columns, ragged, backend, capability)
                sizes = (16384, columns) if launch.kernel is tile_kernel else (columns,)
                line = compiled(launch.kernel, (pointer, pointer, columns, columns, *sizes), launch, target)
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
            backend = "cuda" if target == "sm_90" else "hip"
            launch = Launch(kernel, {"n": 1 << 27, "QUARTER": dropout.QUARTER}, {"num_warps": warps[backend]})
            line = compiled(kernel, arguments, launch, target)
            lines.append({"dtype": "float32", "columns": "any", "kernel": kernel.fn.__name__} | line)
    return lines


def compiled(kernel, arguments, launch, target: str) -> dict:
    """What one kernel becomes for one target; `programs` fit on a compute unit or multiprocessor at once."""
    constants, options = dict(launch.constants), dict(launch.options)
    found = workshop.xray(kernel, *arguments, **constants, **options, targets=(target,))[target]
    facts = workshop.KNOWN_DEVICES[TARGETS[target]]
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
    heading = f"Compiled by Triton {about['triton']} on {about['date']}; no AMD card ran it."
    (chosen.out / "compiled.md").write_text(f"{heading}\n\n{table(lines)}\n", encoding="utf-8")
    print(table(lines))


if __name__ == "__main__":
    main()

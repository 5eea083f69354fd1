"""What the measuring scripts share: their options, and where a table and its plot are written."""

import argparse
import re
import sys
from pathlib import Path

from workshop import device
from workshop.bench import RECORDED, Results


def options(description: str) -> argparse.ArgumentParser:
    """A parser with --out; ends the program where there is no GPU to measure."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--out", type=Path, default=RECORDED, help="folder for the table and the plot")
    if device().interpreting:
        sys.exit("found no GPU; a speed can only be measured on one")
    return parser


def write(results: Results, name: str, folder: Path) -> None:
    """Save <gpu>_<name>.csv and .png, and print the table."""
    stem = f"{_short(results.about['gpu'])}_{name}"
    print(results)
    print("written:", results.save(folder / f"{stem}.csv"))
    results.plot().savefig(folder / f"{stem}.png")


def _short(gpu: str) -> str:
    """ "NVIDIA H200" -> "h200", "AMD Instinct MI300X" -> "mi300x"."""
    model = re.search(r"\b[A-Z]+\d+\w*", gpu)
    return (model[0] if model else re.sub(r"\W+", "_", gpu)).lower()

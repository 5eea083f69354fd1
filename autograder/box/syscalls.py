"""Numbers of system calls on x86_64 and aarch64, and what the box allows or denies: the tables are in syscalls.toml."""

import tomllib
from pathlib import Path


def _rows(table: str) -> dict[str, tuple[int | None, ...]]:
    rows = (cell.split() for line in table.strip().splitlines() for cell in line.split("|"))
    return {name: tuple(None if n == "-" else int(n) for n in numbers) for name, *numbers in rows}


def _names(*groups: str) -> frozenset[str]:
    return frozenset(" ".join(groups).split())


_TOLD = tomllib.loads(Path(__file__).with_name("syscalls.toml").read_text(encoding="utf-8"))
NUMBERS = _rows(_TOLD["numbers"])  # name -> (number on x86_64, number on aarch64), None where there is none
NEWEST = max(number for numbers in NUMBERS.values() for number in numbers if number is not None)
DENIED, ALLOWED = _names(*_TOLD["denied"].values()), _names(*_TOLD["allowed"].values())
HIDDEN = _names(_TOLD["hidden"])

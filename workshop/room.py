"""How many attendees this host holds: what one needs was measured, what the host has is read.

benchmarks/room.py measured what one needs; its table is benchmarks/recorded/room.json.
"""

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path

from workshop.doctor import Findings, told

RECORDED = Path(__file__).resolve().parents[1] / "benchmarks" / "recorded" / "room.json"
GIB = 1 << 30
HUB = GIB  # bytes for the hub, its proxy and the system
AT_ONCE = 0.1  # of the attendees have a check running; at the end of an exercise it is more, and all wait longer
PATIENCE = 3.0  # times as long as alone: what a check may take while AT_ONCE of them run
CARD = 2 * GIB  # bytes of a card for one attendee: a context of CUDA or HIP, twice, and lessons' tensors


@dataclass(frozen=True)
class Needs:
    """What one attendee needs, as it was measured. Bytes; seconds that a check takes alone."""

    idle: int
    checking: int
    check_seconds: float
    about: str

    @classmethod
    def measured(cls, path: Path = RECORDED) -> "Needs":
        told = json.loads(path.read_text(encoding="utf-8"))
        return cls(told["idle_bytes"], told["checking_bytes"], told["check_seconds"], told["about"])


@dataclass(frozen=True)
class Host:
    """What there is. memory: bytes that are free now; card_memory: bytes of each card, empty without one."""

    memory: int
    cores: int
    card_memory: tuple[int, ...] = ()


def this_host() -> Host:
    """The memory, the cores and the cards. In a container with limits, what the limits leave."""
    import psutil
    import torch

    free = psutil.virtual_memory().available
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        file = Path(limit)
        if file.exists() and file.read_text().strip().isdigit():
            free = min(free, int(file.read_text()))
    cards = range(torch.cuda.device_count()) if torch.cuda.is_available() else ()  # ROCm's torch says it so, too
    memory = tuple(torch.cuda.get_device_properties(card).total_memory for card in cards)
    return Host(free, len(os.sched_getaffinity(0)), memory)


def holds(host: Host, needs: Needs) -> dict[str, int]:
    """The number of attendees for which each resource is enough."""
    each = needs.idle + AT_ONCE * (needs.checking - needs.idle)
    found = {
        "memory": max(0, int((host.memory - HUB) / each)),
        # A core serves one check at a time. While n of them run on c cores, each takes n / c times as long.
        "cores": int(PATIENCE * host.cores / AT_ONCE),
    }
    if host.card_memory:
        found["card"] = sum(int(memory / CARD) for memory in host.card_memory)
    return found


def room(attendees: int, host: Host | None = None, needs: Needs | None = None) -> Findings:
    """What this host says to a room of so many attendees: a finding for each resource, and a last one for all."""
    host, needs = host or this_host(), needs or Needs.measured()
    words = {
        "memory": host.memory / GIB,
        "cores": host.cores,
        "cards": len(host.card_memory),
        "card_memory": sum(host.card_memory) / GIB,
        "idle": needs.idle / GIB,
        "checking": needs.checking / GIB,
        "seconds": needs.check_seconds,
        "at_once": AT_ONCE,
        "hub": HUB / GIB,
        "patience": PATIENCE,
        "card": CARD / GIB,
    }
    findings, found = Findings(), holds(host, needs)
    for what, number in found.items():
        finding = told(f"room-{what}", number=number, **words)
        findings.append(finding if number < attendees else replace(finding, state="ok", todo=""))
    most = min(found.values())
    enough = "room" if most >= attendees else "room-too-large"
    return Findings([*findings, told(enough, attendees=attendees, most=most, about=needs.about)])

"""The `workshop` command."""

import argparse
import sys


def main(arguments: list[str] | None = None) -> int:
    """Run one command. Returns 0 on success, 1 when this machine cannot be used, 2 for a wrong call."""
    parser = argparse.ArgumentParser(prog="workshop", description="The Triton course: this machine and your progress.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("doctor", help="what works on this machine, and what to do about what does not")
    commands.add_parser("progress", help="points earned so far, and what is next")
    return {"doctor": _doctor, "progress": _progress}[parser.parse_args(arguments).command]()


def _doctor() -> int:
    from workshop.doctor import doctor

    findings = doctor()
    print(findings)
    return 0 if findings.usable else 1


def _progress() -> int:
    from workshop.progress import progress

    print(progress())
    return 0


if __name__ == "__main__":
    sys.exit(main())

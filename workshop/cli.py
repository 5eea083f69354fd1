"""The `workshop` command."""

import argparse
import json
import sys
from pathlib import Path


def main(arguments: list[str] | None = None) -> int:
    """Run one command. Returns 0 on success, 1 when this machine cannot be used, 2 for a wrong call."""
    parser = argparse.ArgumentParser(prog="workshop", description="The Triton course: this machine and your progress.")
    commands = parser.add_subparsers(dest="command", required=True)
    doctor = commands.add_parser("doctor", help="what works on this machine, and what to do about what does not")
    doctor.add_argument("--room", type=_people, metavar="N", help="does this host hold a room of N attendees?")
    points = commands.add_parser("progress", help="points earned so far, and what is next")
    points.add_argument("--page", metavar="FILE", help="write what is passed as a page to show, and what to build next")
    share = commands.add_parser("share-progress", help="in a room: let the instructor see your progress, or stop")
    share.add_argument("choice", nargs="?", choices=("on", "off"), help="default: say which it is")
    seen = commands.add_parser("attendees", help="in a room, for the instructor: who is where, of those who share it")
    seen.add_argument("--json", action="store_true", help="print one JSON object")
    package = commands.add_parser("new-kernel", help="make a package of your own rms_norm_op, or of an example")
    package.add_argument("name", metavar="NAME", help="of the package, and of its new folder")
    package.add_argument("--notebook", type=Path, metavar="FILE", help="your lesson 10, if it is not here")
    run = {"doctor": _doctor, "progress": _progress, "share-progress": _share_progress, "attendees": _attendees,
           "new-kernel": _new_kernel}  # fmt: skip
    return run[(options := parser.parse_args(arguments)).command](options)


def _people(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of attendees; expected 1 or more")
    return int(text)


def _doctor(options) -> int:
    from workshop.doctor import doctor
    from workshop.room import room

    findings = room(options.room) if options.room else doctor()
    print(findings)
    return 0 if findings.usable else 1


def _progress(options) -> int:
    from workshop import finish
    from workshop.progress import progress

    if not options.page:
        print(progress())
        return 0
    try:
        print(f"The page is {finish.write(options.page)}.")
    except OSError as error:
        print(f"workshop: cannot write {options.page}: {error.strerror}", file=sys.stderr)
        return 2
    return 0


def _share_progress(options) -> int:
    from workshop.progress import share_progress

    try:
        print(share_progress(options.choice or ""))
    except (ValueError, OSError) as error:
        print(f"workshop: {error}", file=sys.stderr)
        return 2
    return 0


def _attendees(options) -> int:
    from workshop.attendees import attendees

    found = attendees()
    print(json.dumps(found.to_json()) if options.json else found)
    return 0


def _new_kernel(options) -> int:
    from workshop import new_kernel

    try:
        folder, function = new_kernel.write(options.name, options.notebook)
    except FileExistsError:
        print(f"workshop: {options.name} is there already", file=sys.stderr)
        return 2
    except (ValueError, OSError) as error:
        print(f"workshop: {error}", file=sys.stderr)
        return 2
    print(f"{folder} holds {function}, its tests and a benchmark.")
    print(f"Next: cd {options.name} && pip install --no-deps -e . && pytest")
    return 0


if __name__ == "__main__":
    sys.exit(main())

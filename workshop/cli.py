"""The `workshop` command."""

import argparse
import json
import os
import sys
from pathlib import Path


def main(arguments: list[str] | None = None) -> int:
    """Run one command. Returns 0 on success, 1 when this machine cannot be used, 2 for a wrong call.

    141, as a shell says it, where nobody reads what is printed any more.
    """
    parser = argparse.ArgumentParser(prog="workshop", description="The Triton course: this machine and your progress.")
    commands = parser.add_subparsers(dest="command", required=True)
    doctor = commands.add_parser("doctor", help="what works on this machine, and what to do about what does not")
    doctor.add_argument("--room", type=_people, metavar="N", help="does this host hold a room of N attendees?")
    points = commands.add_parser("progress", help="points earned so far, and what is next")
    points.add_argument("lesson", nargs="?", default="", help="whose exercises are shown; default: the next one's")
    points.add_argument("--page", metavar="FILE", help="write what is passed as a page to show, and what to build next")
    share = commands.add_parser("share-progress", help="in a room: let the instructor see your progress, or stop")
    share.add_argument("choice", nargs="?", choices=("on", "off"), help="default: say which it is")
    seen = commands.add_parser("attendees", help="in a room, for the instructor: who is where, of those who share it")
    seen.add_argument("--json", action="store_true", help="print one JSON object")
    package = commands.add_parser("new-kernel", help="make a package of your own rms_norm_op, or of an example")
    package.add_argument("name", metavar="NAME", help="of the package, and of its new folder")
    package.add_argument("--notebook", type=Path, metavar="FILE", help="your lesson 10, if it is not here")
    try:
        status = _run(parser.parse_args(arguments))
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # whoever read the output has left, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what Python writes at its end goes nowhere
        return 141
    except (ValueError, OSError) as error:
        file = getattr(error, "filename", None)
        print(f"workshop: {f'{file}: {error.strerror}' if file else error}", file=sys.stderr)
        return 2


def _people(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of attendees; expected 1 or more")
    return int(text)


def _run(options: argparse.Namespace) -> int:
    """Run the command. Each imports what it needs, and no more."""
    match options.command:
        case "doctor":
            from workshop.doctor import doctor, room

            findings = room(options.room) if options.room else doctor()
            print(findings)
            return 0 if findings.usable else 1
        case "progress":
            from workshop.progress import progress, write_page

            print(f"The page is {write_page(options.page)}." if options.page else progress(options.lesson))
        case "share-progress":
            from workshop.progress import share_progress

            print(share_progress(options.choice or ""))
        case "attendees":
            from workshop import shared

            found = shared.attendees()
            print(json.dumps(found) if options.json else shared.in_words(found))
        case "new-kernel":
            from workshop import new_kernel

            folder, function = new_kernel.write(options.name, options.notebook)
            print(f"{folder} holds {function}, its tests and a benchmark.")
            print(f"Next: cd {options.name} && pip install --no-deps -e . && pytest")
    return 0


if __name__ == "__main__":
    sys.exit(main())

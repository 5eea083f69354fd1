"""The instructor's page: what it shows, and what its buttons run. tests/hub/ opens it in a room."""

import asyncio
import contextlib
import json
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from pathlib import Path

import pytest
import requests
from chromium import free_port

from autograder.classroom.course import COURSE_ID
from autograder.classroom.lms.filled import SYSTEMS
from autograder.classroom.room import desk as desk_view
from autograder.classroom.room.desk import STEPS, Desk, Run
from autograder.classroom.room.exchange import how_far
from autograder.cli import _parser
from workshop.syllabus import LESSONS, titled

ROOT = Path(__file__).resolve().parents[1]


def awaited(coroutine):
    """Its result, from a thread: a test with a browser leaves a running event loop in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()


def state(*sharing, runs=(), hidden=0):
    far = {name: how(False, 0, 0, 0, 0) for name in LESSONS}
    seen = {"lessons": LESSONS, "titles": {name: titled(name) for name in LESSONS}}
    return seen | {"sharing": sharing, "hidden": hidden, "lessons_are": far, "runs": runs}


def how(*far):
    return dict(zip(("released", "handed_in", "collected", "graded", "feedback"), far, strict=True))


def person(name="ada", stuck=(), **exercises):
    where = {"here": next(iter(exercises)), "ago": "5 min ago"} if exercises else {"here": None, "ago": None}
    return {"name": name, **where, "stuck": list(stuck), "exercises": exercises}


def whole(room):
    return desk_view.whole(room, "/user/instructor/", "<input>", "/", "nonce")


def words(page):
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", page)))


def test_the_table_has_every_lesson_and_exercise():
    page = desk_view.live(state(person(first_kernel={"passed": True, "failed": 2})))
    for lesson, exercises in LESSONS.items():
        assert titled(lesson)[1] in page
        assert all(f'title="{name}: ' in page for name in exercises)
    assert 'title="first_kernel: passed"' in page and 'title="vector_add: not begun"' in page


def test_who_needs_help_is_said():
    stuck = person("grace", ["bug_hunt"], bug_hunt={"passed": False, "failed": 7})
    page = words(desk_view.live(state(stuck, person("ada"), hidden=3)))
    assert "2 share their progress, 3 do not. 1 needs help." in page
    assert "Needs help: bug_hunt failed 7 times" in page


def test_a_step_that_is_behind_stands_out():
    room = state()
    room["lessons_are"]["00_setup"] = how(True, 3, 2, 0, 0)
    page = desk_view.live(room)
    assert page.count("class=behind") == 2
    assert "<td>3</td>" in page and "<td class=behind>2</td>" in page and "<td class=behind>0</td>" in page


def test_what_is_shown_is_escaped():
    run = Run("Grade", [["grade"]])
    run.lines.append("<img src=x onerror=alert(1)>")
    page = desk_view.live(state(person("<b>ada</b>"), runs=[run]))
    assert "<img" not in page and "<b>ada" not in page
    assert "&lt;img" in page and "&lt;b&gt;ada" in page


def test_the_page_loads_nothing():
    page = whole(state(person()))
    addresses = re.findall(r'(?:src|href|action|data-from)\s*=\s*"([^"]*)"', page)
    assert addresses and all(address.startswith("/") and not address.startswith("//") for address in addresses)
    assert "http" not in page.replace("https?", "") and "@import" not in page and "url(" not in page


@pytest.mark.parametrize("name", STEPS)
def test_each_button_runs_commands_that_there_are(name):
    for command in STEPS[name].commands:
        only = ["--assignment=00_setup"] if STEPS[name].asks else []
        assert _parser().parse_args([*command, *only]).command == command[0]


def test_a_run_says_what_was_printed_and_ends_at_the_first_failure(tmp_path, monkeypatch):
    monkeypatch.setenv("ROOM", str(tmp_path))
    run, alive = Run("Export", [["export"], ["feedback"]]), []
    awaited(run.go(lambda: alive.append(1)))
    said = "\n".join(run.lines)
    assert run.status == 2 and run.ended and alive
    assert "nothing is graded yet" in said and "autograder feedback" not in said
    assert "Export: failed, exit status 2" in words(desk_view.live(state(runs=[run])))


def test_a_run_keeps_the_end_of_what_was_printed(tmp_path, monkeypatch):
    loud = "print('x' * 5000); [print('line', n, 'é') for n in range(1000)]; print('end', end='')"
    (tmp_path / "python").write_text(f"#!{sys.executable}\n{loud}\n")
    (tmp_path / "python").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    run = Run("Grade", [["grade"]])
    awaited(run.go(lambda: None))
    assert run.status == 0 and run.lines[-1] == "end" and run.lines[-2] == "line 999 é" and len(run.lines) == 400


def test_one_run_at_a_time(tmp_path, monkeypatch):
    async def press():
        desk = Desk(tmp_path)
        monkeypatch.setattr(Run, "_one", lambda self, command, alive: asyncio.sleep(0.05, 0))
        desk.start("release", "00_setup")
        assert desk.busy
        await desk._going
        assert not desk.busy
        return desk.runs[0]

    run = awaited(press())
    assert run.commands == [["exchange", "release", "--assignment=00_setup"]] and run.label == "Release 00_setup"


def test_what_publishes_feedback_asks_first():
    page = whole(state(person()))
    assert page.count("<form ") == page.count("room/run") + 2 and page.count("data-confirm=") == 1
    asked = re.search(r'data-confirm="([^"]*)">(.*?)</form>', page, re.S)
    assert 'value="give-back"' in asked[2] and "Attendees can read" in asked[1]


SLOW_GRADER = """#!{python}
import sys, time
from autograder.classroom import interrupt
try:
    with interrupt.remembered():
        print("[1/9] ann graded", flush=True)
        time.sleep(300)
except KeyboardInterrupt:
    print("stopped; finished grades are kept")
    sys.exit(130)
"""


def commands_are(tmp_path, monkeypatch, code):
    (tmp_path / "python").write_text(code.format(python=sys.executable))
    (tmp_path / "python").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))


def test_stop_ends_a_run_as_control_c_does(tmp_path, monkeypatch):
    commands_are(tmp_path, monkeypatch, SLOW_GRADER)

    async def press():
        desk = Desk(tmp_path)
        desk.stop()  # nothing runs
        desk.start("give-back")
        run = desk.runs[0]
        while len(run.lines) < 2:
            await asyncio.sleep(0.02)
        assert "hidden" not in re.search(r'<form[^>]*id="stop"[^>]*>', whole(state(runs=desk.runs)))[0]
        desk.stop()
        assert "stopping" in words(desk_view.live(state(runs=desk.runs)))
        await desk._going
        return run

    run = awaited(press())
    assert run.stopped and list(run.lines)[1:] == ["[1/9] ann graded", "stopped; finished grades are kept"]
    page = whole(state(runs=[run]))
    assert "Give feedback back: stopped, what was finished is kept" in words(page)
    assert "hidden" in re.search(r'<form[^>]*id="stop"[^>]*>', page)[0]


def test_stop_while_python_starts_shows_no_traceback(tmp_path, monkeypatch):
    monkeypatch.setenv("ROOM", str(tmp_path))

    async def press(after):
        run = Run("Grade", [["grade"], ["feedback"]])
        going = asyncio.create_task(run.go(lambda: None))
        while run._process is None:
            await asyncio.sleep(0.001)
        await asyncio.sleep(after)
        run.stop()
        await going
        return run

    for after in (0, 0.02, 0.1):
        run = awaited(press(after))
        assert run.stopped and len(run.lines) == 2, run.lines
        assert run.lines[1].startswith("autograder: stopped; finished grades are kept")


def test_a_run_that_ends_before_stop_reaches_it_is_done(tmp_path, monkeypatch):
    code = "#!{python}\nimport signal; signal.signal(signal.SIGINT, signal.SIG_IGN); print(1, flush=True)"
    commands_are(tmp_path, monkeypatch, code)

    async def press():
        desk = Desk(tmp_path)
        desk.start("grade")
        while len(desk.runs[0].lines) < 2:
            await asyncio.sleep(0.02)
        desk.stop()
        await desk._going
        return desk.runs[0]

    run = awaited(press())
    assert run.status == 0 and not run.stopped and "Grade: done" in words(desk_view.live(state(runs=[run])))


EXPORTER = """#!{python}
import sys
from pathlib import Path
into = Path(sys.argv[sys.argv.index("--to") + 1] if "--to" in sys.argv else {course!r})
name = sys.argv[sys.argv.index("--for") + 1] if "--for" in sys.argv else "grades"
(into / f"{{name}}.csv").write_text(" ".join(sys.argv[4:]))
print("not written: bob: waits for a decision of yours")
sys.exit(1)
"""


def test_grades_are_there_to_download(tmp_path, monkeypatch):
    (tmp_path / "course").mkdir()
    (tmp_path / "course" / "exercises.csv").write_text("of yesterday")
    os.utime(tmp_path / "course" / "exercises.csv", (1e9, 1e9))
    commands_are(tmp_path, monkeypatch, EXPORTER.replace("{course!r}", repr(str(tmp_path / "course"))))

    async def press():
        desk = Desk(tmp_path)
        desk.start("export")
        assert desk.runs[0].files == []
        await desk._going
        desk.fill("moodle", "../../Grades X.CSV", b"Identifier,Grade\n", {"00_setup": "Grade"}, scale=True)
        await desk._going
        return desk

    desk = awaited(press())
    filled, plain = desk.runs
    assert plain.files == ["grades.csv"] and filled.files == ["exports/moodle.csv"]
    assert (tmp_path / "course/exports/from-moodle.csv").read_bytes() == b"Identifier,Grade\n"
    said = (tmp_path / "course/exports/moodle.csv").read_text()
    assert "--for moodle" in said and "--column=00_setup=Grade --scale" in said
    page = desk_view.live(state(runs=desk.runs), "/user/instructor/")
    assert 'href="/user/instructor/files/exports/moodle.csv?download=1"' in page
    assert "Grades for Moodle: done, but something waits for you" in words(page) and "not written: bob" in page


@pytest.fixture
def server(tmp_path):
    """An instructor's Jupyter server as a room starts it, and a session that may enter."""
    (tmp_path / "course").mkdir()
    port, token = free_port(), "a-token"
    places = {f"JUPYTER_{name}_DIR": str(tmp_path / name.lower()) for name in ("DATA", "RUNTIME", "CONFIG")}
    role = {"ROOM": str(tmp_path), "JUPYTER_CONFIG_PATH": str(ROOT / "docker/hub/instructor"), "JUPYTER_TOKEN": token}
    command = [sys.executable, "-m", "jupyter", "server", "--no-browser", f"--ServerApp.port={port}", "--allow-root"]
    command += [f"--ServerApp.root_dir={tmp_path / 'course'}"]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=tmp_path, env=os.environ | places | role, stdout=log, stderr=log)
    session = requests.Session()
    session.headers["Authorization"] = f"token {token}"
    end = time.monotonic() + 240
    while time.monotonic() < end and process.poll() is None:
        with contextlib.suppress(requests.ConnectionError):
            session.get(f"http://127.0.0.1:{port}/api")
            break
        time.sleep(0.2)
    yield session, f"http://127.0.0.1:{port}/room"
    process.terminate()
    process.wait(120)


def test_what_the_buttons_send_is_answered(server, tmp_path):
    session, page = server
    assert session.get(page).status_code == 200 and requests.get(page, allow_redirects=False).status_code != 200
    assert session.post(f"{page}/stop").url == page  # nothing runs
    assert session.post(f"{page}/run", {"step": "rm"}).status_code == 400
    assert session.post(f"{page}/run", {"step": "release", "lesson": "99_x"}).status_code == 400
    table = {"table": ("../Grades.csv", b"Student,ID,01_vector_add\nAnn,1,\n")}
    assert session.post(f"{page}/fill", {"system": "canvas"}).status_code == 400
    assert session.post(f"{page}/fill", {"system": "canvas", "lesson": "00_setup"}, files=table).status_code == 400
    assert session.post(f"{page}/fill", {"system": "canvas"}, files=table).status_code == 200
    assert session.post(f"{page}/run", {"step": "grade"}).status_code == 409
    end = time.monotonic() + 240
    while "data-busy" in (live := session.get(f"{page}/live").text) and time.monotonic() < end:
        time.sleep(0.3)
    assert "failed, exit status 2" in live and "nothing is graded yet" in live
    (tmp_path / "course/exports/canvas.csv").write_text("Student,ID\n")
    reply = session.get(page.replace("/room", "/files/exports/canvas.csv?download=1"))
    assert reply.text == "Student,ID\n" and reply.headers["Content-Disposition"].startswith("attachment")
    assert requests.get(page.replace("/room", "/files/exports/canvas.csv"), allow_redirects=False).status_code != 200


def test_the_form_knows_every_lms_of_the_command():
    parser = _parser()
    for name in SYSTEMS:
        assert parser.parse_args(["export", "--for", name]).system == name


def test_what_is_seen_comes_from_the_command(tmp_path):
    (tmp_path / "progress/ada").mkdir(parents=True)
    seen = {"passed": True, "failed": 0, "last": "2026-11-22T10:00:00+00:00"}
    (tmp_path / "progress/ada/progress.json").write_text(json.dumps({"exercises": {"vector_add": seen}}))
    found = awaited(Desk(tmp_path).state())
    assert [one["name"] for one in found["sharing"]] == ["ada"] and set(found["lessons"]) == set(found["lessons_are"])


def test_how_far_a_lesson_is(tmp_path):
    folders = (
        "course/submitted/ada/00_setup course/submitted/ben/00_setup course/autograded/ada/00_setup "
        f"exchange/{COURSE_ID}/outbound/00_setup exchange/{COURSE_ID}/inbound/ada+00_setup+one+x "
        f"exchange/{COURSE_ID}/inbound/ada+00_setup+two+y"
    )
    for folder in folders.split():
        (tmp_path / folder).mkdir(parents=True)
    found = how_far(tmp_path, ["00_setup", "01_vector_add"])
    # Both hand-ins belong to one user, whatever they are called.
    assert found["00_setup"] == how(True, 1, 2, 1, 0)
    assert found["01_vector_add"] == how(False, 0, 0, 0, 0)

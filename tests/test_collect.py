"""Whose notebook is which assignment, in everything that people hand in."""

import io
import json
import os
import stat
import tempfile
import time
import zipfile
from datetime import datetime
from pathlib import Path

import pytest
from classroom import RIGHT, filled, new_course, zip_of

from autograder.classroom.course import CourseError
from autograder.classroom.intake.collect import collect
from autograder.classroom.intake.systems import student_id
from autograder.classroom.submission import MAX_NOTEBOOK_BYTES

ADD, SOFTMAX = "01_vector_add", "02_naive_softmax"
NOTEBOOK = json.dumps(filled(ADD, **RIGHT))


@pytest.fixture
def course(tmp_path):
    return new_course(tmp_path / "course")


def folder_of(path, *names):
    for name in names:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(NOTEBOOK)
    return path


LAYOUTS = {
    "a folder per student": (
        ["ann/01_vector_add.ipynb", "bob/01_vector_add.ipynb", "bob/02_naive_softmax.ipynb"],
        {("ann", ADD), ("bob", ADD), ("bob", SOFTMAX)},
    ),
    "inside one more folder, with the course's own inside": (
        ["batch/ann/notebooks/01_vector_add.ipynb", "batch/bob/notebooks/01_vector_add.ipynb"],
        {("ann", ADD), ("bob", ADD)},
    ),
    "one student's folder": (
        ["ann/01_vector_add_final.ipynb", "ann/02_naive_softmax.ipynb"],
        {("ann", ADD), ("ann", SOFTMAX)},
    ),
    "two attempts in one of the folders": (
        ["ann/01_vector_add_old.ipynb", "ann/01_vector_add_new.ipynb", "bob/01_vector_add.ipynb"],
        {("ann", ADD), ("bob", ADD)},
    ),
    "the student in the name": (
        ["ann_01_vector_add.ipynb", "01_vector_add_bob.ipynb", "Carla - 01_vector_add (2).ipynb"],
        {("ann", ADD), ("bob", ADD), ("Carla", ADD)},
    ),
    "the student in the name, other spellings": (
        ["s-1_vector_add.ipynb", "02-naive-softmax s2.IPYNB", "Vector Add s3 - Copy.ipynb"],
        {("s-1", ADD), ("s2", SOFTMAX), ("s3", ADD)},
    ),
    "flat inside a folder": (
        ["week 1/ann_01_vector_add.ipynb", "week 1/bob_01_vector_add.ipynb"],
        {("ann", ADD), ("bob", ADD)},
    ),
    "nbgrader's own": (
        ["submitted/ann/01_vector_add/01_vector_add.ipynb", "submitted/bob/02_naive_softmax/answer.ipynb"],
        {("ann", ADD), ("bob", SOFTMAX)},
    ),
    "Moodle, folders": (
        [
            "Ann Lee_4711_assignsubmission_file_/01_vector_add.ipynb",
            "José Núñez_4712_assignsubmission_file_/01_vector_add (1).ipynb",
        ],
        {("Ann_Lee", ADD), ("José_Núñez", ADD)},
    ),
    "Moodle, flat": (["Ann Lee_4711_assignsubmission_file_01_vector_add.ipynb"], {("Ann_Lee", ADD)}),
    "Canvas": (
        [
            "leeann_123_456_01_vector_add.ipynb",
            "oneilbob_LATE_124_457_01_vector_add-1.ipynb",
            "smith3rdjoe_late_125_458_01_vector_add.ipynb",
        ],
        {("leeann_123", ADD), ("oneilbob_124", ADD), ("smith3rdjoe_125", ADD)},
    ),
    "Blackboard": (
        ["Vector Add_ann7_attempt_2024-10-03-10-15-00_01_vector_add.ipynb"],
        {("ann7", ADD)},
    ),
    "Brightspace": (["12345-678 - Ann Lee - Oct 3, 2024 1015 AM/01_vector_add.ipynb"], {("Ann_Lee", ADD)}),
    "Brightspace, flat": (
        ["12345-678 - Ann Lee - Oct 3, 2024 1015 AM - 01_vector_add.ipynb"],
        {("Ann_Lee", ADD)},
    ),
    "Colab's copies": (
        ["ann/Copy of 01_vector_add.ipynb", "bob/Copy of Copy of 02_naive_softmax.ipynb"],
        {("ann", ADD), ("bob", SOFTMAX)},
    ),
    "Colab's copies, flat": (
        ["Copy of ann_01_vector_add.ipynb", "bob_01_vector_add.ipynb"],
        {("ann", ADD), ("bob", ADD)},
    ),
}


@pytest.mark.parametrize("packed", [False, True], ids=["folder", "zip"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout, packed, course, tmp_path):
    names, expected = LAYOUTS[layout]
    if packed:
        path = zip_of(tmp_path / "handed in.zip", dict.fromkeys(names, NOTEBOOK))
    else:
        path = folder_of(tmp_path / "handed in", *names)
    report = collect(path, course)
    assert not report.problems
    assert {(student, assignment) for student, assignment, _ in report.collected} == expected
    assert set(course.handed_in()) == expected
    assert report.status == 0
    for student, assignment in expected:
        assert course.notebook("submitted", student, assignment).read_text() == NOTEBOOK


def test_a_notebook_with_another_name_is_known_by_its_answers(course, tmp_path):
    report = collect(folder_of(tmp_path / "in", "ann/final version.ipynb"), course)
    assert course.handed_in() == [("ann", ADD)]
    assert "by its answers" in report.notes[0]


def test_one_notebook_of_a_named_student(course, tmp_path):
    report = collect(folder_of(tmp_path / "in", "01_vector_add.ipynb") / "01_vector_add.ipynb", course, "me")
    assert report.collected == [("me", ADD, "01_vector_add.ipynb")]


def test_namesakes_are_kept_apart(course, tmp_path):
    names = [f"Ann Lee_{n}_assignsubmission_file_/01_vector_add.ipynb" for n in (1, 2)]
    report = collect(zip_of(tmp_path / "x.zip", dict.fromkeys(names, NOTEBOOK)), course)
    assert course.handed_in() == [("Ann_Lee_1", ADD), ("Ann_Lee_2", ADD)]
    assert "several people" in report.notes[0]


@pytest.mark.parametrize(
    "names",
    [
        ("ann smith/01_vector_add.ipynb", "ann_smith/01_vector_add.ipynb"),
        ("ann  smith/01_vector_add.ipynb", "ann smith/01_vector_add.ipynb"),
        ("ann!/01_vector_add.ipynb", f"{student_id('ann!')}/01_vector_add.ipynb"),
        ("week_a_lee_attempt_2024-10-03-10-15-00_01_vector_add.ipynb",
         "week_b_lee_attempt_2024-10-04-10-15-00_01_vector_add.ipynb"),
    ],
    ids=["a blank for a line", "two blanks", "another's mark", "Blackboard, a line in the name"],
)  # fmt: skip
def test_names_that_would_give_one_id_give_two(names, course, tmp_path):
    report = collect(zip_of(tmp_path / "x.zip", dict.fromkeys(names, NOTEBOOK)), course)
    assert len(course.handed_in()) == 2
    assert ["several people" in note for note in report.notes] == ["attempt" not in names[0]] * len(report.notes)


@pytest.mark.parametrize(
    "name",
    [
        "Vector Add_ann7_attempt_2024-{:02}-03-10-15-00_01_vector_add.ipynb",
        "12345-678 - ann7 - {:%b} 3, 2024 115 PM/01_vector_add.ipynb",
    ],
    ids=["Blackboard", "Brightspace"],
)
def test_the_latest_attempt_is_known_by_its_name(name, course, tmp_path):
    spelt = [name.format(datetime(2024, m, 1) if "%" in name else m) for m in (9, 10)]
    collect(zip_of(tmp_path / "x.zip", {spelt[1]: NOTEBOOK + " ", spelt[0]: NOTEBOOK}), course)
    assert course.handed_in() == [("ann7", ADD)]
    assert course.notebook("submitted", "ann7", ADD).read_text() == NOTEBOOK + " "


@pytest.mark.parametrize("taken", ["bob_5_assignsubmission_file_", "hw_bob_attempt_2099-01-01-00-00-00_"])
def test_a_file_in_a_students_folder_is_not_anothers(taken, course, tmp_path):
    names = ("ann/01_vector_add.ipynb", "bob/01_vector_add.ipynb", f"mallory/{taken}01_vector_add.ipynb")
    report = collect(zip_of(tmp_path / "x.zip", dict.fromkeys(names, NOTEBOOK)), course)
    assert course.handed_in() == [("ann", ADD), ("bob", ADD)]
    assert "its name says bob, and its folder mallory" in report.problems[0]


def test_the_latest_is_taken_and_an_older_one_never_replaces_it(course, tmp_path):
    new, old = (folder_of(tmp_path / name, "ann_01_vector_add.ipynb") for name in ("new", "old"))
    both = folder_of(tmp_path / "both", "ann_01_vector_add.ipynb", "ann_01_vector_add (1).ipynb")
    now = time.time()
    (both / "ann_01_vector_add (1).ipynb").write_text(NOTEBOOK + " ")
    for name in os.listdir(both):
        os.utime(both / name, (now, now))
    os.utime(old / "ann_01_vector_add.ipynb", (now - 1000, now - 1000))
    (new / "ann_01_vector_add.ipynb").write_text(NOTEBOOK + "  ")
    os.utime(new / "ann_01_vector_add.ipynb", (now + 60, now + 60))
    there = course.notebook("submitted", "ann", ADD)

    report = collect(both, course)
    assert "2 times" in report.notes[0]
    assert there.read_text() == NOTEBOOK + " "
    collect(new, course)
    assert there.read_text() == NOTEBOOK + "  "
    report = collect(old, course)
    assert there.read_text() == NOTEBOOK + "  "
    assert "later" in report.notes[0]


def test_every_file_that_is_not_understood_is_a_line(course, tmp_path):
    unknown = json.dumps({"cells": []})
    path = zip_of(
        tmp_path / "x.zip",
        {
            "ann/notes.txt": "hello",
            "ann/07_unknown.ipynb": unknown,
            "ann/homework.zip": b"PK",
            "01_vector_add.ipynb": NOTEBOOK,
            "ann/.ipynb_checkpoints/01_vector_add.ipynb": NOTEBOOK,
            "__MACOSX/ann/._01_vector_add.ipynb": NOTEBOOK,
        },
    )
    report = collect(path, course)
    lines = "\n".join(report.problems)
    assert len(report.problems) == 3
    for part in ("07_unknown.ipynb: neither name nor answers", "ann/homework.zip: is a zip that could not be unpacked"):
        assert part in lines
    assert report.notes == ["left out ann/notes.txt: it is not a notebook (.ipynb)"]
    assert "01_vector_add.ipynb: is 01_vector_add, but nothing says whose" in lines
    assert report.status == 1


def test_a_pipe_is_a_line_and_a_file_that_cannot_be_read_says_why(course, tmp_path):
    folder = folder_of(tmp_path / "in", "ann/01_vector_add.ipynb", "bob/01_vector_add.ipynb")
    os.mkfifo(folder / "ann" / "02_naive_softmax.ipynb")
    with (folder / "bob" / "large.ipynb").open("wb") as file:
        file.truncate(MAX_NOTEBOOK_BYTES + 1)
    (folder / "bob" / "page.ipynb").write_text("<html>sign in</html>")
    report = collect(folder, course)
    assert course.handed_in() == [("ann", ADD), ("bob", ADD)]
    assert {line.partition(":")[0]: line for line in report.problems} == {
        "ann/02_naive_softmax.ipynb": "ann/02_naive_softmax.ipynb: is neither a file nor a folder; not read",
        "bob/large.ipynb": "bob/large.ipynb: the file has more than 64 MB; clear its outputs and save it again",
        "bob/page.ipynb": report.problems[-1],
    }
    assert "it is a web page" in report.problems[-1]


def test_a_whole_repository_handed_in_is_one_line(course, tmp_path):
    folder = folder_of(tmp_path / "in", "ann/notebooks/01_vector_add.ipynb", "bob/01_vector_add.ipynb")
    packages = folder / "ann" / "venv" / "lib"
    packages.mkdir(parents=True)
    (packages / "0.py").touch()
    for n in range(1, 25_000):
        os.link(packages / "0.py", packages / f"{n}.py")  # costs less than a file of its own
    report = collect(folder, course)
    assert set(course.handed_in()) == {("ann", ADD), ("bob", ADD)}
    assert report.notes == ["left out ann/venv/lib/0.py and 24999 more in ann/: they are not notebooks (.ipynb)"]
    assert report.status == 0


def test_many_large_notebooks_of_one_student_do_not_stop_the_others(course, tmp_path):
    names = [f"ann/01_vector_add ({n}).ipynb" for n in range(30)]
    large = NOTEBOOK + " " * (40 << 20)
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name in names:
            archive.writestr(name, large)
        archive.writestr("bob/01_vector_add.ipynb", NOTEBOOK)
    report = collect(path, course)
    assert course.handed_in() == [("ann", ADD), ("bob", ADD)]
    assert "30 times: took ann/01_vector_add (29).ipynb" in report.notes[0]
    assert "and 26 more" in report.notes[0]


def test_a_course_inside_the_folder_is_not_handed_in(course, tmp_path, monkeypatch):
    folder_of(tmp_path, "hand-ins/ann/01_vector_add.ipynb", "hand-ins/bob/01_vector_add.ipynb")
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        collect(".", course)
        assert course.handed_in() == [("ann", ADD), ("bob", ADD)]
    assert len(collect(course.root / "submitted", course).collected) == 2


def test_the_latest_that_can_be_read_is_taken(course, tmp_path):
    folder = folder_of(tmp_path / "in", "ann/01_vector_add.ipynb", "ann/01_vector_add (1).ipynb")
    with (folder / "ann" / "01_vector_add (1).ipynb").open("ab") as file:
        file.truncate(MAX_NOTEBOOK_BYTES + 1)
    report = collect(folder, course)
    assert course.notebook("submitted", "ann", ADD).read_text() == NOTEBOOK
    assert "has more than" in report.problems[0]


def test_years_that_no_calendar_has(course, tmp_path):
    shared_memory = Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else tmp_path  # ext4 ends in 2446
    with tempfile.TemporaryDirectory(dir=shared_memory) as folder:
        path = folder_of(Path(folder), "ann/01_vector_add.ipynb") / "ann" / "01_vector_add.ipynb"
        os.utime(path, (1e12, 1e12))
        collect(folder, course)
    assert course.handed_in() == [("ann", ADD)]


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read_is_a_line(course, tmp_path):
    folder = folder_of(tmp_path / "in", "ann/01_vector_add.ipynb", "bob/01_vector_add.ipynb")
    (folder / "ann").chmod(0)
    assert "cannot be opened" in collect(folder, course).problems[0]
    (folder / "ann").chmod(0o700)


def test_what_is_in_the_way_in_the_course_is_a_line(course, tmp_path):
    course.notebook("submitted", "ann", ADD).mkdir(parents=True)
    (course.root / "submitted" / "bob").write_text("")
    names = [f"{student}/01_vector_add.ipynb" for student in ("ann", "bob", "carl")]
    report = collect(zip_of(tmp_path / "x.zip", dict.fromkeys(names, NOTEBOOK)), course)
    assert [student for student, _, _ in report.collected] == ["carl"]
    assert len([line for line in report.problems if "cannot be written" in line]) == 2


def files_under(path):
    return sorted(p.relative_to(path).as_posix() for p in path.rglob("*") if not p.is_dir())


def test_names_that_lead_outside_are_refused(course, tmp_path):
    names = [
        "../ann/01_vector_add.ipynb",
        "/etc/ann/01_vector_add.ipynb",
        "C:\\ann\\01_vector_add.ipynb",
        "ann/../../../01_vector_add.ipynb",
        "..\\..\\bob\\01_vector_add.ipynb",
    ]
    path = zip_of(tmp_path / "x.zip", dict.fromkeys(names, NOTEBOOK))
    before = files_under(tmp_path)
    report = collect(path, course)
    assert len(report.problems) == len(names)
    assert json.loads((course.root / "class.json").read_text()) == {"people": {}, "late": {}, "trouble": {}}
    assert files_under(tmp_path) == sorted([*before, "course/class.json"])


@pytest.mark.parametrize(
    "name",
    ["..", ".", "-rf", "=1+1", "a/b", "a\\b", "a\u202eb", "con\x00", "*", "~root", "x" * 500, "{0}"],
)
def test_student_ids_are_safe(name):
    made = student_id(name)
    assert made.isprintable() and len(made) <= 70
    assert made[0].isalnum() and not set(made) & set("/\\*?[]{}=+~ ")
    assert made != student_id(name + "x")


def test_student_ids_that_need_no_change_have_none():
    assert student_id("Ann Lee") == "Ann_Lee"
    assert student_id("ann.lee@uni.example") == "ann.lee@uni.example"
    assert student_id("Jose\u0301") == student_id("Jos\u00e9") == "Jos\u00e9"
    assert student_id("ann") != student_id("\uff41nn")
    assert student_id("ann\u1160").startswith("ann_-")


def test_links_are_not_followed(course, tmp_path):
    folder = folder_of(tmp_path / "in", "ann/01_vector_add.ipynb")
    (folder / "bob").mkdir()
    (folder / "bob" / "01_vector_add.ipynb").symlink_to("/etc/passwd")
    (folder / "carl").symlink_to(folder / "ann")
    link = zipfile.ZipInfo("dan/01_vector_add.ipynb")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(link, "/etc/passwd")
    assert len(collect(folder, course).problems) == 2
    assert len(collect(path, course).problems) == 1
    assert course.handed_in() == [("ann", ADD)]


def test_a_planted_link_in_the_course_is_not_written_through(course, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (course.root / "submitted").mkdir()
    (course.root / "submitted" / "ann").symlink_to(elsewhere)
    report = collect(folder_of(tmp_path / "in", "ann/01_vector_add.ipynb", "bob/01_vector_add.ipynb"), course)
    assert "leads elsewhere" in report.problems[0]
    assert files_under(elsewhere) == []
    assert course.handed_in() == [("bob", ADD)]


def test_bombs_do_not_go_off(course, tmp_path):
    path = zip_of(
        tmp_path / "x.zip",
        {"ann/01_vector_add.ipynb": b"0" * (300 << 20), "bob/01_vector_add.ipynb": NOTEBOOK},
    )
    report = collect(path, course)
    assert "would unpack to 300 MB" in report.problems[0]
    assert course.handed_in() == [("bob", ADD)]


def test_a_size_that_lies_is_not_believed(course, tmp_path):
    path = zip_of(tmp_path / "x.zip", {"ann/01_vector_add.ipynb": b"0" * (30 << 20)})
    content = bytearray(path.read_bytes())
    size = (30 << 20).to_bytes(4, "little")
    while (at := content.find(size)) >= 0:
        content[at : at + 4] = (1000).to_bytes(4, "little")
    path.write_bytes(content)
    assert len(collect(path, course).problems) == 1
    assert course.handed_in() == []


def test_encrypted_and_damaged_entries_are_lines(course, tmp_path):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("ann/01_vector_add.ipynb", NOTEBOOK)
    content = buffer.getvalue()
    damaged, encrypted = tmp_path / "damaged.zip", tmp_path / "encrypted.zip"
    damaged.write_bytes(content.replace(b"'right'", b"'wrong'", 1))
    at = content.index(b"PK\x01\x02") + 8
    encrypted.write_bytes(content[:at] + b"\x01" + content[at + 1 :])
    assert "could not be unpacked" in collect(damaged, course).problems[0]
    assert "encrypted" in collect(encrypted, course).problems[0]


def damaged_zips():
    """Zips with one thing wrong, each of which the zip module answers with another kind of error."""
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", method) as archive:
            archive.writestr("jos\u00e9/01_vector_add.ipynb", NOTEBOOK)
        content = buffer.getvalue()
        yield content.replace("\u00e9".encode(), b"\xff\xfe")  # no UTF-8
        entry = content.index(b"PK\x01\x02")
        for at, byte in ((6, 99), (28, 0)):  # a version to come; no name
            yield content[: entry + at] + bytes([byte]) + content[entry + at + 1 :]
        for start in (40, 70, 120):
            yield content[:start] + b"\x00" * 20 + content[start + 20 :]
    for name in (".", "x" * 60_000 + ".ipynb", " " * 60_000 + "01_vector_add.ipynb", f"({'1' * 5000}).ipynb"):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr(name, NOTEBOOK)
        yield buffer.getvalue()


def collected_or_refused(path, course):
    """What became of a zip, None where it was refused with one line."""
    try:
        return collect(path, course)
    except CourseError as error:
        assert "\n" not in str(error)
        return None


@pytest.mark.timeout(30)
def test_no_damage_to_a_zip_is_more_than_a_line(course, tmp_path):
    for number, content in enumerate(damaged_zips()):
        path = tmp_path / f"{number}.zip"
        path.write_bytes(content)
        report = collected_or_refused(path, course)
        assert report is None or report.problems or report.collected


@pytest.mark.parametrize("content", [None, b"no zip", b"PK\x05\x06" + b"\x00" * 18, b"PK\x05\x06garbage"])
def test_a_wrong_call_is_one_line(content, course, tmp_path):
    path = tmp_path / "x.zip"
    if content:
        path.write_bytes(content)
    report = collected_or_refused(path, course)
    assert report is None or (report.collected == [] and report.status == 1)


def test_an_empty_folder_collects_nothing_and_says_so(course, tmp_path):
    (tmp_path / "in").mkdir()
    report = collect(tmp_path / "in", course)
    lines = []
    report.print(lines.append)
    assert report.status == 1
    assert lines == ["collected 0 notebooks of 0 students"]

"""Who handed in what: the downloads of learning-management systems as they are, with a roster and without."""

import io
import json
import os
import zipfile
from datetime import UTC, datetime

import pytest
from classroom import RIGHT, filled, new_course, submit, zip_of

from autograder.classroom.course import CourseError, read_timestamp
from autograder.classroom.intake.collect import collect
from autograder.classroom.intake.people import ClassList, Person, Roster, read_roster
from autograder.classroom.intake.systems import Named, attempt_time, gradescope, student_id
from autograder.classroom.lms.filled import export_for
from autograder.classroom.standing import Standing

ADD, SOFTMAX = "01_vector_add", "02_naive_softmax"
NOTEBOOK = json.dumps(filled(ADD, **RIGHT))
OTHER = NOTEBOOK + " "


@pytest.fixture
def course(tmp_path):
    return new_course(tmp_path / "course")


def take(course, tmp_path, files, **options):
    """Collect a zip of {name: content}; None stands for the notebook."""
    files = dict.fromkeys(files, None) if not isinstance(files, dict) else files
    count = len(list(tmp_path.glob("*.zip")))
    path = zip_of(tmp_path / f"{count}.zip", {name: content or NOTEBOOK for name, content in files.items()})
    return collect(path, course, **options)


def packed(*names, content=NOTEBOOK):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in names:
            archive.writestr(name, content)
    return buffer.getvalue()


# Each system's download as it comes: what a student handed in, and what the system puts beside it.
EXPORTS = {
    # Moodle, mod/assign: `fullname_number_assignsubmission_file_/`, one folder per plug-in; a comment is a file.
    "Moodle": (
        [
            "Ann Lee_4711_assignsubmission_file_/01_vector_add.ipynb",
            "Ann Lee_4711_assignsubmission_onlinetext_/onlinetext.html",
            "José Núñez_4712_assignsubmission_file_/01_vector_add (1).ipynb",
        ],
        {"Ann_Lee", "José_Núñez"},
    ),
    # Moodle with anonymous marking: the name is the word Participant.
    "Moodle, anonymous": (
        ["Participant_4711_assignsubmission_file_/01_vector_add.ipynb"],
        {"Participant_4711"},
    ),
    # Canvas, lib/content_zipper.rb: `lastfirst_LATE_user_file_name`; a text entry becomes _text.html.
    "Canvas": (
        [
            "leeann_101_5001_01_vector_add-1.ipynb",
            "roebob_LATE_102_5002_01_vector_add.ipynb",
            "roebob_LATE_102_text.html",
        ],
        {"leeann_101", "roebob_102"},
    ),
    "Canvas, anonymous": (["anon_x8F9k_5001_01_vector_add.ipynb"], {"anon_x8F9k"}),
    # Blackboard's "Assignment File Download": `title_user_attempt_time_name`, and a .txt for every attempt.
    "Blackboard": (
        [
            "Vector Add_j_doe_attempt_2024-01-01-10-00-00_01_vector_add.ipynb",
            "Vector Add_j_doe_attempt_2024-01-01-10-00-00.txt",
            "Vector Add_ann7_attempt_2024-01-01-11-00-00_work.ipynb",
        ],
        {"j_doe", "ann7"},
    ),
    "Blackboard, a title that is not the lesson's": (
        [
            "Home work 1_j_doe_attempt_2024-01-01-10-00-00_01_vector_add.ipynb",
            "Home work 1_ann7_poging_2024-01-01-11-00-00_01_vector_add.ipynb",
        ],
        {"j_doe", "ann7"},
    ),
    # D2L Brightspace: a folder per attempt, and index.html.
    "Brightspace": (
        [
            "index.html",
            "12345-678 - Ann Lee - Jan 1, 2024 1000 AM/01_vector_add.ipynb",
            "12346-678 - Bob Roe - 2 January, 2024 10 00/01_vector_add.ipynb",
            "12347-678 - Eva Kim - 2024-01-03 1000/01_vector_add.ipynb",
        ],
        {"Ann_Lee", "Bob_Roe", "Eva_Kim"},
    ),
    # Google Classroom's folder in Drive: copies carry the student's name, what a student uploads need not.
    "Google Classroom": (
        ["Lab 1/Ann Lee - 01_vector_add.ipynb", "Lab 1/Bob Roe - Copy of 01_vector_add.ipynb"],
        {"Ann_Lee", "Bob_Roe"},
    ),
    # Gradescope's "Download Submissions": submission_metadata.yml names the submitters of each folder.
    "Gradescope": (
        {
            "assignment_9_export/submission_metadata.yml": "submission_71:\n  :submitters:\n  - :name: Ann Lee\n"
            "    :sid: '0017'\n    :email: ann@uni.example\n  :created_at: 2024-10-03 10:15:00.123456789 Z\n"
            "submission_72:\n  :submitters:\n  - :name: Bob Roe\n    :sid: 18\n  - :name: Eva Kim\n    :sid: 19\n",
            "assignment_9_export/submission_71/01_vector_add.ipynb": None,
            "assignment_9_export/submission_72/01_vector_add.ipynb": None,
        },
        {"Ann_Lee", "Bob_Roe", "Eva_Kim"},
    ),
    # `gh classroom clone student-repos`: <assignment>-submissions/<assignment>-<user>.
    "GitHub Classroom": (
        [
            "lab-1-submissions/lab-1-octocat/01_vector_add.ipynb",
            "lab-1-submissions/lab-1-octocat/README.md",
            "lab-1-submissions/lab-1-ann-lee/01_vector_add.ipynb",
        ],
        {"octocat", "ann-lee"},
    ),
    "GitHub Classroom, repositories side by side": (
        ["vector-add-octocat/01_vector_add.ipynb", "vector-add-ann-lee/01_vector_add.ipynb"],
        {"octocat", "ann-lee"},
    ),
}


@pytest.mark.parametrize("export", EXPORTS)
def test_the_download_of_a_system_is_collected_without_an_error(export, course, tmp_path):
    files, students = EXPORTS[export]
    report = take(course, tmp_path, files)
    assert report.problems == [] and report.status == 0
    assert {student for student, _ in course.handed_in()} == students
    assert take(course, tmp_path, files).status == 0
    assert {student for student, _ in course.handed_in()} == students


def test_harmless_files_are_no_error_and_are_said(course, tmp_path):
    report = take(course, tmp_path, {"ann/01_vector_add.ipynb": None, "ann/notes.txt": "hello", "a.pdf": "%PDF"})
    assert report.status == 0
    assert report.notes == [
        "left out ann/notes.txt: it is not a notebook (.ipynb)",
        "left out a.pdf: it is not a notebook (.ipynb)",
    ]


@pytest.mark.parametrize(
    "name",
    [
        "Bob Roe_7_assignsubmission_file_/answers.docx",
        "roebob_7_5002_answers.docx",
        "Lab 1_bob_attempt_2024-01-01-10-00-00_answers.docx",
        "7-1 - Bob Roe - Jan 1, 2024 1000 AM/answers.docx",
    ],
    ids=["Moodle", "Canvas", "Blackboard", "Brightspace"],
)
def test_who_handed_in_something_else_has_a_row_that_says_it(name, course, tmp_path):
    """They had none without a roster, and looked as if they had handed in nothing with one."""
    receipt = "Lab 1_bob_attempt_2024-01-01-10-00-00.txt"
    notebook = name.replace("answers.docx", "01_vector_add.ipynb")
    report = take(course, tmp_path, {name: "PK", receipt if "Lab 1" in name else "index.html": "x"})
    [line] = report.problems
    assert line == f"{name}: is not a notebook (.ipynb), and nothing else came from this person"
    assert list(ClassList(course).trouble.values()) == [[line]] and len(report.notes) == 1
    report = take(course, tmp_path, {name: "PK", notebook: None})
    assert report.status == 0 and ClassList(course).trouble == {}
    assert report.notes == [f"left out {name}: it is not a notebook (.ipynb)"]


MOODLE_FILE = "Ann Lee_7_assignsubmission_file_/{}"


@pytest.mark.parametrize("inside", [["e/submission_72/notes.txt", "e/submission_72/x.pdf"], []], ids=["files", "none"])
def test_a_submission_in_gradescope_without_a_notebook_has_a_row_that_says_it(inside, course, tmp_path):
    files = {
        "e/submission_metadata.yml": "submission_71:\n  :submitters:\n  - :name: Ann Lee\n    :sid: 17\n"
        "submission_72:\n  :submitters:\n  - :name: Bob Roe\n    :sid: 18\n  - :name: Eva Kim\n    :sid: 19\n",
        "e/submission_71/01_vector_add.ipynb": None,
        "e/submission_71/notes.txt": "x",
    }
    report = take(course, tmp_path, {**files, **dict.fromkeys(inside, "x")})
    assert course.handed_in() == [("Ann_Lee", ADD)]
    path = inside[0] if inside else "e/submission_72"
    line = f"{path}: is not a notebook (.ipynb), and nothing else came from this person"
    assert ClassList(course).trouble == {"Bob_Roe": [line], "Eva_Kim": [line]} and report.status == 1
    assert len(report.notes) == 1  # what else is left out, in one line
    assert take(course, tmp_path, {**files, "e/submission_72/01_vector_add.ipynb": None}).status == 0
    assert ClassList(course).trouble == {}


def test_nothing_is_left_out_of_gradescopes_download_where_everybody_handed_in_a_notebook(course, tmp_path):
    people = "submission_71:\n  :submitters:\n  - :name: Ann Lee\n    :sid: 17\n  - :name: Bob Roe\n    :sid: 18\n"
    files = {"e/submission_metadata.yml": people, "e/submission_71/01_vector_add.ipynb": None}
    report = take(course, tmp_path, files)
    assert [student for student, _ in course.handed_in()] == ["Ann_Lee", "Bob_Roe"]
    assert report.notes == [] and report.status == 0


def stamp_of(course, student):
    return read_timestamp(course.stamp(student, ADD))


@pytest.mark.parametrize("metadata", [None, "submission_71:\n  :submitters:\n  - :name: Ann Lee\n    :sid: 17\n"])
def test_a_number_of_gradescopes_is_nobodys_name(metadata, course, tmp_path):
    """Another student for each hand-in: the numbers are of submissions, and not of people."""
    files = {f"e/submission_{n}/01_vector_add.ipynb": None for n in (71, 72)}
    report = take(course, tmp_path, files | ({"e/submission_metadata.yml": metadata} if metadata else {}))
    assert course.handed_in() == ([("Ann_Lee", ADD)] if metadata else [])
    assert "no submission_metadata.yml says whose submission_72 is" in report.problems[-1]
    assert take(course, tmp_path, ["e/submission_73/01_vector_add.ipynb"], student="bob").status == 0


def test_an_early_bird_in_google_classroom_is_not_named_like_the_folder(course, tmp_path):
    """The first download has one notebook, and its student was called Lab_1."""
    alone = ["Lab 1/Ann Lee - 01_vector_add.ipynb"]
    report = take(course, tmp_path, alone)
    assert course.handed_in() == []
    assert "but its name says Ann Lee, and its folder Lab 1; expected" in report.problems[0]
    take(course, tmp_path, [*alone, "Lab 1/Bob Roe - 02_naive_softmax.ipynb"])
    assert course.handed_in() == [("Ann_Lee", ADD), ("Bob_Roe", SOFTMAX)]
    take(course, tmp_path, ["Lab 2/Ann Lee - 02_naive_softmax.ipynb"])
    take(course, tmp_path, ["Ann_Lee/Homework - 01_vector_add.ipynb"])
    assert course.handed_in() == [("Ann_Lee", ADD), ("Ann_Lee", SOFTMAX), ("Bob_Roe", SOFTMAX)]


def test_an_early_bird_is_found_on_the_roster(course, tmp_path):
    roster = roster_file(tmp_path, "id,name\nal1,Ann Lee\nbr2,Bob Roe\n")
    assert take(course, tmp_path, ["Lab 1/Ann Lee - 01_vector_add.ipynb"], roster=roster).status == 0
    assert take(course, tmp_path, ["week 1/01_vector_add_bob roe.ipynb"]).status == 0
    assert course.handed_in() == [("al1", ADD), ("br2", ADD)]


def test_a_repository_without_a_notebook_has_a_row_that_says_it(course, tmp_path):
    files = ["lab-submissions/lab-ann/README.md", "lab-submissions/lab-bob/01_vector_add.ipynb"]
    report = take(course, tmp_path, [*files, "lab-submissions/lab-bob/README.md"])
    assert course.handed_in() == [("bob", ADD)]
    assert list(ClassList(course).trouble) == ["ann"] and "nothing else came" in report.problems[0]


@pytest.mark.parametrize("file", ["report.pdf", "lab/answer.html", "notes.txt"])
def test_a_folder_without_a_notebook_has_a_row_that_says_it(file, course, tmp_path):
    """Without a roster, whoever handed in a PDF alone was a note, and had no row."""
    files = {f"lab1/{who}/01_vector_add.ipynb": None for who in ("ann", "bob")}
    files |= {f"lab1/eva/{file}": b"%PDF", "lab1/assets/logo.png": b"", "README.md": b"x"}
    report = take(course, tmp_path, files)
    assert {who for who, _, _ in report.collected} == {"ann", "bob"}
    assert set(report.trouble) == {"eva"} and "nothing else came from this person" in report.trouble["eva"][0]
    assert [person.id for person in Standing(course).people] == ["ann", "bob", "eva"]


def test_an_empty_folder_has_a_row_that_says_it(course, tmp_path):
    for who in ("ann", "bob"):
        (tmp_path / "in" / who).mkdir(parents=True)
    (tmp_path / "in" / "ann" / f"{ADD}.ipynb").write_text(json.dumps(filled(ADD)))
    report = collect(tmp_path / "in", course)
    assert set(report.trouble) == {"bob"} and [who for who, _, _ in report.collected] == ["ann"]


@pytest.mark.parametrize(
    "names, student",
    [
        (("शर्मासुनीता_4717_990007", "शर्मासुनीता_LATE_4717_990107"), "शर्मासुनीता_4717"),
        (("ใจดีสมชาย_LATE_4718_990008", "ใจดีสมชาย_4718_990108"), "ใจดีสมชาย_4718"),
        (("3rdjohn_4790_990012", "3rdjohn_LATE_4790_990112"), "3rdjohn_4790"),
        (("o_briensean_4791_990013", "o_briensean_4791_990113"), "o_briensean_4791"),
        (("mu\u0308llerzoe\u0308_LATE_4713_990003", "müllerzoë_4713_990103"), "müllerzoë_4713"),
    ],
    ids=["Hindi", "Thai", "a digit", "an underscore", "NFD"],
)
def test_canvas_names_are_words_as_ruby_sees_them(names, student, course, tmp_path):
    """Marks, digits and `_` hid a name of Canvas: LATE was lost, and each lab was another person's."""
    for name, lesson in zip(names, (ADD, SOFTMAX)):
        content = json.dumps(filled(lesson))
        report = take(course, tmp_path, {f"{name}_{lesson}.ipynb": content})
        assert [who for who, _, _ in report.collected] == [student]
        assert ((student, lesson) in ClassList(course).late) == ("LATE" in name)
    assert "_" not in student.partition("_")[0]


@pytest.mark.parametrize("name", ["01_vector_add_2024_10_final.ipynb", "ann_01_vector_add_10_03_x.ipynb"])
def test_a_date_in_a_name_of_ones_own_is_no_canvas(name, course, tmp_path):
    report = take(course, tmp_path, {f"ann/{name}": None, f"bob/{ADD}.ipynb": None})
    assert {who for who, _, _ in report.collected} == {"ann", "bob"}


def test_marks_are_letters_of_a_name(tmp_path):
    """With their vowels gone, two names were one."""
    people = Roster([Person("1", "राम"), Person("2", "रमा")])
    assert people.find(Named(student="राम")).id == "1" and people.find(Named(student="रमा")).id == "2"
    assert student_id("सुनीता शर्मा") == "सुनीता_शर्मा"
    assert student_id("a\ufe0fb") != "a\ufe0fb", "what nobody sees is no part of an id"


def test_a_namesake_is_told_once(course, tmp_path):
    """Brightspace writes a person's number into each name; yet each lab asked again which Ann Lee it was."""
    (tmp_path / "class.csv").write_text("Username,Last Name,First Name\nalee,Lee,Ann\nalee2,Lee,Ann\n")
    first, second = "123456-7 - Ann Lee - Oct 3, 2024 1015 AM/", "123457-7 - Ann Lee - Oct 3, 2024 1016 AM/"
    files = {first + f"{ADD}.ipynb": None, second + f"{ADD}.ipynb": None}
    assert len(take(course, tmp_path, files, roster=tmp_path / "class.csv").problems) == 2
    for folder, who in ((first, "alee"), (second, "alee2")):
        assert take(course, tmp_path, {folder + f"{ADD}.ipynb": None}, student=who).collected
    lesson = json.dumps(filled(SOFTMAX))
    report = take(course, tmp_path, files | {at + f"{SOFTMAX}.ipynb": lesson for at in (first, second)})
    assert not report.problems
    assert sorted({who for who, a, _ in report.collected if a == SOFTMAX}) == ["alee", "alee2"]


# Titles as Moodle's packs of languages write them; "Participant" is translated, too.
TRANSLATED = {
    "German": "ID,Vollständiger Name,E-Mail-Adresse,Status,Bewertung\nTeilnehmer/in4711,Ann Lee,a@x.de,,\n",
    "French": "Identifiant,Nom complet,Adresse de courriel,Statut,Note\nParticipant 4711,Ann Lee,a@x.fr,,\n",
    "Spanish": "Identificador,Nombre completo,Dirección de correo,Estatus,Nota\nParticipante 4711,Ann Lee,a@x.es,,\n",
}


@pytest.mark.parametrize("language", TRANSLATED)
def test_moodles_worksheet_in_another_language_is_one_line_that_says_what_to_do(language, course, tmp_path):
    path = tmp_path / "worksheet.csv"
    path.write_text(TRANSLATED[language])
    for read in (read_roster, lambda path: export_for(course, "moodle", path)):
        submit(course, "ann", filled(ADD))
        course.notebook("autograded", "ann", ADD).parent.mkdir(parents=True, exist_ok=True)
        with pytest.raises(CourseError, match="choose English in Moodle's menu of languages, and download it again"):
            read(path)


def test_ids_that_end_in_numbers_are_no_moodle(tmp_path):
    path = tmp_path / "class.csv"
    path.write_text("id,name,email,section,role\nstudent1,Ann Lee,,,\nstudent2,Bob Roe,,,\n")
    assert [person.id for person in read_roster(path).people] == ["student1", "student2"]


@pytest.mark.parametrize("cloned", [False, True])
def test_of_two_of_one_time_the_one_nearer_to_the_top_is_taken(cloned, course, tmp_path):
    """The last one by the alphabet was, such as history/01_vector_add.ipynb."""
    top = tmp_path / "in" / "ann"
    for number, (name, content) in enumerate({"z/01_vector_add": OTHER, "01_vector_add": NOTEBOOK}.items()):
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / f"{name}.ipynb").write_text(content)
        time = 1_700_000_000 - number * cloned
        os.utime(top / f"{name}.ipynb", (time, time))
    if cloned:
        (top / ".git").mkdir()
    (tmp_path / "in" / "bob").mkdir()
    (tmp_path / "in" / "bob" / "01_vector_add.ipynb").write_text(NOTEBOOK)
    collect(tmp_path / "in", course)
    assert course.notebook("submitted", "ann", ADD).read_text() == NOTEBOOK


STAMPED = {"2024-10-03 10:15:00.000000 UTC\n": 10, "2024-10-03 10:15:00+02:00": 8}


@pytest.mark.parametrize("stamp", STAMPED)
def test_nbgraders_timestamp_says_when_a_notebook_was_handed_in(stamp, course, tmp_path):
    """The time of the file was taken, which may be that of a copy, so that who was in time was late."""
    students = [f"submitted/{name}/01_vector_add" for name in ("ann", "bob", "eva")]
    files = {f"{s}/01_vector_add.ipynb": None for s in students} | {f"{s}/timestamp.txt": stamp for s in students}
    report = take(course, tmp_path, files)
    assert report.notes == []
    assert stamp_of(course, "ann") == datetime(2024, 10, 3, STAMPED[stamp], 15, tzinfo=UTC)


NOT_NBGRADERS = {
    "beside the notebook": "ann/timestamp.txt",
    "of another assignment": "ann/02_naive_softmax/timestamp.txt",
    "in a zip": "ann/x.zip",
    "in a system's folder": "Ann Lee_1_assignsubmission_file_/01_vector_add/timestamp.txt",
}


@pytest.mark.parametrize("place", NOT_NBGRADERS)
def test_a_timestamp_of_a_students_own_says_nothing(place, course, tmp_path):
    path = NOT_NBGRADERS[place]
    files = {path: "2001-10-03 10:15:00.000000 UTC", "bob/01_vector_add.ipynb": None}
    if path.endswith(".zip"):
        with zipfile.ZipFile(buffer := io.BytesIO(), "w") as archive:
            archive.writestr("01_vector_add/timestamp.txt", files[path])
            archive.writestr("01_vector_add/01_vector_add.ipynb", NOTEBOOK)
        files[path] = buffer.getvalue()
    else:
        files[path.replace("timestamp.txt", "01_vector_add.ipynb")] = None
    take(course, tmp_path, files)
    [student] = {student for student, _ in course.handed_in()} - {"bob"}
    stamp = stamp_of(course, student)
    assert stamp is None or stamp.year > 2001


def test_a_timestamp_that_says_no_time_is_a_note(course, tmp_path):
    report = take(course, tmp_path, {"ann/01_vector_add/01_vector_add.ipynb": None,
                                     "ann/01_vector_add/timestamp.txt": "2024-10-03 10:15:00.000000 PST"})  # fmt: skip
    assert course.handed_in() == [("ann", ADD)]
    assert report.notes[0].startswith("ann/01_vector_add/timestamp.txt: says no time; expected one such as")


NOTHING_TO_GRADE = {
    "an empty zip": (MOODLE_FILE.format("work.zip"), packed()),
    "a zip of folders": (MOODLE_FILE.format("work.zip"), packed("a/", content="")),
    "a zip of a checkpoint": (MOODLE_FILE.format("work.zip"), packed(".ipynb_checkpoints/01_vector_add.ipynb")),
    "a zip of names that lead elsewhere": (MOODLE_FILE.format("work.zip"), packed("C:\\ann\\01_vector_add.ipynb")),
    "a checkpoint": (MOODLE_FILE.format(".ipynb_checkpoints/01_vector_add.ipynb"), NOTEBOOK),
    "a text in Blackboard": ("Lab 1_Ann_Lee_attempt_2024-01-01-10-00-00.txt", "receipt"),
    "a text in Canvas": ("Ann Lee_7_text.html".replace(" ", ""), "<p>"),
}


@pytest.mark.parametrize("what", NOTHING_TO_GRADE)
def test_nobody_of_whom_something_came_is_lost(what, course, tmp_path):
    """No row, no note and no line: they looked as if they had handed in nothing."""
    name, content = NOTHING_TO_GRADE[what]
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr(name, content)
    report = collect(tmp_path / "x.zip", course)
    assert report.status == 1 and len(report.problems) == 1
    assert len(ClassList(course).trouble) == 1


MOODLE = "Ann Lee_{}_assignsubmission_file_/01_vector_add.ipynb"


@pytest.mark.parametrize("order", [(101, 102), (102, 101)])
def test_a_namesake_never_overwrites_another(order, course, tmp_path):
    contents = dict(zip(order, (NOTEBOOK, OTHER)))
    for number in (*order, *order):
        report = take(course, tmp_path, {MOODLE.format(number): contents[number]})
    ids = {f"Ann_Lee_{order[1]}": OTHER, "Ann_Lee": NOTEBOOK}
    assert course.handed_in() == [("Ann_Lee", ADD), (f"Ann_Lee_{order[1]}", ADD)]
    for student, content in ids.items():
        assert course.notebook("submitted", student, ADD).read_text() == content
    assert report.notes == []


def test_a_namesake_is_said_when_first_seen_and_kept_when_both_come(course, tmp_path):
    take(course, tmp_path, [MOODLE.format(101)])
    report = take(course, tmp_path, [MOODLE.format(101), MOODLE.format(102)])
    assert [student for student, _ in course.handed_in()] == ["Ann_Lee", "Ann_Lee_102"]
    assert "the number 102 here" in report.notes[0] and "--roster" in report.notes[0]


def test_moodles_other_number_in_another_assignment_is_the_same_person(course, tmp_path):
    take(course, tmp_path, [MOODLE.format(101)])
    take(course, tmp_path, ["Ann Lee_205_assignsubmission_file_/02_naive_softmax.ipynb"])
    assert course.handed_in() == [("Ann_Lee", ADD), ("Ann_Lee", SOFTMAX)]


def test_canvas_keeps_its_number_when_a_student_marries(course, tmp_path):
    take(course, tmp_path, ["leeann_101_5001_01_vector_add.ipynb"])
    take(course, tmp_path, ["kimann_101_5002_02_naive_softmax.ipynb"])
    assert course.handed_in() == [("leeann_101", ADD), ("leeann_101", SOFTMAX)]


def test_an_unnamed_file_does_not_turn_a_folder_of_students_into_one(course, tmp_path):
    names = ["Lab 1/Ann Lee - 01_vector_add.ipynb", "Lab 1/Bob Roe - 01_vector_add.ipynb", "Lab 1/01_vector_add.ipynb"]
    report = take(course, tmp_path, names)
    assert course.handed_in() == [("Ann_Lee", ADD), ("Bob_Roe", ADD)]
    assert len(report.problems) == 1 and "nothing says whose" in report.problems[0]


def test_versions_of_one_student_are_not_students(course, tmp_path):
    take(course, tmp_path, [f"ann/01_vector_add{suffix}.ipynb" for suffix in ("", "_old", "_final v2", "_new")])
    assert course.handed_in() == [("ann", ADD)]


def test_late_is_recorded_and_forgotten_when_something_in_time_replaces_it(course, tmp_path):
    take(course, tmp_path, ["roebob_LATE_102_5002_01_vector_add.ipynb", "leeann_101_5001_01_vector_add.ipynb"])
    classlist = ClassList(course)
    assert classlist.late == {("roebob_102", ADD)}
    take(course, tmp_path, ["roebob_102_5003_01_vector_add.ipynb"])
    assert ClassList(course).late == set()


def test_a_student_whose_file_is_not_understood_is_remembered_until_it_is(course, tmp_path):
    name = "Ann Lee_101_assignsubmission_file_/work.{}"
    take(course, tmp_path, {name.format("ipynb"): '{"cells": []}'})
    assert "neither name nor answers" in ClassList(course).trouble["Ann_Lee"][0]
    take(course, tmp_path, {name.format("rar"): "Rar!", "Ann Lee_101_assignsubmission_file_/x.zip": "PK"})
    first, second = ClassList(course).trouble["Ann_Lee"]
    assert "is an archive, but no zip" in first and "could not be unpacked" in second
    take(course, tmp_path, {name.format("ipynb"): NOTEBOOK})
    assert ClassList(course).trouble == {}
    assert course.handed_in() == [("Ann_Lee", ADD)]


OTHER_FORMS = {
    "a text file by the browser": {"ann/01_vector_add.ipynb.txt": NOTEBOOK},
    "a zip of one's own": {"ann/work.zip": packed("hand in/01_vector_add.ipynb", "hand in/data.csv")},
    "a zip in Moodle": {"ann_101_assignsubmission_file_/work.zip": packed("01_vector_add.ipynb")},
    "a zip, flat": {"leeann_101_5001_work.zip": packed("01_vector_add.ipynb")},
}


@pytest.mark.parametrize("form", OTHER_FORMS)
def test_other_forms_of_a_notebook(form, course, tmp_path):
    report = take(course, tmp_path, OTHER_FORMS[form])
    assert report.problems == []
    [(student, assignment)] = course.handed_in()
    assert student in ("ann", "leeann_101") and assignment == ADD
    assert course.notebook("submitted", student, ADD).read_text() == NOTEBOOK


def test_a_python_file_is_taken_where_there_is_no_notebook(course, tmp_path):
    script = "def add(x, y):\n    return 'right'\n"
    take(course, tmp_path, {"ann/vector_add.py": script, "bob/vector_add.py": script, "bob/01_vector_add.ipynb": None})
    assert course.handed_in() == [("ann", ADD), ("bob", ADD)]
    *_, cell = json.loads(course.notebook("submitted", "ann", ADD).read_text())["cells"]
    assert (cell["cell_type"], cell["source"]) == ("code", script)
    assert course.notebook("submitted", "bob", ADD).read_text() == NOTEBOOK


def test_jupyters_copy_does_not_win_over_the_original(course, tmp_path):
    old = zipfile.ZipInfo("ann/01_vector_add.ipynb", (2024, 1, 1, 0, 0, 0))
    new = zipfile.ZipInfo("ann/01_vector_add-Copy1.ipynb", (2024, 2, 1, 0, 0, 0))
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr(old, NOTEBOOK)
        archive.writestr(new, OTHER)
    report = collect(tmp_path / "x.zip", course)
    assert course.notebook("submitted", "ann", ADD).read_text() == NOTEBOOK
    assert "took ann/01_vector_add.ipynb" in report.notes[0]


METADATA = "sub:\n  :submitters:\n  - :name: bob\n"
IMPERSONATIONS = {
    "a zip named as by a system": {
        "mallory.zip": packed("bob_5_assignsubmission_file_/01_vector_add.ipynb", content=OTHER)
    },
    "a zip in a folder": {
        "mallory/x.zip": packed("hw_bob_attempt_2099-01-01-00-00-00_01_vector_add.ipynb", content=OTHER)
    },
    "metadata in a folder": {"mallory/submission_metadata.yml": METADATA, "mallory/sub/01_vector_add.ipynb": OTHER},
    "metadata in a zip": {
        "mallory.zip": packed("submission_metadata.yml", "sub/01_vector_add.ipynb", content=METADATA)
    },
}


@pytest.mark.parametrize("trick", IMPERSONATIONS)
def test_nobody_hands_in_for_another(trick, course, tmp_path):
    take(course, tmp_path, {"ann/01_vector_add.ipynb": None, "bob/01_vector_add.ipynb": None, **IMPERSONATIONS[trick]})
    assert {student for student, _ in course.handed_in()} - {"mallory"} == {"ann", "bob"}
    assert course.notebook("submitted", "bob", ADD).read_text() == NOTEBOOK


def test_a_zip_at_the_top_names_its_student_and_nobody_else(course, tmp_path):
    take(course, tmp_path, IMPERSONATIONS["a zip named as by a system"])
    assert course.handed_in() == [("mallory", ADD)]


def test_a_folder_whose_name_is_no_text_is_collected(course, tmp_path):
    folder = tmp_path / "in" / "b\udcff"
    folder.mkdir(parents=True)
    (folder / "01_vector_add.ipynb").write_text(NOTEBOOK)
    [(student, _, _)] = collect(tmp_path / "in", course).collected
    assert collect(tmp_path / "in", course).collected[0][0] == student


def test_a_hostile_zip_in_a_zip_is_a_line(course, tmp_path):
    many = packed(*(f"{n}.txt" for n in range(10_001)), content="")
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("01_vector_add.ipynb", b"0" * (100 << 20))
    files = {
        "ann/many.zip": many,
        "bob/bomb.zip": bomb.getvalue(),
        "carl/deep.zip": packed("deeper.zip", content=packed("01_vector_add.ipynb")),
        "dan/outside.zip": packed("../../../01_vector_add.ipynb", "/etc/01_vector_add.ipynb"),
        "eve/01_vector_add.ipynb": NOTEBOOK,
    }
    report = take(course, tmp_path, files)
    assert course.handed_in() == [("eve", ADD)]
    assert len(report.problems) == 4
    reasons = ("more than 10000 files", "unpack to 100 MB", "unpack it", "its name points outside the zip")
    for line, reason in zip(sorted(report.problems), reasons):
        assert reason in line
    assert set(report.trouble) == {"ann", "bob", "carl", "dan"}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["0.zip", "course"]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("2024-01-02-10-05-00", (2024, 1, 2, 10, 5)),
        ("Jan 2, 2024 1005 AM", (2024, 1, 2, 10, 5)),
        ("Jan 2, 2024 105 PM", (2024, 1, 2, 13, 5)),
        ("January 2, 2024 1205 AM", (2024, 1, 2, 0, 5)),
        ("2 January, 2024 1605", (2024, 1, 2, 16, 5)),
        ("2 Jan 2024 16 05", (2024, 1, 2, 16, 5)),
        ("2024-01-02 1605", (2024, 1, 2, 16, 5)),
        ("2024-01-02", (2024, 1, 2, 0, 0)),
        ("Tuesday, 2 January 2024, 4:05 PM", (2024, 1, 2, 16, 5)),  # Moodle's worksheet
        ("Saturday, March 2, 2024, 12:05 AM", (2024, 3, 2, 0, 5)),  # … in American English
        ("Monday, 1 July 2024, 16:05", (2024, 7, 1, 16, 5)),
        ("-", None),
        ("32 Jan 2024", None),
        ("2 Thermidor, 2024 1605", None),
        ("", None),
    ],
)
def test_times_of_attempts(text, expected):
    found = attempt_time(text)
    assert found == (datetime(*expected).astimezone(UTC) if expected else None)


def test_gradescopes_time_is_the_submissions(course, tmp_path):
    take(course, tmp_path, EXPORTS["Gradescope"][0])
    stamp = course.notebook("submitted", "Ann_Lee", ADD).with_name("timestamp.txt")
    assert read_timestamp(stamp) == datetime(2024, 10, 3, 10, 15, 0, 123456, tzinfo=UTC)
    assert ClassList(course).people["Ann_Lee"]["numbers"] == {"Gradescope": ["0017"]}


@pytest.mark.parametrize(
    "content",
    [b"[", b"- 1", b"x: !!python/object/apply:os.system [ls]", b"\xff\xfe\x00", b"a: [*b]", b"s:\n  :submitters: 3"],
)
def test_metadata_that_is_none_names_nobody_and_runs_nothing(content):
    try:
        assert not any(gradescope(content).values())
    except ValueError as error:
        assert "\n" not in str(error)


# -- the roster -------------------------------------------------------------------------------------------


# The columns of each system's export of a class, with its own odd rows.
ROSTERS = {
    # Canvas, Gradebook > Export: two rows of its own before and after the students.
    "Canvas": "Student,ID,SIS User ID,SIS Login ID,Section,Lab 1 (77)\n,,,,,Manual Posting\n"
    '    Points Possible,,,,,10\n"Lee, Ann",101,S1,al1,Mon,\n"Roe, Bob",102,S2,br2,Tue,\n"Student, Test",9,,,Mon,\n',
    # Moodle, Participants > Download, or Grades > Export.
    "Moodle": "First name,Last name,ID number,Email address,Groups\nAnn,Lee,al1,ann@uni.example,Mon\n"
    "Bob,Roe,br2,bob@uni.example,Tue\n",
    # Blackboard, Work Offline > Download: text with tabs in UTF-16, called .xls.
    "Blackboard": '"Last Name"\t"First Name"\t"Username"\t"Student ID"\t"Availability"\n'
    '"Lee"\t"Ann"\t"al1"\t"S1"\t"Yes"\n"Roe"\t"Bob"\t"br2"\t"S2"\t"Yes"\n',
    # Brightspace, Grades > Export with both key fields and user details.
    "Brightspace": "OrgDefinedId,Username,Last Name,First Name,Email,End-of-Line Indicator\n"
    "#S1,#al1,Lee,Ann,ann@uni.example,#\n#S2,#br2,Roe,Bob,bob@uni.example,#\n",
    # Gradescope, Roster > Download.
    "Gradescope": "First Name,Last Name,SID,Email,Role,Sections\nAnn,Lee,al1,ann@uni.example,Student,Mon\n"
    "Bob,Roe,br2,bob@uni.example,Student,Tue\nEva,Prof,p,eva@uni.example,Instructor,\n",
    # GitHub Classroom, Students > Download.
    "GitHub Classroom": '"identifier","github_username","github_id","name"\n"al1","octo-ann","1","Ann Lee"\n'
    '"br2","octo-bob","2","Bob Roe"\n',
    "one's own": "id;name;email;section\nal1;Ann Lee;ann@uni.example;Mon\nbr2;Roe, Bob;bob@uni.example;Tue\n",
}


def roster_file(tmp_path, text, name="class.csv"):
    path = tmp_path / name
    path.write_bytes(text.encode("utf-16") if "\t" in text else text.encode())
    return path


@pytest.mark.parametrize("system", ROSTERS)
def test_the_roster_that_a_system_exports(system, tmp_path):
    people = read_roster(roster_file(tmp_path, ROSTERS[system])).people
    expected = {"GitHub Classroom": {"octo-ann", "octo-bob"}}.get(system, {"al1", "br2"})
    assert {p.id for p in people} == expected
    assert {p.name for p in people} == {"Ann Lee", "Bob Roe"}


FILES = {
    "Canvas": ["leeann_101_5001_01_vector_add.ipynb", "roebob_LATE_102_5002_01_vector_add.ipynb"],
    "Moodle": [MOODLE.format(7), "Tue-Bob Roe_8_assignsubmission_file_/01_vector_add.ipynb"],
    "Blackboard": [
        "Home_work_al1_attempt_2024-01-01-10-00-00_01_vector_add.ipynb",
        "Home_work_br2_attempt_2024-01-01-10-00-00_01_vector_add.ipynb",
    ],
    "Brightspace": [
        "1-1 - Ann Lee - Jan 1, 2024 1000 AM/01_vector_add.ipynb",
        "2-1 - Bob Roe - Jan 1, 2024 1000 AM/01_vector_add.ipynb",
    ],
    "Gradescope": ["lee ann 01_vector_add.ipynb", "bob@uni.example_01_vector_add.ipynb"],
    "GitHub Classroom": ["lab-octo-ann/01_vector_add.ipynb", "lab-octo-bob/01_vector_add.ipynb"],
    "one's own": ["Ann Lee/01_vector_add.ipynb", "br2/01_vector_add.ipynb"],
}


@pytest.mark.parametrize("system", ROSTERS)
def test_files_are_resolved_against_the_roster(system, course, tmp_path):
    path = roster_file(tmp_path, ROSTERS[system])
    report = take(course, tmp_path, FILES[system], roster=path)
    assert report.problems == []
    assert [student for student, _ in course.handed_in()] == sorted(p.id for p in read_roster(path).people)
    take(course, tmp_path, FILES[system])  # the course remembers its roster
    assert len(course.handed_in()) == 2


def test_what_is_ambiguous_is_refused_by_name(course, tmp_path):
    namesakes = roster_file(tmp_path, "id,name\nal1,Ann Lee\nal2,Ann Lee\nbob,Bob Roe\n")
    names = [MOODLE.format(101), "al2/01_vector_add.ipynb", "Zoe Fox_9_assignsubmission_file_/01_vector_add.ipynb"]
    report = take(course, tmp_path, names, roster=namesakes)
    assert course.handed_in() == [("al2", ADD)]
    lines = "\n".join(report.problems)
    assert "Ann Lee may be 2 people of the roster: al1, al2" in lines
    assert "Zoe Fox is not on the roster" in lines and "--student" in lines and "one folder per student" not in lines
    # The rows of both say that something waits, as they would be empty without a word.
    trouble = ClassList(course).trouble
    assert list(trouble) == ["al1", "al2"] and "Ann Lee" in trouble["al2"][0]
    assert report.status == 1


def test_canvas_number_that_is_not_on_the_roster_is_no_namesakes(course, tmp_path):
    """Who joined after the roster was exported handed in for the one with the same name."""
    roster = roster_file(tmp_path, ROSTERS["Canvas"])
    files = {"leeann_101_5001_01_vector_add.ipynb": NOTEBOOK, "leeann_103_5002_01_vector_add.ipynb": OTHER}
    report = take(course, tmp_path, files, roster=roster)
    assert course.handed_in() == [("al1", ADD)]
    assert course.notebook("submitted", "al1", ADD).read_text() == NOTEBOOK
    assert "leeann_103 is not on the roster, where al1 has the number 101" in report.problems[0]


def test_moodles_number_on_the_grading_worksheet_tells_namesakes_apart(course, tmp_path):
    lines = ("Identifier,Full name,ID number", "Participant 101,Ann Lee,al1", "Participant 102,Ann Lee,al2")
    worksheet = roster_file(tmp_path, "\n".join(lines))
    take(course, tmp_path, {MOODLE.format(102): OTHER, MOODLE.format(101): NOTEBOOK}, roster=worksheet)
    assert course.handed_in() == [("al1", ADD), ("al2", ADD)]
    assert course.notebook("submitted", "al2", ADD).read_text() == OTHER


@pytest.mark.parametrize(
    "text, said",
    [
        ("", "names nobody"),
        ("x,y\n1,2\n", "found the columns x, y"),
        ("id,name\na,Ann\na,Bob\n", "two rows of the roster are for a"),
    ],
)
def test_a_roster_that_cannot_be_used_is_one_line_and_changes_nothing(text, said, course, tmp_path):
    with pytest.raises(CourseError, match=said) as caught:
        take(course, tmp_path, ["ann/01_vector_add.ipynb"], roster=roster_file(tmp_path, text))
    assert "\n" not in str(caught.value)
    assert not (course.root / "roster.csv").exists() and course.handed_in() == []
    with pytest.raises(CourseError, match="cannot be read"):
        take(course, tmp_path, ["ann/01_vector_add.ipynb"], roster=tmp_path / "none.csv")

"""Grades back to a learning-management system: its own file comes back, with nothing changed but the grades."""

import csv
import io
import zipfile

import pytest
from classroom import EXERCISES, RIGHT, StrawJudge, filled, new_course, submit, zip_of

from autograder import cli
from autograder.classroom.course import CourseError
from autograder.classroom.grading.grade import grade
from autograder.classroom.intake.collect import collect
from autograder.classroom.lms.filled import export_for
from autograder.classroom.reports.feedback import feedback

ADD, SOFTMAX = EXERCISES
GOOD, HALF = filled(ADD, **RIGHT), filled(ADD, vector_add="half")  # 8 and 2.5 of 8

# What each system exports, with two students; {} and {} are the cells that come back with 8 and 2.5.
EXPORTS = {
    # Canvas, Gradebook > Export: a line for the posting policy, one for the points; read-only columns at the end.
    "canvas": (
        "Student,ID,SIS User ID,SIS Login ID,Section,Lab 0 (76),01_vector_add (77),Final Score\n"
        ",,,,,Manual Posting,,\n    Points Possible,,,,,10,8,(read only)\n"
        '"Lee, Ann",101,S1,al1,Mon,9,{},90\n"Roe, Bob",102,S2,br2,Tue,7,{},70\n"Student, Test",9,,,Mon,,,\n',
        "utf-8",
        ["leeann_101_5001_01_vector_add.ipynb", "roebob_102_5002_01_vector_add.ipynb"],
    ),
    "canvas, two columns of names": (
        "LastName,FirstName,ID,Section,01_vector_add (77)\n    Points Possible,,,,8\n"
        "Lee,Ann,101,Mon,{}\nRoe,Bob,102,Tue,{}\n",
        "utf-8",
        ["leeann_101_5001_01_vector_add.ipynb", "roebob_102_5002_01_vector_add.ipynb"],
    ),
    # Moodle, assignment > Download grading worksheet (mod/assign/feedback/offline/locallib.php).
    "moodle": (
        'Identifier,"Full name","Email address",Status,Grade,"Maximum Grade","Last modified (grade)"\n'
        'Participant 4711,"Ann Lee",ann@x.example,Submitted,{},8.00,-\n'
        'Participant 4712,"Bob Roe",bob@x.example,Submitted,{},8.00,-\n',
        "utf-8-sig",
        [f"{who}_assignsubmission_file_/01_vector_add.ipynb" for who in ("Ann Lee_4711", "Bob Roe_4712")],
    ),
    # Blackboard, Work Offline > Download: text with tabs in UTF-16, every cell in quotes.
    "blackboard": (
        '"Last Name"\t"First Name"\t"Username"\t"Student ID"\t"Vector Add [Total Pts: 8 Score] |20815"\r\n'
        '"Lee"\t"Ann"\t"al1"\t"S1"\t"{}"\r\n"Roe"\t"Bob"\t"br2"\t"S2"\t"{}"\r\n',
        "utf-16",
        ["Vector Add_al1_attempt_2024-01-01-10-00-00_x.ipynb", "Vector Add_br2_attempt_2024-01-01-10-00-00_x.ipynb"],
    ),
    # Brightspace, Grades > Export, both keys, points grade.
    "brightspace": (
        "OrgDefinedId,Username,Last Name,First Name,Vector Add Points Grade <Numeric MaxPoints:8 Weight:10>,"
        "Vector Add Text Grade <Text>,End-of-Line Indicator\r\n"
        "#S1,#al1,Lee,Ann,{},,#\r\n#S2,#br2,Roe,Bob,{},,#\r\n",
        "utf-8",
        [f"{who} - Jan 1, 2024 1000 AM/01_vector_add.ipynb" for who in ("1-1 - Ann Lee", "2-1 - Bob Roe")],
    ),
    # Gradescope, Assignments > Download Grades.
    "gradescope": (
        "First Name,Last Name,SID,Email,Sections,Vector Add,Vector Add - Max Points,Vector Add - Lateness (H:M:S)\n"
        "Ann,Lee,S1,ann@x.example,,{},8.0,00:00:00\nBob,Roe,S2,bob@x.example,,{},8.0,00:00:00\n",
        "utf-8",
        ["ann@x.example_01_vector_add.ipynb", "Bob Roe_01_vector_add.ipynb"],
    ),
}


@pytest.fixture
def course(tmp_path):
    return new_course(tmp_path / "course")


def exported(tmp_path, text, encoding="utf-8", name="from the lms.csv"):
    path = tmp_path / name
    path.write_bytes(text.encode(encoding))
    return path


def graded(course, tmp_path, names, roster=None, contents=(GOOD, HALF)):
    collect(zip_of(tmp_path / "in.zip", dict(zip(names, contents))), course, roster=roster)
    grade(course, new_judge=StrawJudge, workers=1)


def lines_of(report):
    said = []
    report.print(said.append)
    return said


@pytest.mark.parametrize("with_roster", [False, True], ids=["no roster", "roster"])
@pytest.mark.parametrize("system", EXPORTS)
def test_a_systems_file_comes_back_with_the_grades_and_nothing_else_changed(system, with_roster, course, tmp_path):
    text, encoding, names = EXPORTS[system]
    system = system.partition(",")[0]
    path = exported(tmp_path, text.format("", "1"), encoding)
    graded(course, tmp_path, names, path if with_roster else None)
    report = export_for(course, system, path)
    assert (report.status, report.said[0].split()[0]) == (0, "2"), lines_of(report)
    assert [note for note in report.notes if "no feedback pages yet" not in note] == []
    returned, expected = report.files["table"].read_bytes(), text.format("8", "2.5").encode(encoding)
    if system == "moodle":  # PHP puts quotes around blanks, which changes no cell
        returned, expected = returned.replace(b'"', b""), expected.replace(b'"', b"")
    assert returned == expected
    assert path.read_bytes() == text.format("", "1").encode(encoding)


def test_moodles_feedback_zip_has_its_folders(course, tmp_path):
    text, encoding, names = EXPORTS["moodle"]
    path = exported(tmp_path, text.format("", "").replace("Bob Roe", "Bob_Roe"), encoding)
    graded(course, tmp_path, [names[0], names[1].replace("Bob Roe", "Bob_Roe")])
    feedback(course)
    report = export_for(course, "moodle", path)
    with zipfile.ZipFile(report.files["pages"]) as archive:
        assert archive.namelist() == [
            f"Ann Lee_4711_assignsubmission_file/feedback_{ADD}.html",
            f"Bob Roe_4712_assignsubmission_file/feedback_{ADD}.html",  # its number is between "_"
        ]
        page = course.notebook("feedback", "Ann_Lee", ADD, ".html").read_bytes()
        assert archive.read(archive.namelist()[0]) == page


def test_moodles_number_of_another_assignment_is_nobodys(course, tmp_path):
    text, encoding, names = EXPORTS["moodle"]
    graded(course, tmp_path, names)
    swapped = text.format("", "").replace("4711", "0").replace("4712", "4711").replace("Bob Roe", "Eva Kim")
    report = export_for(course, "moodle", exported(tmp_path, swapped, encoding), columns={SOFTMAX: "Grade"})
    assert report.said[0].startswith("0 grades")
    submit(course, "Bob_Roe", filled(SOFTMAX, naive_softmax="right"), SOFTMAX)
    grade(course, new_judge=StrawJudge, workers=1)
    report = export_for(course, "moodle", exported(tmp_path, swapped, encoding), columns={SOFTMAX: "Grade"})
    assert report.problems == [f"Bob_Roe {SOFTMAX}: Bob Roe is not on the roster"]


@pytest.mark.parametrize("system", ["canvas", "moodle"])
def test_a_namesake_gets_nobodys_grade(system, course, tmp_path):
    """Where the student's own line was missing, the points went to the line of who had the same name."""
    text, encoding, names = EXPORTS[system]
    graded(course, tmp_path, names[:1])
    other = text.format("", "").replace("101", "103").replace("4711", "4799")
    report = export_for(
        course, system, exported(tmp_path, other, encoding), columns={} if system == "canvas" else {ADD: "Grade"}
    )
    number = "101" if system == "canvas" else "4711"
    student = "leeann_101" if system == "canvas" else "Ann_Lee"
    assert report.said[0].startswith("0 grades")
    assert report.problems == [f"{student} {ADD}: no line has the number {number}, which {system.capitalize()} gave"]


def test_a_file_about_one_assignment_needs_no_name_of_it_where_one_is_assigned(course, tmp_path):
    """Gradescope, Assignment > Review Grades > Download Grades."""
    text = (
        "First Name,Last Name,SID,Email,Total Score,Max Points,Status\n"
        "Ann,Lee,S1,ann@x.example,{},16.0,Graded\nBob,Roe,S2,bob@x.example,{},16.0,Graded\n"
    )
    path = exported(tmp_path, text.format("", ""))
    graded(course, tmp_path, ["ann@x.example_01_vector_add.ipynb", "Bob Roe_01_vector_add.ipynb"])
    report = export_for(course, "gradescope", path, scale=True)
    assert report.files["table"].read_text() == text.format("16", "5")
    submit(course, "ann", filled(SOFTMAX, naive_softmax="right"), SOFTMAX)
    with pytest.raises(CourseError, match="say which: --column '01_vector_add=Total Score'"):
        export_for(course, "gradescope", path)


def test_what_is_not_sure_is_not_written_but_said(course, tmp_path):
    for student in ("ann", "bob", "eva", "odd", "two"):
        submit(course, student, b"<html>" if student == "odd" else GOOD)
    grade(course, new_judge=StrawJudge, workers=1)
    submit(course, "eva", HALF)
    rows = "id,name,email,01_vector_add\nann,Ann Lee,,3\neva,Eva Kim,,4\nodd,Odd Ode,,5\nx,two,,6\ny,two,,7\n"
    report = export_for(course, "canvas", exported(tmp_path, rows))
    assert report.status == 1 and report.said[0].startswith("1 grades")
    said = "\n".join(report.problems)
    for words in (
        f"bob {ADD}: bob is not on the roster",
        f"eva {ADD}: something newer was collected",
        f"odd {ADD}: waits for a decision of yours",
        f"two {ADD}: two may be 2 people of the roster: x, y",
    ):
        assert words in said
    table = list(csv.reader(io.StringIO(report.files["table"].read_text())))
    assert [line[-1] for line in table[1:]] == ["8", "4", "5", "6", "7"]


def test_who_is_excused_stays_excused(course, tmp_path):
    text, encoding, names = EXPORTS["canvas"]
    graded(course, tmp_path, names)
    report = export_for(course, "canvas", exported(tmp_path, text.format("", "ex"), encoding))
    assert report.problems == [f"roebob_102 {ADD}: is excused in Canvas"]
    assert report.files["table"].read_text() == text.format("8", "ex")


def test_other_points_are_said_and_scaled_when_asked(course, tmp_path):
    text, encoding, names = EXPORTS["canvas"]
    path = exported(tmp_path, text.format("", "").replace(",10,8,", ",10,100,"), encoding)
    graded(course, tmp_path, names)
    report = export_for(course, "canvas", path)
    assert f"note: {ADD} has 8 points, and 100 in Canvas: scores were written as they are" in lines_of(report)[0]
    scaled = export_for(course, "canvas", path, scale=True)
    assert scaled.files["table"].read_text() == text.format("100", "31.25").replace(",10,8,", ",10,100,")


@pytest.mark.parametrize(
    "text, columns, said",
    [
        ("Student,ID,Section,Lab\nAnn Lee,1,,\n", {}, "no column is named like an assignment; there are: Student"),
        ("Student,ID,Section,Lab\nAnn Lee,1,,\n", {ADD: "Lab 1"}, "has no columns 'Lab 1'"),
        ("Student,ID,Section,Lab 1 (7),Lab 1 (8)\nAnn Lee,1,,,\n", {ADD: "Lab 1"}, "has 2 columns 'Lab 1'"),
        ("Student,ID,Section,Lab\nAnn Lee,1,,\n", {"99_x": "Lab"}, "no assignment '99_x'"),
        ("Student,ID,Section,vector add,01_vector_add\nAnn Lee,1,,,\n", {}, "may both be 01_vector_add"),
        ("a,b\n1,2\n", {}, "names nobody; give the file that Canvas exported"),
        ("", {}, "names nobody"),
    ],
)
def test_a_file_that_cannot_be_filled_is_one_line(text, columns, said, course, tmp_path):
    graded(course, tmp_path, ["ann/01_vector_add.ipynb"])
    with pytest.raises(CourseError, match=said) as caught:
        export_for(course, "canvas", exported(tmp_path, text), columns=columns)
    assert "\n" not in str(caught.value)
    assert not (course.root / "canvas.csv").exists()


def test_a_column_is_known_by_the_title_that_people_see(course, tmp_path):
    """Canvas writes its number behind the title: "Lab 1 (4711)" had to be typed."""
    graded(course, tmp_path, ["ann/01_vector_add.ipynb"])
    table = exported(tmp_path, "Student,ID,SIS Login ID,Section,Lab 1 (4711),Lab 10 (4712)\nAnn,1,ann,,,\n")
    report = export_for(course, "canvas", table, columns={ADD: "Lab 1"})
    filled = report.files["table"].read_text().splitlines()[1]
    assert report.said[0].startswith("1 grades") and filled.startswith("Ann,1,ann,,") and filled.endswith(",")


def test_the_command(course, tmp_path, capsys):
    text, encoding, names = EXPORTS["canvas"]
    graded(course, tmp_path, names)
    path = exported(tmp_path, text.format("", "").replace("01_vector_add", "Lab 1"), encoding)
    call = ["export", "--course", str(course.root), "--for", "canvas"]
    assert cli.main(call) == 2
    assert "--into" in capsys.readouterr().err
    assert cli.main([*call, "--into", str(path), "--column", "Lab 1"]) == 2
    assert cli.main([*call, "--into", str(path), "--column", f"{ADD}=Lab 1 (77)"]) == 0
    assert "2 grades in" in capsys.readouterr().out
    assert ",9,8,90" in (course.root / "canvas.csv").read_text()

"""A class in a room, from sign-in to feedback: three attendees and an instructor, in browsers of their own."""

import json
import re
import time

import pytest
from opened import CODE, INSTRUCTOR_CODE, PEOPLE, ROOT

from autograder.lessons import answers

pytestmark = pytest.mark.browser
LESSON = "00_setup"
RIGHT = answers(ROOT / "solutions" / f"{LESSON}.py")["first_kernel"]
WRONG = RIGHT.replace("tl.program_id(axis=0)", "0 * 1")
SLOW = 120_000  # ms that a step may take on two busy cores
OUTSIDE = re.compile(r"^(?!(?:https?|wss?)://127\.0\.0\.1[:/]|data:|blob:|about:).+")


class Person:
    """Somebody with a browser in the room."""

    def __init__(self, browser, room, name: str, password: str = "my own password", code: str = CODE):
        self.room, self.name = room, name
        self.outside: list[str] = []  # what their pages asked of other machines
        self.context = browser.new_context(viewport={"width": 1360, "height": 900})
        self.page = self.context.new_page()
        self.page.on("request", lambda request: self.outside.extend(OUTSIDE.findall(request.url)))
        self.page.on("dialog", lambda dialog: dialog.accept())  # what publishes feedback asks first
        self.page.goto(f"{room.url}/hub/login")
        self.page.fill("#username_input", name)
        self.page.fill("#password_input", password)
        self.page.fill("#otp_input", code)
        self.page.click("#login_submit")

    def is_in(self) -> bool:
        """Whether the sign-in was taken: a server starts, and JupyterLab opens, or the instructor's page."""
        self.page.locator(".jp-LabShell, .room-desk, .login_error, .error").first.wait_for(timeout=SLOW)
        failed = self.page.locator(".error")  # JupyterHub's page of a server that did not start
        assert failed.count() == 0, f"{failed.inner_text()}\n{self.room.log.read_text()[-3000:]}"
        return self.page.locator(".login_error").count() == 0

    def menu(self, *items: str) -> None:
        for item in items:
            self.page.get_by_role("menuitem", name=item, exact=True).click()

    def menus(self) -> list[str]:
        return self.page.locator(".lm-MenuBar-itemLabel").all_inner_texts()

    def fill(self, number: int, source: str) -> None:
        """Write into a cell of the open notebook."""
        cell = self.page.locator(".jp-Notebook .jp-Cell").nth(number)
        cell.locator(".cm-content").click(timeout=SLOW)  # it waits until JupyterLab has drawn the cell
        self.page.keyboard.press("Control+a")
        self.page.keyboard.insert_text(source)

    def fill_and_check(self, source: str, last: str) -> str:
        """Open the lesson, fill its answer and its last cell, run all cells. What the first verdict says."""
        self.page.goto(f"{self.room.url}/user/{self.name}/lab/tree/{LESSON}/{LESSON}.ipynb?reset")
        path = self.room.folder / "home" / self.name / LESSON / f"{LESSON}.ipynb"
        cells = json.loads(path.read_text())["cells"]
        number = next(n for n, c in enumerate(cells) if c["metadata"].get("nbgrader", {}).get("solution"))
        self.page.get_by_text("| Idle").first.wait_for(timeout=SLOW)
        self.fill(number, source)
        self.fill(len(cells) - 1, last)
        self.menu("Run", "Run All Cells")
        panel = self.page.locator(".verdict:not(.running)").first
        panel.wait_for(state="attached", timeout=SLOW)
        self.page.keyboard.press("Control+s")
        panel.scroll_into_view_if_needed()
        self.page.wait_for_function("() => !document.title.startsWith('*')", timeout=SLOW)
        return panel.text_content()  # the notebook hides a cell that is out of sight: then inner_text is empty

    def room_page(self) -> None:
        assert self.page.goto(f"{self.room.url}/user/{self.name}/room").status == 200

    def step(self, button: str) -> str:
        """A button of the instructor's page; what its commands printed, once they have ended."""
        self.room_page()
        self.page.get_by_role("button", name=button, exact=True).click()
        ended = self.page.locator(".run.good, .run.some, .run.bad").filter(has_text=f"{button}: ").first
        ended.wait_for(timeout=SLOW)
        said = self.page.locator(".run").first.inner_text()
        assert f"{button}: done" in said, said
        return said

    def press(self, button: str, done) -> None:
        """A button beside the lesson in nbgrader's assignment list; wait until done() is true."""
        self.page.goto(f"{self.room.url}/user/{self.name}/lab?reset")
        self.menu("Nbgrader", "Assignment List")
        lists = self.page.locator("#nbgrader-assignment-list")
        lists.locator(f".list_item:has-text('{LESSON}')").get_by_role("button", name=button, exact=True).first.click(
            timeout=SLOW
        )
        end = time.monotonic() + SLOW / 1000
        while not done():
            assert time.monotonic() < end, f"{button}: nothing came of it; {lists.inner_text()}"
            self.page.wait_for_timeout(200)


@pytest.fixture(scope="module")
def enter(browser, room):
    people = {}

    def one(name: str, code: str = CODE) -> Person:
        if name not in people:
            people[name] = Person(browser, room, name, code=code)
            assert people[name].is_in()
        return people[name]

    yield one
    for person in people.values():
        person.context.close()


def test_the_door(browser, room):
    """Without the code nobody comes in, and a name belongs to its first password."""
    ada, stranger = PEOPLE[0], {"code": "guessed"}
    assert not Person(browser, room, ada, **stranger).is_in()
    assert not (room.folder / "hub/people.json").exists()
    assert not Person(browser, room, "instructor", code=CODE).is_in(), "the workshop's code opens the instructor's door"
    assert not Person(browser, room, ada, password="short").is_in()
    assert Person(browser, room, ada).is_in()
    assert not Person(browser, room, ada, password="another password").is_in()


def test_the_instructor_releases_and_attendees_have_no_instructor_menus(enter, room, screenshots):
    waiting = enter(PEOPLE[0])
    waiting.menu("Nbgrader", "Assignment List")
    waiting.page.get_by_text("There are no assignments to fetch.").wait_for(timeout=SLOW)  # it said "No courses found."
    waiting.page.screenshot(path=screenshots / "before.png")
    waiting.page.goto(f"{room.url}/user/{PEOPLE[0]}/lab?reset")
    instructor = enter("instructor", INSTRUCTOR_CODE)
    assert instructor.page.url.endswith("/user/instructor/room"), "the instructor begins on the page of the room"
    assert "$ autograder exchange release" in instructor.step("Release")
    assert (room.folder / "exchange/triton-workshop/outbound" / LESSON / f"{LESSON}.ipynb").is_file()
    instructor.page.goto(f"{room.url}/user/instructor/lab")
    instructor.page.get_by_role("menuitem", name="File", exact=True).wait_for(timeout=SLOW)
    assert "Nbgrader" not in instructor.menus(), "its formgrader opens in a frame, which JupyterHub forbids"
    attendee = enter(PEOPLE[0])
    attendee.page.get_by_role("menuitem", name="Nbgrader", exact=True).click()
    attendee.page.screenshot(path=screenshots / "attendee.png")
    items = attendee.page.locator(".lm-Menu-itemLabel").all_inner_texts()
    assert [item for item in items if item] == ["Assignment List"]
    attendee.page.keyboard.press("Escape")


def inbound(room, name):
    return list((room.folder / "exchange/triton-workshop/inbound").glob(f"{name}+{LESSON}+*"))


# What each runs in the last cell of the lesson. Ben does not get on, and lets the instructor see it: five more answers,
# because a check of the same code is not counted again.
LAST = dict(
    zip(
        PEOPLE,
        (
            "from workshop import share_progress\nshare_progress('on')",
            "from workshop import share_progress\n"
            "for n in range(2, 7):\n"
            f"    get_ipython().run_cell({WRONG!r}.replace('0 * 1', f'0 * {{n}}'), store_history=True)\n"
            "    check('first_kernel')\nshare_progress('on')",
            "progress()",
        ),
    )
)


@pytest.mark.parametrize("name", PEOPLE, ids=range(len(PEOPLE)))  # names differ in each process that collects
def test_an_attendee_fetches_fills_checks_and_submits(enter, room, screenshots, name):
    person, home = enter(name), room.folder / "home" / name
    person.press("Fetch", (home / LESSON / f"{LESSON}.ipynb").is_file)
    said = person.fill_and_check(RIGHT if name != PEOPLE[1] else WRONG, LAST[name])
    person.page.screenshot(path=screenshots / f"{name.partition('-')[0]}.png")
    assert ("Passed" in said) == (name != PEOPLE[1]), said
    told = "The instructor does not see your progress" if name == PEOPLE[2] else "The instructor sees your name"
    person.page.locator(".jp-Notebook").get_by_text(told).first.wait_for(state="attached", timeout=SLOW)
    person.press("Submit", lambda: inbound(room, name))
    assert inbound(room, name)[0].owner() == name
    assert (home / ".progress.json").is_file(), "progress is kept in one place, not in each lesson's folder"
    shared = room.folder / "progress" / name / "progress.json"
    assert shared.exists() == (name != PEOPLE[2]), "progress is shared by those who chose it, and by nobody else"
    assert not person.outside, "a page asked another machine"


def test_nobody_sees_the_files_of_another(room):
    ada, ben = PEOPLE[0], PEOPLE[1]
    secrets = [
        room.folder / "home" / ben,
        room.folder / "home" / ben / LESSON / f"{LESSON}.ipynb",
        room.folder / "exchange/triton-workshop/inbound",
        room.folder / "course",
        room.folder / "progress",
        room.folder / "progress" / ben,
        room.folder / "progress" / ben / "progress.json",
        room.folder / "hub",
        room.folder / "hub/people.json",
        room.folder / "hub/cookie_secret",
        room.folder / "hub/hub.sqlite",
    ]
    for path in secrets:
        read = room.as_user(ada, "sh", "-c", 'if [ -d "$0" ]; then ls "$0"; else cat "$0"; fi', path)
        assert read.returncode and not read.stdout, f"{ada} reads {path}"
    moved = room.as_user(ada, "mv", room.folder / "exchange/triton-workshop", room.folder / "exchange/gone")
    assert moved.returncode, f"{ada} moves the whole exchange away"


def test_the_instructor_sees_who_is_where_and_who_needs_help(enter, room, screenshots):
    ada, ben, cleo = PEOPLE
    instructor = enter("instructor")
    page = instructor.page
    instructor.room_page()
    people = page.locator("tbody").first.locator("tr")
    assert people.count() == 2 and "2 share their progress, 1 does not." in page.inner_text("main")
    first, second = people.all_inner_texts()
    assert ben in first and "Needs help: first_kernel failed 6 times" in first
    assert ada in second and "Needs help" not in second and "✓" in second
    assert cleo not in page.content()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.screenshot(path=screenshots / f"desk-{scheme}.png", full_page=True)
    off = room.as_user(ben, "workshop", "share-progress", "off")
    assert off.returncode == 0 and "does not see" in off.stdout
    page.get_by_text("1 shares their progress, 2 do not.").wait_for(timeout=SLOW)  # without loading the page again
    assert ben not in page.content() and not list((room.folder / "progress" / ben).iterdir())
    assert not instructor.outside


def test_an_attendee_can_neither_open_the_instructors_page_nor_press_its_buttons(enter, room):
    attendee, instructor = enter(PEOPLE[0]), enter("instructor")
    instructor.room_page()
    before = instructor.page.locator(".run").count()
    token = instructor.page.locator("[name=_xsrf]").first.get_attribute("value")
    visit = attendee.context.new_page()
    for address in ("room", "room/live"):
        assert visit.goto(f"{room.url}/user/instructor/{address}").status == 403
    form = {"step": "collect", "_xsrf": token}
    pressed = attendee.context.request.post(f"{room.url}/user/instructor/room/run", form=form)
    assert pressed.status == 403
    assert visit.goto(f"{room.url}/user/{PEOPLE[0]}/room").status == 404, "an attendee's server has the page"
    visit.close()
    instructor.room_page()
    assert instructor.page.locator(".run").count() == before
    unsigned = instructor.context.request.post(f"{room.url}/user/instructor/room/run", form={"step": "collect"})
    assert unsigned.status == 403, "another page can press the buttons"


def forge(room, forger: str, victim: str) -> None:
    """Hand in under another's name, later than they did; and a link to their answers under one's own."""
    script = f"""
        cp -r {LESSON} forged && echo '2099-01-01 00:00:00.000000 UTC' > forged/timestamp.txt
        mv forged "$0/{victim}+{LESSON}+2099-01-01 00:00:00.000000 UTC+AAAAAAAAAAAA"
    """
    done = room.as_user(forger, "sh", "-ec", script, room.folder / "exchange/triton-workshop/inbound")
    assert done.returncode == 0, done.stderr


def test_the_instructor_collects_grades_and_gives_back(enter, room):
    ada, ben, cleo = PEOPLE
    forge(room, ben, ada)
    instructor = enter("instructor")
    for button in ("Collect", "Grade", "Give feedback back"):
        instructor.step(button)
    scores = room.as_user("instructor", "autograder", "export")
    assert scores.returncode == 0
    lines = (room.folder / "course/grades.csv").read_text().splitlines()
    graded = {line.split(",")[0]: line for line in lines[1:]}
    assert set(PEOPLE) == set(graded)
    for name in (ada, cleo):
        enter(name).press("Fetch Feedback", lambda name=name: pages(room, name))
        [page] = pages(room, name)
        assert "Passed" in page.read_text(), "a forged hand-in counted"
    # Ben's latest hand-in is his forgery: it is his, and of now.
    assert ",0" in graded[ben]
    assert "2099" not in (room.folder / "course/submitted" / ben / LESSON / "timestamp.txt").read_text()
    read = room.as_user(ben, "ls", room.folder / "exchange/triton-workshop/feedback")
    assert read.returncode and not read.stdout, "the pages of others can be listed"


def pages(room, name):
    return list((room.folder / "home" / name / LESSON / "feedback").glob("*/*.html"))


def test_the_instructor_sets_a_score_in_formgrader_and_it_stays(enter, room, screenshots):
    """Formgrader opened as a page of error: its course was not below the folder of the server."""
    ada, *_ = PEOPLE
    instructor = enter("instructor")
    instructor.room_page()
    page = instructor.page
    page.get_by_role("link", name="Formgrader").click()
    page.get_by_role("link", name="Manual Grading").click()
    for step in ("gradebook", f"gradebook/{LESSON}"):
        page.wait_for_url(f"**/formgrader/{step}")
        page.locator("td").get_by_role("link", name=LESSON).first.click(timeout=SLOW)
    page.wait_for_url(f"**/formgrader/gradebook/{LESSON}/*")
    page.locator("tr", has_text=ada).locator("a:visible").first.click(timeout=SLOW)
    score = page.locator("input.score[placeholder]").first  # it has one once the page's script is there
    with page.expect_response(lambda answer: "/api/grade/" in answer.url and answer.request.method == "PUT"):
        score.fill("0.25", timeout=SLOW)
        score.press("Tab")
    page.screenshot(path=screenshots / "formgrader.png")
    for command in (["grade", "--all"], ["export"]):
        assert room.as_user("instructor", "autograder", *command).returncode == 0
    [line] = [one for one in (room.folder / "course/grades.csv").read_text().splitlines() if one.startswith(ada)]
    assert ",0.25," in line and "waits" not in line


def test_a_page_that_opens_the_instructors_has_no_hold_of_it(enter, room):
    """All servers of a room may have one web address: there, a page could press the buttons of one that it opens."""
    instructor = enter("instructor")
    page = instructor.context.new_page()
    page.goto(f"{room.url}/hub/logo")  # of the same address, and without the header
    opened = "async address => { const page = open(address); await new Promise(go => setTimeout(go, 3000));"
    opened += " try { return page.closed ? 'severed' : page.document.title } catch { return 'forbidden' } }"
    for address in ("room", "formgrader/manage_assignments", "lab"):
        assert page.evaluate(opened, f"{room.url}/user/instructor/{address}") == "severed"
    assert page.evaluate(opened, f"{room.url}/hub/token") == "severed"
    page.close()

"""The instructor's page as HTML: one file, nothing loaded from elsewhere, a policy in its headers that says so.

Names and numbers that attendees can choose are escaped here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING

from ...text import visible

if TYPE_CHECKING:
    from .buttons import Run, Step
    from .exchange import HowFar


@dataclass(frozen=True)
class State:
    """What the page shows.

    lessons: lesson -> its exercises; sharing: what `workshop attendees --json` says of each attendee who shares;
    hidden: how many do not; lessons_are: lesson -> how far it is in the exchange; runs: the newest first.
    """

    lessons: Mapping[str, Sequence[str]]
    sharing: Sequence[dict]
    hidden: int
    lessons_are: Mapping[str, HowFar]
    runs: Sequence[Run]


@dataclass(frozen=True)
class Form:
    """What the buttons need. base_url: this server's; xsrf: the hidden field that the server asks for.

    systems: an LMS that grades can be exported for -> its name.
    """

    base_url: str
    xsrf: str
    steps: Mapping[str, Step]
    systems: Mapping[str, str]


_STYLE = """
:root { color-scheme: light dark; --ink: #1c1e21; --soft: #5d6570; --page: #f6f7f9; --card: #fff; --line: #dfe3e8;
  --good: #00785a; --some: #8a5a00; --bad: #b93c00; --on: #fff; --code: #f3f5f8; --press: #0b62a8; --help: #fff3ec; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7e9ec; --soft: #a3acb7; --page: #14171b; --card: #1d2126;
  --line: #363e47; --good: #2fc79b; --some: #e0b341; --bad: #ff8b4a; --on: #14171b; --code: #15181c; --press: #6db8f2;
  --help: #33241b; } }
* { box-sizing: border-box; }
body { margin: 0; padding: 1.6rem 1.5rem 4rem; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
main, header { max-width: 84rem; margin: 0 auto; }
header { display: flex; flex-wrap: wrap; align-items: baseline; gap: .3rem 1.4rem; }
h1 { margin: 0; font-size: 1.6rem; line-height: 1.25; } h2 { margin: 0; font-size: 1.1rem; }
a { color: inherit; text-underline-offset: .2em; }
.soft, small { color: var(--soft); } p { margin: .25rem 0 0; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 1rem 1.2rem;
  margin-top: 1rem; }
.steps { display: flex; flex-wrap: wrap; gap: .6rem .8rem; align-items: center; }
.steps form { display: flex; gap: .4rem; } .steps form[hidden] { display: none; }
button, select, input { font: inherit; padding: .4rem .9rem; border-radius: 7px; border: 1px solid var(--line);
  color: var(--ink); background: var(--card); }
button { background: var(--press); border-color: var(--press); color: var(--on); font-weight: 600; cursor: pointer; }
.stop button { background: none; border-color: var(--bad); color: var(--bad); }
button:hover { filter: brightness(1.12); } button:disabled { opacity: .45; cursor: default; filter: none; }
:focus-visible { outline: 3px solid var(--some); outline-offset: 2px; }
.run { margin-top: .7rem; } summary { cursor: pointer; }
.run.good > summary b { color: var(--good); } .run.bad > summary b { color: var(--bad); }
.run.some > summary b { color: var(--some); } .files a { font-weight: 600; margin-right: 1rem; }
.fill { margin-top: .9rem; } .fill > summary { color: var(--soft); }
.fill form { display: grid; grid-template-columns: 19rem minmax(12rem, 26rem); gap: .5rem 1rem;
  align-items: center; margin-top: .6rem; }
.fill form > * { width: 100%; } .fill button { width: max-content; grid-column: 2; }
.fill [type=checkbox] { width: 1.1rem; height: 1.1rem; } .fill p { grid-column: 1 / -1; max-width: 48rem; }
@media (max-width: 40rem) { .fill form { grid-template-columns: 1fr; gap: .2rem; } .fill button { grid-column: 1; } }
pre { margin: .4rem 0 0; padding: .6rem .9rem; background: var(--code); border-radius: 6px; overflow: auto;
  max-height: 15rem; font: 13px/1.5 ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
.wide { overflow-x: auto; margin-top: .6rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .38rem .7rem .38rem 0; border-top: 1px solid var(--line); vertical-align: middle; }
th { font-weight: 600; } thead th { border: 0; vertical-align: top; line-height: 1.25; }
thead small { display: block; font-weight: 400; }
tbody th { white-space: nowrap; } td.where { min-width: 11rem; line-height: 1.3; }
tr.help > * { background: var(--help); } th:first-child { padding-left: .6rem; }
.call { color: var(--bad); font-weight: 600; }
tbody.class th, tbody.class td { border-color: transparent; padding-top: .1rem; padding-bottom: .1rem; }
tbody.class tr:first-child > * { border-top: 2px solid var(--line); padding-top: .7rem; }
tbody.class th { font-weight: 400; color: var(--soft); } td.behind { color: var(--some); font-weight: 600; }
.marks { white-space: nowrap; }
.mark { display: inline-block; min-width: 1.55rem; height: 1.55rem; line-height: 1.45rem; padding: 0 .2rem;
  margin-right: 3px; text-align: center; border: 1px solid var(--line); border-radius: 5px; font-size: .85rem; }
.mark.passed { background: var(--good); border-color: var(--good); color: var(--on); }
.mark.failing { border-color: var(--some); color: var(--some); }
.mark.stuck { background: var(--bad); border-color: var(--bad); color: var(--on); font-weight: 700; }
.mark.open { color: var(--soft); }
.legend { margin-top: .8rem; font-size: .9rem; }
@media (max-width: 62rem) { body { padding: 1rem 1rem 3rem; } section { padding: .8rem .9rem; }
  th, td { padding-right: .5rem; } td.where { min-width: 9rem; }
  tbody .mark { min-width: 1.3rem; height: 1.3rem; line-height: 1.2rem; margin-right: 2px; font-size: .78rem; } }
"""
# Every few seconds the live part is fetched again; what the reader has unfolded stays unfolded.
_SCRIPT = """
const live = document.getElementById("live"), lost = document.getElementById("lost");
let shown = "";
function dress() {
  for (const time of live.querySelectorAll("time")) time.textContent = new Date(time.dateTime).toLocaleTimeString();
  const busy = live.querySelector("[data-busy]") !== null;
  for (const button of document.querySelectorAll("button")) button.disabled = busy;
  const stop = document.getElementById("stop");
  stop.hidden = !busy;
  stop.querySelector("button").disabled = live.querySelector("[data-stopping]") !== null;
  for (const pre of live.querySelectorAll("details[open] pre")) pre.scrollTop = pre.scrollHeight;
  return busy;
}
async function refresh() {
  try {
    const token = document.querySelector("[name=_xsrf]").value;  // JupyterHub asks scripts for it when they read, too
    const reply = await fetch(live.dataset.from, {headers: {"X-XSRFToken": token}, redirect: "error"});
    if (!reply.ok) throw new Error(reply.status);
    const text = await reply.text();
    if (text !== shown) {
      const turned = new Set();
      for (const one of live.querySelectorAll("details"))
        if (one.open !== one.hasAttribute("data-open")) turned.add(one.id);
      live.innerHTML = shown = text;
      for (const one of live.querySelectorAll("details")) if (turned.has(one.id)) one.open = !one.open;
    }
    lost.hidden = true;
  } catch { lost.hidden = false; }
  setTimeout(refresh, dress() ? 1500 : 8000);
}
for (const form of document.querySelectorAll("form[data-confirm]"))
  form.addEventListener("submit", event => { if (!confirm(form.dataset.confirm)) event.preventDefault(); });
setTimeout(refresh, dress() ? 1500 : 8000);
"""


def page(room: State, form: Form, hub_url: str, nonce: str) -> str:
    """The whole page. hub_url: JupyterHub's, or "" without one."""
    lessons = "".join(f'<option value="{escape(name)}">{escape(titled(name))}</option>' for name in room.lessons)
    base, hub = escape(form.base_url), escape(hub_url)
    steps = "".join(_step(name, step, form, lessons) for name, step in form.steps.items())
    people = f' · <a href="{hub}hub/admin">Servers</a>' if hub else ""
    busy = bool(room.runs) and room.runs[0].status is None
    stop = (
        f'<form method="post" action="{base}room/stop" id="stop" class="stop"{"" if busy else " hidden"}>{form.xsrf}'
        '<button title="as Ctrl-C: what is finished is kept">Stop</button></form>'
    )
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>The room</title><style>{_STYLE}</style></head><body class="room-desk">
<header><h1>The room</h1>
<span class="soft"><a href="{base}lab">JupyterLab</a> · <a href="{base}formgrader">Formgrader</a>{people}</span>
<span class="call" id="lost" hidden>This page cannot reach its server. It tries again.</span></header>
<main><section><div class="steps">{steps}{stop}</div>{_fill(form, lessons)}</section>
<div id="live" data-from="{base}room/live">{live(room, form.base_url)}</div></main>
<script nonce="{nonce}">{_SCRIPT}</script></body></html>"""


def _step(name: str, step: Step, form: Form, lessons: str) -> str:
    asked = f'<select name="lesson" aria-label="Lesson"><option value="">all lessons</option>{lessons}</select>'
    commands = " && ".join(f"autograder {' '.join(command)}" for command in step.commands)
    confirm = f' data-confirm="{escape(step.confirm)}"' if step.confirm else ""
    return (
        f'<form method="post" action="{escape(form.base_url)}room/run"{confirm}>{form.xsrf}'
        f'<input type="hidden" name="step" value="{name}">'
        f'<button title="{escape(commands)}">{escape(step.label)}</button>{asked if step.asks else ""}</form>'
    )


def _fill(form: Form, lessons: str) -> str:
    """The form that takes an LMS's CSV, for `export --for`."""
    systems = "".join(f'<option value="{name}">{escape(called)}</option>' for name, called in form.systems.items())
    return f"""<details class="fill"><summary>Grades for an LMS: fill in the CSV that it exported</summary>
<form method="post" enctype="multipart/form-data" action="{escape(form.base_url)}room/fill">{form.xsrf}
<label for="system">LMS</label><select name="system" id="system">{systems}</select>
<label for="table">Its CSV</label><input type="file" name="table" id="table" accept=".csv,.xls,.txt" required>
<label for="lesson">Lesson</label><select name="lesson" id="lesson">
<option value="">each column that is named like a lesson</option>{lessons}</select>
<label for="column">Title of its column</label><input name="column" id="column" placeholder="only for one lesson">
<label for="scale">Turn scores into the points of the LMS</label>
<input type="checkbox" name="scale" id="scale" value="1">
<p class="soft">The file keeps its columns. A grade that is not sure is not written, and is said below. For Moodle and
Gradescope, whose file is about one assignment, choose the lesson.</p>
<button title="autograder export --for … --into …">Fill in</button></form></details>"""


def live(room: State, base_url: str = "/") -> str:
    """The part that changes: the runs, and the table of attendees and lessons."""
    runs = "".join(_run(run, base_url, newest=run is room.runs[0]) for run in room.runs)
    happened = f'<section aria-live="polite"><h2>What ran</h2>{runs}</section>' if runs else ""
    return happened + _people(room)


def _run(run: Run, base_url: str, newest: bool) -> str:
    state, words = _how(run)
    seconds = ((run.ended or datetime.now(UTC)) - run.began).total_seconds()
    took = f"{seconds:.1f} s" if seconds < 60 else f"{seconds // 60:.0f} min {seconds % 60:.0f} s"
    iso, shown = run.began.isoformat(), " open data-open" if newest else ""
    busy, printed = " data-busy" if run.status is None else "", escape("\n".join(run.lines))
    busy += " data-stopping" if busy and run.stopping else ""
    links = "".join(
        f'<a href="{escape(base_url)}room/files/{run.id}/{path.name}" download>{path.name}</a>' for path in run.files
    )
    files = f'<p class="files"><span class="soft">Download:</span> {links}</p>' if links else ""
    return (
        f'<details class="run {state}" id="run-{run.id}"{shown}{busy}>'
        f'<summary><b>{escape(run.label)}: {words}</b> <span class="soft">at <time datetime="{iso}">'
        f"{run.began:%H:%M:%S} UTC</time>, {took}</span></summary>{files}<pre>{printed}</pre></details>"
    )


def _how(run: Run) -> tuple[str, str]:
    """How a run is: a colour, and words. Exit status 1 is what the commands say where a person must look."""
    if run.stopped:
        return "some", "stopped, what was finished is kept"
    if run.status is None:
        return "", "stopping" if run.stopping else "running"
    known = {0: ("good", "done"), 1: ("some", "done, but something waits for you")}
    return known.get(run.status, ("bad", f"failed, exit status {run.status}"))


def _people(room: State) -> str:
    titles = {name: f"{_number(name)}<small>{escape(titled(name, short=True))}</small>" for name in room.lessons}
    heads = "".join(f'<th scope="col">{title}</th>' for title in titles.values())
    help_with = sum(bool(one["stuck"]) for one in room.sharing)
    needed = f' <span class="call">{_counted(help_with, "needs", "need")} help.</span>' if help_with else ""
    rows = "".join(_row(one, room.lessons) for one in room.sharing)
    sharing, hidden = _counted(len(room.sharing), "shares", "share"), _counted(room.hidden, "does", "do")
    return (
        f'<section><h2>Who is where</h2><p class="soft">{sharing} their progress, {hidden} not.{needed}</p>'
        f'<div class="wide"><table><thead><tr><th scope="col">Attendee</th><th scope="col">Now</th>{heads}</tr></thead>'
        f'<tbody>{rows}</tbody><tbody class="class">{_class(room)}</tbody></table></div>{_LEGEND}</section>'
    )


def _counted(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"


_LEGEND = """<p class="legend soft"><span class="mark passed">✓</span> passed
<span class="mark failing">2</span> so many checks failed <span class="mark stuck">5</span> many: needs help
<span class="mark open">…</span> begun <span class="mark open">·</span> not begun. Attendees choose whether they share
this, and see what it is: <code>workshop share-progress</code>.</p>"""


def _row(one: dict, lessons: Mapping[str, Sequence[str]]) -> str:
    cells = "".join(
        f'<td class="marks">{"".join(_mark(name, one) for name in exercises)}</td>' for exercises in lessons.values()
    )
    where = f"{escape(one['here'])}<br><small>{escape(one['ago'])}</small>" if one["here"] else "–"
    if one["stuck"]:
        calls = ", ".join(f"{name} failed {one['exercises'][name]['failed']} times" for name in one["stuck"])
        where += f'<br><span class="call">Needs help: {escape(calls)}</span>'
    kind = ' class="help"' if one["stuck"] else ""
    name = escape(visible(one["name"], 40))
    return f'<tr{kind}><th scope="row">{name}</th><td class="where">{where}</td>{cells}</tr>'


def _mark(name: str, one: dict) -> str:
    seen = one["exercises"].get(name)
    if seen is None:
        kind, sign, words = "open", "·", "not begun"
    elif seen["passed"]:
        kind, sign, words = "passed", "✓", "passed"
    elif not seen["failed"]:
        kind, sign, words = "open", "…", "begun"
    else:
        kind, sign = "stuck" if name in one["stuck"] else "failing", seen["failed"]
        words = f"{sign} failed check{'' if sign == 1 else 's'}"
    said = escape(f"{name}: {words}")
    return f'<span class="mark {kind}" role="img" title="{said}" aria-label="{said}">{sign}</span>'


def _class(room: State) -> str:
    """A line for each step of the exchange. A number that is behind the step before it stands out."""
    released = "".join(f"<td>{'yes' if one.released else '–'}</td>" for one in room.lessons_are.values())
    lines = [f'<tr><th scope="row" colspan="2">Released</th>{released}</tr>']
    steps = ("handed_in", "collected", "graded", "feedback")
    for before, step in zip(("handed_in", *steps), steps):
        counts = [(getattr(one, before), getattr(one, step)) for one in room.lessons_are.values()]
        cells = "".join(
            f"<td{' class=behind' if now < due else ''}>{now or (0 if due else '–')}</td>" for due, now in counts
        )
        words = {"handed_in": "Handed in", "feedback": "Feedback written"}.get(step, step.capitalize())
        lines.append(f'<tr><th scope="row" colspan="2">{words}</th>{cells}</tr>')
    return "".join(lines)


def titled(lesson: str, short: bool = False) -> str:
    """01_vector_add -> "1 Vector add", or "Vector add"."""
    words = " ".join(word.upper() if word in ("jax", "amd") else word for word in lesson.split("_")[1:])
    words = words[:1].upper() + words[1:]
    return words if short else f"{_number(lesson)} {words}"


def _number(lesson: str) -> str:
    return escape(lesson.partition("_")[0].lstrip("0") or "0")

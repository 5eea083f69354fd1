"""The grammar of answer cells in solutions/*.py: each holds the solution, and the starter that learners get.

    mask = offsets < n  # ② starter: offsets >= 0         beside an assignment, the value; for any other
                                                          statement, the whole statement
    ### BEGIN SOLUTION / ### STARTER / ### END SOLUTION   a block: the commented lines after STARTER
"""

import ast
import io
import re
import tokenize


class MalformedAnswer(ValueError):
    """An answer cell does not follow the grammar; the message says where and how."""


def split_answer(source: str) -> tuple[str, str]:
    """(solution, starter) of an answer cell's source, both without markers.

    Raises MalformedAnswer when a block is malformed, no starter is written, or the starter is not Python.
    """
    comments = _starter_comments(source)
    solution, starter = [], []
    block = None  # None outside a block, else the list that the lines of the block's current part go to
    for number, line in enumerate(source.splitlines(), 1):
        directive = re.fullmatch(r"\s*### (BEGIN SOLUTION|STARTER|END SOLUTION)\s*", line)
        if directive:
            block = _enter(directive[1], block, solution, starter, number)
        elif block is starter:
            starter.append(_uncomment(line, number))
        elif block is solution:
            solution.append(line)
        elif number in comments:
            given, released = _starter_line(line, comments[number], number)
            solution.append(given)
            starter.append(released)
        else:
            solution.append(line)
            starter.append(line)
    if block is not None:
        raise MalformedAnswer("### BEGIN SOLUTION without ### END SOLUTION")
    if solution == starter:
        raise MalformedAnswer("no starter: write `# starter: …` beside a line, or a ### STARTER part in a block")
    texts = "\n".join(solution), "\n".join(starter)
    for name, text in zip(("solution", "starter"), texts, strict=True):
        try:
            ast.parse(text)
        except SyntaxError as error:
            line = (error.text or "").strip()
            raise MalformedAnswer(f"the {name} is not Python: {error.msg}: {line!r}") from None
    return texts


def _enter(directive: str, block: list | None, solution: list, starter: list, number: int) -> list | None:
    """The part of a block that begins at this directive; None after its end."""
    expected, part = {
        "BEGIN SOLUTION": (None, solution),
        "STARTER": (solution, starter),
        "END SOLUTION": (starter, None),
    }[directive]
    if block is not expected:
        raise MalformedAnswer(f"line {number}: ### {directive} out of order; a block is BEGIN, STARTER, END")
    return part


_STARTER_COMMENT = re.compile(r"#\s*(.*?)\s*starter:\s*(.+)")


def _starter_comments(source: str) -> dict[int, tuple[int, str, str]]:
    """line number -> (column of the comment, its mark such as ①, the starter text)."""
    found = {}
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            match = token.type == tokenize.COMMENT and _STARTER_COMMENT.fullmatch(token.string)
            if match:
                found[token.start[0]] = (token.start[1], *match.groups())
    except (tokenize.TokenError, SyntaxError) as error:
        raise MalformedAnswer(f"the answer is not Python: {error}") from None
    return found


def _starter_line(line: str, comment: tuple[int, str, str], number: int) -> tuple[str, str]:
    """The line as the solution has it, and as it is released."""
    column, mark, text = comment
    code = line[:column].rstrip()
    indent = line[: len(line) - len(line.lstrip())]
    try:
        [statement] = ast.parse(code.strip()).body
    except (SyntaxError, ValueError):
        raise MalformedAnswer(f"line {number}: `starter:` stands beside one whole statement on one line") from None
    released = text
    if isinstance(statement, ast.Assign | ast.AugAssign) and _is_expression(text):
        released = f"{code.strip().partition('=')[0]}= {text}"
    given = f"{code}  # {mark}" if mark else code
    return given, f"{indent}{released}  # {f'{mark} ' if mark else ''}your code here"


def _is_expression(text: str) -> bool:
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    return True


def _uncomment(line: str, number: int) -> str:
    match = re.fullmatch(r"(\s*)#(?: (.*))?|\s*", line)
    if not match:
        raise MalformedAnswer(f"line {number}: after ### STARTER every line begins with '# '")
    return f"{match[1]}{match[2]}" if match[2] else ""

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


BLOCK = ("BEGIN SOLUTION", "STARTER", "END SOLUTION")
_DIRECTIVE = re.compile(rf"^[^\S\n]*### ({'|'.join(BLOCK)})[^\S\n]*(?:\n|\Z)", re.M)


def split_answer(source: str) -> tuple[str, str]:
    """(solution, starter) of an answer cell's source, both without markers.

    Raises MalformedAnswer when a block is malformed, no starter is written, or the starter is not Python.
    """
    given = source.splitlines()
    released = list(given)
    for number, comment in _starter_comments(source).items():
        given[number - 1], released[number - 1] = _starter_line(given[number - 1], comment, number)
    texts = _with_parts("\n".join(given), "BEGIN SOLUTION"), _with_parts("\n".join(released), "STARTER")
    if texts[0] == texts[1]:
        raise MalformedAnswer("no starter: write `# starter: …` beside a line, or a ### STARTER part in a block")
    for name, text in zip(("solution", "starter"), texts, strict=True):
        try:
            ast.parse(text)
        except SyntaxError as error:
            line = (error.text or "").strip()
            raise MalformedAnswer(f"the {name} is not Python: {error.msg}: {line!r}") from None
    return texts


def _with_parts(text: str, part: str) -> str:
    """The text without directives, and of each block one part: what follows BEGIN SOLUTION, or STARTER."""
    kept, *rest = _DIRECTIVE.split(text)
    for number, (directive, following) in enumerate(zip(rest[::2], rest[1::2])):
        if directive != BLOCK[number % 3]:
            raise MalformedAnswer(f"### {directive} out of order; a block is BEGIN, STARTER, END")
        if directive in (part, "END SOLUTION"):
            kept += _uncommented(following) if directive == "STARTER" else following
    if len(rest) % 6:
        raise MalformedAnswer("### BEGIN SOLUTION without ### END SOLUTION")
    return kept if text.endswith("\n") else kept.removesuffix("\n")


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


def _uncommented(text: str) -> str:
    for line in text.splitlines():
        if not re.fullmatch(r"\s*(#( .*)?)?", line):
            raise MalformedAnswer(f"after ### STARTER every line begins with '# ': {line!r}")
    return re.sub(r"^(?:(\s*)# |\s*#?$)", r"\1", text, flags=re.M)

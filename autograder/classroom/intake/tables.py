"""CSV files as learning-management systems write them, kept as they are: encoding, columns, quotes, line ends."""

from __future__ import annotations

import codecs
import csv
import io
from dataclasses import dataclass
from pathlib import Path

from ...text import visible
from ..course import CourseError

MAX_TABLE_BYTES = 16 << 20
_MARKS = ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"), (codecs.BOM_UTF8, "utf-8"))


@dataclass
class Table:
    """The lines of a CSV, the header first, and how it was written."""

    lines: list[list[str]]
    delimiter: str
    mark: bytes
    encoding: str
    newline: str
    quoted: bool

    def content(self) -> bytes:
        """The file. A cell that was not changed is what it was."""
        text = io.StringIO()
        quoting = csv.QUOTE_ALL if self.quoted else csv.QUOTE_MINIMAL
        csv.writer(text, delimiter=self.delimiter, lineterminator=self.newline, quoting=quoting).writerows(self.lines)
        return self.mark + text.getvalue().encode(self.encoding, "replace")


def read_table(path: Path, what: str) -> Table:
    """The CSV in a file; `what` names it in messages. Raises CourseError."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_TABLE_BYTES + 1)
    except OSError as error:
        raise CourseError(f"{path}: {what} cannot be read: {error.strerror}") from None
    if len(content) > MAX_TABLE_BYTES:
        raise CourseError(f"{path}: {what} has more than {MAX_TABLE_BYTES >> 20} MB")
    mark, encoding, text = _decoded(content)
    first = text.lstrip().partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    try:
        lines = list(csv.reader(io.StringIO(text), delimiter=delimiter))
    except csv.Error as error:
        raise CourseError(f"{path}: {what} is not CSV: {visible(error, 100)}") from None
    header = first.rstrip("\r")
    quoted = bool(lines) and header.startswith('"') and header.count('"') >= 2 * len(lines[0])
    return Table(lines, delimiter, mark, encoding, "\r\n" if "\r\n" in text else "\n", quoted)


def _decoded(content: bytes) -> tuple[bytes, str, str]:
    """(mark, encoding, text) of a CSV: Blackboard writes UTF-16, Excel the code page of its country."""
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return mark, encoding, content[len(mark) :].decode(encoding, "replace")
    try:
        return b"", "utf-8", content.decode("utf-8")
    except UnicodeDecodeError:
        return b"", "cp1252", content.decode("cp1252", "replace")

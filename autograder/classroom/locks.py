"""One grader at a time on a gradebook, and temporary folders that a killed grader cannot leave for ever."""

import contextlib
import fcntl
import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError

from .course import Course

PREFIX = "autograder-"
WAITING = "another grading of this gradebook is at work; waiting for it to end"


@contextlib.contextmanager
def one_grader(course: Course, say: Callable[[str], None]) -> Iterator[None]:
    """Wait until no other process grades this course, or into this database; a killed one counts no longer.

    A database of SQLite or PostgreSQL is locked for all course directories that use it, others only for this one.
    """
    with contextlib.ExitStack() as held:
        held.enter_context(_file_lock(course.root / ".grading.lock", say))
        url = make_url("sqlite://")
        with contextlib.suppress(SQLAlchemyError, ValueError):  # what is wrong with it is said when it is opened
            url = make_url(course.db_url)
        if url.get_backend_name() == "postgresql":
            held.enter_context(_postgresql_lock(course.db_url, say))
        elif url.get_backend_name() == "sqlite" and url.database:
            database = Path(url.database)
            if database.parent.is_dir() and database.parent.resolve() != course.root:
                held.enter_context(_file_lock(database.with_name(f".{database.name}.lock"), say))
        yield


@contextlib.contextmanager
def _file_lock(path: Path, say: Callable[[str], None]) -> Iterator[None]:
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(WAITING)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _postgresql_lock(url: str, say: Callable[[str], None]) -> Iterator[None]:
    """An advisory lock of the server's, for this database. It ends with the connection."""
    key = int.from_bytes(hashlib.sha256(b"autograder grade").digest()[:7], "big")
    try:
        engine = create_engine(url)
        connection = engine.connect()
    except (SQLAlchemyError, ImportError):
        yield
        return
    try:
        if not connection.execute(text("SELECT pg_try_advisory_lock(:key)"), {"key": key}).scalar():
            say(WAITING)
            connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": key})
        connection.commit()
        yield
    finally:
        connection.close()
        engine.dispose()


@contextlib.contextmanager
def scratch_folder() -> Iterator[None]:
    """Keep all temporary files of this process in one folder, and remove those of graders that were killed."""
    parent = Path(tempfile.gettempdir())
    for left in parent.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):  # another user's, or its grader is alive: only a living one holds the lock
            if not left.is_symlink() and (left / ".lock").is_file():
                with (left / ".lock").open("r") as lock:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(left, ignore_errors=True)
    before = tempfile.tempdir
    folder = tempfile.mkdtemp(prefix=PREFIX, dir=parent)
    with (Path(folder) / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        tempfile.tempdir = folder
        try:
            yield
        finally:
            tempfile.tempdir = before
            shutil.rmtree(folder, ignore_errors=True)

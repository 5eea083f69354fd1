"""nbgrader for an instructor of a room: its course directory, its exchange, and the judge's verdicts."""

import os

from autograder.classroom.course import configure

ROOM = os.environ.get("ROOM", "/srv/workshop")

c = get_config()  # noqa: F821
configure(c)
c.CourseDirectory.root = os.path.join(ROOM, "course")
c.Exchange.root = os.path.join(ROOM, "exchange")
c.ExchangeFactory.collect = "autograder.classroom.room.exchange.CollectByOwner"

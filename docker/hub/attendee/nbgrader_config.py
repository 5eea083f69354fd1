"""nbgrader for an attendee of a room: which course, and where its exchange is."""

import os

c = get_config()  # noqa: F821
c.CourseDirectory.course_id = "triton-workshop"
c.Exchange.root = os.path.join(os.environ.get("ROOM", "/srv/workshop"), "exchange")

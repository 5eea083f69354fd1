"""Plain nbgrader commands and formgrader on this course directory.

Verdicts come from the judge; no cell of a student is executed.
"""

from autograder.classroom.course import configure

c = get_config()  # noqa: F821
configure(c)

# Another database than gradebook.db beside this file:
# c.CourseDirectory.db_url = "postgresql+psycopg://user:password@host/gradebook"

"""The instructor's server shows the page of the room, at /room."""

c = get_config()  # noqa: F821
c.ServerApp.jpserver_extensions = {"autograder.classroom.desk": True}

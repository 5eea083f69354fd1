"""What an attendee's server does not answer: the instructor's pages, and a check that runs visible cells only."""

c = get_config()  # noqa: F821
c.ServerApp.jpserver_extensions = {
    "nbgrader.server_extensions.formgrader": False,
    "nbgrader.server_extensions.validate_assignment": False,
    "nbgrader.server_extensions.course_list": False,
}

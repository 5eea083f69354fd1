"""The fixtures of a room."""

from opened import room  # noqa: F401

"""HTML from the templates in this folder."""

from pathlib import Path

from workshop.pages import templates_in

template = templates_in(Path(__file__).parent)

"""HTML from the templates in this folder."""

from pathlib import Path

from ...text import templates_in

template = templates_in(Path(__file__).parent)

"""workshop comes first: it turns the interpreter on where there is no GPU, before a test imports triton."""

import workshop  # noqa: F401

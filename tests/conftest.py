"""workshop comes first: it turns the interpreter on where there is no GPU, before a test imports triton."""

import pytest
from chromium import browser, screenshots  # noqa: F401

import workshop  # noqa: F401


@pytest.fixture(scope="session")
def judge():
    """One judge, with its box, for all the tests of a worker."""
    from autograder.box import lockdown
    from autograder.judge import Judge

    with Judge(confine=not lockdown.missing()) as judge:
        yield judge

"""A judge of straw for a process of its own. It imports little: each process that starts imports it again."""

import os

from autograder.judge.jax import JaxMissing
from autograder.verdict import Verdict


class Sees:
    """Says which card its process sees, and dies or fails when an answer says so."""

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def judge(self, exercise: str, source: str, seed: int | None = None) -> Verdict:
        if source == "no jax":
            raise JaxMissing("install jax")
        if "die" in source:
            os._exit(3)
        note = f"{os.environ.get('CUDA_VISIBLE_DEVICES')} {os.getpid()}"
        return Verdict(exercise, True, 5, 5, "interpreter", note=note)

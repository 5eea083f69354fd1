"""The process that compiles for xray: it imports Triton once, without the interpreter, and a fork answers each request.

Triton reads all of its own library for the name of a cached kernel: half a second in each new process.
"""

import atexit
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

LIMIT = 120  # seconds that one compilation may take


class CompilerProcess:
    """Started with the first request; ends with this process, or when nobody has asked for some minutes."""

    def __init__(self):
        self._lock = threading.Lock()
        self._process: subprocess.Popen | None = None
        atexit.register(self._end)
        os.register_at_fork(after_in_child=self._leave)

    def ask(self, request: dict) -> list[dict]:
        """One answer per target, see xray_child. Raises RuntimeError when there is none: too late, or a crash."""
        with self._lock:
            try:
                # one that ended by itself, just now, has not seen the request
                reply = self._reply(request) or self._reply(request) or {"ended": "without a word"}
            except BaseException:  # Ctrl-C, too: the next request must not get this one's answer
                self._end()
                raise
        if "ended" in reply:
            raise RuntimeError(f"the compiler's process ended: {reply['ended']}")
        return reply["answers"]

    def _reply(self, request: dict) -> dict | None:
        environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
        process, late = self._running(environment), threading.Event()

        def stop() -> None:
            late.set()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

        timer = threading.Timer(LIMIT, stop)
        timer.start()
        try:
            process.stdin.write(json.dumps({**request, "environment": environment}) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            timer.cancel()
        if late.is_set():
            raise RuntimeError(f"the compiler did not finish within {LIMIT} s; try a smaller block")
        if not line:
            self._end()
            return None
        return json.loads(line)

    def _running(self, environment: dict[str, str]) -> subprocess.Popen:
        if self._process and self._process.poll() is not None:
            self._end()
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("xray_child.py"))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=environment,
                start_new_session=True,  # Ctrl-C in a terminal is for the one who asks
            )
        return self._process

    def _end(self) -> None:
        if self._process:
            for pipe in (self._process.stdin, self._process.stdout):
                with contextlib.suppress(BrokenPipeError):  # a request that nobody has read
                    pipe.close()
            if self._process.poll() is None:
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def _leave(self) -> None:
        """A fork of this process must not talk to its parent's compiler."""
        self._lock, self._process = threading.Lock(), None

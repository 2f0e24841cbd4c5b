"""The runner's side of a worker process, with a limit on how long it may take."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any, Optional

NOT_INSTALLED = "not installed"
"""So begins the reason of who is absent for that, with the command that would help at the end."""

DISTUTILS = "SETUPTOOLS_USE_DISTUTILS"
HERE = Path(__file__).resolve().parent
PREDECESSOR = HERE.parent / ".benchmarks" / "zlmdb26" / "bin" / "python"


class Absent(Exception):
    """The contender does not take part; the text says why."""


class Skipped(Absent):
    """It cannot do what it was asked, and goes on with the rest."""


def predecessor() -> str:
    """The interpreter that has zlmdb 26. Raises `Absent`, saying how to get one."""
    given = os.environ.get("ZLMDB_INTEROP_PYTHON") or (str(PREDECESSOR) if PREDECESSOR.exists() else "")
    if not given:
        raise Absent(
            f"{NOT_INSTALLED}: python3.11 -m venv .benchmarks/zlmdb26 && "
            ".benchmarks/zlmdb26/bin/pip install zlmdb==26.10.1"
        )
    return given


class Remote:
    """A worker process. Every call is a command and its answer; *limit* seconds, then it is killed."""

    def __init__(self, python: Optional[str] = None) -> None:
        own = python is None
        environment = dict(os.environ)
        if not own:
            environment.pop("PYTHONPATH", None)
        # Compiled modules are kept, as installing keeps those of others: new processes import inside the clock.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        environment.update(PYTHONHASHSEED="0", HF_HUB_OFFLINE="1", TQDM_DISABLE="1")
        # py-lmdb imports distutils on PyPy, and with setuptools' own a process takes twice as long to start.
        environment[DISTUTILS] = "stdlib"
        # A file and not a pipe, which would have to be read; it has no name, so a runner that is killed leaves none.
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self.process = subprocess.Popen(
            [python or sys.executable, str(HERE / "worker.py")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, env=environment,
        )  # fmt: skip

    def send(self, **command: Any) -> None:
        stdin: Any = self.process.stdin
        try:
            stdin.write(json.dumps(command).encode() + b"\n")
            stdin.flush()
        except BrokenPipeError:
            pass  # the answer will say so

    def receive(self, limit: float) -> dict[str, Any]:
        """The answer. Raises `Absent` when there is none in *limit* seconds, or it says that it cannot or failed."""
        stdout: Any = self.process.stdout
        ready, _, _ = select.select([stdout], [], [], max(0.0, limit))
        if not ready:
            self.kill()
            raise Absent("time limit")
        line = stdout.readline()
        if not line:
            self.kill()
            raise Absent(f"the process ended with code {self.process.returncode}: {self.last_words()}")
        reply: dict[str, Any] = json.loads(line)
        if "absent" in reply:
            raise Skipped(reply["absent"])
        if "failed" in reply:
            raise Absent(f"failed: {reply['failed']}")
        return reply

    def call(self, limit: float, **command: Any) -> dict[str, Any]:
        self.send(**command)
        return self.receive(limit)

    def last_words(self) -> str:
        self.errors.seek(0)
        return self.errors.read().decode("utf-8", "replace").strip()[-200:]

    def kill(self) -> None:
        """End the process, whatever it is doing."""
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        """End it. What it has to keep is in its files since it answered; to tear an interpreter down takes time."""
        self.kill()
        streams: tuple[Any, ...] = (self.process.stdin, self.process.stdout, self.errors)
        for stream in streams:
            with suppress(OSError):  # what it was sent and did not read is left
                stream.close()


class Deadline:
    """A number of seconds, from now."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.end = monotonic() + seconds

    @property
    def left(self) -> float:
        return self.end - monotonic()

"""pytest on PyPy, once more where PyPy's own compiler failed: ``python -m tests.pypytests [arguments of pytest]``.

Rarely the compiler of PyPy 7.3.11 ends the process by an assertion of its own, wherever it is, and never twice at the
same place: https://github.com/pypy/pypy/issues/5293. Its message tells it from all else that ends a process, such as an
assertion of LMDB or a damaged heap, after which nothing is run again.
"""

from __future__ import annotations

import subprocess
import sys

FAILED = b"Fatal RPython error: AssertionError"


def run(arguments: list[str]) -> tuple[int, bool]:
    """The exit status of pytest with the *arguments*, and whether the compiler failed."""
    # What the process itself writes must not be captured: it would be lost with the process.
    command = [sys.executable, "-m", "pytest", "--capture=sys", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0)
    failed, last = False, b""
    with process:
        while process.stdout is not None and (written := process.stdout.read(1 << 16)):
            sys.stdout.buffer.write(written)
            sys.stdout.buffer.flush()
            last = last[-len(FAILED) :] + written
            failed = failed or FAILED in last
    return process.returncode, failed


def main(arguments: list[str]) -> int:
    status, failed = run(arguments)
    if status < 0 and failed:
        sys.stdout.write("\nThe compiler of PyPy failed by an assertion of its own: the tests run once more.\n")
        status, _ = run(arguments)
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

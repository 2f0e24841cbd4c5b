"""In processes that tests start: what would pass unseen there, such as an exception of a thread, ends the process.

Python imports this module when it starts, since `tests/conftest.py` puts its directory first into PYTHONPATH. pytest
itself watches the threads of its own process only.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

STATUS = 70
"""The exit status of such a process."""


def install() -> None:
    """Let exceptions that nobody can catch, of threads, finalizers and callbacks, end this process."""
    threading.excepthook = _thread
    sys.unraisablehook = _unraisable


def _thread(args: Any) -> None:
    if args.exc_type is not SystemExit:
        import traceback  # late: each process starts with this module

        traceback.print_exception(args.exc_type, args.exc_value, args.exc_traceback)
        _end()


def _unraisable(args: Any) -> None:
    sys.__unraisablehook__(args)
    _end()


def _end() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(STATUS)


def compile_less(times: int) -> None:
    """On PyPy: machine code is made of what runs so many times as often as by default."""
    if sys.implementation.name == "pypy":
        import pypyjit

        pypyjit.set_param(f"threshold={times * 1000},function_threshold={times * 1550},trace_eagerness={times * 200}")


if __name__ == "sitecustomize":
    install()
    compile_less(10)  # most such processes import, do one thing and end, before machine code pays

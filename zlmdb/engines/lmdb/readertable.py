"""LMDB's table of the readers of all processes."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Optional

import lmdb


def without_remains(opens: Callable[[], lmdb.Environment]) -> lmdb.Environment:
    """What *opens* opens, without slots of a killed process that had the id of this one, as in a container.

    LMDB takes them for those of this process: the file would grow for as long as that lives. It frees them as it closes
    an environment that has had a reader.
    """
    env = opens()
    if os.getpid() in [pid for pid, _ in slots(env)]:
        try:
            env.begin().abort()
        except lmdb.Error:  # that process lives, in another PID namespace
            return env
        env.close()
        env = opens()
    return env


def slots(env: lmdb.Environment) -> list[tuple[int, Optional[int]]]:
    """The process of each slot in use, and the snapshot that it reads; None if it reads nothing now."""
    found: list[tuple[int, Optional[int]]] = []
    for line in env.readers().splitlines()[1:]:
        if line.strip():
            pid, _, snapshot = line.split()
            found.append((int(pid), None if snapshot == "-" else int(snapshot)))
    return found

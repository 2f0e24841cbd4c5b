"""LMDB's table of the readers of all processes."""

from __future__ import annotations

from typing import Optional

import lmdb


def slots(env: lmdb.Environment) -> list[tuple[int, Optional[int]]]:
    """The process of each slot in use, and the snapshot that it reads; None if it reads nothing now."""
    found: list[tuple[int, Optional[int]]] = []
    for line in env.readers().splitlines()[1:]:
        if line.strip():
            pid, _, snapshot = line.split()
            found.append((int(pid), None if snapshot == "-" else int(snapshot)))
    return found

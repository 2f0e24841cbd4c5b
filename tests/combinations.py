"""The pairs of an engine and a layout that tests run on."""

from __future__ import annotations

import pytest

# Each engine of ours and each layout on every interpreter; what else they have in common is tried on one.
COMBINATIONS = [
    "lmdb-tables",
    "memory-classic",
    *(pytest.param(name, marks=pytest.mark.once) for name in ("lmdb-classic", "memory-tables", "toy-tables")),
]

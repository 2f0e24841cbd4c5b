"""The pairs of an engine and a layout that tests run on."""

from __future__ import annotations

from typing import Any

import pytest


def _once(*pairs: str) -> list[Any]:
    return [pytest.param(pair, marks=pytest.mark.once) for pair in pairs]


# What all have in common is tried with one on every interpreter, and with the others on one.
COMBINATIONS = ["lmdb-tables", *_once("memory-classic", "lmdb-classic", "memory-tables", "toy-tables")]

# Each engine of ours and each layout on every interpreter: for tests of what an engine does by itself, in Python.
EVERYWHERE = ["lmdb-tables", "memory-classic", *_once("lmdb-classic", "memory-tables", "toy-tables")]

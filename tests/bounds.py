"""Lower bounds for random searches, so that small tables meet every way in which a query may be answered."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any, Optional

import zlmdb.query
import zlmdb.tables
from zlmdb import codegen
from zlmdb.query.terms import CAP

BOUNDS: dict[str, list[int]] = {
    "APART": [1, 3], "BLOCK": [1, 2, 7], "CAP": [3, 10, 50], "CHEAPER": [1], "CHUNK": [1, 2, 7], "FEW": [1, 2, 5],
    "FIRST_BLOCK": [1, 3], "FOLLOWED": [0, 1, 4], "KEPT": [1, 2], "KEYS": [2, 10], "LEAST": [1, 3], "MOST": [2, 20],
    "RECORDS": [1, 4], "SHARE": [1, 2], "SMALL": [0, 1, 3], "WHOLE": [1, 3], "_BLOCK": [1, 3], "_CHUNK": [1, 5],
    "_FACTOR": [2], "_FEW": [1], "_FEW_EACH": [1, 3], "_FIRST_BLOCK": [1, 2], "_FIRST_STEP": [1, 3], "_KEPT": [1, 3],
    "_MANY": [1, 4], "_MORE": [2], "_MOST": [1, 3], "_PAGE": [1, 3], "_SHORT": [1, 4], "_SURELY": [1],
}  # fmt: skip
"""Bounds of the planner and of cached plans by their names, and what they may be instead."""

OFTEN = ("LEAST", "FOLLOWED", "CAP", "BLOCK")


@contextmanager
def lowered(chance: Random, share: float) -> Iterator[None]:
    """Some bounds in the modules that read and write records are lower."""
    for package in (zlmdb.query, zlmdb.tables):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(found.name)
    before: list[tuple[Any, str, Any]] = [(codegen, "PATIENCE", codegen.PATIENCE)]
    chosen: dict[tuple[str, int], Optional[int]] = {}
    try:
        if chance.random() < 0.5:
            codegen.PATIENCE = 0
        for name, module in sorted(sys.modules.items()):
            for bound, values in BOUNDS.items() if name.startswith(("zlmdb.query.", "zlmdb.tables.")) else ():
                value = vars(module).get(bound)
                if type(value) is not int or value == sys.maxsize:
                    continue
                if (bound, value) not in chosen:  # modules import some of them from each other: they stay the same
                    more = 2 if bound in OFTEN else 1
                    chosen[bound, value] = chance.choice(values) if chance.random() < share * more else None
                lower = chosen[bound, value]
                if bound == "FEW" and (cap := chosen.get(("CAP", CAP))) is not None:  # which it never exceeds
                    lower = min(cap, value if lower is None else lower)
                if lower is not None:
                    before.append((module, bound, value))
                    setattr(module, bound, lower)
        yield
    finally:
        for one in before:
            setattr(*one)

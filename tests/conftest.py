"""What all tests share: databases of every engine and layout, how long Hypothesis searches, what pytest ignores."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable

import pytest
from hypothesis import HealthCheck, settings

import zlmdb

# Whole programs and type-checker samples: tests run them in processes of their own, pytest must not import them.
collect_ignore_glob = ["programs/*", "typing/*"]

# No deadline and no health check of speed: PyPy is slow until it is warm, and machines of a CI are shared.
_patient = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "print_blob": True}
settings.register_profile("ci", max_examples=50, stateful_step_count=30, derandomize=True, **_patient)
settings.register_profile("thorough", max_examples=5000, stateful_step_count=100, **_patient)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

COMBOS = ("lmdb-tables", "lmdb-classic", "memory-tables", "memory-classic")


@pytest.fixture(params=COMBOS)
def combo(request: pytest.FixtureRequest) -> str:
    """Each combination of engine and layout: ``"lmdb-tables"``, ..."""
    name: str = request.param
    return name


@pytest.fixture
def make_db(combo: str, tmp_path: Path) -> Iterator[Callable[..., zlmdb.Database[Any]]]:
    """Opens a database of the combination: ``make_db(schema, **options)``.

    With LMDB it is the same file in every call, so that a database closed and made again is reopened.
    """
    engine, layout = combo.split("-")
    opened: list[zlmdb.Database[Any]] = []

    def make(schema: type[zlmdb.Schema], **options: Any) -> zlmdb.Database[Any]:
        options = {"layout": layout, "durability": "none", **options}
        db = zlmdb.open(str(tmp_path / "db") if engine == "lmdb" else None, schema, **options)
        opened.append(db)
        return db

    yield make
    with suppress(zlmdb.DatabaseInUse):  # a test that failed inside a transaction: its own error is the one to see
        for db in opened:
            db.close()


@pytest.fixture
def check_indexes() -> Callable[..., None]:
    """Compares the entries of all indexes of a table with those computed anew from its records."""

    def check(table: Any) -> None:
        for storage, handle in table.indexes:
            place = storage.storage
            expected = {}
            for key, value in table.items():
                primary = table.storage.key.encode(key)
                entry = storage.entry(value, primary, stored=True)
                if entry is not None:
                    assert entry not in expected, f"two records under one entry of {place.label}"
                    expected[entry] = storage.owned(key, primary)
            cursor = table.cursor(handle)
            rows = cursor.iternext() if cursor.set_range(place.lower or b"\0") else ()
            actual = {bytes(key): bytes(data) for key, data in rows if bytes(key) < place.upper}
            assert actual == expected, place.label

    return check

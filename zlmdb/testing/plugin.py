"""The fixtures that pytest finds in every project where zlmdb is installed; ``-p no:zlmdb`` turns them off."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from ..database.database import Database
from .faults import Faults, inject
from .openers import Opener, opener


@pytest.fixture
def zlmdb_memory() -> Iterator[Opener]:
    """Opens databases in memory: ``db = zlmdb_memory(Store)``. They are closed after the test."""
    with opener(None) as opened:
        yield opened


@pytest.fixture
def zlmdb_file(tmp_path: Path) -> Iterator[Opener]:
    """Opens the database in the directory ``tmp_path / "zlmdb"``: ``db = zlmdb_file(Store)``.

    Each call opens the same file, so a test can close and reopen it. Commits are not flushed to the disk, unless
    *durability* is given.
    """
    with opener(tmp_path / "zlmdb") as opened:
        yield opened


@pytest.fixture
def zlmdb_faults() -> Iterator[Callable[[Database[Any]], Faults]]:
    """Lets a database fail on request: ``faults = zlmdb_faults(db)``, then ``faults.disk_full()``.

    The failures end with the test.
    """
    with ExitStack() as ending:

        def faults_of(db: Database[Any]) -> Faults:
            return ending.enter_context(inject(db))

        yield faults_of

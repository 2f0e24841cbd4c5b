"""`Database.scratch` beside other programs that make or delete the same files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import zlmdb
from zlmdb.operations import deletion

pytestmark = pytest.mark.twice  # what engines and tables do does not depend on the version of Python


def meanwhile(patch: pytest.MonkeyPatch, act: Callable[[], None]) -> list[Any]:
    """Have others *act* before each directory is removed; the list of these."""
    real, removed = os.rmdir, list[Any]()

    def rmdir(path: Any, **given: Any) -> None:
        removed.append(path)
        act()
        real(path, **given)

    patch.setattr(os, "rmdir", rmdir)
    return removed


def test_what_another_program_makes_meanwhile_is_deleted_too(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    zlmdb.open(path, zlmdb.Schema).close()
    removed = meanwhile(monkeypatch, lambda: Path(path, "data.mdb").touch() if len(removed) < 2 else None)
    zlmdb.Database.scratch(path)
    assert len(removed) == 2
    assert not os.path.exists(path)


def test_a_directory_that_gets_new_files_all_the_time_is_in_use(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    zlmdb.open(path, zlmdb.Schema).close()
    monkeypatch.setattr(deletion, "_PAUSES", (0, 0, 0))
    removed = meanwhile(monkeypatch, lambda: Path(path, "data.mdb").touch())
    with pytest.raises(zlmdb.DatabaseInUse, match="others make or delete files in .* end the programs"):
        zlmdb.Database.scratch(path)
    assert len(removed) == 3


def test_what_another_program_deletes_meanwhile_is_not_missed(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    zlmdb.open(path, zlmdb.Schema).close()
    real = os.unlink

    def unlink(file: Any, **given: Any) -> None:
        monkeypatch.undo()
        shutil.rmtree(path)
        real(file, **given)

    monkeypatch.setattr(os, "unlink", unlink)
    zlmdb.Database.scratch(path)
    assert not os.path.exists(path)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "db")

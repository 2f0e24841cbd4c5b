"""What systems do in their own way."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from zlmdb import systems


@pytest.mark.parametrize("supported", [True, False])
def test_a_flush_reaches_the_drive_where_fsync_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, supported: bool
) -> None:
    """As on macOS, whose file systems do not all support it."""
    asked, synced = [], []

    def control(descriptor: int, command: int) -> None:
        asked.append((descriptor, command))
        if not supported:
            raise OSError("not supported")

    monkeypatch.setattr(systems, "fcntl", SimpleNamespace(F_FULLFSYNC=51, fcntl=control))
    monkeypatch.setattr(os, "fsync", synced.append)
    with open(tmp_path / "file", "wb") as file:
        systems.flush(file.fileno())
        assert asked == [(file.fileno(), 51)]
        assert synced == ([] if supported else [file.fileno()])


def test_a_flush_that_fails_says_so(tmp_path: Path) -> None:
    with open(tmp_path / "file", "wb") as file:
        descriptor = file.fileno()
    with pytest.raises(OSError, match="Bad file descriptor"):
        systems.flush(descriptor)

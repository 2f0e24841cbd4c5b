"""The traps of the first hour under ``python -O``: pytest's own asserts in test files are not removed by it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
WATCHED = ("test_first_hour.py", "test_first_steps.py")


@pytest.mark.once
def test_the_traps_are_closed_without_assertions(tmp_path: Path) -> None:
    options = ["-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestConfigWarning", f"--basetemp={tmp_path}"]
    planted = tmp_path.with_name("test_planted.py")
    planted.write_text("def test_asserts_are_kept():\n    assert __debug__\n")
    command = [sys.executable, "-O", "-m", "pytest", *options]
    done = subprocess.run(
        [*command, str(planted), *[str(TESTS / name) for name in WATCHED]],
        cwd=TESTS.parent, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    assert len(failed) == 1, done.stdout + done.stderr
    assert "test_asserts_are_kept" in failed[0]

"""The tests run once more on PyPy where its compiler failed, and after no other end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import pypytests

pytestmark = pytest.mark.once

PROGRAM = """
import os
from pathlib import Path

def test_it():
    runs = Path("runs")
    runs.write_text(runs.read_text() + "x" if runs.exists() else "x")
    if len(runs.read_text()) <= {failing}:
        os.write(2, b"RPython traceback:\\n{message}\\n")
        {ending}
"""
COMPILER = "Fatal RPython error: AssertionError"


@pytest.mark.parametrize(
    ("failing", "message", "ending", "runs", "status"),
    [
        (0, "", "", 1, 0),
        (1, COMPILER, "os.abort()", 2, 0),
        (2, COMPILER, "os.abort()", 2, 134),
        (1, "mdb.c:1: Assertion failed", "os.abort()", 1, 134),
        (1, COMPILER, "raise ValueError", 1, 1),
    ],
)
def test_the_tests_run_once_more_where_the_compiler_failed(
    tmp_path: Path, failing: int, message: str, ending: str, runs: int, status: int
) -> None:
    program = PROGRAM.format(failing=failing, message=message, ending=ending or "pass")
    (tmp_path / "test_it.py").write_text(program)
    command = [sys.executable, pypytests.__file__, "-p", "no:faulthandler", "-p", "no:cacheprovider", "test_it.py"]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # which take long to import
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, env=environment)
    assert (done.returncode, len((tmp_path / "runs").read_text())) == (status, runs)
    assert message.encode() in done.stdout
    assert (b"run once more" in done.stdout) is (runs == 2)

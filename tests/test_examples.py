"""The programs in `examples/` run in an empty directory, and a second time on what the first run left there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ENVIRONMENT = {**os.environ, "PYTHONIOENCODING": "utf-8"}
EXAMPLES = sorted((Path(__file__).resolve().parent.parent / "examples").glob("*.py"))


def run(example: Path, directory: Path) -> str:
    command = [sys.executable, "-W", "error", str(example)]
    done = subprocess.run(command, cwd=directory, capture_output=True, encoding="utf-8", env=ENVIRONMENT, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run_twice(example: Path, tmp_path: Path) -> None:
    first = run(example, tmp_path)
    assert run(example, tmp_path) == first


def test_the_cities_answer_three_questions(tmp_path: Path) -> None:
    output = run(next(path for path in EXAMPLES if path.stem == "cities"), tmp_path)
    total, *answers = output.split("\n\n")
    assert int(total.split()[0].replace(",", "")) > 20_000
    assert [answer.splitlines()[1].split()[0] for answer in answers] == ["Tokyo", "Cambrai", "Longyearbyen"]

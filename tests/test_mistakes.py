"""Both type checkers report every mistake of `tests/typing`, and nothing else; `tox -e types` has them installed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
IGNORE = re.compile(r"  # (type|pyright): ignore(\[[^\]]*\])?")
FILES = {"query_mistakes": 35, "mistakes": 128}
NOT_BY_PYRIGHT = ["M23: "]
"""The keyword arguments of `dataclasses.replace` are those of any class for it."""

pytestmark = [pytest.mark.once, pytest.mark.slow]


def planted(name: str, tmp_path: Path) -> tuple[Path, dict[int, str]]:
    """The file *name* without the comments that hide its mistakes, and the lines of these."""
    lines = (HERE / "typing" / f"{name}.py").read_text().splitlines()
    bare = [IGNORE.sub("", line) for line in lines]
    path = tmp_path / f"{name}.py"
    path.write_text("\n".join(bare) + "\n")
    found = {number: line for number, (line, left) in enumerate(zip(lines, bare), 1) if line != left}
    return path, found


@pytest.mark.parametrize("name", FILES)
def test_mypy_reports_each_mistake_and_nothing_else(name: str, tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    path, wanted = planted(name, tmp_path)
    assert len(wanted) >= FILES[name]
    command = [sys.executable, "-m", "mypy", "--config-file", str(HERE.parent / "pyproject.toml"), str(path)]
    done = subprocess.run([*command, "--cache-dir", str(tmp_path)], capture_output=True, text=True, cwd=HERE.parent)
    told = {int(found) for found in re.findall(rf"{name}\.py:(\d+): error: ", done.stdout)}
    assert told == {number for number, line in wanted.items() if "# type: ignore" in line}, done.stdout + done.stderr


@pytest.mark.parametrize("name", FILES)
def test_pyright_reports_each_mistake_and_nothing_else(name: str, tmp_path: Path) -> None:
    pytest.importorskip("pyright")
    path, wanted = planted(name, tmp_path)
    settings = {"typeCheckingMode": "strict", "pythonVersion": "3.9", "enableTypeIgnoreComments": False}
    project = tmp_path / "pyrightconfig.json"
    project.write_text(json.dumps({**settings, "include": [str(path)], "extraPaths": [str(HERE.parent)]}))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--project", str(project)]
    command += ["--pythonpath", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    told = {one["range"]["start"]["line"] + 1 for one in json.loads(done.stdout)["generalDiagnostics"]}
    expected = {n for n, line in wanted.items() if not any(mark in line for mark in NOT_BY_PYRIGHT)}
    assert told == expected, done.stdout


def test_all_mistakes_of_the_design_are_planted() -> None:
    text = (HERE / "typing" / "query_mistakes.py").read_text()
    assert re.findall(r"# M(\d\d): ", text) == [f"{number:02d}" for number in range(1, 36)]

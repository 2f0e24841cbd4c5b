"""Both type checkers report every mistake of `tests/typing`, and nothing else; `tox -e types` has them installed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
IGNORE = re.compile(r"  # (type|pyright): ignore(\[[^\]]*\])?")
FILES = {"query_mistakes": 35, "mistakes": 128}
NOT_BY_PYRIGHT = ["M23: "]
"""The keyword arguments of `dataclasses.replace` are those of any class for it."""

pytestmark = [pytest.mark.once, pytest.mark.slow]


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, dict[int, str]]]:
    """A directory with the files without the comments that hide their mistakes, and by name the lines of these.

    A checker that starts reads the standard library's types before all else: it is started once, for all files.
    """
    place, found = tmp_path_factory.mktemp("planted"), {}
    for name in FILES:
        lines = (HERE / "typing" / f"{name}.py").read_text().splitlines()
        bare = [IGNORE.sub("", line) for line in lines]
        (place / f"{name}.py").write_text("\n".join(bare) + "\n")
        found[name] = {number: line for number, (line, left) in enumerate(zip(lines, bare), 1) if line != left}
    return place, found


@pytest.fixture(scope="module")
def by_mypy(planted: tuple[Path, Any]) -> str:
    """What it remembers of the package and of the libraries is that of the run of mypy before, if there was one."""
    pytest.importorskip("mypy")
    paths = [str(planted[0] / f"{name}.py") for name in FILES]
    command = [sys.executable, "-m", "mypy", "--config-file", str(HERE.parent / "pyproject.toml"), *paths]
    return subprocess.run(command, capture_output=True, text=True, cwd=HERE.parent).stdout


@pytest.fixture(scope="module")
def by_pyright(planted: tuple[Path, Any]) -> str:
    pytest.importorskip("pyright")
    project = planted[0] / "pyrightconfig.json"
    settings = {"typeCheckingMode": "strict", "pythonVersion": "3.9", "enableTypeIgnoreComments": False}
    include = [str(planted[0] / f"{name}.py") for name in FILES]
    project.write_text(json.dumps({**settings, "include": include, "extraPaths": [str(HERE.parent)]}))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--project", str(project)]
    command += ["--pythonpath", sys.executable]
    return subprocess.run(command, capture_output=True, text=True, cwd=planted[0]).stdout


@pytest.mark.parametrize("name", FILES)
def test_mypy_reports_each_mistake_and_nothing_else(name: str, planted: tuple[Path, Any], by_mypy: str) -> None:
    wanted = planted[1][name]
    assert len(wanted) >= FILES[name]
    told = {int(found) for found in re.findall(rf"^(?:.*[/\\])?{name}\.py:(\d+): error: ", by_mypy, re.MULTILINE)}
    assert told == {number for number, line in wanted.items() if "# type: ignore" in line}, by_mypy


@pytest.mark.parametrize("name", FILES)
def test_pyright_reports_each_mistake_and_nothing_else(name: str, planted: tuple[Path, Any], by_pyright: str) -> None:
    told = {
        one["range"]["start"]["line"] + 1
        for one in json.loads(by_pyright)["generalDiagnostics"]
        if Path(one["file"]).stem == name
    }
    expected = {n for n, line in planted[1][name].items() if not any(mark in line for mark in NOT_BY_PYRIGHT)}
    assert told == expected, by_pyright


def test_all_mistakes_of_the_design_are_planted() -> None:
    text = (HERE / "typing" / "query_mistakes.py").read_text()
    assert re.findall(r"# M(\d\d): ", text) == [f"{number:02d}" for number in range(1, 36)]

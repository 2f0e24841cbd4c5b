"""Programs written for the predecessor run unchanged: those of ``interop/programs`` print the same on both packages."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.twice  # what is in a file does not depend on the version of Python

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "interop"))
predecessor: Any = importlib.import_module("predecessor")

PROGRAMS = sorted((HERE / "interop" / "programs").glob("classic_*.py"))
ON_A_PATH = [path for path in PROGRAMS if path.stem not in ("classic_database", "classic_limits")]  # with own files

pytest.importorskip("numpy", reason="timestamps need numpy")


@pytest.fixture(scope="session")
def old(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The predecessor's interpreter."""
    return predecessor.find(request.config, tmp_path_factory)


@pytest.mark.interop
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_of_the_predecessor_prints_the_same_on_both(program: Path, old: Any) -> None:
    expected = predecessor.run(old.python, program)
    assert expected.strip()
    assert predecessor.run(sys.executable, program) == expected


@pytest.mark.interop
@pytest.mark.parametrize("program", ON_A_PATH, ids=lambda path: path.stem)
def test_a_program_of_the_predecessor_prints_the_same_over_a_file_it_made(
    program: Path, old: Any, tmp_path: Path
) -> None:
    printed = []
    for python in (old.python, sys.executable):
        path = tmp_path / f"{len(printed)}"
        old.run("seed.py", path)
        printed.append(predecessor.run(python, program, path))
    assert printed[0].strip()
    assert printed[1] == printed[0]


def test_there_are_programs_to_compare() -> None:
    assert len(PROGRAMS) >= 6

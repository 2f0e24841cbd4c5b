"""The README's program and commands are what it says they are."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROGRAM = ROOT / "tests" / "programs" / "readme.py"


def blocks(language: str) -> list[str]:
    """The fenced blocks of one language, without their fences."""
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def run(directory: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", str(PROGRAM)]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)


def test_the_program_is_the_one_that_the_tests_run_and_type_check() -> None:
    assert blocks("python") == [PROGRAM.read_text(encoding="utf-8")]
    assert all(len(line) < 90 for line in PROGRAM.read_text(encoding="utf-8").splitlines())  # as wide as it is shown


def test_the_program_runs_in_an_empty_directory(tmp_path: Path) -> None:
    done = run(tmp_path)
    printed = "User(name='Ann', email='ann@example.com', age=31)\n['Ann']\n1 logins by users under 40\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, printed, "")
    assert all(line in README for line in printed.splitlines())
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
def test_a_second_run_goes_on_where_the_first_has_ended(tmp_path: Path) -> None:
    run(tmp_path)
    done = run(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "2 logins by users under 40" in done.stdout


def test_the_output_of_the_demo_is_shown_with_its_questions() -> None:
    [shown] = blocks("text")
    questions = (ROOT / "zlmdb" / "demo" / "questions.py").read_text(encoding="utf-8")
    title, call, *_ = shown.splitlines()
    assert call in questions
    assert title.partition("“")[0] in questions


def test_every_picture_and_link_of_the_readme_is_absolute() -> None:
    """A package index shows the page without the files beside it."""
    prose = re.sub(r"^```.*?^```$", "", README, flags=re.MULTILINE | re.DOTALL)
    targets = re.findall(r'(?:src|srcset|href)="([^"]+)"|\]\(([^)]+)\)', prose)
    assert all("".join(target).startswith("https://") for target in targets)


def test_there_are_two_commands_one_for_the_demo_and_one_for_the_tests() -> None:
    demo, tests = blocks("sh")
    assert demo.strip().endswith(".venv/bin/python -m zlmdb demo")
    assert ".venv/bin/tox" in tests
    assert demo.count("\n") == tests.count("\n") == 1

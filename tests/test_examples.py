"""The programs in `examples/` run in an empty directory, and a second time on what the first run left there.

The page of the cookbook shows all recipes, with what they print.
"""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.twice  # processes and what is in files, which no version of Python makes different

ENVIRONMENT = {**os.environ, "PYTHONIOENCODING": "utf-8"}
ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
RECIPES = {path.stem: path for path in sorted((ROOT / "examples" / "cookbook").glob("*.py"))}
SHOWN = re.compile(
    r"""\.\. literalinclude:: \.\./examples/cookbook/(\w+)\.py\n(?:   :.*\n)*\n"""
    r"""\.\. code-block:: text\n(?:   :.*\n)*\n((?:   .*\n)+)"""
)
OUTPUTS = dict(SHOWN.findall((ROOT / "docs" / "cookbook.rst").read_text(encoding="utf-8")))


def run(example: Path, directory: Path) -> str:
    command = [sys.executable, "-W", "error", str(example)]
    done = subprocess.run(command, cwd=directory, capture_output=True, encoding="utf-8", env=ENVIRONMENT, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run_twice(example: Path, tmp_path: Path) -> None:
    first = run(example, tmp_path)
    assert run(example, tmp_path) == first


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
def test_the_cities_answer_three_questions(tmp_path: Path) -> None:
    output = run(next(path for path in EXAMPLES if path.stem == "cities"), tmp_path)
    total, *answers = output.split("\n\n")
    assert int(total.split()[0].replace(",", "")) > 20_000
    assert [answer.splitlines()[1].split()[0] for answer in answers] == ["Tokyo", "Cambrai", "Longyearbyen"]


def test_the_cookbook_shows_every_recipe_and_what_it_prints() -> None:
    assert RECIPES
    assert sorted(OUTPUTS) == sorted(RECIPES)


@pytest.mark.parametrize("recipe", RECIPES)
def test_recipes_print_what_the_page_shows_twice(
    recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        # Not in a process of its own: to start twenty of them takes longer than all recipes together.
        runpy.run_path(str(RECIPES[recipe]), run_name="__main__")
        printed = capsys.readouterr()
        assert (printed.out, printed.err) == (textwrap.dedent(OUTPUTS.get(recipe, "")), "")

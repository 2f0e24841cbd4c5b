"""Programs that ask queries as people would, each beside a loop over all records; type checkers read them, too."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).resolve().parent / "programs" / "queries"

SAID = {
    "api": "has no field 'vots', it has title, status, assignee, opened, votes; name one of its fields",
    "cities": """\
read   index by_population: (c.country == 'JP')
keep   (c.country == 'JP')
order  desc(c.population): from the index
take   5
""",
    "documents": "has no item 'stok', it has name, stock; name one of its items",
    "series": "{1: 6.2, 3: 15.5, 4: 4.8,",
}


@pytest.mark.parametrize("name", sorted(path.stem for path in PROGRAMS.glob("*.py")))
def test_queries_give_what_loops_give(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.syspath_prepend(str(PROGRAMS.parent))
    importlib.import_module(f"queries.{name}").run()
    assert SAID.get(name, "") in capsys.readouterr().out

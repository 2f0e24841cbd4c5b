"""The performance page is made of what was measured: charts, every figure, what others win, targets that are missed."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks.machine import describe

pytestmark = pytest.mark.once

DOCS = Path(__file__).resolve().parent.parent / "docs"
MACHINE = describe()


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module of docs/, which Sphinx imports from there."""
    monkeypatch.syspath_prepend(str(DOCS))
    return importlib.import_module


def row(seconds: dict[str, float], **facts: Any) -> dict[str, Any]:
    steps = {
        step: {"unit": "record", "count": 1, "wall": [int(each * 1e9)] * 3, "cpu": [1] * 3}
        for step, each in seconds.items()
    }
    return {"steps": steps, "skipped": {}, "note": "", "versions": {}, "bytes": 1000, **facts}


def save(directory: Path, workload: str, title: str, sizes: dict[int, dict[str, Any]]) -> None:
    place = directory / "cpython-3.11"
    place.mkdir(exist_ok=True)
    found = {str(size): {"rows": rows, "machine": MACHINE, "command": "the command"} for size, rows in sizes.items()}
    data = {"workload": workload, "title": title, "sizes": found, "left_out": {"10000000": "no time"}}
    (place / f"{workload}.json").write_text(json.dumps(data))


@pytest.fixture
def results(tmp_path: Path) -> Path:
    directory = tmp_path / "results"
    directory.mkdir()
    get = "random, open handle"
    documents = {
        "zlmdb": row({"write": 2.0, get: 1.0, "read all, open handle": 1.0}),
        "raw lmdb + pickle": row({"write": 4.0, get: 2.0, "read all, open handle": 1.0}),
        "RocksDB + msgspec": row({"write": 1.0, get: 1.1, "read all, open handle": 1.0}),
        "sqlite3, JSON text": row({"write": 4.0, get: 4.0, "read all, open handle": 1.5}),
        "plyvel": {"steps": {}, "skipped": {}, "note": "", "absent": "not installed: pip install plyvel"},
    }
    save(directory, "zds", "Documents", {1000: documents})
    rows = {"zlmdb": row({"get": 1.0, "count": 0.000001}), "raw lmdb + msgspec": row({"get": 0.5})}
    save(directory, "growth", "Growth", {100: rows, 1000: rows})
    step = "filter to 1%, two fields"
    filtered = {"raw lmdb, values only": row({step: 0.0000001}), "zlmdb where, FlatBuffers": row({step: 0.0000002})}
    save(directory, "filtering", "Filtering", {1000: filtered})
    save(directory, "layer", "Layer", {100: {"zlmdb": row({"len of a table": 0.000001})}})
    return directory


def test_a_step_that_a_contender_wins_is_told_with_a_reason(page: Any, results: Path) -> None:
    text = "".join(page("tables").losses(page("saved").Saved(results)))
    assert "**RocksDB.** An LSM tree" in text
    assert "* zds: write ×2\n" in text
    assert "random, open handle" not in text, "10% is a tie"


def test_a_missed_target_is_told_as_missed_with_its_figures(page: Any, results: Path) -> None:
    found = {target.what: target for target in page("targets").targets(page("saved").Saved(results))}
    documents = found["ZDS documents, read all and random get, over sqlite3 with JSON text"]
    assert (documents.met, documents.shown) == (False, "1.50, 4.00 ×")
    assert (found["len(table)"].met, found["len(table)"].shown) == (True, "1 µs")
    filtering = found["filter FlatBuffers rows to 1%, two fields, over raw iteration of the values"]
    assert (filtering.met, filtering.shown) == (True, "0.50 ×")
    assert found["bulk load over a loop of txn.put"].shown == "not measured"


def test_questions_have_a_column_for_each_store(page: Any, results: Path) -> None:
    rows = {
        "sqlite3": row({"by key": 0.004, "scan": 0.001}), "ObjectBox": row({"by key": 0.006}),
        "peewee": {"steps": {}, "skipped": {}, "note": "", "absent": "not installed"},
        "zlmdb": row({"by key": 0.002, "scan": 0.004}), "zlmdb FlatBuffers": row({"scan": 0.0005}),
    }  # fmt: skip
    rows["ObjectBox"]["skipped"] = {"scan": "no way"}
    save(results, "questions", "Questions", {1000: rows})
    text = "".join(page("beside").asked(page("saved").Saved(results)))
    cells = [line[6:].strip() for line in text.splitlines() if line.startswith(("   * -", "     -"))]
    assert cells == [
        "", "zlmdb", "zlmdb FlatBuffers", "sqlite3", "ObjectBox",
        "by key", "2 ms", "", "4 ms, ×2", "6 ms, ×3",
        "scan", "4 ms", "500 µs", "1 ms, ×2", "–",
    ]  # fmt: skip
    found = {target.what: target for target in page("targets").targets(page("saved").Saved(results))}
    assert found["FlatBuffers, filter without a match"].met is None


def test_published_queries_are_told_with_the_whole_time_of_ours(page: Any, results: Path) -> None:
    def many(seconds: float) -> dict[str, Any]:
        found = row({"Q2 name='asd', no hit": seconds, "Q7 all items": 0.001})
        found["steps"]["Q2 name='asd', no hit"]["count"] = 5_000
        return found

    save(results, "zippondb", "ZipponDB", {5_000: {"zlmdb": many(0.004), "sqlite3, typed columns": many(0.002)}})
    text = "".join(page("beside").zippondb(page("saved").Saved(results)))
    assert "- Q2 name='asd', no hit\n     - 2.62 ms\n     - 2 ms\n     - 4 ms\n" in text
    assert "- Q7 all items\n     - 0.13 to 0.23 ms\n     - 1 ms\n     - 1 ms\n" in text
    assert "5,000 users" in text


def test_every_figure_and_absence_is_in_the_tables(page: Any, results: Path) -> None:
    text = "".join(page("tables").figures(page("saved").Saved(results)))
    assert "2 s (2 to 2 s), ×2" in text
    assert "plyvel: does not take part: not installed: pip install plyvel" in text
    assert "10,000,000: not run, no time" in text
    assert MACHINE["interpreter"] in text


@pytest.mark.filterwarnings("ignore")  # matplotlib's dependencies warn of each other
def test_charts_are_drawn_for_light_and_dark(page: Any, results: Path, tmp_path: Path) -> None:
    page("charts").build(results, tmp_path / "charts")
    for name in ("zds", "growth"):
        for theme in ("light", "dark"):
            svg = (tmp_path / "charts" / f"{name}-{theme}.svg").read_text(encoding="utf-8")
            assert "<svg" in svg
            assert ("#e6e6e6" in svg, "#222222" in svg) == (theme == "dark", theme == "light")
    assert "only-dark" in (tmp_path / "charts" / "charts.rst").read_text(encoding="utf-8")


@pytest.mark.filterwarnings("ignore")
def test_threads_of_one_workload_are_drawn_while_the_other_is_not_measured(
    page: Any, results: Path, tmp_path: Path
) -> None:  # fmt: skip
    mixed = {label: row({"80/20, 1 thread": 1.0, "80/20, 10 threads": 2.0}) for label in ("zlmdb", "dict + lock", "x")}
    save(results, "go_persist", "go-persist", {100: mixed})
    (tmp_path / "charts").mkdir()
    charts = page("charts")
    charts.build(results, tmp_path / "charts")
    assert (tmp_path / "charts" / "threads-dark.svg").exists()


def test_the_table_of_the_readme_is_between_its_marks(page: Any, results: Path, tmp_path: Path) -> None:
    labels = ("zlmdb", "sqlite3, typed columns", "diskcache")
    save(results, "fill_read", "Fill", {50_000: {label: row({"random get": 1.0, "scan": 2.0}) for label in labels}})
    readme = tmp_path / "README.md"
    text = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    readme.write_text(text, encoding="utf-8")
    page("charts").readme(results, readme)
    first = readme.read_text(encoding="utf-8")
    assert "| operation | zlmdb | sqlite3 |" in first
    assert (results / "readme-dark.svg").exists()
    page("charts").readme(results, readme)
    assert readme.read_text(encoding="utf-8") == first


def test_the_table_of_the_readme_is_that_of_the_saved_results(page: Any) -> None:
    saved = page("saved").Saved(DOCS / "results")
    assert page("front").markdown(saved) in (DOCS.parent / "README.md").read_text(encoding="utf-8")


def test_the_small_table_gives_rates_of_others_as_multiples_of_ours(page: Any, results: Path) -> None:
    rows = {"zlmdb": row({"random get": 0.001}), "sqlite3, typed columns": row({"random get": 0.004})}
    save(results, "fill_read", "Fill", {50_000: rows})
    front, saved = page("front"), page("saved").Saved(results)
    assert re.search(r"\| read one of 50,000 objects by its key \| 1\.?0*k/s \| 0\.25 \|", front.markdown(saved))
    assert "0.25" in front.restructured(saved)


def test_a_row_of_the_small_table_takes_the_only_form_of_a_contender(page: Any, results: Path) -> None:
    step = "where() equal, one thousandth"
    save(results, "questions", "Questions", {100_000: {"zlmdb": row({step: 0.001}), "sqlite3": row({step: 0.002})}})
    cells = page("front").cells(page("saved").Saved(results))
    assert [line[2] for line in cells[1]] == ["0.5"]


@pytest.mark.filterwarnings("ignore")
def test_without_results_the_page_says_so(page: Any, tmp_path: Path) -> None:
    page("charts").build(tmp_path / "nothing", tmp_path / "charts")
    assert "No results are saved." in (tmp_path / "charts" / "charts.rst").read_text(encoding="utf-8")

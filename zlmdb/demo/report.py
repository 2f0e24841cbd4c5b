"""The answers and the figures, as tables for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from .measure import BATCH, READS, READS_A_ROUND, Figures
from .questions import Answer
from .world import Load

_NUMBERS = frozenset({"Population", "Latitude", "Longitude", "Cities"})
_COLUMNS: tuple[tuple[str, str, Callable[[Iterable[float]], float]], ...] = (  # of `Figures`, and which is the best
    ("Fill", "records/s", max),
    ("Random read", "records/s", max),
    ("Scan", "records/s", max),
    ("Value", "bytes", min),
    ("Pages", "bytes", min),
)


def show_answer(console: Console, answer: Answer) -> None:
    """Print one answer."""
    console.print(f"[bold]{escape(answer.question)}[/]")
    console.print(f"[cyan]{escape(answer.expression)}[/]")
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for column in answer.columns:
        table.add_column(column, justify="right" if column in _NUMBERS else "left")
    for row in answer.rows:
        table.add_row(*map(escape, row))
    if answer.rows:
        console.print(table)
    shown = f"{len(answer.rows)} of {answer.found:,}" if len(answer.rows) < answer.found else f"{answer.found:,}"
    console.print(f"[dim]{shown} in {answer.seconds * 1000:.1f} ms[/]\n")


def show_figures(console: Console, figures: Sequence[Figures], loads: dict[str, Load], *, filled_now: bool) -> None:
    """Print what was measured, the best of each column in bold."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("Serializer", no_wrap=True)
    for name, unit, _ in _COLUMNS:
        mark = "*" if name == "Fill" and not filled_now else ""
        table.add_column(f"{name}{mark}\n{unit}", justify="right", no_wrap=True)
    for row in figures:
        cells: list[str] = []
        for (_, _, choose), cell, column in zip(_COLUMNS, row[1:], zip(*(one[1:] for one in figures))):
            cells.append(f"[bold]{cell:,.0f}[/]" if cell == choose(column) else f"{cell:,.0f}")
        table.add_row(row.format, *cells)
    console.print("[bold]Each serializer, a table with four indexes[/]")
    console.print(table)
    console.print()
    for note in notes(loads, filled_now=filled_now):
        console.print(note, style="dim")


def notes(loads: dict[str, Load], *, filled_now: bool) -> list[str]:
    """What a reader must know to understand the figures."""
    found = [
        f"Rates are medians: of commits of {BATCH:,} records, of {READS} rounds of {READS_A_ROUND:,} reads, "
        f"of pieces of {BATCH:,} records.",
        "Bytes are means a record. Value: the value alone. Pages: what the table takes in the file, keys and free "
        "space included, indexes not.",
        "pickle checks the classes it reads (allow=[City]); official is FlatBuffers, too, by build= and cast= over the "
        "official runtime.",
    ]
    if not filled_now:
        found.insert(0, "* Fill: " + first_run(loads) + ".")
    return found


def first_run(loads: dict[str, Load]) -> str:
    """When, and on what, the tables were filled that this run found."""
    return "saved by the first run, " + "; ".join(
        sorted({f"{load.date}, {load.interpreter}" for load in loads.values()})
    )

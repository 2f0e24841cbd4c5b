"""Filtering records by what is neither key nor index, and taking fields of them: every record is looked at.

Small records, of which 1% match, or one. The raw row iterates over the values with py-lmdb and looks at none: what any
filter in Python has to stay below. "by hand" is a comprehension over the values of the table.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from ..records import Small
from .inside import Inside, Question, Timed
from .layer import drain, schema

RAW = "raw lmdb, values only"
LEAST = 10
"""``count`` is 0 to 1,000, and below this in 1% of the records."""


def raw_values(rows: Any) -> None:
    drain(rows._cursor().iternext(False, True))


def numbers_where(rows: Any) -> None:
    drain(rows.where(lambda row: row.count < LEAST).fields(lambda row: (row.id, row.price)))


def numbers_by_hand(rows: Any) -> None:
    drain([(row.id, row.price) for row in rows.select().values() if row.count < LEAST])


def texts_where(rows: Any) -> None:
    found = rows.where(lambda row: row.count < LEAST and row.city == "Gothenburg")
    drain(found.fields(lambda row: (row.id, row.name)))


def texts_by_hand(rows: Any) -> None:
    found = [(row.id, row.name) for row in rows.select().values() if row.count < LEAST and row.city == "Gothenburg"]
    drain(found)


def text_where(rows: Any) -> None:
    drain(rows.where(lambda row: row.name == "record 10").fields(lambda row: (row.id, row.price)))


def text_by_hand(rows: Any) -> None:
    drain([(row.id, row.price) for row in rows.select().values() if row.name == "record 10"])


def column_where(rows: Any) -> None:
    drain(rows.fields(lambda row: row.price))


def column_by_hand(rows: Any) -> None:
    drain(row.price for row in rows.select().values())


def record(number: int) -> Small:
    """A record, made in less time than it takes to store it: there are a million."""
    return Small(number, number * 7919 % 1000, number / 7, 7, number / 3, f"record {number}", "Gothenburg")


def fill(db: Any, size: int) -> None:
    with db.write() as t:
        if not t.rows:  # another question has not done it
            t.rows.put_many(((number, record(number)) for number in range(size)), append=True)


@contextmanager
def scans(
    directory: Path,
    size: int,
    where: Callable[[Any], object],
    by_hand: Callable[[Any], object],
    labels: tuple[str, ...],
) -> Iterator[Timed]:
    import zlmdb
    from zlmdb.values import FlatBuffersView

    table: Any = zlmdb.Table
    stored = {
        "FlatBuffers": ("flat", zlmdb.FlatBuffers[Small]),
        "FlatBuffersView": ("flat", FlatBuffersView[Small]),
        "default": ("default", Small),
    }
    with ExitStack() as stack:
        rows: dict[str, Any] = {}
        for codec, (place, annotation) in stored.items():
            db = stack.enter_context(
                zlmdb.open(directory / place, schema(rows=table[int, annotation]), durability="none")
            )
            fill(db, size)
            rows[codec] = stack.enter_context(db.read()).rows

        def timed(run: Callable[[Any], object], codec: str) -> int:
            run(rows[codec])
            return size

        runs = {"zlmdb where": where, "zlmdb by hand": by_hand}
        yield {
            RAW: partial(timed, raw_values, "FlatBuffers"),
            **{label: partial(timed, runs[label.partition(", ")[0]], label.partition(", ")[2]) for label in labels},
        }


FEW = ("zlmdb where, FlatBuffers", "zlmdb by hand, FlatBuffersView")
ALL = (*FEW, "zlmdb where, default", "zlmdb by hand, FlatBuffers", "zlmdb by hand, default")


class Filtering(Inside):
    name = "filtering"
    title = "Filtering, and taking fields, without an index"
    sizes = {"tiny": (200,), "small": (20_000,), "window": (1_000_000,), "full": (1_000_000,)}
    labels = (RAW, *ALL)
    questions = (
        Question(
            "filter to 1%, two fields",
            partial(scans, where=numbers_where, by_hand=numbers_by_hand, labels=ALL), RAW,
        ),
        Question(
            "filter to 1% by number and text, two fields",
            partial(scans, where=texts_where, by_hand=texts_by_hand, labels=FEW), RAW,
        ),
        Question(
            "filter by a text, two fields", partial(scans, where=text_where, by_hand=text_by_hand, labels=FEW), RAW
        ),
        Question(
            "one field of all records", partial(scans, where=column_where, by_hand=column_by_hand, labels=FEW), RAW
        ),
    )  # fmt: skip

    def measure(self, size: int, rounds: int) -> dict[str, Any]:
        """As of all, but the records are stored once for all questions."""
        rows: dict[str, Any] = {}
        with tempfile.TemporaryDirectory(prefix="zlmdb-bench-") as directory:
            for question in self.questions:
                with question.ask(Path(directory), size) as timed:
                    self._interleave(question, timed, rounds, rows, size)
        return rows

"""Filtering records by what is neither key nor index, and taking fields of them: every record is looked at.

Small records, of which 1% match, or one. The raw row iterates over the values with py-lmdb and looks at none: what any
filter in Python has to stay below. "by hand" is a comprehension over the values of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from ..records import Small, small
from .inside import Inside, Question, Timed
from .layer import drain, schema

RAW = "raw lmdb, values only"
CODECS = ("FlatBuffers", "FlatBuffersView", "default")
LEAST = 10
"""``count`` is 0 to 1,000, and below this in 1% of the records."""


def raw_values(rows: Any) -> int:
    return drain(rows.cursor().iternext(False, True))


def numbers_where(rows: Any) -> int:
    from zlmdb import F

    return drain(rows.select().where(F.count < LEAST).fields("id", "price"))


def numbers_by_hand(rows: Any) -> int:
    return drain([(row.id, row.price) for row in rows.select().values() if row.count < LEAST])


def texts_where(rows: Any) -> int:
    from zlmdb import F

    return drain(rows.select().where((F.count < LEAST) & (F.city == "Gothenburg")).fields("id", "name"))


def texts_by_hand(rows: Any) -> int:
    found = [(row.id, row.name) for row in rows.select().values() if row.count < LEAST and row.city == "Gothenburg"]
    return drain(found)


def text_where(rows: Any) -> int:
    from zlmdb import F

    return drain(rows.select().where(F.name == "record 10").fields("id", "price"))


def text_by_hand(rows: Any) -> int:
    return drain([(row.id, row.price) for row in rows.select().values() if row.name == "record 10"])


def column_where(rows: Any) -> int:
    return drain(rows.select().fields("price"))


def column_by_hand(rows: Any) -> int:
    return drain(row.price for row in rows.select().values())


@contextmanager
def scans(directory: Path, size: int, where: Callable[[Any], int], by_hand: Callable[[Any], int]) -> Iterator[Timed]:
    import zlmdb
    from zlmdb.values import FlatBuffersView

    table: Any = zlmdb.Table
    flat = schema(rows=table[int, zlmdb.FlatBuffers[Small]])
    with ExitStack() as stack:
        opened = {
            "FlatBuffers": zlmdb.open(directory / "flat", flat, durability="none"),
            "FlatBuffersView": zlmdb.open(
                directory / "flat", schema(rows=table[int, FlatBuffersView[Small]]), durability="none"
            ),
            "default": zlmdb.open(directory / "default", schema(rows=table[int, Small]), durability="none"),
        }
        rows: dict[str, Any] = {}
        for codec, db in opened.items():
            stack.enter_context(db)
            if codec != "FlatBuffersView":
                with db.write() as t:
                    t.rows.put_many(((number, small(number)) for number in range(size)), append=True)
            rows[codec] = stack.enter_context(db.read()).rows

        def timed(run: Callable[[Any], int], codec: str) -> int:
            run(rows[codec])
            return size

        yield {
            RAW: partial(timed, raw_values, "FlatBuffers"),
            **{f"zlmdb where, {codec}": partial(timed, where, codec) for codec in rows},
            **{f"zlmdb by hand, {codec}": partial(timed, by_hand, codec) for codec in rows},
        }


class Filtering(Inside):
    name = "filtering"
    title = "Filtering, and taking fields, without an index"
    sizes = {"tiny": (200,), "small": (20_000,), "window": (1_000_000,), "full": (1_000_000,)}
    labels = (RAW, *(f"zlmdb {how}, {codec}" for how in ("where", "by hand") for codec in CODECS))
    questions = (
        Question("filter to 1%, two fields", partial(scans, where=numbers_where, by_hand=numbers_by_hand), RAW),
        Question(
            "filter to 1% by number and text, two fields", partial(scans, where=texts_where, by_hand=texts_by_hand), RAW
        ),
        Question("filter by a text, two fields", partial(scans, where=text_where, by_hand=text_by_hand), RAW),
        Question("one field of all records", partial(scans, where=column_where, by_hand=column_by_hand), RAW),
    )

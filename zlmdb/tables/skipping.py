"""Skipping the first records of a range without reading them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Optional, TypeVar

from ..store.ranges import keys_from
from .indexview import IndexSelection
from .selection import ALL, Selection

K = TypeVar("K")
V = TypeVar("V")


def behind_skipped(selection: Selection[K, V]) -> Optional[Selection[K, V]]:
    """The records of *selection* as those of a range that begins behind what it skips; None if these have to be read.

    Only keys are read, in a read transaction, where nothing else is asked and each key stands for a record.
    """
    query, table = selection._query, selection._table
    kind: Any = type(selection)
    if query.where or query.order is not None or table._txn._write or kind not in (Selection, IndexSelection):
        return None
    if table._storage.expiring is not None:
        return None
    rows: Any = selection._engine_rows(keys_from)
    behind: Iterator[bytes] = islice(rows, query.skip, None)
    entry = next(behind, None)
    rows.close()
    if entry is None:
        return selection._with(query=ALL, limit=0)
    if selection._reverse:
        return selection._with(query=ALL, upper=entry + b"\0")
    return selection._with(query=ALL, lower=entry)

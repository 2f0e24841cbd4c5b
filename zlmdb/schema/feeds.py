"""The change feeds of a file: begun, rewritten and dropped."""

from __future__ import annotations

from typing import Any, Optional

from ..engines import Handle, Transaction
from ..shown import shortened
from ..store.catalogue import catalogue_of
from ..store.slots import Slot
from ..store.store import OpenSpace, Store
from ..tables.storage import Storage
from ..values.base import Serializer
from .contents import FileChange
from .droppedparts import lost_feed


def begin_feed(making: FileChange, slot: Slot, records: int) -> None:
    """Begin the change feed of a table that has this number of *records*, unless the file has it."""
    from ..feed.log import LOST  # late: few programs use a feed

    lost = lost_feed(making.store, making.catalogue, slot) and making.again
    space = making.catalogue.feed_space(slot.name)
    if space is None or (slot.has_feed and not lost):
        return
    begin_in(making.txn, making.open_space(space), slot, records, LOST if lost else 1)


def begin_in(txn: Transaction, handle: Handle, slot: Slot, records: int, lost: int = 1) -> None:
    """Begin the feed of a table with *records* records in an empty keyspace; *lost* changes were not recorded."""
    from ..feed.log import begin  # late: few programs use a feed

    # Who begins with the first change must know of records from before, and who went on of changes in between.
    slot.feed = {"after": min(records, 1) if slot.feed is None else slot.feed["after"] + lost}
    begin(txn, handle, slot.feed["after"])


def rewrite_feed(making: FileChange, slot: Slot, storage: Storage[Any, Any], reading: Serializer[Any]) -> None:
    """Give the values in the change feed of a table, if it has one, the names that its records have now."""
    space = making.catalogue.feed_space(slot.name) if slot.has_feed else None
    if space is not None:
        from ..feed.log import rewrite  # late: few programs use a feed

        rewrite(making.txn, making.open_space(space), lambda data: storage.value.encode(reading.decode(data)))


def cut_feed(txn: Transaction, handle: Handle) -> None:
    """Remove the recorded changes of a table that gets another shape, which its consumers are told."""
    from ..feed.log import last, trim_through  # late: few programs use a feed

    trim_through(txn, handle, last(txn, handle))


def drop_feed(store: Store, table: str, timeout: Optional[float]) -> int:
    """Drop the change feed of a table; returns the number of its last change. Raises `KeyError` if there is none."""
    from ..feed import log as feeds  # late: few programs use a feed

    given: Any = table
    if not isinstance(given, str):
        raise TypeError(f"drop_feed({shortened(given)}): expected the name of a table in the file")
    catalogue = catalogue_of(store)

    def work(txn: Transaction, open_space: OpenSpace) -> int:
        slot = catalogue.slot(txn, table)
        space = catalogue.feed_space(table)
        if slot is None or space is None or not slot.has_feed:
            raise KeyError(f"table {table!r} has no change feed in the file")
        handle = open_space(space)
        last = feeds.last(txn, handle)
        txn.drop(handle, delete=False)
        slot.feed = {"after": last, "ended": True}
        catalogue.write(txn, slot)
        return last

    return store.change(work, timeout=timeout)

"""Finds, in a transaction, what the file has of the declared indexes and fields of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

from ..engines import Transaction
from ..store.catalogue import Catalogue
from ..store.slots import Slot
from ..store.store import Store
from ..tables.storage import FileIndexes
from .comparison import other_types
from .declaration import Declaration
from .verdict import FITS, of_feed, verdict

_NONE: frozenset[str] = frozenset()


class IndexFinder:
    """Compares the declared indexes and fields of a table with those of the file, in a transaction.

    Another program may have added, changed or dropped indexes: this program must neither leave them incomplete nor read
    them. It may also have given the records another shape.
    """

    def __init__(
        self,
        store: Store,
        catalogue: Catalogue,
        slot: Slot,
        known: Mapping[str, dict[str, Any]],
        declared: Declaration,
    ) -> None:
        self._store, self._opening = store, store.opening
        self._catalogue = catalogue
        self._name = slot.name
        self._known = known
        self._declared = declared
        self._key = slot.key
        self._types = slot.key, slot.value, slot.model
        self._number = slot.number
        self._records_changes = slot.feed is not None and slot.has_feed  # as the storage does
        # Where keys begin with the number: another table may get it, if this one is dropped.
        self._registered = str(slot.uuid) if store.layout == "classic" and slot.uuid is not None else None
        # Snapshots up to this one may be older than the table.
        self._latest: int = store.environment.info()["last_txnid"]
        self.first = self._verdict(slot)
        self._seen: tuple[Optional[int], Any, Any] = None, slot.records, self.first

    def __call__(self, txn: Transaction, era: Optional[int]) -> FileIndexes:
        """The state of the known indexes, the unknown ones, and what the shape of the records allows.

        The catalogue is read again if the transaction has no *era*, or another one than the latest.
        """
        known, records, verdict = self._seen  # in one step: other threads ask as well
        if era is None or era != known:
            now = self._catalogue.records(txn, self._name)
            ours = self._registered
            moved = ours is not None and self._catalogue.registered(txn, self._number) != ours
            if now != records or moved:
                slot = self._catalogue.slot(txn, self._name, self._number)
                same_file = self._store.opening == self._opening  # for certain
                older = slot is None and same_file and txn.id() <= self._latest  # than the table
                verdict = FileIndexes() if older else self._verdict(slot or Slot(self._name, 1), moved)
            self._seen = era, now, verdict
        return verdict

    def _verdict(self, slot: Slot, moved: bool = False) -> FileIndexes:
        if moved or (slot.key is None and self._key is not None):
            return FileIndexes(unreadable="another program has dropped it from the file: open the database again")
        declared = self._declared
        if (slot.key, slot.value, slot.model) != self._types:
            reason = other_types(self._store, slot, declared)
            if reason is not None:
                return FileIndexes(unreadable=f"{reason}, since this program has opened it: use a newer program")
        gone = _NONE
        unknown: tuple[str, ...] = ()
        if slot.attached or slot.indexes != self._known:  # hardly ever
            gone = frozenset([name for name, one in self._known.items() if slot.indexes.get(name) != one])
            unknown = self.unknown(slot)
        found = FITS if slot.key is None else verdict(slot, declared, opening=False)
        if found.relation is not None and found.relation.redefaulted:
            from .evolution import affected  # late: few fields get another default

            gone |= frozenset(affected(self._known, found.relation.redefaulted))
        older = len(slot.history) > 1 and self._declared.fingerprint in slot.history[:-1]
        unwritable = found.unwritable
        if slot.feed is not None or declared.feed is not None:
            unwritable = unwritable or of_feed(slot, declared, older)
            if slot.has_feed and not self._records_changes:
                unwritable = unwritable or (
                    "another program has begun to record the changes of the table since this one has opened the file: "
                    "open the database again"
                )
        undeletable = None
        if slot.referred:
            from .links import unknown_referrers  # late: few schemas have links

            undeletable = unknown_referrers(slot, declared) or None
        return FileIndexes(
            gone, unknown, slot.indexes, older, found.refused, unwritable, undeletable,
            _NONE if not slot.building else frozenset(slot.building) - gone,
        )  # fmt: skip

    def unknown(self, slot: Slot) -> tuple[str, ...]:
        """The indexes of the file that this program does not maintain."""
        ours = {definition.get("table") for definition in self._known.values()}
        attached = [
            name for name, record in slot.attached.items() if self._declared.strict and record.get("target") not in ours
        ]
        return (*(name for name, one in slot.indexes.items() if self._known.get(name) != one), *attached)

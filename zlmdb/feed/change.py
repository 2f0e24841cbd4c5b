"""A change of a record, as a program reads it from the feed."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Generic, Literal, Optional, TypeVar

from ..missingattributes import tell_each
from ..namedtuples import NamedTuple
from ..shown import shortened
from . import log
from .advice import OF_CHANGE
from .log import Entry

K_co = TypeVar("K_co", covariant=True)
V_co = TypeVar("V_co", covariant=True)

Kind = Literal["put", "delete", "clear"]

_KINDS: dict[int, Kind] = {log.PUT: "put", log.DELETE: "delete", log.CLEAR: "clear"}


class Codecs(NamedTuple):
    """How keys and values of a table are read: functions of the stored bytes."""

    key: Any
    value: Any


class Change(Generic[K_co, V_co]):
    """A committed change of a table, from `Database.changes`.

    *kind* is ``"put"``, ``"delete"`` or ``"clear"``; *number* its place in the feed, one more than that of the change
    before; *transaction* the number of the transaction, which is the same for all changes of one transaction, in all
    tables; *key* that of the record, None for a clear. The values before and after are decoded when they are used.
    """

    __slots__ = ("_codecs", "_entry", "key", "kind", "number", "transaction")

    key: K_co
    kind: Kind
    number: int
    transaction: int

    def __init__(self, entry: Entry, codecs: Codecs) -> None:
        self._entry = entry
        self._codecs = codecs
        self.number = entry.number
        self.transaction = entry.transaction
        self.kind = _KINDS[entry.kind]
        key: Any = None if entry.kind == log.CLEAR else codecs.key(entry.key)
        self.key = key

    @property
    def old(self) -> Optional[V_co]:
        """The value before, None if there was no record. Raises `DecodeError` if it does not fit the type."""
        entry = self._entry
        if entry.old is None or entry.kind == log.CLEAR:
            return None
        return self._codecs.value(entry.old, self.key)

    @property
    def new(self) -> Optional[V_co]:
        """The value after, None if there is no record then. Raises `DecodeError` if it does not fit the type."""
        if self._entry.new is None:
            return None
        return self._codecs.value(self._entry.new, self.key)

    @property
    def is_new(self) -> bool:
        """Whether there was no record before."""
        return self._entry.old is None

    @property
    def count(self) -> int:
        """The number of records that changed: 1, and for a clear all that there were."""
        return int.from_bytes(self._entry.old or b"", "big") if self._entry.kind == log.CLEAR else 1

    @property
    def time(self) -> datetime:
        """When its transaction made its first change, by the clock of that process."""
        return log.when(self._entry.time)

    def __repr__(self) -> str:
        key = "" if self._entry.kind == log.CLEAR else f" of {shortened(self.key)}"
        return f"<change {self.number}: {self.kind}{key}>"


tell_each(Change, OF_CHANGE)

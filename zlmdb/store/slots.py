"""The tables of a file: their numbers, their definitions, where their records are, and what is written together."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Optional

from .. import errors
from ..engines import Transaction
from ..namedtuples import NamedTuple

if TYPE_CHECKING:
    from uuid import UUID

FIRST_SLOT, LAST_SLOT = 1, 65534

_HISTORY = 32
"""Declarations of a table that are remembered."""

_NAMES = "6f0a3b0e-5f3c-5d0c-9a58-7a6c6d646200"
"""Namespace of the UUIDs that tables and indexes without one get in a classic file."""


class Slot:
    """A table's number and stored definition.

    *name* is the UUID, or else the declared name. *key* and *value* are names of codecs, None if the file does not
    record them. *indexes* are definitions by name, *attached* those of `attach_index`; *class_name* and *model* are
    class names, for information. *records*: the bytes from which it was read. *fields* describes the fields of the
    values' models (`values.description`), None if they are not recorded; *history* names the declarations that the
    table has had, the latest one last; *unsettled* is the migration that has stored records of a shape which the next
    one has to complete; *key_field* is the field of the values that is their key, and *keyed* says that it has been so
    since the table was empty; *was* are former names; *referred* names the links to its records, each as a table and
    its link. *feed*: ``{"after": number}``, if the changes of the table are recorded; its first change was the one
    after *number*. With ``"ended"`` they were recorded. *building* says of each index that does not have all entries
    yet how far it is: ``{"after": primary key, "records": number}``.
    """

    def __init__(
        self,
        name: str,
        number: int,
        uuid: Optional[UUID] = None,
        class_name: str = "",
        description: Optional[str] = None,
        key: Optional[str] = None,
        value: Optional[str] = None,
        model: Optional[str] = None,
        indexes: Optional[dict[str, dict[str, Any]]] = None,
        attached: Optional[dict[str, dict[str, Any]]] = None,
        records: tuple[Optional[bytes], ...] = (),
        fields: Optional[dict[str, Any]] = None,
        history: Sequence[str] = (),
        unsettled: Optional[str] = None,
        key_field: Optional[str] = None,
        keyed: Optional[bool] = None,
        was: Sequence[str] = (),
        referred: Sequence[Sequence[str]] = (),
        feed: Optional[dict[str, Any]] = None,
        building: Optional[dict[str, dict[str, Any]]] = None,
    ) -> None:
        self.name = name
        self.number = number
        self.uuid = uuid
        self.class_name = class_name
        self.description = description
        self.key = key
        self.value = value
        self.model = model
        self.indexes = {} if indexes is None else indexes
        self.attached = {} if attached is None else attached
        self.records = records
        self.fields = fields
        self.history = list(history)
        self.unsettled = unsettled
        self.key_field = key_field
        self.keyed = keyed
        self.was = list(was)
        self.referred = referred
        self.feed = feed
        self.building = {} if building is None else building

    @property
    def has_feed(self) -> bool:
        """Whether the changes of the table are recorded."""
        return self.feed is not None and not self.feed.get("ended")

    def copy(self) -> Slot:
        """One that can be changed without this one."""
        found = copy(self)
        found.indexes, found.attached, found.history = dict(self.indexes), dict(self.attached), list(self.history)
        found.building = dict(self.building)
        return found

    def definition(self) -> dict[str, Any]:
        """The part that zlmdb 26 does not store, as a catalogue record."""
        record = {"key": self.key, "value": self.value, "model": self.model, "indexes": self.indexes,
                  "fields": self.fields, "history": self.history, "unsettled": self.unsettled,
                  "key_field": self.key_field, "keyed": self.keyed, "was": self.was, "referred": self.referred,
                  "feed": self.feed, "building": self.building}  # fmt: skip
        return {name: entry for name, entry in record.items() if entry not in (None, {}, [], ())}

    def add_to_history(self, declaration: str) -> None:
        """Record *declaration* as the latest one."""
        earlier = [one for one in self.history if one != declaration]
        self.history = [*earlier[1 - _HISTORY :], declaration]


class Keyspace(NamedTuple):
    """Where records are: the name of the space (None: the main one), and the prefix of their keys there."""

    space: Optional[bytes]
    prefix: bytes


class Batch:
    """What is written together in *txn*: definitions of tables, None to remove one; the *last* slot number in use."""

    def __init__(self, txn: Transaction, last: Optional[int] = None) -> None:
        self.txn = txn
        self.last = last
        self.changed: dict[str, Optional[dict[str, Any]]] = {}


def uuid_of(name: str) -> UUID:
    """The UUID that a table or index without one gets in a classic file: derived from its name."""
    from uuid import UUID, uuid5  # late: it takes a millisecond to import

    return uuid5(UUID(_NAMES), name)


def slot_prefix(number: int) -> bytes:
    """The prefix of the keys of slot *number*.

    Raises `ValueError` outside 1 to 65534, `TypeError` for a value that is not an int.
    """
    if not isinstance(number, int) or isinstance(number, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"slot {number!r}: a slot is an int from {FIRST_SLOT} to {LAST_SLOT}")
    if not FIRST_SLOT <= number <= LAST_SLOT:
        raise ValueError(f"slot {number}: slots are numbered from {FIRST_SLOT} to {LAST_SLOT}")
    return number.to_bytes(2, "big")


def checked_number(number: int) -> int:
    """*number*, if slots can have it. Raises `DatabaseFull`."""
    if number > LAST_SLOT:
        raise errors.DatabaseFull(f"all slots up to {LAST_SLOT} are taken")
    return number

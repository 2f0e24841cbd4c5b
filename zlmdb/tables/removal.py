"""Deletes records that others refer to, as one statement: all that a deletion entails, or nothing.

First the records to delete are collected, with those that refer to them by a cascade, and so on; rings end. Then each
record that stays and refers to one of them by a link that restricts refuses the statement. Only then is anything
written: the links that are set to None, and the deletions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Optional

from .. import errors
from ..query.projection import ENGINE_KEYS
from ..shown import shortened
from .compiled.selected import remove_all
from .links import Link, Owners, plain_cursor, plainly

if TYPE_CHECKING:
    from .table import Table

_Found = tuple["Table[Any, Any]", bytes]
_Held = tuple[Link, "Table[Any, Any]", bytes, "Table[Any, Any]", Any]
"""A link, and the table and key of a record that refers by it to one that goes, of this table and with this key.

It may stay.
"""
_Unset = tuple["Table[Any, Any]", Link, Any, Optional[Any]]
"""The table of a record, a link of it, a key that this no longer leads to, and the next such tuple of the record."""
_Way = tuple[Link, "Table[Any, Any]", Owners]
"""A link, the table of the records that refer, and what finds those that refer to a key."""


def remove(table: Table[Any, Any], keys: Sequence[bytes]) -> int:
    """Delete the records of *table* with the engine's *keys*, and what that entails; how many of them there were.

    Raises `StillLinked` if a record that stays refers to one of them by a link that restricts; nothing is changed then.
    """
    removal = _Removal(table)
    try:
        try:
            count = removal.follow(keys)
        finally:
            removal.close()
    except Exception as error:
        table._txn._fail(error, table=table._name)
    removal.carry_out()
    return count


def clear(table: Table[Any, Any]) -> Optional[int]:
    """Delete all records of *table* as `remove` does; None if no other table refers to one, so that nothing is done.

    Otherwise returns the number of deleted records and entries, of this table and others.
    """
    for link in _referrers(table):
        source = link.source_in(table._txn)
        bound = _index(link, source)
        if bound is None or source._name == table._name:
            continue
        try:
            refers = bound.storage.storage.any(plain_cursor(source, bound.handle))
        except Exception as error:
            table._txn._fail(error, table=source._name, index=link.name)
        if refers:
            before = table._txn._dels
            remove(table, list(table.select()._run(ENGINE_KEYS)))
            return table._txn._dels - before
    return None


def _referrers(table: Table[Any, Any]) -> Iterable[Link]:
    """The links to the records of *table*. Raises `IndexNotAttached` if the program does not know all of them."""
    table._check_write()
    if table._found.undeletable is not None:
        raise errors.IndexNotAttached(f"table {table._name!r}: {table._found.undeletable}", table=table._name)
    return table._storage.referrers


def _index(link: Link, source: Table[Any, Any]) -> Any:
    """The index of *link*; None if the file does not have it any more.

    Raises if it has another one of that name, and while it is being built: not all records that refer are known then.
    """
    bound = link.index_of(source)
    if bound is not None and bound.storage.building:
        raise errors.IndexNotBuilt(
            f"the index of the link {source._name}.{link.name} is being built, and until that is done, no record that "
            f"it may lead to can be deleted",
            table=source._name,
            index=link.name,
        )
    if bound is None and link.name in source._index_state.missing:
        source._check_write()
    return bound


class _Removal:
    """The records that one statement deletes, and those that it changes."""

    def __init__(self, table: Table[Any, Any]) -> None:
        self._table, self._txn = table, table._txn
        self._going: dict[str, dict[bytes, Table[Any, Any]]] = {}
        self._queue: deque[_Found] = deque()  # those that go by a cascade, until it is known what refers to them
        self._held: list[_Held] = []
        self._may_go = _reached(table)
        self._ways: dict[str, list[_Way]] = {}  # to a table, by its name

    def follow(self, keys: Sequence[bytes]) -> int:
        """Find all that goes with the records *keys*, and what it is that stays; how many of *keys* there are.

        Raises `StillLinked`.
        """
        table, get, handle = self._table, self._table._get, self._table._db
        going = {key: table for key in keys if get(key, None, handle) is not None}
        count = len(going)
        if going:
            self._going[table._name] = going
        for key in list(going):  # with few in the queue at a time
            self._follow(table, key)
            while self._queue:
                self._follow(*self._queue.popleft())
        for link, source, owner, target, gone in self._held:
            if link.on_delete == "restrict" and not self._goes(source, owner):
                raise _still_linked(link, source, owner, target, gone)
        return count

    def _add(self, table: Table[Any, Any], key: bytes) -> None:
        """Delete this record, too."""
        going = self._going.setdefault(table._name, {})
        if key not in going:
            going[key] = table
            self._queue.append((table, key))

    def _goes(self, table: Table[Any, Any], key: bytes) -> bool:
        return key in self._going.get(table._name, ())

    def _follow(self, table: Table[Any, Any], encoded: bytes) -> None:
        """Find what refers to this record, which goes."""
        ways = self._ways.get(table._name)
        if ways is None:
            ways = self._ways[table._name] = self._ways_to(table)
        if ways:
            key = table._storage.decode_key(encoded)
            for link, source, owners in ways:
                found = owners.of(key)
                if found:
                    self._refer(link, source, found, table, key)

    def _ways_to(self, table: Table[Any, Any]) -> list[_Way]:
        """By what records refer to those of *table*."""
        found: list[_Way] = []
        for link in _referrers(table):
            source = link.source_in(self._txn)
            bound = _index(link, source)
            if bound is not None:
                refuses = source._storage.expiring is None and self._refuses(link, source)
                found.append((link, source, Owners(link, source, bound, any_one=refuses)))
        return found

    def _refuses(self, link: Link, source: Table[Any, Any]) -> bool:
        """Whether each record of *source* that refers by *link* refuses the deletion: none of them goes itself."""
        return link.on_delete == "restrict" and source._name not in self._may_go

    def close(self) -> None:
        """Close the cursors, before anything is written."""
        for ways in self._ways.values():
            for _, _, owners in ways:
                owners.close()

    def _refer(
        self, link: Link, source: Table[Any, Any], owners: list[bytes], target: Table[Any, Any], key: Any
    ) -> None:
        """The records *owners* of *source* refer to the record *key* of *target*, which goes.

        Those that have expired, and are still in the file, go with it.
        """
        if source._storage.expiring is not None:
            living: list[bytes] = []
            for owner in owners:
                if source._get(owner, None, source._db) is None:
                    self._add(source, owner)
                else:
                    living.append(owner)
            owners = living
        if link.on_delete == "cascade":
            for owner in owners:
                self._add(source, owner)
        elif owners and self._refuses(link, source):
            raise _still_linked(link, source, owners[0], target, key)
        else:
            self._held += [(link, source, owner, target, key) for owner in owners]

    def carry_out(self) -> None:
        """Write all of it."""
        changes: dict[tuple[str, bytes], _Unset] = {}
        for link, source, owner, _, key in self._held:
            if link.on_delete == "set_none" and not self._goes(source, owner):
                changes[source._name, owner] = source, link, key, changes.get((source._name, owner))
        self._held.clear()
        one = not changes and sum(map(len, self._going.values())) < 2
        with nullcontext() if one else self._txn._statement():
            for (_, owner), unset in changes.items():
                _set_none(unset[0], owner, unset)
            for going in self._going.values():
                remove_all(next(iter(going.values())), list(going), delete_alone)


def delete_alone(table: Table[Any, Any], encoded: bytes) -> int:
    """Delete the record with the engine's key *encoded*, expired or not, whoever refers to it; how many there were."""
    return plainly(table, lambda: table._remove_alone(encoded))


def _set_none(source: Table[Any, Any], owner: bytes, unset: Optional[_Unset]) -> None:
    """Store the record *owner* of *source* without its links of *unset*."""
    links: dict[Link, set[Any]] = {}
    while unset is not None:
        _, link, gone, unset = unset
        links.setdefault(link, set()).add(gone)
    key = source._storage.decode_key(owner)
    stored = source._stored(owner, key)
    if stored is not None:
        value = stored[0]
        for link, keys in links.items():
            value = link.without(value, keys)
        source[key] = value


def _reached(table: Table[Any, Any]) -> set[str]:
    """The names of the tables from which the deletion of a record of *table* may delete others."""
    found: set[str] = set()
    waiting = [table]
    while waiting:
        one = waiting.pop()
        if one._name not in found:
            found.add(one._name)
            waiting += [link.source_in(one._txn) for link in _referrers(one) if link.on_delete == "cascade"]
    return found


def _still_linked(
    link: Link, source: Table[Any, Any], owner: bytes, target: Table[Any, Any], key: Any
) -> errors.StillLinked:
    shown = source._storage.decode_key(owner)
    return errors.StillLinked(
        f"table {target._name!r}: the record {shortened(key)} cannot be deleted, since the record {shortened(shown)} "
        f"of {source._name!r} refers to it by {link.name}: delete or change that one first, or declare the link with "
        f"on_delete='cascade' or 'set_none'",
        table=target._name,
        index=link.name,
        key=key,
        owner=shown,
    )

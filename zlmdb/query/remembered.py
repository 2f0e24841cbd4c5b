"""Links of one run of a query: each record of another table is looked up once, however many records refer to it.

This holds in a read transaction, in which nothing changes, and in a write transaction for a query that is *still*: all
its rows are taken before the program continues. Otherwise the other record is looked up each time there, as it may have
changed since.
"""

from __future__ import annotations

from binascii import a2b_hex
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from operator import attrgetter
from typing import Any, Optional
from uuid import UUID

from ..handlers import let_through
from ..keys.named import UuidKey
from ..keys.uuids import uuid_from_bytes
from ..namedtuples import NamedTuple
from ..values.narrow import uuid_of_text
from ..values.paths import Path
from .following import Given, Node
from .following.known import PLAIN
from .following.linked import Link
from .following.nested import Nested
from .following.nodes import Argument
from .following.operations import Attribute

MOST = 10_000
"""Records that are remembered at once; with more of them, all are forgotten, and it begins again."""

_EXACT = (int, str, bytes, UUID, date)
"""Types of keys that are equal only if they are the same key."""


class Looked(NamedTuple):
    """A table that a part of a function looks up records in: *holder* is the expression of it.

    *private*: only plain fields are taken of the records, those at *paths*. The objects of the records themselves must
    be new ones for each row, as they can be changed. *keyed*: and all keys are fields of the record of this type, by
    which a `Remembered` has them.
    """

    holder: Node
    private: bool
    keyed: Any = None
    paths: tuple[Path, ...] = ()

    def remembering(self, parameters: Sequence[Any], *, still: bool = False) -> Any:
        """The function that looks up a key in it, of values that are captured; if it is *keyed*, a `Remembered`."""
        if self.keyed is not None:
            return self.remembered(None, self.holder, parameters, still=still)
        tables: list[Any] = []

        def table_of() -> Any:
            if not tables:  # not before a record asks: a query that looks up nothing raises no error
                tables.append(self.holder.evaluate(Given((), parameters)))
            return tables[0]

        return _objects(table_of, self.paths, still=still) if self.private else _bytes(table_of, still=still)

    def remembered(
        self, table: Any, holder: Any = None, parameters: Sequence[Any] = (), *, still: bool = True
    ) -> Remembered:  # fmt: skip
        """As `remembering`, of records of *table* if that is known, where these are *keyed*."""
        made = (Remembered if self.keyed is UUID else RememberedKeys)(table, holder, parameters)
        made.paths, made.still = self.paths, still
        return made


def links(node: Node) -> list[Looked]:
    """The tables that *node* looks up records in."""
    found: dict[Node, list[tuple[Link, str]]] = {}
    for link, field in _uses(node):
        found.setdefault(link.holder, []).append((link, field))
    return [_looked(holder, uses) for holder, uses in found.items()]


def _looked(holder: Node, uses: Sequence[tuple[Link, str]]) -> Looked:
    """How the records of *holder* are looked up for all *uses*."""
    fields = sorted({field for _, field in uses})
    if "" in fields:
        return Looked(holder, False)
    kinds = {_kind_of(link.key) for link, _ in uses}
    return Looked(holder, True, kinds.pop() if len(kinds) == 1 else None, tuple([(field,) for field in fields]))


def _kind_of(key: Node) -> Any:
    """The type of *key*, a field of the record, if records can be remembered by it; None for any other one."""
    known = key.known
    own = isinstance(key, Attribute) and isinstance(key.holder, Argument)
    return known.cls if own and known.cls in (UUID, int, str) and not known.optional else None


def _uses(node: Node) -> Iterator[tuple[Link, str]]:
    """Each linked record, with the plain field that is taken of it; with an empty name if it is anything else."""
    if isinstance(node, Link):
        yield node, ""
    for part in node.certain() if isinstance(node, Nested) else node.parts():  # what reads those rows looks up itself
        if not isinstance(part, Link):
            yield from _uses(part)
            continue
        yield part, node.name if isinstance(node, Attribute) and node.known.required.cls in PLAIN else ""
        for inner in part.parts():
            yield from _uses(inner)


def _of_text(text: str) -> bytes:
    """The bytes of the UUID that *text* spells in the usual way. Raises ValueError for all else."""
    found = a2b_hex(text.replace("-", ""))
    if len(found) != 16 or len(text) != 36 or text[8:24:5] != "----":  # else there are four of them, and digits
        raise ValueError("written in another way")
    return found


def _of_number(number: int) -> bytes:
    return number.to_bytes(16, "big")


_BYTES: dict[type[Any], Callable[[Any], bytes]] = {
    str: _of_text, int: _of_number, bytes: bytes, UUID: attrgetter("bytes")
}  # fmt: skip


class Remembered(dict[Any, Any]):
    """The linked records by their keys, UUIDs, or numbers, bytes or texts of these: found without a call in Python.

    What is missing is looked up in *table*; without one, in that which *holder* is of *parameters*. In a read
    transaction it is read where the engine has it, and only the fields at `paths` are decoded, if that takes less time.
    """

    __slots__ = ("_get", "_handle", "_holder", "_load", "_lookup", "_parameters", "_table", "paths", "still")

    _get: Any

    def __init__(self, table: Any, holder: Any = None, parameters: Sequence[Any] = ()) -> None:
        self._table, self._holder, self._parameters = table, holder, parameters
        self._get = None
        self.paths: tuple[Path, ...] = ()
        self.still = True

    def __missing__(self, key: Any) -> Any:
        get = self._get
        if get is None:
            return self._first(key)
        try:
            lookup = self._lookup
            data = get(lookup(_BYTES[type(key)](key)), None, self._handle)
            if data is None:
                return self._look(key)
            found = self._load(data)
        except Exception as error:  # what it is, the table tells
            let_through(error)
            return self._look(key)
        if len(self) >= MOST:
            self.clear()
        self[key] = found
        return found

    def _first(self, key: Any) -> Any:
        """As it looks up what is missing, before anything was."""
        table = self._found()
        if not can_be_read(table, still=self.still) or not self._looks_up(table):
            return self._look(key)
        self._get, self._handle = table._get, table._db
        self._load = _narrow(table, self.paths) or table._load
        return self.__missing__(key)

    def _looks_up(self, table: Any) -> bool:
        """Find out what makes an engine's key of *table*; False if nothing does."""
        storage = table._storage
        self._lookup: Any = storage.prefix.__add__
        return type(storage.key) is UuidKey

    def _look(self, key: Any) -> Any:
        """The record of a *key* as it is spelled here."""
        if type(key) is not UUID:
            key = uuid_of_text(key) if type(key) is str else uuid_from_bytes(_BYTES[type(key)](key))
        return self.look(key)

    def look(self, key: Any) -> Any:
        """The record with the *key*, which may be of any type."""
        return self._found()[key]

    def _found(self) -> Any:
        """The table."""
        if self._table is None:  # not before a record asks, as above
            self._table = self._holder.evaluate(Given((), self._parameters))
        return self._table


class RememberedKeys(Remembered):
    """The linked records by their keys themselves, which are numbers or texts."""

    __slots__ = ()

    def __missing__(self, key: Any) -> Any:
        get = self._get  # as above, without a call
        if get is None:
            return self._first(key)
        try:
            data = get(self._lookup(key), None, self._handle)
            if data is None:
                return self._look(key)
            found = self._load(data)
        except Exception as error:
            let_through(error)
            return self._look(key)
        if len(self) >= MOST:
            self.clear()
        self[key] = found
        return found

    def _looks_up(self, table: Any) -> bool:
        self._lookup = table._lookup
        return True

    def _look(self, key: Any) -> Any:
        return self.look(key)


def can_be_read(table: Any, *, still: bool) -> bool:
    """Whether the engine's own functions find what ``table[key]`` does, as long as the query runs."""
    return (still or not table._txn._write) and bool(table._steady)


def _narrow(table: Any, paths: Sequence[Path]) -> Optional[Callable[[Any], Any]]:
    """The function that decodes only *paths* of a record of *table*, if that takes less time."""
    programs = table._storage.generated.programs
    return None if programs is None else programs.of_linked(paths)


_FEW = 4


def look_up(table: Any, looked: Looked, most: int) -> Callable[[Any], Any]:
    """The function that looks up at most *most* keys in *table*, while nothing is written."""
    if most < _FEW:  # there is little to remember
        return table.__getitem__
    if looked.private:
        return _objects(lambda: table, looked.paths, still=True)
    return _bytes(lambda: table, still=True)


def _objects(table_of: Callable[[], Any], paths: Sequence[Path], *, still: bool) -> Callable[[Any], Any]:
    """As ``table[key]``, with one object for each record, of which only *paths* are asked."""
    known: dict[Any, Any] = {}
    loads: list[Optional[Callable[[Any], Any]]] = []

    def read(table: Any, key: Any) -> Any:
        if not loads:
            loads.append(_narrow(table, paths) if can_be_read(table, still=still) else None)
        load = loads[0]
        if load is not None:
            try:
                data = table._get(table._lookup(key), None, table._db)
                if data is not None:
                    return load(data)
            except Exception as error:  # what it is, the table tells
                let_through(error)
        return table[key]

    def look_up(key: object) -> Any:
        hashed: Any
        if type(key) is UUID:
            hashed = key.int  # a number is found without a call of `UUID.__hash__` and another one of `UUID.__eq__`
        elif type(key) in _EXACT:
            hashed = type(key), key
        else:
            return table_of()[key]
        found = known.get(hashed, known)
        if found is known:
            table = table_of()
            found = read(table, key)
            if table._txn._write and not still:
                return found
            if len(known) >= MOST:
                known.clear()
            known[hashed] = found
        return found

    return look_up


def _bytes(table_of: Callable[[], Any], *, still: bool) -> Callable[[Any], Any]:
    """As ``table[key]``: the bytes of a record are remembered, and each call returns a new object."""
    known: dict[Any, Any] = {}
    loads: list[Callable[[Any], Any]] = []

    def look_up(key: object) -> Any:
        hashed: Any
        if type(key) is UUID:
            hashed = key.int
        elif type(key) in _EXACT:
            hashed = type(key), key
        else:
            return table_of()[key]
        data = known.get(hashed)
        if data is None:
            table = table_of()
            if table._txn._write and not (still and table._steady):
                return table[key]
            try:
                data = table._get(table._lookup(key), None, table._db)
                if data is None:
                    return table[key]  # raises
                if not loads:
                    loads.append(table._load)
            except Exception as error:
                let_through(error)
                return table[key]  # which raises what it has to
            if len(known) >= MOST:
                known.clear()
            known[hashed] = data
        try:
            return loads[0](data)
        except Exception as error:
            let_through(error)
            return table_of()[key]

    return look_up

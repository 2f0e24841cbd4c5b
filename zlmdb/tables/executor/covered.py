"""Queries that the entries of an index answer: no record is read.

They need nothing but the key and fields that an entry has: those of the index, and those that it carries. Only fields
whose key encoding gives back exactly the value of the record count, so no floats, of which 0.0 and -0.0 are one key.
In write transactions, in which records change while they are read, records are read.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from itertools import chain, islice
from struct import Struct
from typing import TYPE_CHECKING, Any, Optional
from uuid import UUID

from ...codegen import Recipe, Source
from ...handlers import let_through
from ...keys import TupleKey
from ...namedtuples import NamedTuple
from ...query import inorder
from ...query.accesses import IndexFacts
from ...query.following import Followed, Following
from ...query.forms import BLOCK, ROWS, Form
from ...query.inorder import blocks_of, in_order
from ...query.loops import EntryReader
from ...query.programs import Programs
from ...query.scanned import Scanned
from ...store.ranges import pairs_from, seek
from ...values.bare import decode_int, decode_text
from ..indexstorage import BoundIndex, IndexStorage
from ..storage import Storage
from .accessranges import Range
from .foundkeys import FoundEntries, entry_ranges_of
from .indexfacts import vouches
from .zones import lacks_zone, tell_zones

if TYPE_CHECKING:
    from ...query.prepared import Prepared
    from ...values.paths import Path
    from ..table import Table

_NAMEDTUPLE: Any = collections.namedtuple  # of names that are known to the program only
_TUPLE: Any = tuple
EXACT = (int, str, bytes, bool, UUID, date, timedelta)
"""Types whose key encoding gives back exactly the value."""

_U32, _INT = Struct(">I"), Struct(">q")
_IN_PLACE: dict[Any, str] = {decode_int: "unpack_int({})[0]", decode_text: "{}.decode()"}
"""Expressions in place of functions that decode, to save a call."""

_ROWS = Recipe("row of an entry")

_FIRST_BLOCK = 8


class Cover:
    """What the entries of *index* have of a record: *fields*, each as a part of the index key or carried.

    *as_dicts*: records are dicts.
    """

    def __init__(self, index: IndexStorage, facts: IndexFacts, prefix: bytes, *, as_dicts: bool) -> None:
        """*prefix* makes an engine's key of the primary key of a record."""
        parts = {
            part.subject[0]: number
            for number, part in enumerate(facts.parts)
            if len(part.subject) == 1 and part.kind in EXACT and part.subject[0] not in index.carries
        }
        names = [*map(str, parts), *index.carries]
        self.fields = frozenset(names)
        self._positions = list(parts.values())
        self._tuples = isinstance(index.storage.key, TupleKey)
        self._index, self._prefix = index, prefix
        self._make: Callable[..., Any] = _dicts_of(names) if as_dicts else _NAMEDTUPLE("Entry", names)
        self._keyed = dict(zip(names, self._positions))
        self._as_dicts = as_dicts
        self._makers: dict[frozenset[str], Callable[[bytes, bytes], Any]] = {}

    def row(self, entry: bytes, data: bytes) -> Any:
        """An object with the fields of an entry as attributes or items: the general form of `maker`."""
        index = self._index
        key = index.load_key(entry) if self._tuples else (index.load_key(entry),)
        return self._make(*[key[number] for number in self._positions], *index.carried(data))

    def maker(self, fields: frozenset[str]) -> Callable[[bytes, bytes], Any]:
        """The function `row` that makes no more than *fields*; values must be bytes."""
        found = self._makers.get(fields)
        if found is None:
            found = self._makers[fields] = self._written(fields)
        return found

    def _written(self, fields: frozenset[str]) -> Callable[[bytes, bytes], Any]:
        source, given = Source(), sorted(fields)
        names: dict[str, Any] = {"new": _TUPLE.__new__, "general": self.row, "let_through": let_through}
        with source.block("def row(entry, carried):"):
            with source.block("try:"):
                values = self._reading(fields, source, names)
                if self._as_dicts:
                    source.add(f"return {{{', '.join([f'{one!r}: {values[one]}' for one in given])}}}")
                else:
                    names["Entry"] = _NAMEDTUPLE("Entry", given)
                    source.add(f"return new(Entry, ({''.join([f'{values[one]}, ' for one in given])}))")
            with source.block("except Exception as error:"):
                source.add("let_through(error)", "return general(entry, carried)  # it says what is wrong")
        made: Callable[[bytes, bytes], Any] = _ROWS.functions(self._index.full_name, str(source), names)["row"]
        return made

    def reader(self, fields: frozenset[str], *, keyed: bool) -> EntryReader:
        """What reads *fields* of entries within a generated function; *keyed*: and the engine's key of the record."""
        index, source = self._index, Source()
        names: dict[str, Any] = {}
        paired = bool(not index.tail or not fields.isdisjoint(index.carries))
        if paired:
            source.add("carried = get(entry)")
        if keyed:
            prefix = self._prefix
            names["before"] = prefix
            owner = f"entry[{index.tail}:]" if index.tail else "carried"
            source.add(f"key = before + {owner}" if prefix else f"key = {owner}")
        values = self._reading(fields, source, names)
        given = sorted(fields)
        if self._as_dicts:
            source.add(f"value = {{{', '.join([f'{one!r}: {values[one]}' for one in given])}}}")
            return EntryReader(source.lines, names, None, paired)
        source.add(*[f"value.{one} = {values[one]}" for one in given])
        return EntryReader(source.lines, names, type("Entry", (), {"__slots__": given}), paired)

    def _reading(self, fields: frozenset[str], source: Source, names: dict[str, Any]) -> dict[str, str]:
        """Lines that read *fields* of ``entry`` and of its value ``carried``; the expression of each."""
        index = self._index
        storage = index.storage
        codec: Any = storage.key if index.joined is None else index.joined
        values: dict[str, str] = {}
        keyed = {name: number for name, number in self._keyed.items() if name in fields}
        if keyed and isinstance(codec, TupleKey):
            lines, expressions = codec.reading(len(storage.prefix), list(keyed.values()), names)
            source.add(*lines)
            values.update(zip(keyed, expressions))
        elif keyed:
            names["decode"] = codec.raw_decode
            source.add(f"part = decode({f'entry[{len(storage.prefix)}:]' if storage.prefix else 'entry'})")
            values.update(dict.fromkeys(keyed, "part"))
        carried = [number for number, name in enumerate(index.carries) if name in fields]
        if carried:
            names["length"] = _U32.unpack_from
            source.add("end = 0")
        for number, serializer in enumerate(index.serializers[: carried[-1] + 1] if carried else ()):
            source.add("(size,) = length(carried, end)", "end += 4")
            with source.block(f"if size == {_U32.unpack(index.absent)[0]}:"):
                source.add(f"value{number} = None")
            with source.block("else:"):
                source.add("at = end", "end += size")
                if number in carried:
                    load = _IN_PLACE.get(serializer.raw_decode, f"load{number}({{}})")
                    names.update({f"load{number}": serializer.raw_decode, "unpack_int": _INT.unpack})
                    source.add(f"value{number} = {load.format('carried[at:end]')}")
            values[index.carries[number]] = f"value{number}"
        return values


def cover_of(
    index: IndexStorage, facts: IndexFacts, storage: Storage[Any, Any], following: Following
) -> Optional[Cover]:  # fmt: skip
    """How entries of *index* stand in for records of the table of *storage*; None if they cannot."""
    value = following.value_type
    known = value.fields()
    if not known or value.cls is None or index.several or not vouches(storage.value.name):
        return None
    as_dicts = issubclass(value.cls, Mapping)
    if not as_dicts and any([name.startswith("_") for name in known]):
        return None
    return Cover(index, facts, storage.prefix, as_dicts=as_dicts)


def _dicts_of(names: Sequence[str]) -> Callable[..., Any]:
    def made(*values: Any) -> dict[str, Any]:
        return dict(zip(names, values))

    return made


class Uncolumned(Programs):
    """The *programs* of a table, for objects with fields in place of stored bytes that are read at offsets."""

    def __init__(self, programs: Programs) -> None:
        self.__dict__.update(programs.__dict__)
        self.columns = None
        self._made = {}
        self.prepared = {}

    def narrow(self, paths: Sequence[Path]) -> None:
        """None: the objects have no more than what is needed."""

    def parts(self) -> None:
        """None: they are there already."""


def itself(value: Any) -> Any:
    """*value*: in the place of a decoder, of objects that stand in for records."""
    return value


def _values_of(found: dict[bytes, Any]) -> Iterable[Any]:
    return found.values()


class Covered(NamedTuple):
    """The entries to read in place of records: those of *ranges* of the index *bound*.

    They come in the order of the index if *ordered*, else in that of the primary keys with ``lower <= key < upper``;
    backwards with *reverse*.
    """

    table: Table[Any, Any]
    bound: BoundIndex
    ranges: Sequence[Range]
    ordered: bool
    reverse: bool
    lower: bytes
    upper: bytes

    cover: Cover
    fields: frozenset[str]
    """What is needed of an entry."""

    def blocks(self, *, paired: bool) -> Iterator[tuple[list[bytes], Optional[dict[bytes, bytes]]]]:
        """The entries in order, some at a time; with *paired* beside their values, by entries.

        Raises LookupError if those that have to be sorted are many.
        """
        if self.ordered:
            pairs, size = self.scan().in_index_order(), _FIRST_BLOCK
            while block := dict(islice(pairs, size)):
                yield list(block), block
                size = min(2 * size, BLOCK)
            return
        found = FoundEntries(self.table, entry_ranges_of(self.table, self.bound, self.ranges), paired=paired)
        entries = found.fewer(inorder.KEYS)
        if entries is None:
            raise LookupError("so many would take much memory")
        entries = found.in_key_order(entries, self.lower, self.upper, reverse=self.reverse)
        for at in range(0, len(entries), BLOCK):
            yield entries[at : at + BLOCK], found.values

    def listed(
        self, rows: Iterator[Any], prepared: Prepared, functions: Sequence[Followed], form: Form
    ) -> Iterator[Any]:  # fmt: skip
        """The same as *rows*, which *prepared* says, of many entries at a time by one generated function."""
        given = 0
        blocks = self._listed(prepared, functions, form)
        while True:
            try:
                block = next(blocks, None)
            except Exception as error:  # the general form tells what it is
                let_through(error)
                break
            if block is None:
                return
            if form is ROWS:
                yield from block
                given += len(block)
            elif block:
                yield block
                given += 1
        yield from islice(rows, given, None)

    def _listed(self, prepared: Prepared, functions: Sequence[Followed], form: Form) -> Iterator[Any]:
        covering, paired = prepared.covering(self.cover, self.fields, form)
        for entries, values in self.blocks(paired=paired):
            yield covering(entries, None if values is None else values.__getitem__, functions, *prepared.given)

    def scan(self) -> CoveredScan:
        """One iteration."""
        return CoveredScan(self)

    def failed(self, functions: Sequence[Followed], error: Exception, key: Any, data: Any, scan: Any) -> None:
        """Raise what *error* means, which came when *functions* were asked."""
        from .queryfailures import is_of_program, raise_own  # late: for an error only

        table = self.table
        for encoded, _ in self.scan().pairs() if is_of_program(table, error) else ():
            record = table._get(encoded, None, table._db)
            if lacks_zone(error):
                tell_zones(table._storage, functions, error, encoded, record)
            raise_own(table._storage, functions, error, encoded, record)
        self.table._txn._fail(error, table=self.table._name, index=self.bound.storage.name)


class CoveredScan(Scanned):
    """One iteration over entries, as a loop uses it: with objects that have their fields in place of stored bytes."""

    def __init__(self, covered: Covered) -> None:
        self._covered = covered
        self._raw = covered.table._raw

    def pairs(self) -> Iterator[tuple[bytes, Any]]:
        """The engine's keys of the records, with what stands in for each."""
        raw, table = self._raw, self._covered.table
        row = self._covered.cover.maker(self._covered.fields)
        for key, entry, data in self._entries():
            yield key, row(entry, data)
            if table._raw is not raw:
                self._check()

    def _check(self) -> None:
        """Raise if the transaction, which is one of reading, has ended."""
        if self._covered.table._raw is not self._raw:
            self._covered.table._cursor()

    def _entries(self) -> Iterator[tuple[bytes, bytes, bytes]]:
        """The engine's key of the record, the entry, and its value."""
        covered = self._covered
        if covered.ordered:
            return self._rows()
        blocks = in_order(self._blocks, covered.lower, covered.upper, reverse=covered.reverse)
        return chain.from_iterable(map(_values_of, blocks))

    def _rows(self) -> Iterator[tuple[bytes, bytes, bytes]]:
        """As `_entries`, in the order of the index."""
        covered = self._covered
        prefix, tail = covered.table._storage.prefix, covered.bound.storage.tail
        return (
            (prefix + (entry[tail:] if tail else bytes(data)), entry, data) for entry, data in self.in_index_order()
        )  # fmt: skip

    def in_index_order(self) -> Iterator[tuple[bytes, bytes]]:
        """The entries and their values, in the order of the index."""
        return chain.from_iterable([self._range(lower, upper) for lower, upper in self._covered.ranges])

    def _blocks(self) -> Iterator[dict[bytes, tuple[bytes, bytes, bytes]]]:
        """As `_rows`, by the key of the record, some at a time."""
        for block in blocks_of(self._rows()):
            yield {row[0]: row for row in block}

    def _range(self, lower: bytes, upper: bytes) -> Iterator[tuple[bytes, bytes]]:
        covered = self._covered
        reverse = covered.ordered and covered.reverse
        cursor = covered.table._cursor(covered.bound.handle)
        try:
            if seek(cursor, lower, upper, reverse):
                yield from pairs_from(cursor, lower, upper, reverse)
        finally:
            cursor.close()

    def current(self) -> tuple[Optional[bytes], Any]:
        """Nothing: there is no record that could be broken."""
        return None, None

    def is_paused(self, error: Exception) -> bool:
        """False: nothing is written meanwhile. Raises when the transaction has ended."""
        self._check()
        return False

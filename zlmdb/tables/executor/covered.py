"""Queries that the entries of an index answer: no record is read.

They need nothing but the key and fields that an entry has: those of the index, and those that it carries. Only fields
whose key encoding gives back exactly the value of the record count, so no floats, of which 0.0 and -0.0 are one key.
In write transactions, in which records change while they are read, records are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from itertools import chain, islice
from struct import Struct
from typing import TYPE_CHECKING, Any, Optional
from uuid import UUID

from ...codegen import Source
from ...keys import TupleKey
from ...namedtuples import NamedTuple
from ...query import inorder
from ...query.accesses import IndexFacts
from ...query.following import Following
from ...query.forms import BLOCK, Form
from ...query.inorder import blocks_of, in_order
from ...query.loops import EntryReader
from ...query.programs import Programs
from ...values.bare import decode_int, decode_text
from ..indexstorage import BoundIndex, IndexStorage
from ..scan import rows_within
from ..storage import Storage
from .accessranges import Range
from .foundkeys import FoundEntries, entry_ranges_of
from .indexfacts import vouches

if TYPE_CHECKING:
    from ...query.prepared import Prepared
    from ...values.paths import Path
    from ..table import Table

EXACT = (int, str, bytes, bool, UUID, date, timedelta)
"""Types whose key encoding gives back exactly the value."""

_U32, _INT = Struct(">I"), Struct(">q")
_IN_PLACE: dict[Any, str] = {decode_int: "unpack_int({})[0]", decode_text: "{}.decode()"}
"""Expressions in place of functions that decode, to save a call."""

FIRST_BLOCK = 8
"""Entries of which rows are listed to begin with, as the caller may want few."""


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
        self.fields = frozenset([*map(str, parts), *index.carries])
        self._keyed = {str(name): number for name, number in parts.items()}
        self._index, self._prefix, self._as_dicts = index, prefix, as_dicts

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


_Entries = tuple[list[bytes], Optional[dict[bytes, bytes]]]
"""Entries in order, and if they are needed their values."""


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

    def rows(self, prepared: Prepared, functions: Sequence[Any], form: Form, first: int) -> Iterator[Any]:
        """What *prepared* says of the entries in *form*: lists or groups of rows, of *first* entries to begin with.

        Raises where somebody else has to find out.
        """
        covering, paired = prepared.covering(self.cover, self.fields, form)
        for entries, values in self._in_index_order(first) if self.ordered else self._in_key_order(first, paired):
            rows = covering(entries, None if values is None else values.__getitem__, functions, *prepared.given)
            if rows:
                yield rows

    def _in_index_order(self, size: int) -> Iterator[_Entries]:
        pairs = self._pairs(reverse=self.reverse)
        while block := dict(islice(pairs, size)):
            yield list(block), block
            size = min(2 * size, BLOCK)

    def _in_key_order(self, size: int, paired: bool) -> Iterator[_Entries]:
        lower, upper, reverse = self.lower, self.upper, self.reverse
        found = FoundEntries(self.table, entry_ranges_of(self.table, self.bound, self.ranges), paired=paired)
        few = found.fewer(inorder.KEYS)
        blocks: Iterable[_Entries]
        if few is not None:
            blocks = [(found.in_key_order(few, lower, upper, reverse=reverse), found.values)]
        else:  # some at a time: all of them would take much memory
            pairs = (dict(some.values()) for some in in_order(self._by_key, lower, upper, reverse=reverse))
            blocks = ((list(block), block) for block in pairs)
        for entries, values in blocks:
            at = 0
            while at < len(entries):
                yield entries[at : at + size], values
                at, size = at + size, min(2 * size, BLOCK)

    def _by_key(self) -> Iterator[dict[bytes, tuple[bytes, bytes]]]:
        """Entries and their values by the key of the record, some at a time."""
        prefix, tail = self.table._storage.prefix, self.bound.storage.tail
        for block in blocks_of(self._pairs(reverse=False)):
            yield {prefix + (pair[0][tail:] if tail else pair[1]): pair for pair in block}

    def _pairs(self, *, reverse: bool) -> Iterator[tuple[bytes, bytes]]:
        table, handle = self.table, self.bound.handle
        return chain.from_iterable([rows_within(table, handle, one, reverse) for one in self.ranges])

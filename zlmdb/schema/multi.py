"""Tables with many values for each key: sorted ones in a `SetTable`, in the order of insertion in a `ListTable`.

Each is two ordinary tables of the file. The table of its name leads from a key to a number, and the table
``<name>.values`` has the values, under that number and the value, or under that number and a position. So a key is
stored once and may be as long as in any table, and everything that works on files works on these. A key has a record if
it has a value; the number of a new key is one more than the greatest in use.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Optional, TypeVar, Union

from ..errors import EncodeError, TransactionClosed
from ..missingattributes import tell
from ..query import NoList, Reads, no_length, preview
from ..shown import shortened
from ..store.transaction import Transaction
from ..tables.declares import Declares
from ..tables.selection import Selection
from ..tables.table import Table
from ..tables.tableclass import calling_locals, former_names, unknown_options
from ..tables.tablestate import expect_two
from ..typeargs import type_arguments
from ..values.named import LIST_NUMBER, SET_NUMBER
from .advice import FEW, OF_LIST_TABLES, OF_SET_TABLES, says
from .declaration import Declaration, declaration, description_of
from .multivalues import ValueList, Values, ValueSet

if TYPE_CHECKING:
    from typing_extensions import Self

K = TypeVar("K")
V = TypeVar("V")

VALUES = ".values"
"""What the name of the table of the values ends with."""


def _unknown_options(cls: type, given: Mapping[str, Any]) -> TypeError:
    """The error for options *given* in the class statement of *cls*, which may be those of a table."""
    known: Mapping[str, Any] = vars(Table)["__init_subclass__"].__func__.__kwdefaults__
    name = next((name for name in given if name in known), None)
    if name is None:
        return unknown_options(cls, given)
    return TypeError(
        f"class {cls.__name__}(..., {name}=...): only a zlmdb.Table has this option; a SetTable or ListTable has name= "
        f"and was="
    )


class Numbers(Table[K, V]):
    """The number of each key that has values."""

    _part = True


class Entries(Table[K, V]):
    """The values, by the numbers of their keys."""

    _part = True


class Several(Generic[K, V]):
    """What a `SetTable` and a `ListTable` have in common."""

    __slots__ = ("_numbers", "_txn", "_values")

    _numbers: Table[K, int]
    _values: Table[Any, Any]
    _txn: Transaction
    _number: ClassVar[Any]
    _sorted: ClassVar[bool] = False
    _table_name: ClassVar[Optional[str]] = None
    _table_was: ClassVar[tuple[str, ...]] = ()
    _locals_seen: ClassVar[Optional[dict[str, Any]]] = None

    def __init_subclass__(
        cls, *, name: Optional[str] = None, was: Union[str, tuple[str, ...], None] = None, **kwargs: Any
    ) -> None:
        try:
            super().__init_subclass__(**kwargs)
        except TypeError as error:
            raise (_unknown_options(cls, kwargs) if kwargs else error) from error
        for index, value in vars(cls).items():
            if isinstance(value, Declares):
                raise TypeError(f"{cls.__name__}.{index}: only a zlmdb.Table has indexes and links, not this table")
        if was is not None:
            cls._table_was = former_names(was)
        if name is not None:
            cls._table_name = name
        cls._locals_seen = calling_locals(mentioned=vars(cls).get("__orig_bases__", ()))

    def __init__(self) -> None:
        raise TypeError(
            f"{type(self).__name__}() makes no table: annotate an attribute of a zlmdb.Schema with the class, and take "
            f"the table from `with db.write() as t:`"
        )

    if not TYPE_CHECKING:  # checkers report it

        def __class_getitem__(cls, types):
            expect_two(cls, types, "the values of each key, such as {cls}[str, int]")
            return super().__class_getitem__(types)

    @classmethod
    def _bound(cls, numbers: Table[K, int], values: Table[Any, Any]) -> Self:
        self: Self = object.__new__(cls)
        self._numbers, self._values, self._txn = numbers, values, numbers._txn
        return self

    @classmethod
    def _parts(
        cls, declared: Any, attribute: str, localns: Optional[Mapping[str, Any]] = None
    ) -> dict[str, tuple[type[Table[Any, Any]], Declaration]]:
        """The two tables of *declared*, this class or an alias of it, by the names that a schema has them under."""
        names = {**(localns or {}), **(cls._locals_seen or {})}
        name = cls._table_name or attribute
        try:
            arguments = type_arguments(declared, Several, names)
            if len(arguments) != 2 or isinstance(arguments[0], TypeVar):
                raise TypeError(f"{cls.__name__} declares no types: write {cls.__name__}[KeyType, ValueType]")
        except TypeError as error:
            raise TypeError(f"table {attribute!r}: {error}") from error
        key, value = arguments
        numbers: Any = Numbers
        parts: dict[str, tuple[type[Table[Any, Any]], Declaration]] = {
            attribute: (Numbers, declaration(numbers[key, cls._number], name, names)),
            attribute + VALUES: (Entries, declaration(cls._entries(value), name + VALUES, names)),
        }
        parts[attribute][1].was = cls._table_was
        parts[attribute + VALUES][1].was = tuple([former + VALUES for former in cls._table_was])
        for _, part in parts.values():
            part.class_name, part.description = cls.__name__, description_of(cls)
        return parts

    @classmethod
    def _names(cls, attribute: str) -> tuple[str, str]:
        """The names of the two tables, as `_parts` gives them."""
        return attribute, attribute + VALUES

    @classmethod
    @abstractmethod
    def _entries(cls, value: Any) -> Any:
        """The declaration of the table of the values of the type *value*."""

    if not TYPE_CHECKING:  # checkers report it by themselves

        def __setitem__(self, key, values):
            fill = "extend" if isinstance(self, ListTable) else "update"
            raise TypeError(
                f"the values of a key cannot be assigned: table[key].clear() deletes them, and "
                f"table[key].{fill}(values) adds others"
            )

    # -- keys -----------------------------------------------------------------------------------------------------

    def __contains__(self, key: Any) -> bool:
        return key in self._numbers

    def __iter__(self) -> Iterator[K]:
        return iter(self._numbers)

    def __reversed__(self) -> Iterator[K]:
        return reversed(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def keys(self) -> Reads[K]:
        """The keys that have values, in their order."""
        return self._numbers.select().keys()

    def count(self) -> int:
        """The number of values, of all keys. O(1) in the tables layout."""
        return len(self._values)

    def select(
        self,
        start: Any = None,
        stop: Any = None,
        *,
        through: Any = None,
        prefix: Optional[tuple[Any, ...]] = None,
        startswith: Union[str, bytes, None] = None,
        reverse: bool = False,
    ) -> Branch[K, V]:
        """The values of a range of keys, as in `Table.select`: ``table.select(prefix=("ann",))`` is a whole branch."""
        ranged: Any = self._numbers
        given = {"through": through, "prefix": prefix, "startswith": startswith}
        return Branch(self, ranged.select(start, stop, reverse=reverse, **given))

    def items(self) -> Branch[K, V]:
        """All pairs of key and value."""
        return Branch(self, self._numbers.select())

    # -- changes --------------------------------------------------------------------------------------------------

    def __delitem__(self, key: K) -> None:
        if not self._delete(key):
            raise KeyError(key)

    def clear(self) -> None:
        """Delete all values of all keys."""
        with self._together():
            self._values.clear()
            self._numbers.clear()

    def _delete(self, key: K) -> int:
        """Delete the values of *key*; returns their number."""
        number = self._numbers.get(key)
        if number is None:
            return 0
        with self._together():
            deleted = self._of(number).delete()
            del self._numbers[key]
        return deleted

    def _new_number(self) -> int:
        last = next(iter(self._values.select(reverse=True, limit=1).keys()), None)
        return 0 if last is None else int(last[0]) + 1

    def _of(self, number: int, **bounds: Any) -> Selection[Any, Any]:
        """The entries of the key with *number*."""
        values: Any = self._values
        return values.select(prefix=(number,), **bounds)

    def _store(self, key: K, number: Optional[int], entry: Callable[[int], Any], value: Any) -> None:
        """Store *value* under what *entry* makes of the number of *key*, which it gets if it has none.

        The value comes first: one that does not fit changes nothing.
        """
        if number is not None:
            try:
                self._values[entry(number)] = value
            except EncodeError as error:
                raise self._unfit(key, error) from error.__cause__
            return
        self._numbers._storage.encode_key(key)  # what does not fit raises
        number = self._new_number()
        stored = False
        try:
            self._values[entry(number)] = value
            stored = True
            self._numbers[key] = number
        except BaseException as error:
            if stored or not isinstance(error, Exception):
                self._txn._poison(error)
            if isinstance(error, EncodeError):
                raise self._unfit(key, error) from error.__cause__
            raise

    def _remove(self, key: K, number: int, entry: Any) -> bool:
        """Delete the value under *entry*, and *key* with its last one; whether it was there."""
        with self._together():
            if not self._values._remove(self._values._storage.encode_key(entry)):
                return False
            if not self._of(number):
                del self._numbers[key]
        return True

    def _unfit(self, key: Any, error: EncodeError) -> EncodeError:
        """*error*, of an entry with a value of *key*, without the entry."""
        name, storage = self._numbers._name, self._values._storage
        if error.table != storage.name:
            return error
        details = {**error.__dict__, "table": name, "key": key}
        if error.size is not None and error.limit is not None:  # of an entry, 8 bytes of which are the number
            details.update(size=error.size - 8, limit=error.limit - 8)
            roomier = storage.roomier.replace("1978", "1970")
            said = f"the value takes {error.size - 8} bytes, at most {error.limit - 8} fit{roomier}: shorten it"
        else:
            *_, said = str(error).split(f"part 2 of {storage.key.name}: " if self._sorted else "): ", 1)
            said = said.replace("is not a key of type", "is not a value of type", 1)
        return EncodeError(f"table {name!r}, key {shortened(key)}: {said}", **details)

    @contextmanager
    def _together(self) -> Generator[None, None, None]:
        """A block that changes both tables: if it fails half-way, the transaction cannot be committed."""
        before = self._txn._puts + self._txn._dels
        try:
            yield
        except BaseException as error:
            if self._txn._puts + self._txn._dels != before or not isinstance(error, Exception):
                self._txn._poison(error)
            raise

    def __repr__(self) -> str:
        try:
            content = f"{len(self._numbers)} keys"
        except TransactionClosed:
            content = "its transaction has ended"
        return f"<{type(self).__name__} {self._numbers._name!r}: {content}>"


class SetTable(Several[K, V]):
    """A sorted set of different values for each key: ``tags: zlmdb.SetTable[str, str]``.

    ``t.tags["ann"]`` is the `ValueSet` of a key; it is empty if nothing was added. Values sort as keys do, and have the
    types of keys. Encoded, a value may have up to 8 bytes less than a key of a table: 503 bytes, or 1,970 with
    ``lib_version="1.0"``. A key may be as long as in any table.
    """

    __slots__ = ()

    _number = Annotated[int, SET_NUMBER]
    _sorted = True

    @classmethod
    def _entries(cls, value: Any) -> Any:
        parts: Any = tuple
        return Entries[parts[int, value], bytes]

    def __getitem__(self, key: K) -> ValueSet[K, V]:
        return ValueSet(self, key)

    def add(self, key: K, value: V, /) -> bool:
        """Add *value* to the set of *key*; whether it was not there before. O(log n)."""
        number = self._numbers.get(key)
        if number is not None:
            try:
                return self._values.put_new((number, value), b"")
            except EncodeError as error:
                raise self._unfit(key, error) from error.__cause__
        self._store(key, None, lambda new: (new, value), b"")
        return True

    def discard(self, key: K, value: V, /) -> bool:
        """Remove *value* from the set of *key*; whether it was there. O(log n)."""
        number = self._numbers.get(key)
        try:
            if number is None:
                self._values._storage.encode_key((0, value))  # what does not fit raises
                return False
            return self._remove(key, number, (number, value))
        except EncodeError as error:
            raise self._unfit(key, error) from error.__cause__


tell(SetTable, OF_SET_TABLES, says(OF_SET_TABLES))


class ListTable(Several[K, V]):
    """A list of values for each key, in the order of their insertion: ``events: zlmdb.ListTable[str, Event]``.

    ``t.events["ann"]`` is the `ValueList` of a key; it is empty if nothing was appended. Values are of any type and
    size that a table can store. Looking for a value reads the list, as in Python.
    """

    __slots__ = ()

    _number = Annotated[int, LIST_NUMBER]

    @classmethod
    def _entries(cls, value: Any) -> Any:
        return Entries[tuple[int, int], value]

    def __getitem__(self, key: K) -> ValueList[K, V]:
        return ValueList(self, key)

    def append(self, key: K, value: V, /) -> None:
        """Append *value* to the list of *key*. O(log n)."""
        number = self._numbers.get(key)
        position = 0
        if number is not None:
            last = next(iter(self._of(number, reverse=True, limit=1).keys()))
            position = last[1] + 1
        self._store(key, number, lambda of: (of, position), value)

    def add(self, key: K, value: V, /) -> bool:
        """Append *value* unless the list of *key* has an equal one; whether it was appended. O(length)."""
        if self._position(key, value) is not None:
            return False
        self.append(key, value)
        return True

    def discard(self, key: K, value: V, /) -> bool:
        """Remove the first value that equals *value* from the list of *key*; whether there was one. O(length)."""
        entry = self._position(key, value)
        return entry is not None and self._remove(key, entry[0], entry)

    def _position(self, key: K, value: V) -> Optional[tuple[int, int]]:
        number = self._numbers.get(key)
        if number is None:
            return None
        return next((entry for entry, found in self._of(number) if found == value), None)


tell(ListTable, OF_LIST_TABLES, says(OF_LIST_TABLES))


class Branch(NoList, Generic[K, V]):
    """The pairs of key and value of a range of keys of a `SetTable` or `ListTable`, read lazily."""

    __slots__ = ("_keys", "_table")

    _some: ClassVar[str] = FEW

    def __init__(self, table: Several[K, V], keys: Selection[K, int]) -> None:
        self._table = table
        self._keys = keys

    def __iter__(self) -> Iterator[tuple[K, V]]:
        table: Any = self._table
        keys = self._keys.keys()
        for key in keys:
            values: Values[K, V] = table[key]
            for value in reversed(values) if self._keys._reverse else values:
                yield key, value

    def __bool__(self) -> bool:
        return bool(self._keys)

    def __repr__(self) -> str:
        return f"<pairs of {self._table._numbers._name!r}: [{preview(lambda: iter(self))}]>"

    if not TYPE_CHECKING:  # checkers report it by themselves
        __len__ = no_length

    def keys(self) -> Reads[K]:
        """The keys of the range that have values."""
        return self._keys.keys()

    def first(self) -> Optional[tuple[K, V]]:
        """The first pair; None if there is none."""
        return next(iter(self), None)

    def last(self) -> Optional[tuple[K, V]]:
        """The last pair; None if there is none. O(log n)."""
        key = self._keys.keys().last()
        if key is None:
            return None
        table: Any = self._table
        values: Values[K, V] = table[key]
        value: Any = values.first() if self._keys._reverse else values.last()
        return key, value

    def count(self) -> int:
        """The number of values in the range. O(number)."""
        return sum([self._table._of(number).count() for number in self._keys.values()])

    def delete(self) -> int:
        """Delete the values of all keys of the range; returns their number."""
        with self._table._together():
            deleted = sum([self._table._of(number).delete() for number in self._keys.values()])
            self._keys.delete()
        return deleted

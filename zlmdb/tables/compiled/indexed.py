"""The functions that write to a table with indexes, generated for its key and value types and those of its indexes.

They do the same as `Table.__setitem__`, `Table.remove` and `upkeep`, for the common case: nothing is refused, by an
index or otherwise. A record is stored first, unless its key exists: finding this out costs no look-up. Only if it
exists, the old record is looked up. Then each unique index is claimed, in the same way as a new key of the table. If
one refuses, the changes are undone before anything else happens, and the general form raises the error, as it handles
all uncommon cases. The old entries are deleted without checking their records, so indexes of old files, in which an
entry may belong to another record, are left to the general form altogether.

One unique index on CPython 3.11, over a hand-written loop of `lmdb` and msgspec that checks nothing: the general form
reaches a third of the insertions a second and half of the updates, this about eight tenths of both (docs/results).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from threading import get_ident
from typing import Any, NamedTuple, Optional

from ...codegen import Recipe
from ...handlers import let_through
from ...keys import TupleKey
from ...store.transaction import Transaction
from ..indexstorage import IndexStorage
from ..storage import Storage
from .points import Methods, compiled, point_writes, specialised, writing

_WRITES = Recipe("indexed writes", txn=Transaction)
_REMOVALS = Recipe("indexed deletions", txn=Transaction)
_LISTS = Recipe("bulk writes of lists")

_STORING = """\
def __setitem__(self, key, value):
    if self._writer != thread():
        return general(self, key, value)
    try:
        encoded = {encode} if {check} else general_key(key)
        {check_key}
        data = dump(value)
        {reload}
        {new}
    except Exception as error:
        let_through(error)
        return general(self, key, value)
    {check_size}
    {check_entries}
    {handles} = self._index_state.handles
    put, db = self._put, self._db
    try:
        found = None if self._growing else self._get(encoded, None, db)
        if found is None and put(encoded, data, True, False, False, db):
            self._growing = True
            if {claimed}:
                {insert}
                if self._watched:
                    self._tell(encoded, True, ({inserted_entries}))
                txn = self._txn
                if txn._stats is None:
                    txn._changes += 1
                    txn._puts += {inserted}
                else:
                    txn._count({inserted}, 0)
                return
            {withdraw}
            self._txn._changes += 1
            self._raw.delete(encoded, b"", db)
        else:
            self._growing = False
            try:
                old = load(self._get(encoded, None, db) if found is None else found)
                {old}
            except Exception as error:
                let_through(error)
                readable = False
            else:
                readable = True
            if readable:
                if {moved}:
                    puts, dels = 1, 0
                    delete = self._raw.delete
                    {update}
                    put(encoded, data, True, True, False, db)
                    if self._watched:
                        self._tell(encoded, False, ({updated_entries}))
                    txn = self._txn
                    if txn._stats is None:
                        txn._changes += 1
                        txn._puts += puts
                        txn._dels += dels
                    else:
                        txn._count(puts, dels)
                    return
                {withdraw_moved}
                self._txn._changes += 1
    except BaseException as error:  # such as a KeyboardInterrupt between the record and an entry
        self._half_written(key, error)
        raise
    return general(self, key, value)
"""

_REMOVING = """\
def <name>(self, <argument>):
    if self._writer != thread():
        return general_<name>(self, <argument>)
    try:
        <encoding>
        data = self._get(encoded, None, self._db)
        if data is not None:
            old = load(data)
            {old}
    except Exception as error:
        let_through(error)
        return general_<name>(self, <argument>)
    if data is None:
        return general_<name>(self, <argument>)
    {handles} = self._index_state.handles
    delete = self._raw.delete
    try:
        dels = {removed} + delete(encoded, b"", self._db)
    except BaseException as error:
        self._half_written(None, error)
        raise
    txn = self._txn
    if txn._stats is None:
        txn._changes += 1
        txn._dels += dels
    else:
        txn._count(0, dels)
    <result>
"""

_BATCH = """\
def batch(items):
    rows = []
    {lists}
    for key, value in items:
        encoded = {encode} if {check} else general_key(key)
        {check_key}
        data = dump(value)
        {reload}
        {new}
        {check_size}
        {check_entries}
        rows.append((encoded, data))
        {entries}
    return rows, ({listed})
"""

# Of the two methods that delete: the argument, how the engine's key is made of it, and what they return.
_REMOVERS = {
    "__delitem__": ("key", "encoded = {encode} if {check} else general_key(key)", "return None"),
    "_remove": ("encoded", "pass", "return 1"),
}


class _Lines(NamedTuple):
    """The parts of the functions for one index, the *n*-th."""

    n: int
    storage: IndexStorage
    names: dict[str, Any]
    new: Sequence[str]
    old: Sequence[str]
    too_long: str
    owned: str

    def claimed(self, *, moved: bool) -> str:
        """An expression that claims a unique index key for the record; false if it belongs to another one."""
        n = self.n
        same = f"e{n} == d{n} or " if moved else ""
        return f"({same}e{n} is None or put(e{n}, {self.owned}, True, False, False, h{n}))"

    def insert(self) -> str:
        n = self.n
        return f"if e{n} is not None: put(e{n}, {self.owned}, True, True, False, h{n})"

    def update(self) -> list[str]:
        n = self.n
        put = "" if self.storage.unique else f"put(e{n}, {self.owned}, True, True, False, h{n}); "
        return [
            f"if e{n} != d{n}:",
            f"    if d{n} is not None: dels += delete(d{n}, b'', h{n})",
            f"    if e{n} is not None: {put}puts += 1",
        ]

    def entry(self, moved: bool) -> str:
        """An entry that a refused statement may have claimed, with its handle."""
        claimed = f"None if e{self.n} == d{self.n} else e{self.n}" if moved else f"e{self.n}"
        return f"({claimed}, h{self.n})"


def kind_of(cls: Any, general: Any, storage: Storage[Any, Any]) -> Any:
    """The subclass of the table class *cls* for *storage* and its current indexes; *general* is the base of all.

    Its attribute ``kept`` has the indexes that its methods maintain: none if they are not of this kind. Its ``batch``
    is the result of `batch_of`; None if `bulkwrites` cannot be used.
    """
    made_for, kind = storage.kinds.get(cls, (None, cls))
    if made_for is not storage.indexes:
        kept = tuple(storage.indexes) if all([index.sole and index.generated for index in storage.indexes]) else ()
        methods: Any = []
        if not storage.followers:  # which the general form knows
            methods = _index_methods(cls, general, storage, kept) if kept else point_writes(cls, general, storage)
        elif kept and all([hasattr(one, "content") for one in storage.followers]):
            methods = _followed_methods(cls, general, storage, kept)
        kind = specialised(cls, general, storage, methods, _kept=kept, _plain=cls._plain)
        storage.kinds[cls] = storage.indexes, kind
    return kind


def _index_methods(
    cls: Any, general: Any, storage: Storage[Any, Any], indexes: Sequence[IndexStorage]
) -> Iterator[Methods]:  # fmt: skip
    """The methods of a subclass of *cls* that write records of *storage* and maintain *indexes*."""
    yield Methods(("__setitem__",), lambda: _storing(general, storage, indexes))
    if cls._remove is general._remove and not storage.referrers:  # which the general `__delitem__` calls
        yield Methods(tuple(_REMOVERS), lambda: _removing(general, storage, indexes))
    if cls._plain:
        yield Methods(("_batch",), lambda: {"_batch": batch_of(storage, indexes)}, static=True)


def _followed_methods(
    cls: Any, general: Any, storage: Storage[Any, Any], indexes: Sequence[IndexStorage]
) -> Iterator[Methods]:  # fmt: skip
    """As `_index_methods`, for followers that have a method ``content``.

    It tells whether a record may be stored without asking them, and such followers do not mind what is deleted.
    """
    if not any([index.as_stored for index in indexes]):
        yield Methods(("__setitem__",), lambda: _storing_followed(general, storage, indexes))
    if cls._remove is general._remove and not storage.referrers:
        yield Methods(tuple(_REMOVERS), lambda: _removing(general, storage, indexes))


def _storing_followed(general: Any, storage: Storage[Any, Any], indexes: Sequence[IndexStorage]) -> dict[str, Any]:
    store = _storing(general, storage, indexes)["__setitem__"]
    slow = general.__setitem__
    ask = [follower.content for follower in storage.followers]

    def __setitem__(self: Any, key: Any, value: Any) -> None:
        write = slow
        if self._writer == get_ident():
            try:
                for content in ask:
                    if not content(self, value):
                        break
                else:
                    write = store
            except Exception as error:
                let_through(error)  # the general form finds out what it is, if the record cannot be stored
        write(self, key, value)

    return {"__setitem__": __setitem__}


def batch_of(storage: Storage[Any, Any], indexes: Sequence[IndexStorage]) -> Any:
    """A function of pairs of key and value: it returns the engine's rows, and for each of *indexes* its rows.

    It raises any exception if something does not fit.
    """
    lines, _ = _lines_of(storage, indexes)
    too_long = [line.too_long for line in lines if line.too_long]
    source, names = writing(
        _BATCH,
        storage,
        {},
        lists=_joined(4, [f"l{line.n} = []" for line in lines]),
        reload=_reload(indexes),
        new=_joined(8, [one for line in lines for one in line.new]),
        check_entries=f"if {' or '.join(too_long)}: raise ValueError(key)" if too_long else "",
        entries=_joined(
            8, [f"if e{line.n} is not None: l{line.n}.append((e{line.n}, {line.owned}))" for line in lines]
        ),
        listed="".join([f"l{line.n}, " for line in lines]),
    )
    return compiled(_LISTS, storage, source, _names_of(names, lines))["batch"]


def _lines_of(storage: Storage[Any, Any], indexes: Sequence[IndexStorage]) -> tuple[list[_Lines], str]:
    """The lines for all indexes, and the expression of the encoded primary key."""
    skip = len(storage.prefix)
    primary = f"encoded[{skip}:]" if skip else "encoded"
    return [_lines(n, index, primary) for n, index in enumerate(indexes)], primary


def _storing(general: Any, storage: Storage[Any, Any], indexes: Sequence[IndexStorage]) -> dict[str, Any]:
    lines, primary = _lines_of(storage, indexes)
    unique = [line for line in lines if line.storage.unique]
    too_long = [line.too_long for line in lines if line.too_long]
    source, names = writing(
        _STORING,
        storage,
        {"general": general.__setitem__, "withdraw": withdraw},
        reload=_reload([line.storage for line in lines]),
        new=_joined(8, [one for line in lines for one in line.new]),
        old=_joined(16, [one for line in lines for one in line.old]),
        check_entries=f"if {' or '.join(too_long)}: return general(self, key, value)" if too_long else "",
        handles=_handles(lines),
        claimed=" and ".join([line.claimed(moved=False) for line in unique]) or "True",
        moved=" and ".join([line.claimed(moved=True) for line in unique]) or "True",
        insert=_joined(16, [line.insert() for line in lines if not line.storage.unique]),
        inserted_entries="".join([f"(None, e{line.n}), " for line in lines]),
        updated_entries="".join([f"(d{line.n}, e{line.n}), " for line in lines]),
        inserted=" + ".join(["1", *[f"(e{line.n} is not None)" for line in lines]]),
        update=_joined(20, [one for line in lines for one in line.update()]),
        withdraw=_withdrawal(unique, primary, moved=False),
        withdraw_moved=_withdrawal(unique, primary, moved=True),
    )
    return compiled(_WRITES, storage, source, _names_of(names, lines), self=general)


def _removing(general: Any, storage: Storage[Any, Any], indexes: Sequence[IndexStorage]) -> dict[str, Any]:
    lines, _ = _lines_of(storage, indexes)
    source = "\n".join([_remover(name, *parts) for name, parts in _REMOVERS.items()])
    source, names = writing(
        source,
        storage,
        {f"general_{name}": getattr(general, name) for name in _REMOVERS},
        old=_joined(12, [one for line in lines for one in line.old]),
        handles=_handles(lines),
        removed=" + ".join([f"(d{line.n} is not None and delete(d{line.n}, b'', h{line.n}))" for line in lines]),
    )
    return compiled(_REMOVALS, storage, source, _names_of(names, lines), self=general)


def _remover(name: str, argument: str, encoding: str, result: str) -> str:
    source = _REMOVING.replace("<name>", name).replace("<argument>", argument)
    return source.replace("<encoding>", encoding).replace("<result>", result)


def _names_of(names: Mapping[str, Any], lines: Iterable[_Lines]) -> dict[str, Any]:
    """*names* and those of all *lines*."""
    return {**names, **{name: thing for line in lines for name, thing in line.names.items()}}


def _reload(indexes: Iterable[IndexStorage]) -> str:
    """The line that replaces the record by the one that will be read, if an index needs that."""
    return "value = load(data)" if any([index.as_stored for index in indexes]) else "pass"


def _joined(indent: int, lines: Iterable[str]) -> str:
    return f"\n{' ' * indent}".join(lines) or "pass"


def _handles(lines: Sequence[_Lines]) -> str:
    return "".join([f"h{line.n}, " for line in lines])


def _withdrawal(unique: Sequence[_Lines], primary: str, *, moved: bool) -> str:
    """The line that undoes the claims made before one of the *unique* indexes refused: not the last one's."""
    claimed = "".join([f"{line.entry(moved)}, " for line in unique[:-1]])
    return f"withdraw(self._raw, ({claimed}), {primary})" if claimed else "pass"


def withdraw(raw: Any, claimed: Iterable[tuple[Optional[bytes], Any]], primary: bytes) -> None:
    """Delete those of the *claimed* entries, each with the handle of its index, that belong to the record *primary*."""
    for entry, handle in claimed:
        if entry is not None and raw.get(entry, None, handle) == primary:
            raw.delete(entry, b"", handle)


def _lines(n: int, index: IndexStorage, primary: str) -> _Lines:
    key, entry = f"k{n}", f"entry{n}"
    names: dict[str, Any] = {f"take{n}": index.get_key, entry: index.entry}
    owned = "b''" if index.tail else primary
    if isinstance(index.storage.key, TupleKey):
        new, old = f"{entry}(value, {primary})", f"{entry}(old, {primary}, stored=True)"
        return _Lines(n, index, names, [f"e{n} = {new}"], [f"d{n} = {old}"], "", owned)
    check, encode, more = index.key_source(key, f"_{n}")
    encode = encode if index.joined is None else f"{encode} + {primary}"
    take = f"{key} = take{n}({{}})" if index.field is None else f"{key} = {{}}.{index.field}"

    def expression(value: str, stored: str) -> str:
        checked = f"{entry}({value}, {primary}{stored})"
        null = checked if index.not_null and not stored else "None"
        if check == "True":
            return f"{null} if {key} is None else {encode}"
        return f"{encode} if {check} else {null} if {key} is None else {checked}"

    new, old = expression("value", ""), expression("old", ", stored=True")
    return _Lines(
        n,
        index,
        {**names, **more},
        [take.format("value"), f"e{n} = {new}"],
        [take.format("old"), f"d{n} = {old}"],
        "" if index.always_fits else f"e{n} is not None and len(e{n}) > {index.storage.max_key_size}",
        owned,
    )

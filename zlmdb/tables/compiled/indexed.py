"""The functions that write to a table with indexes, generated for its key and value types and those of its indexes.

They do the same as `Table.__setitem__`, `Table.remove` and `upkeep`, for the common case: nothing is refused, by an
index or otherwise. A record is stored first, unless its key exists: finding this out costs no look-up. Only if it
exists, the old record is looked up. Then each unique index is claimed, in the same way as a new key of the table. If
one refuses, the changes are undone before anything else happens, and the general form raises the error, as it handles
all uncommon cases. The old entries are deleted without checking their records, so indexes of old files, in which an
entry may belong to another record, are left to the general form altogether. A change feed is written last. Where
records expire, these functions write as long as none has expired.

One unique index on CPython 3.11, over a hand-written loop of `lmdb` and msgspec that checks nothing: the general form
reaches a third of the insertions a second and half of the updates, this about eight tenths of both (docs/results).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Optional

from ...codegen import Recipe
from ...handlers import let_through
from ...store.transaction import Transaction
from ..indexstorage import IndexStorage
from ..storage import Batch, Storage
from .boundclass import Followers
from .entries import Lines, lines_of
from .oldrecords import OldRecords
from .points import compiled, writing

_WRITES = Recipe("indexed writes", txn=Transaction)
_REMOVALS = Recipe("indexed deletions", txn=Transaction)
_LISTS = Recipe("bulk writes of lists")

_STORING = """\
def __setitem__(self, key, value):
    try:
        encoded = {encode} if {check} else general_key(key)
        {check_key}
        data = dump(value)
        {reload}
        {new}
    except Exception as error:
        let_through(error)
        return general(self, key, value)
    {check_time}
    owner, txn, raw, db, watched, handles = self._writer
    if not owner._is_owned():
        return general(self, key, value)
    {ready}
    {check_size}
    {check_entries}
    {handles}
    try:
        found = None if growing[0] else raw.get(encoded, None, db)
        if found is None and raw.put(encoded, data, True, False, False, db):
            growing[0] = True
            if {claimed}:
                {insert}
                if watched:
                    self._tell(encoded, True, ({inserted_entries}))
                {record_new}
                if txn._stats is None:
                    txn._puts += {inserted}
                else:
                    txn._count({inserted}, 0)
                return
            {withdraw}
            raw.delete(encoded, b"", db)
        else:
            growing[0] = False
            try:
                if found is None:
                    found = raw.get(encoded, None, db)
                old = load_old(found)
                {old}
            except Exception as error:
                let_through(error)
                readable = False
            else:
                readable = True
            if readable:
                if {moved}:
                    puts, dels = 1, 0
                    {update}
                    raw.put(encoded, data, True, True, False, db)
                    if watched:
                        self._tell(encoded, False, ({updated_entries}))
                    {record_changed}
                    if txn._stats is None:
                        txn._puts += puts
                        txn._dels += dels
                    else:
                        txn._count(puts, dels)
                    return
                {withdraw_moved}
    except BaseException as error:  # such as a KeyboardInterrupt between the record and an entry
        self._half_written(key, error)
        raise
    return general(self, key, value)
"""

_REMOVING = """\
def <name>(self, <argument>):
    owner, txn, raw, db, watched, handles = self._writer
    if not owner._is_owned():
        return general_<name>(self, <argument>)
    try:
        <encoding>
        data = raw.get(encoded, None, db)
        if data is not None:
            old = load_old(data)
            {old}
            {ready}
    except Exception as error:
        let_through(error)
        return general_<name>(self, <argument>)
    if data is None:
        return general_<name>(self, <argument>)
    {handles}
    dels = 0
    try:
        {removed}
        if raw.delete(encoded, b"", db): dels += 1
        {record_gone}
    except BaseException as error:
        self._half_written(None, error)
        raise
    if txn._stats is None:
        txn._dels += dels
    else:
        txn._count(0, dels)
    <result>
"""

_BATCH = """\
def batch(items):
    if not {{*map(type, items)}} <= pairs:
        items = [(key, value) for key, value in items]
    rows = []
    {lists}
    for (key, value), data in zip(items, {dumped}):
        encoded = {encode} if {check} else general_key(key)
        {check_key}
        {reload}
        {new}
        {check_size}
        {check_entries}
        rows.append((encoded, data))
        {entries}
    return rows, ({listed})
"""

# Without indexes; `_BATCH` takes an eighth of a microsecond more for each pair.
_ROWS = """\
def batch(items):
    if not {{*map(type, items)}} <= pairs:
        items = [(key, value) for key, value in items]
    keys = [{encode} if {check} else general_key(key) for key, value in items]
    {check_sizes}
    return [*zip(keys, {dumped})], ()
"""

_READY = [
    "try:",
    "    if present.raw is not self._raw: aim(self)",
    "except Exception as error:",
    "    let_through(error)",
    "    return general(self, key, value)",
]

_PAIRS = frozenset({tuple, list})

# Of the two methods that delete: the argument, how the engine's key is made of it, and what they return.
_REMOVERS = {
    "__delitem__": ("key", "encoded = {encode} if {check} else general_key(key)", "return None"),
    "_remove": ("encoded", "pass", "return 1"),
}


def storing_asked(
    general: Any, storage: Storage[Any, Any], indexes: Sequence[IndexStorage], followers: Followers
) -> dict[str, Any]:  # fmt: skip
    """The method that stores a record, for a table with followers that are asked before."""
    store = storing(general, storage, indexes, followers)["__setitem__"]
    slow = general.__setitem__
    ask = [follower.content for follower in followers.asked]

    def __setitem__(self: Any, key: Any, value: Any) -> None:
        write = slow
        if self._writer[0]._is_owned():
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


def batch_of(storage: Storage[Any, Any], indexes: Sequence[IndexStorage]) -> Batch:
    """A function of pairs of key and value: it returns the engine's rows, and for each of *indexes* its rows.

    It raises any exception if something does not fit.
    """
    lines, _ = lines_of(storage, indexes)
    dump_all = storage.value._encoder_of_lists()
    names = {"pairs": _PAIRS, "dump_all": dump_all}
    dumped = "[dump(value) for key, value in items]"
    if dump_all is not None:
        dumped = "dump_all([value for key, value in items])"
    if lines or storage.key_field is not None:
        source, names = writing(
            _BATCH,
            storage,
            names,
            dumped=dumped,
            lists=joined(4, [f"l{line.n} = []" for line in lines]),
            reload=reload_of(indexes),
            new=joined(8, [one for line in lines for one in line.new]),
            check_entries=check_entries(lines, "raise ValueError(key)"),
            entries=joined(8, [line.listed() for line in lines]),
            listed="".join([f"l{line.n}, " for line in lines]),
        )
    else:
        fits = f"0 < min(sizes) <= max(sizes) <= {storage.max_key_size}"
        checks = ["sizes = {*map(len, keys)}", f"if not {fits}: raise ValueError(sizes)"]
        checks = [] if storage.fits(storage.key.width) else checks
        source, names = writing(_ROWS, storage, names, dumped=dumped, check_sizes=joined(4, checks))
    return compiled(_LISTS, storage, source, names_of(names, lines))["batch"]


def storing(
    general: Any, storage: Storage[Any, Any], indexes: Sequence[IndexStorage], followers: Followers
) -> dict[str, Any]:  # fmt: skip
    """The method that stores a record and the entries of *indexes*, and tells *followers*."""
    lines, primary = lines_of(storage, indexes)
    parts, more = followers.lines(primary)
    del parts["record_gone"]
    if followers.recorder is not None:
        parts["ready"] = joined(4, _READY)
    unique = [line for line in lines if line.storage.unique]
    olds = OldRecords(storage, indexes)
    source, names = writing(
        _STORING,
        storage,
        {
            "general": general.__setitem__,
            "withdraw": withdraw,
            "load_old": olds.load_whole,
            "growing": [True],  # whether the latest write stored a new record; not in the table: see `_writer` there
            **more,
        },
        reload=reload_of(indexes),
        new=joined(8, [one for line in lines for one in line.new]),
        check_time=_check_time(storage, lines),
        old=joined(16, [one for line in lines for one in (*line.old, *line.old_data)]),
        check_entries=check_entries(lines, "return general(self, key, value)"),
        handles=handles_of(lines),
        claimed=" and ".join([line.claimed(moved=False) for line in unique]) or "True",
        moved=" and ".join([line.claimed(moved=True) for line in unique]) or "True",
        insert=joined(16, [one for line in lines if not line.storage.unique for one in line.insert()]),
        inserted_entries="".join([line.told()[0] for line in lines]),
        updated_entries="".join([line.told()[1] for line in lines]),
        inserted=" + ".join(["1", *[line.inserted() for line in lines]]),
        update=joined(20, [one for line in lines for one in line.update()]),
        withdraw=withdrawal(unique, primary, moved=False),
        withdraw_moved=withdrawal(unique, primary, moved=True),
        **parts,
    )
    found = compiled(_WRITES, storage, source, names_of(names, lines), self=_class_of(general, storage))
    olds.space = found
    return found


def removing(
    general: Any, storage: Storage[Any, Any], indexes: Sequence[IndexStorage], followers: Followers
) -> dict[str, Any]:  # fmt: skip
    """The methods that delete a record and the entries of *indexes*, and tell *followers*."""
    lines, primary = lines_of(storage, indexes)
    parts, more = followers.lines(primary)
    olds = OldRecords(storage, indexes)
    source = "\n".join([_remover(name, *one) for name, one in _REMOVERS.items()])
    forms = {f"general_{name}": getattr(general, name) for name in _REMOVERS}
    source, names = writing(
        source,
        storage,
        {**forms, "load_old": olds.load_whole, **more},
        old=joined(12, [one for line in lines for one in line.old]),
        handles=handles_of(lines),
        removed=joined(8, [one for line in lines for one in line.remove()]),
        ready=parts["ready"],
        record_gone=parts["record_gone"],
    )
    found = compiled(_REMOVALS, storage, source, names_of(names, lines), self=_class_of(general, storage))
    olds.space = found
    return found


def _remover(name: str, argument: str, encoding: str, result: str) -> str:
    source = _REMOVING.replace("<name>", name).replace("<argument>", argument)
    return source.replace("<encoding>", encoding).replace("<result>", result)


def _class_of(general: Any, storage: Storage[Any, Any]) -> Any:
    """The class of the tables, as far as the generated functions know it."""
    return general if storage.expiring is None else storage.expiring.base


def check_entries(lines: Iterable[Lines], refuse: str) -> str:
    """The line that does *refuse* where the engine would refuse an entry for its length."""
    too_long = [line.too_long for line in lines if line.too_long]
    return f"if {' or '.join(too_long)}: {refuse}" if too_long else ""


def _check_time(storage: Storage[Any, Any], lines: Iterable[Lines]) -> str:
    """The line that leaves a record that has expired already to the general form."""
    if storage.expiring is None:
        return "pass"
    (time,) = [f"k{line.n}" for line in lines if line.storage.name == storage.expiring.index]
    return f"if {time} is not None and {time} <= self._cut: return general(self, key, value)"


def names_of(names: Mapping[str, Any], lines: Iterable[Lines]) -> dict[str, Any]:
    """*names* and those of all *lines*."""
    return {**names, **{name: thing for line in lines for name, thing in line.names.items()}}


def reload_of(indexes: Iterable[IndexStorage]) -> str:
    """The line that replaces the record by the one that will be read, if an index needs that."""
    return "value = load(data)" if any([index.as_stored for index in indexes]) else "pass"


def joined(indent: int, lines: Iterable[str]) -> str:
    """*lines*, all but the first with that *indent*; ``pass`` if there are none."""
    return f"\n{' ' * indent}".join(lines) or "pass"


def handles_of(lines: Sequence[Lines], handles: str = "handles") -> str:
    """The line that takes the handles of the indexes from *handles*; empty without any."""
    return "".join([f"h{line.n}, " for line in lines]) + f"= {handles}" if lines else ""


def withdrawal(unique: Sequence[Lines], primary: str, *, moved: bool) -> str:
    """The line that undoes the claims made before one of the *unique* indexes refused: not the last one's."""
    if len(unique) < 2:
        return "pass"
    claimed = "".join([f"{line.entry(moved)}, " for line in unique[:-1]])
    return f"withdraw(self._raw, ({claimed}), {primary})"


def withdraw(raw: Any, claimed: Iterable[tuple[Optional[bytes], Any]], primary: bytes) -> None:
    """Delete those of the *claimed* entries, each with the handle of its index, that belong to the record *primary*."""
    for entry, handle in claimed:
        if entry is not None and raw.get(entry, None, handle) == primary:
            raw.delete(entry, b"", handle)

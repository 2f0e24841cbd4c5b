"""The functions that change, edit or delete many records of a table, generated for its types and its indexes.

They do the same as a loop over `Table.__setitem__` or `Table._remove` would do, without a call for each record and each
of its keys. A record is looked up when its turn comes, by the engine's key; what its old entries are is taken from the
very object that the program then changes, so that the record is decoded once. If anything else was written since, or
anything is not the common case (a running scan, a refusal), the record is left to the table's own methods. The same
is true of what a filter has read of the record already: then it is not looked up, unless something was written since.

A deletion reads the records first. Then the entries of each index are deleted together, in their order, by loops of C.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, Optional

from ... import errors
from ...codegen import Recipe
from ...handlers import let_through
from ...namedtuples import NamedTuple
from ...store.transaction import Transaction
from ..editing import check_alone, stored_now
from ..indexstorage import IndexStorage
from ..misspelt import check_names, check_nested
from ..storage import Selected, Storage
from .boundclass import Followers
from .entries import Lines, lines_of
from .indexed import check_entries, handles_of, joined, names_of, reload_of, withdraw, withdrawal
from .oldrecords import OldRecords
from .points import compiled

if TYPE_CHECKING:
    from ..table import Table

CHUNK = 1000
"""Records that are deleted at once."""

Rows = Sequence[tuple[bytes, Optional[bytes]]]
"""The engine's keys of records, and what is stored there, if that was read already."""

GONE: Any = object()
"""What `read` gives where there is no record any more."""

_CHANGES = Recipe("changes of selections", txn=Transaction)
_REMOVALS = Recipe("deletions of selections", txn=Transaction)

_CHANGING = """\
def <name>(self, rows, <given>):
    txn, done = self._txn, 0
    sure, writer = False, self._writer
    owner, _, raw, db, watched, handles = writer
    <first>
    for encoded, found in rows:
        <begin>
        readable = False
        if sure or owner._is_owned():
            try:
                if found is None or not known:
                    found = raw.get(encoded, None, db)
                    if found is None:
                        continue
                value = old = load(found)
                {old}
                readable = True
            except Exception as error:
                let_through(error)
        if not readable:
            value = general_read(self, encoded)
            if value is gone:
                continue
        puts_before, dels_before = txn._puts, txn._dels
        <change>
        done += 1
        if self._writer is not writer:
            writer = self._writer
            owner, _, raw, db, watched, handles = writer
        if txn._puts != puts_before or txn._dels != dels_before:
            readable = known = False
        if readable and owner._is_owned():
            try:
                {key}
                {check_key}
                data = dump(value)
                {reload}
                {new}
                {check_links}
                {check_entries}
                {ready}
                {handles}
                if self._writer is not writer or txn._puts != puts_before or txn._dels != dels_before:
                    raise ValueError(encoded)
            except Exception as error:
                let_through(error)
            else:
                try:
                    if {moved}:
                        puts, dels = 1, 0
                        {update}
                        raw.put(encoded, data, True, True, False, db)
                        if watched:
                            self._tell(encoded, False, ({updated_entries}))
                        {record_changed}
                        if txn._stats is None:
                            txn._puts, txn._dels = puts_before + puts, dels_before + dels
                        else:
                            txn._count(puts, dels)
                        readable, sure = None, True
                    else:
                        {withdraw_moved}
                except {caught} as error:
                    self.{failed}(None, error)
                    raise
        if readable is not None:
            general_store(self, encoded, value)
            known = sure = False
            writer = self._writer
            owner, _, raw, db, watched, handles = writer
        <end>
    return done

"""

# Of the two functions that change: the arguments, what they do before all records, first and last for each, and how it
# is changed. *known*: what was read beforehand of each record is what is stored.
_CHANGERS = {
    "change": ("how", "known = True", "pass", "value = how(value)", "pass"),
    "edit": (
        "turns",
        """\
known, edited = turns.begin(txn), txn._edited""",
        "if turns.over: refuse_over()",
        """\
if len(edited) > 1 or type(value) is not turns.kind:
            turns.check(self, encoded, value)
        before = bytes(found) if readable else stored_now(self, encoded)
        try:
            turns.at = encoded
            yield value
        except GeneratorExit:
            if turns.failed:
                raise
            turns.over = True  # somebody has closed the iterator: this was the last one
        finally:
            turns.at = None
        if turns.most is not None and len(value.__dict__) > turns.most:
            check_names(self, load_key(encoded), value)
        if turns.nested:
            check_nested(self, load_key(encoded), value)
        if txn._puts != puts_before or txn._dels != dels_before:
            check_alone(self, load_key(encoded), encoded, before, value)""",
        "if turns.over: yield",
    ),
}

_REMOVING = """\
def remove(self, keys, found):
    writer = self._writer
    if not writer[0]._is_owned():
        return None
    try:
        get, db = self._get, self._db
        there, stored = [], []
        {lists}
        for encoded, data in zip(keys, found):
            if data is None:
                data = get(encoded, None, db)
            if data is not None:
                {old}
                {listed}
                {remember}
                there.append(encoded)
        {ready}
    except Exception as error:
        let_through(error)
        return None
    if self._writer is not writer:  # the function of an index has begun a scan, say
        return None
    {handles}
    delete, dels = writer[2].delete, 0
    try:
        {removed}
        dels += sum(map(delete, sorted(there), repeat(b""), repeat(db)))
        {record_gone}
    except {caught} as error:
        self.{failed}(None, error)
        raise
    self._txn._count(0, dels)
    return len(there)
"""


_REMOVING_PLAIN = """\
def remove(self, keys, found):
    if not self._writer[0]._is_owned():
        return None
    try:
        dels = sum(map(self._raw.delete, keys, repeat(b""), repeat(self._db)))
    except Exception as error:
        self._write_failed(None, error)
    self._txn._count(0, dels)
    return dels
"""


_SETTING = """\
def setting(self, rows, <given>):
    if not self._writer[0]._is_owned() or self._watched:
        return None
    get, db = self._get, self._db
    try:
        made = []
        for encoded, found in rows:
            if found is None:
                found = get(encoded, None, db)
            if found is not None:
                value = load(found)
                <change>
                made.append((encoded, dump(value)))
    except Exception as error:
        let_through(error)
        return None
    try:
        put_rows(self, None, made)
    except BaseException as error:
        self._half_written(None, error)
        raise
    self._txn._count(len(made), 0)
    return len(made)
"""


class Setting(NamedTuple):
    """Functions of a bound table, of `Rows`, and of some values: they set fields of the records.

    *change* gives how many there are. *many* does the same together, or gives None, and nothing is done: it is None if
    more belongs to each record.
    """

    change: Callable[..., int]
    many: Optional[Callable[..., Optional[int]]]

    def all(self, table: Table[Any, Any], rows: Rows, values: Sequence[Any]) -> int:
        """Set the fields of the records *rows* of *table*; how many there are."""
        done = 0
        for start in range(0, len(rows), CHUNK):
            chunk = rows[start : start + CHUNK]
            found = None if self.many is None else self.many(table, chunk, *values)
            done += self.change(table, chunk, *values) if found is None else found
        return done


def selected_of(table: Table[Any, Any]) -> Optional[Selected]:
    """What is generated for the table of *table*; None if that has methods of its own, or followers of other kinds."""
    storage = table._storage
    if not (table._plain and table._point_reads) or storage.expiring is not None:
        return None
    made = storage.generated.selected
    if made is None or made[0] is not storage.indexes:
        indexes = storage.indexes
        made = storage.generated.selected = indexes, _selected(storage, indexes)
    return made[1]


def remove_all(
    table: Table[Any, Any], keys: Sequence[bytes], alone: Callable[[Any, bytes], int],
    found: Optional[Sequence[Optional[bytes]]] = None,
) -> int:  # fmt: skip
    """Delete the records of *table* with the engine's *keys*; their number. *alone* deletes one.

    *found* is what is stored there, if that is known; it may be of the first ones only.
    """
    made = selected_of(table)
    if made is None:
        return sum(alone(table, key) for key in keys)
    done = 0
    for start in range(0, len(keys), CHUNK):
        chunk = keys[start : start + CHUNK]
        known = () if found is None else found[start : start + CHUNK]
        removed = made.remove(table, chunk, chain(known, repeat(None)))
        if removed is None:  # whatever a function of an index does
            found = None
            removed = sum([alone(table, key) for key in chunk])
        done += removed
    return done


def wants_stored(table: Table[Any, Any]) -> bool:
    """Whether `remove_all` takes less time for *table* if it is known what is stored."""
    storage = table._storage
    if not (storage.indexes or any([hasattr(one, "record") for one in storage.followers])):
        return False
    # The function of an index might write.
    fields = [index.definition.get("fields") for index in storage.indexes if index.where is None and not index.adopted]
    return len(fields) == len(storage.indexes) and all(fields)


def _selected(storage: Storage[Any, Any], indexes: Sequence[IndexStorage]) -> Optional[Selected]:
    followers = Followers.of(storage)
    if followers is None or not all([index.sole for index in indexes]):
        return None
    primary, lines, parts, names = _common(storage, indexes, followers)
    remove = _remover(storage, lines, parts, names)
    if followers.asked and any([index.as_stored for index in indexes]):
        return Selected(None, None, remove)  # what is stored differs from what the links are asked about
    source = "".join([_changer(name, *given) for name, given in _CHANGERS.items()])
    made = _compiled_changers(storage, source, lines, lines, followers, primary, parts, names)
    return Selected(made["change"], made["edit"], remove)


def _common(
    storage: Storage[Any, Any], indexes: Sequence[IndexStorage], followers: Followers
) -> tuple[str, Sequence[Lines], dict[str, str], dict[str, Any]]:  # fmt: skip
    """The expression of a primary key, the lines of *indexes*, those that record changes, and names for all of them."""
    lines, primary = lines_of(storage, indexes)
    names: dict[str, Any] = {
        "load": storage.value.bytes_decode,
        "dump": storage.dump,
        "load_key": storage.load_key,
        "key_field": storage.key_field,
        "let_through": let_through,
        "gone": GONE,
        "repeat": repeat,
        "withdraw": withdraw,
        "general_read": read,
        "general_store": store,
        "refuse_over": _refuse_over,
        "check_alone": check_alone,
        "check_names": check_names,
        "check_nested": check_nested,
        "stored_now": stored_now,
    }
    parts, more = followers.lines(primary)
    names.update(more)
    return primary, lines, parts, names_of(names, lines)


def _changer(name: str, given: str, first: str, begin: str, changed: str, end: str) -> str:
    """The source of the function *name*, in which more is to be filled in."""
    source = _CHANGING.replace("<name>", name).replace("<given>", given).replace("<first>", first)
    return source.replace("<begin>", begin).replace("<change>", changed).replace("<end>", end)


def setting_of(
    storage: Storage[Any, Any], fields: Collection[str], given: Sequence[str], lines: Sequence[str],
    names: Mapping[str, Any], rewriter: Optional[tuple[Callable[..., Any], Callable[..., bytes]]],
) -> Optional[Setting]:  # fmt: skip
    """What sets *fields* of ``value`` by these *lines*, which use *names*, and the values *given*.

    Indexes and links of other fields are left as they are. None if the table has followers that are not known here.
    *rewriter*: see `Serializer.rewriter`.
    """
    followers = Followers.of(storage)
    if followers is None:
        return None
    asked = [one for one in followers.asked if {path.partition(".")[0] for path in one.fields} & set(fields)]
    primary, lines_of_all, parts, known = _common(storage, storage.indexes, followers)
    changed = [line for line in lines_of_all if _may_move(line.storage, fields)]
    change = joined(8, lines).replace("{", "{{").replace("}", "}}")
    source = _changer("change", ", ".join(given), "known = True", "pass", change, "pass")
    few, known = followers._replace(asked=asked), {**known, **names}
    functions = _compiled_changers(storage, source, lines_of_all, changed, few, primary, parts, known)
    many = None
    if not changed and not asked and followers.recorder is None:
        from ..bulkwrites import put_rows  # late: few programs change many records

        source = _SETTING.replace("<given>", ", ".join(given)).replace("<change>", joined(16, lines))
        known["put_rows"] = put_rows
        if rewriter is not None:
            known.update(load=rewriter[0], dump=rewriter[1], assign=setattr)
        many = compiled(_CHANGES, storage, source, known, self=_table_class())["setting"]
    return Setting(functions["change"], many)


def _may_move(index: IndexStorage, fields: Collection[str]) -> bool:
    """Whether other values of *fields* may give a record other entries."""
    of: Sequence[str] = index.definition.get("fields", ())
    if not of or index.where is not None or index.adopted:
        return True
    return any([path.partition(".")[0] in fields for path in (*of, *index.carries)])


def _compiled_changers(
    storage: Storage[Any, Any], source: str, kept: Sequence[Lines], lines: Sequence[Lines], followers: Followers,
    primary: str, parts: Any, names: Any,
) -> dict[str, Any]:  # fmt: skip
    """The functions of *source*, of which *lines* maintain those of the indexes of *kept* whose entries may move."""
    unique = [line for line in lines if line.storage.unique]
    late = [line.late() for line in lines]
    names = {**names, **{f"content{n}": one.content for n, one in enumerate(followers.asked)}}
    source = source.format(
        key="pass" if storage.key_field is None else "key = load_key(encoded)",
        check_key="pass" if storage.key_field is None else storage.key_field.source,
        reload=reload_of([line.storage for line in lines]),
        old=joined(16, [part for line, (old, _) in zip(lines, late) for part in (*old, *line.old_data)]),
        new=joined(16, [part for _, new in late for part in new]),
        check_links=joined(16, list(_links(followers.asked, lines))),
        check_entries=check_entries(lines, "raise ValueError(encoded)"),
        handles=(handles_of(kept, "handles") if lines else "") or "pass",
        moved=" and ".join([line.claimed(moved=True) for line in unique]) or "True",
        update=joined(24, [part for line in lines for part in line.update()]),
        updated_entries="".join([line.told()[1] if line in lines else "(None, None), " for line in kept]),
        withdraw_moved=withdrawal(unique, primary, moved=True),
        **_failing(lines, followers.recorder is not None),
        ready=parts["ready"],
        record_changed=parts["record_changed"],
    )
    return compiled(_CHANGES, storage, source, names, self=_table_class())


def _failing(lines: Sequence[Lines], recorded: bool) -> dict[str, str]:
    """What is caught when records are written, and the method that it is for: whether more belongs to each record."""
    if lines or recorded:  # a KeyboardInterrupt may come between them
        return {"caught": "BaseException", "failed": "_half_written"}
    return {"caught": "Exception", "failed": "_write_failed"}


def _links(asked: Sequence[Any], lines: Sequence[Lines]) -> Iterable[str]:
    """The lines that leave a record to the general form whose links have changed, and lead nowhere."""
    for n, follower in enumerate(asked):
        same = [f"e{line.n} == d{line.n} or " for line in lines if line.storage.name == follower.name]
        partial = any([line.storage.where is not None for line in lines])
        yield f"if not ({'' if partial else ''.join(same)}content{n}(self, value)): raise ValueError(encoded)"


def _remover(storage: Storage[Any, Any], lines: Sequence[Lines], parts: Any, names: Any) -> Any:
    recorded = parts["record_gone"] != "pass"
    if not (lines or recorded):
        return compiled(_REMOVALS, storage, _REMOVING_PLAIN, names, self=_table_class())["remove"]
    olds = OldRecords(storage, [line.storage for line in lines])
    source = _REMOVING.format(
        lists=joined(8, [f"l{line.n} = []" for line in lines]),
        old=joined(16, ["old = load_old(data)", *[part for line in lines for part in line.old]] if lines else []),
        listed=joined(16, [line.gone() for line in lines]),
        remember="stored.append(data)" if recorded else "pass",
        **_failing(lines, recorded),
        ready=parts["ready"],
        handles=handles_of(lines, "self._handles") or "pass",
        removed=joined(
            8, [f"dels += sum(map(delete, sorted(l{line.n}), repeat(b''), repeat(h{line.n})))" for line in lines]
        ),
        record_gone=f"for encoded, data in zip(there, stored): {parts['record_gone']}" if recorded else "pass",
    )
    known = {**names, "load_old": olds.load_whole}
    olds.space = compiled(_REMOVALS, storage, source, known, self=_table_class())
    return olds.space["remove"]


def _table_class() -> Any:
    from ..table import Table

    return Table


def read(table: Table[Any, Any], encoded: bytes) -> Any:
    """The value of the record with the engine's key *encoded*; `GONE` if there is none."""
    return table.get(table._storage.decode_key(encoded), GONE)


def store(table: Table[Any, Any], encoded: bytes, value: Any) -> None:
    """Store *value* in the record with the engine's key *encoded*."""
    key = table._storage.decode_key(encoded)
    try:
        table[key] = value
    except errors.EncodeError as error:
        if value is not None:
            raise
        text = "the function returned None, which is not stored: return the record; delete() deletes the records"
        raise table._storage.named(errors.EncodeError(text), key) from error


def _refuse_over() -> None:
    raise RuntimeError("the block of edit() is over: iterate over its objects inside the block")

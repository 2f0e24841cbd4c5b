"""Attributes that tables, indexes and selections do not have: the error says what to write instead."""

from __future__ import annotations

from typing import Any, Optional, TypeVar

from ..elsewhere import has_no, public_names, tell
from ..shown import nearest

_STORE = "table[key] = value stores a record, table.add(value) stores it under a new key"
_FIND = "write .where(lambda record: ...)"
_ONE = "write table.get(key), or .where(lambda record: ...).values().first()"
_LINKED = "write t.others[record.other] in .where(...) or .fields(...), which looks it up"
_DELETE = "write del table[key] for one record, .where(lambda record: ...).delete() for some"
_RANGE = "write .select(start, stop), or loop over .items()"
_EXPIRY = 'a record expires by a field: class Users(zlmdb.Table[str, User], expires="until")'
_COMPUTED = "write .fields(lambda record: ...) first, which gives what is computed with"
OF_OTHERS = {
    **dict.fromkeys(("append", "create", "insert", "put", "save", "set", "store", "upsert"), _STORE),
    **dict.fromkeys(
        ("add_all", "bulk_create", "bulk_save_objects", "insert_many"), "write .put_many(pairs of key and value)"
    ),
    **dict.fromkeys(("filter", "filter_by", "find", "find_all", "objects", "query", "search"), _FIND),
    **dict.fromkeys(("find_one", "get_or_none", "one", "one_or_none"), _ONE),
    **dict.fromkeys(("discard", "remove"), _DELETE),
    **dict.fromkeys(("max", "mean", "min", "sum"), _COMPUTED),
    **dict.fromkeys(("irange", "iterator", "iterrows", "itertuples", "iternext", "range", "scan", "scan_iter"), _RANGE),
    **dict.fromkeys(("expire", "setex", "touch", "ttl"), _EXPIRY),
    **dict.fromkeys(
        ("hincrby", "incr", "incrby"), "write .increment(key) for a number, .change(key, function) for a record"
    ),
    **dict.fromkeys(("sort", "sort_by", "sorted"), "write .order_by(lambda record: ...)"),
    **dict.fromkeys(("offset", "skip", "take"), "write .limit(count, skip)"),
    **dict.fromkeys(("map", "only", "project", "values_list"), "write .fields(lambda record: ...)"),
    **dict.fromkeys(("exists", "any"), "write bool(...where(lambda record: ...)), or `if` before it"),
    **dict.fromkeys(("join", "prefetch_related", "select_related"), _LINKED),
    **dict.fromkeys(("fetchall", "fetchone", "scalars", "to_list", "tolist"), "write .all(), or .first() for one"),
    **dict.fromkeys(("head", "nth"), "write .select(limit=10), or .order_by(...).limit(count, skip)"),
    **dict.fromkeys(
        ("to_csv", "to_df", "to_dict", "to_json", "to_pandas"), "loop over .items() or .values(), or take dict(table)"
    ),
    "extend": "write .put_many(pairs of key and value), or .add(value) for each",
    "value_counts": "write .group_by(lambda record: ..., lambda group: group.count())",
    "exclude": "write .where(lambda record: not ...)",
    "get_or_create": "write .setdefault(key, value)",
    "all": "write .select().all()",
}
"""Names that other stores and lists have for what is written otherwise here."""

_MANY = "a selection is any number of records: write .values().first() for one, or loop over .values()"


OF_SELECTIONS = {
    "get": "write selection[key], or .where(lambda record: ...).values().first()",
    "update": "write .change(lambda record: ...), whose function returns the new record, or use the block of .edit()",
}


_PUT = "write .put(body), which returns the id of the job"
_CLAIM = "write .claim(), or zlmdb.Worker(db, lambda t: t.jobs).get() outside of the block, which waits for a job"
_SEVERAL = "several records may have one key of this index: write index[key].values().first(), or .all()"


OF_QUEUES = {
    **dict.fromkeys(("append", "appendleft", "enqueue", "insert", "push", "put_nowait", "send", "submit"), _PUT),
    **dict.fromkeys(("dequeue", "get_nowait", "popleft", "pull", "receive", "take"), _CLAIM),
    **dict.fromkeys(("ack", "acknowledge", "complete", "finish", "task_done"), "write .done(lease)"),
    **dict.fromkeys(("nack", "reject", "requeue", "retry"), "write .fail(lease), or .release(lease) if not tried"),
    **dict.fromkeys(("empty", "qsize", "size"), "write .ready.count(), or len(...) for the jobs of all states"),
    "peek": "write .ready.first()",
}


OF_TRANSACTIONS = {
    "begin_nested": "write `with t.txn.savepoint():`",
    "execute": "there is no SQL: write t.table[key], or t.table.where(lambda record: ...)",
    "flush": "what is stored in a transaction is seen in it at once, and the end of the block commits it",
    "rollback": "t.txn.abort() undoes all changes, and so does an exception that leaves the block",
}


def of_transaction(name: str, table: str, known: Any) -> str:
    """What to write for the method *name* of other transactions. Ours has a *table*; *known* is the class of tables."""
    if name in OF_TRANSACTIONS:
        return OF_TRANSACTIONS[name]
    if name.startswith("_") or not (hasattr(known, name) or name in OF_OTHERS):
        return ""
    asked = f"that is asked of a table, such as t.{table}"
    return f"{asked}: {OF_OTHERS[name]}" if name in OF_OTHERS else f"{asked}.{name}"


C = TypeVar("C", bound=type[Any])


def tells_as_table(cls: C) -> C:
    """Let objects of *cls*, tables or indexes of one, say what to write in place of what they lack."""
    from .selection import Selection  # late: it uses this module

    tell(cls, ["get", *OF_OTHERS, *public_names(Selection)], _of_table)
    return cls


def tells_as_selection(cls: C) -> C:
    """In the same way objects of *cls*, selections."""
    tell(cls, [*OF_OTHERS, *OF_SELECTIONS], _of_selection)
    return cls


def _of_table(holder: object, name: str) -> str:
    return _told(holder, name, _elsewhere(holder, name) or _of_selections(holder, name) or _nearest(holder, name))


def _of_selection(holder: object, name: str) -> str:
    advice = OF_SELECTIONS.get(name) or OF_OTHERS.get(name) or _nearest(holder, name) or _MANY
    return _told(holder, name, advice)


def _told(holder: object, name: str, advice: str) -> str:
    return has_no(holder, name, advice) if advice and not name.startswith("_") else ""


def _elsewhere(holder: object, name: str) -> Optional[str]:
    if name == "get":  # an index that is not unique: a table and a unique one have it
        return _SEVERAL
    if name in OF_QUEUES and hasattr(holder, "claim"):
        return OF_QUEUES[name]
    return OF_OTHERS.get(name)


def _of_selections(holder: object, name: str) -> Optional[str]:
    """What to write if *name* is a method of selections that *holder*, a table or an index, lacks."""
    from .selection import Selection  # late: for this error only

    if not hasattr(Selection, name) or not hasattr(holder, "select"):
        return None
    return f"write .select().{name}(...), or .where(lambda record: ...).{name}(...)"


def _nearest(holder: object, name: str) -> str:
    return nearest(name, public_names(type(holder)), listed=False)

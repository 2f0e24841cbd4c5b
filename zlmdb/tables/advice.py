"""Attributes that tables, indexes and selections do not have: the error says what to write instead."""

from __future__ import annotations

from typing import Any, Optional, TypeVar

from ..missingattributes import has_no, public_names, tell, tell_calls
from ..shown import nearest
from ..typeargs import annotated_names

_STORE = "table[key] = value stores a record, table.add(value) stores it under a new key"
_FIND = "write .where(lambda record: ...)"
_ONE = "write table.get(key), or .where(lambda record: ...).values().first()"
_LINKED = "write t.others[record.other] in .where(...) or .fields(...), which looks it up"
_DELETE = "write del table[key] for one record, .where(lambda record: ...).delete() for some"
_CHANGE = "write `with table.edit(key) as record:` for one record, .where(lambda record: ...).change(...) for some"
_REPLACE = "write table[key] = value, which stores a new record and replaces one"
_POSITION = "there are no positions: write table[key] for one record, .select(limit=10) or .order_by(...).limit(...)"
_LENGTH = "write len(table), or .where(lambda record: ...).count()"
_ENDS = "the end of the block `with db.write() as t:` commits what was stored"
_GROUP = "write .group_by(lambda record: ..., lambda group: group.count())"
_RANGE = "write .select(start, stop), or loop over .items()"
_EXPIRY = 'a record expires by a field: class Users(zlmdb.Table[str, User], expires="until")'
_PUT_MANY = "write .put_many(pairs of key and value), or .add(value) for each"
_COMPUTED = "write .fields(lambda record: ...) first, which gives what is computed with"
_ADD = "write .increment(key, by) for a number, .change(key, function) for a record"
OF_OTHERS = {
    **dict.fromkeys(("append", "create", "insert", "insert_one", "put", "save", "set", "store"), _STORE),
    **dict.fromkeys(("hset", "replace_one", "update_or_create", "upsert"), _REPLACE),
    **dict.fromkeys(("apply", "bulk_update", "update_many", "update_one"), _CHANGE),
    **dict.fromkeys(("decr", "decrby", "decrement"), "write .increment(key, -1)"),
    **dict.fromkeys(("hget", "hgetall"), "write table[key], or table.get(key)"),
    **dict.fromkeys(("hincrby", "incr", "incrby"), _ADD),
    **dict.fromkeys(("expire", "setex", "touch", "ttl"), _EXPIRY),
    **dict.fromkeys(("iloc", "loc", "nlargest", "tail", "latest", "earliest"), _POSITION),
    **dict.fromkeys(("contains", "has_key"), "write `key in table`"),
    **dict.fromkeys(("count_documents", "len", "length", "shape", "size"), _LENGTH),
    **dict.fromkeys(("commit", "flush", "sync"), _ENDS),
    "close": "the end of the block closes the table, and `with zlmdb.open(...) as db:`, or db.close(), the database",
    **dict.fromkeys(("cursor", "irange", "iterate", "iterator", "iteritems", "iternext", "iterrows"), _RANGE),
    **dict.fromkeys(("itertuples", "itervalues", "between", "range", "scan", "scan_iter", "seek"), _RANGE),
    **dict.fromkeys(("paginate", "paginator", "pages"), "write .page(count, cursor) of .select() or .where(...)"),
    **dict.fromkeys(("mget", "multi_get"), "write .get_many(keys)"),
    **dict.fromkeys(("add_all", "add_many", "bulk_create", "bulk_save_objects", "extend"), _PUT_MANY),
    **dict.fromkeys(("insert_many", "insert_multiple", "mset"), _PUT_MANY),
    **dict.fromkeys(("filter", "filter_by", "find", "find_all", "objects", "query", "search"), _FIND),
    **dict.fromkeys(("find_one", "first_or_404", "get_by_id", "get_or_404", "get_or_none", "one", "one_or_none"), _ONE),
    **dict.fromkeys(("delete_many", "delete_one", "discard", "drop", "hdel", "remove"), _DELETE),
    **dict.fromkeys(("max", "mean", "min", "sum"), _COMPUTED),
    **dict.fromkeys(("max_by", "min_by"), "write .order_by(lambda record: ...), which has .first() and .last()"),
    **dict.fromkeys(("average", "avg"), "write .fields(lambda record: ...).mean()"),
    **dict.fromkeys(("sort", "sort_by", "sort_values", "sorted"), "write .order_by(lambda record: ...)"),
    **dict.fromkeys(("offset", "skip", "take"), "write .limit(count, skip)"),
    **dict.fromkeys(("dicts", "map", "only", "project", "tuples", "values_list"), "write .fields(lambda record: ...)"),
    **dict.fromkeys(("exists", "any"), "write bool(...where(lambda record: ...)), or `if` before it"),
    **dict.fromkeys(("join", "lookup", "merge", "prefetch_related", "select_related"), _LINKED),
    **dict.fromkeys(("fetchall", "fetchone", "scalars", "to_list", "tolist"), "write .all(), or .first() for one"),
    **dict.fromkeys(("head", "nth"), "write .select(limit=10), or .order_by(...).limit(count, skip)"),
    **dict.fromkeys(("copy", "to_dict"), "loop over .items() or .values(), or take dict(table)"),
    **dict.fromkeys(("begins_with", "prefix", "startswith"), 'write .select(startswith="...")'),
    **dict.fromkeys(("to_df", "to_frame", "to_pandas"), "write pandas.DataFrame(map(vars, table.values()))"),
    **dict.fromkeys(("columns", "dtypes", "info", "schema"), "those of the class are its fields; db.tables() has them"),
    "describe": "write .fields(lambda record: record.field), which has .count(), .min(), .max() and .mean()",
    "sample": "write table.get_many(random.sample(table.keys().all(), 10))",
    "to_csv": "write csv.writer(file).writerows(table.fields(lambda record: (record.name, ...)))",
    "to_json": "write zlmdb.JsonSerializer(Class).encode(record) of each record in .values()",
    **dict.fromkeys(("changes", "on_change", "subscribe", "watch"), "write db.changes('...') outside of the block"),
    **dict.fromkeys(("agg", "aggregate", "annotate", "groupby", "pivot_table", "value_counts"), _GROUP),
    **dict.fromkeys(("drop_duplicates", "nunique"), "write .fields(lambda record: ...).distinct(), which has .count()"),
    **dict.fromkeys(("dropna", "fillna"), "write .where(lambda record: record.field is not None)"),
    "exclude": "write .where(lambda record: not ...)",
    "get_or_create": "write .setdefault(key, value); for a unique field, add the record where .by_field.key(...) finds "
    "none: .by_field.key(value, None) is None",
    **dict.fromkeys(("all", "get_all"), "write .select().all()"),
    "is_empty": "write `not table`",
    **dict.fromkeys(("minKey", "maxKey"), "write .select().keys().first(), or .last()"),
    **dict.fromkeys(("delete_all", "remove_all"), "write .clear()"),
}
"""Names that other stores and lists have for what is written otherwise here."""

_MANY = "a selection is any number of records: write .values().first() for one, or loop over .values()"
OF_SELECTIONS = {
    "items": "a selection gives the pairs itself: write `for key, record in selection:`, or .all(), which lists them",
    "get": "write selection[key], or .where(lambda record: ...).values().first()",
    "update": "write .change(lambda record: ...), whose function returns the new record, or use the block of .edit()",
}


_PUT = "write .put(body), which returns the id of the job"
_CLAIM = "write .claim(), or zlmdb.Worker(db, lambda t: t.jobs).get() outside of the block, which waits for a job"
_SEVERAL = "several records may have one key of this index: write index[key].values().first(), or .all()"
_PUTS = (
    "append", "appendleft", "apply_async", "delay", "enqueue", "insert", "lpush", "publish", "push", "put_nowait",
    "rpush", "schedule", "send", "submit",
)  # fmt: skip
_CLAIMS = (
    "blpop", "brpop", "consume", "dequeue", "get_nowait", "lpop", "next", "popleft", "pull", "receive", "reserve",
    "rpop", "take",
)  # fmt: skip
OF_QUEUES = {
    **dict.fromkeys(_PUTS, _PUT),
    **dict.fromkeys(_CLAIMS, _CLAIM),
    **dict.fromkeys(("ack", "acknowledge", "complete", "finish", "task_done"), "write .done(lease)"),
    **dict.fromkeys(("nack", "reject", "requeue", "retry"), "write .fail(lease), or .release(lease) if not tried"),
    **dict.fromkeys(("empty", "qsize", "size"), "write .ready.count(), or len(...) for the jobs of all states"),
    **dict.fromkeys(("pending", "waiting"), "write .ready, or .delayed, which select jobs by their state"),
    "failed": "write .dead, which selects the jobs that failed too often",
    "peek": "write .ready.first()",
}
"""In the same way of queues."""


OF_TRANSACTIONS = {
    "begin_nested": "write `with t.txn.savepoint():`",
    "close": "the end of the block `with db.write() as t:`, or t.txn.abort(), ends the transaction",
    "get": "that is asked of a table, such as t.{table}.get(key)",
    "delete": "that is asked of a table: del t.{table}[key]",
    "merge": "that is asked of a table: t.{table}[key] = value",
    "put": "that is asked of a table: t.{table}[key] = value",
    "refresh": "that is asked of a table: t.{table}[key] reads the record",
    "session": "t itself is what a session is: t.{table}.add(value); the end of its block commits",
    "execute": "there is no SQL: write t.{table}[key], or t.{table}.where(lambda record: ...)",
    "flush": "what is stored in a transaction is seen in it at once, and the end of the block commits it",
    "rollback": "t.txn.abort() undoes all changes, and so does an exception that leaves the block",
}


def of_transaction(name: str, table: str, known: Any) -> str:
    """What to write for the method *name* of other transactions. Ours has a *table*; *known* is the class of tables."""
    if name in OF_TRANSACTIONS:
        return OF_TRANSACTIONS[name].format(table=table)
    if name.startswith("_") or not (hasattr(known, name) or name in OF_OTHERS):
        return ""
    asked = f"that is asked of a table, such as t.{table}"
    return f"{asked}: {OF_OTHERS[name]}" if name in OF_OTHERS else f"{asked}.{name}"


_KEY = "a table of zlmdb looks up keys: write .where(lambda record: record.name == ...).values().first() for a field"
_SOME = "of a table of zlmdb, write .fields(lambda record: ...) for fields, .where(lambda record: ...) for a condition"
tell_calls(
    {
        **dict.fromkeys(("Table.get", "UniqueIndexView.get"), _KEY),
        "MutableMapping.pop": f"{_KEY}, .claim() for the next job of a queue",
        **dict.fromkeys(("Table.items", "Table.keys", "Table.values"), _SOME),
        **dict.fromkeys(("Table.put_new", "Table.replace"), "a table of zlmdb takes the key and the whole record"),
        "Table.add": "a table of zlmdb takes one record, and makes the key; write table[key] = value for a given key",
        "Table.change": "a table of zlmdb takes the key, and a function that returns the new record",
        "Table.edit": "write `with table.edit(key) as record:` for one record, .where(...).edit() for some",
        "Table.put_many": "it replaces records that have these keys; .put_new(key, value) for each keeps them",
        "Table.increment": "a table of zlmdb takes the key, and by how much",
        "Selection.change": "it takes a function that returns the new record: dataclasses.replace(record, field=...)",
    }
)


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
    advice = _elsewhere(holder, name) or _of_selections(holder, name) or _of_records(holder, name)
    return _told(holder, name, advice or _of_indexes(holder, name) or _nearest(holder, name))


def _of_selection(holder: object, name: str) -> str:
    advice = OF_SELECTIONS.get(name) or OF_OTHERS.get(name) or _of_records(holder, name, "selection")
    advice = advice or _nearest(holder, name) or _MANY
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


def _of_records(holder: Any, name: str, what: str = "table") -> str:
    """What to write if *name* is a field of the records of *holder*, a table or *what* has records of one."""
    types = getattr(getattr(holder, "_table", holder), "_query_types", lambda: None)()
    cls: Any = None if types is None else types.value.cls
    if isinstance(cls, type) and name in annotated_names(cls):
        one = "table[key]" if what == "table" else ".values().first()"
        return (
            f"a {what} is any number of records: write {one}.{name} for one, .fields(lambda record: record.{name}) for "
            f"all"
        )
    return ""


def _of_indexes(holder: Any, name: str) -> str:
    """What to write if *name* would be that of an index of a field of the records of *holder*."""
    field = name[3:] if name.startswith("by_") else ""
    if not (field and _of_records(holder, field)):
        return ""
    return (
        f"the class of a table declares its indexes: class Things(zlmdb.Table[...]): {name} = zlmdb.Index[...]"
        f"({field!r}); without one, write .where(lambda record: record.{field} == ...)"
    )


def _nearest(holder: object, name: str) -> str:
    return nearest(name, public_names(type(holder)), listed=False)

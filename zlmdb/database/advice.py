"""Names that a database does not have, and what to write instead."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ..missingattributes import has_no, public_names, tell_calls
from ..schema.schema import Schema
from ..shown import nearest

BLOCKS = "records are in the tables of its schema: write `with db.write() as t:`, or db.read(), and t.table[key]"
_ENDS = "a transaction has it: the end of the block `with db.write() as t:` commits, an exception undoes its changes"
_ASKED = "there is no SQL: write `with db.read() as t:` and t.table[key], or t.table.where(lambda record: ...)"
_MADE = "the tables that the schema declares are made when it is opened: add the attribute, and open it again"
_EMPTIES = "Database.scratch(path) deletes a database; t.table.clear() empties a table"
_NUMBERS = "db.stats() has the sizes, db.tables() the tables with their types and counts"
_SMALLER = "db.compact() makes the file smaller"
_OTHERWISE = {
    **dict.fromkeys(("on_change", "subscribe", "watch"), "write db.changes('users'), for the name of a table"),
    "save": f"{_ENDS}; db.backup(path) copies the file",
    "awrite": "write `await db.arun(function)`, which calls it with the transaction in a thread",
    "commit": _ENDS, "rollback": _ENDS, "execute": _ASKED, "query": _ASKED, "create_all": _MADE, "create_table": _MADE,
    "create_tables": _MADE, "drop_all": _EMPTIES, "drop_tables": _EMPTIES, "truncate": _EMPTIES,
    "copy": "db.backup(path) copies it while others write",
    "set_mapsize": "the file grows by itself, up to maxsize= bytes of zlmdb.open() if that is given",
    "info": _NUMBERS, "stat": _NUMBERS, "size": _NUMBERS, "schema": _NUMBERS, "metadata": _NUMBERS, "count": _NUMBERS,
    "path": "write .dbpath", "filename": "write .dbpath", "name": "write .dbpath",
    **dict.fromkeys(("iterate", "iterator"), "write t.table.select(start, stop) in a block `with db.read() as t:`"),
    **dict.fromkeys(("prefixed_db", "box"), "the schema declares a table for each; it is t.table in a block"),
    "snapshot": "a block `with db.read() as t:` is one", "write_batch": "a block `with db.write() as t:` is one",
    **dict.fromkeys(("export", "export_json"), "db.dump(file) writes JSON lines, db.load(file) reads them"),
    "drop_table": "a migration drops a table, with old.drop(name)", "pack": _SMALLER, "vacuum": _SMALLER,
}  # fmt: skip
OF_OTHERS = (
    *_OTHERWISE, "Session", "add", "all", "atomic", "begin_transaction", "cursor", "delete", "find", "get", "insert",
    "items", "keys", "multi_get", "put", "root", "search", "session", "set", "transaction",
)  # fmt: skip
"""Methods that others have: databases, connections and dicts."""


_NAMED = 'write db.dump(file, tables=["users"]) for some tables'
_INTO = "it stores the tables that the file has: `with open(path, 'rb') as file: db.load(file)`"
_CALLED = "it calls a function of the tables alone: write db.{name}(lambda t: function(t, ...))"
tell_calls(
    {
        "Operations.dump": _NAMED,
        "Operations.load": _INTO,
        **{f"Calls.{name}": _CALLED.format(name=name) for name in ("run", "submit", "arun", "aread")},
    }
)


def tables_of_file(db: Any) -> Collection[str]:
    """The tables of the file of *db*, if it is open without a schema, as far as that was read."""
    store = db.__dict__.get("_store") if db.__dict__.get("_schema") is Schema else None
    found = None if store is None else store.contents
    return () if found is None else [name for name in found.slots if name.isidentifier()]


def of_database(db: Any, name: str) -> str:
    """What to write for *name*: a table of the schema, a method of others, or a misspelt one; empty for any other."""
    if name in db.__dict__.get("_storages", ()):
        return has_no(db, name, f"tables are in a transaction, `with db.read() as t:`, as t.{name}")
    if name in tables_of_file(db):
        return has_no(db, name, f"without a schema, a table is t[{name!r}] in a block, `with db.read() as t:`")
    ours = public_names(db.__class__)
    advice = _OTHERWISE.get(name, BLOCKS) if name in OF_OTHERS else nearest(name, ours, listed=False)
    return has_no(db, name, advice) if advice else ""

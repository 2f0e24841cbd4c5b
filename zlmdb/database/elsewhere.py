"""Names that a database does not have, and what to write instead.

A ``__getattr__`` would tell it, too, but up to Python 3.11 each attribute of an object of such a class takes as long as
a call of C, and a small transaction reads some of them. So each of these names is an attribute of the class that
raises.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

BLOCKS = "records are in the tables of its schema: write `with db.write() as t:`, or db.read(), and t.table[key]"
_ENDS = "a transaction has it: the end of the block `with db.write() as t:` commits, an exception undoes its changes"
_ASKED = "there is no SQL: write `with db.read() as t:` and t.table[key], or t.table.where(lambda record: ...)"
_MADE = "the tables that the schema declares are made when it is opened: add the attribute, and open it again"
_SMALLER = "db.compact() makes the file smaller"
_OTHERWISE = {
    "commit": _ENDS, "rollback": _ENDS, "execute": _ASKED, "query": _ASKED, "create_all": _MADE, "create_table": _MADE,
    "create_tables": _MADE, "drop_all": "Database.scratch(path) deletes a database; t.table.clear() empties a table",
    "drop_table": "a migration drops a table, with old.drop(name)", "pack": _SMALLER, "vacuum": _SMALLER,
}  # fmt: skip
OF_OTHERS = (
    "add", "begin_transaction", "commit", "create_all", "create_table", "create_tables", "cursor", "delete", "drop_all",
    "drop_table", "execute", "get", "insert", "items", "keys", "pack", "put", "query", "rollback", "root", "session",
    "set", "transaction", "vacuum",
)  # fmt: skip
"""Methods that others have: databases, connections and dicts."""


class Elsewhere:
    """In place of the attribute *name*: whoever asks for it gets an `AttributeError` with what to write."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, db: Any, owner: type[Any]) -> NoReturn:
        name = self._name
        if db is None:
            raise AttributeError(f"type object {owner.__name__!r} has no attribute {name!r}")
        advice = ""
        if name in db.__dict__.get("_storages", ()):
            advice = f": tables are in a transaction, `with db.read() as t:`, as t.{name}"
        elif name in OF_OTHERS:
            advice = f": {_OTHERWISE.get(name, BLOCKS)}"
        raise AttributeError(f"{type(db).__name__!r} object has no attribute {name!r}{advice}")


def tell_where(cls: type[Any], names: Iterable[str]) -> None:
    """Let databases of the class *cls* say where the tables *names* are, unless it has something of that name."""
    for name in names:
        if not any([name in vars(base) for base in cls.__mro__]):
            setattr(cls, name, Elsewhere(name))


def names_of(db: Any, found: Iterable[str]) -> list[str]:
    """Those of the *found* names of its class that *db* has."""
    told = {name for base in type(db).__mro__ for name, value in vars(base).items() if type(value) is Elsewhere}
    return [name for name in found if name not in told or hasattr(db, name)]

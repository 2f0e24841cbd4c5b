"""What is public is what the pages of docs/api list, and any name that is not reserved can be an index or a table."""

from __future__ import annotations

import inspect
import keyword
import re
from contextlib import suppress
from pathlib import Path
from types import new_class
from typing import Any, Literal, get_origin, get_type_hints

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import zlmdb
from zlmdb import reserved
from zlmdb.store.transaction import Transaction

API = "\n".join([page.read_text() for page in sorted((Path(__file__).parents[1] / "docs" / "api").glob("*.rst"))])
LISTED = {
    name: set(names.replace(",", " ").split())
    for name, names in re.findall(r"autoclass:: zlmdb\.(\w+)\n   :members: ((?:.+\n(?:      .+\n)*))", API)
}
CLASSES = [
    "Database", "Schema", "Transaction", "TransactionStats", "Table", "Selection", "Reads", "Page", "Plan",
    "Index", "UniqueIndex", "IndexView", "UniqueIndexView", "PersistentMap", "CheckReport", "SetTable", "ListTable",
    "ValueSet", "ValueList",
]  # fmt: skip
FIELDS = {"CheckReport": {"bytes", "found", "layout", "seconds"}}
"""Fields of dataclasses, which the docstring of the class tells."""


def public(name: str) -> set[str]:
    cls = getattr(zlmdb, name)  # some of its names only say what to write instead
    return {one for one in dir(cls) if not one.startswith("_") and hasattr(cls, one)} - FIELDS.get(name, set())


@pytest.mark.parametrize("name", CLASSES)
def test_the_public_names_of_a_class_are_those_that_the_api_pages_list(name: str) -> None:
    assert sorted(public(name)) == sorted(LISTED.get(name, set()))


@pytest.mark.parametrize("error", sorted(zlmdb.errors.__all__))
def test_errors_have_the_documented_details_and_no_other_names(error: str) -> None:
    details = {"table", "index", "key", "owner", "size", "limit", "path"}
    cls = getattr(zlmdb, error)
    builtin = {name for base in cls.__mro__ if base.__module__ == "builtins" for name in dir(base)}
    assert {one for one in dir(cls) if not one.startswith("_")} - builtin == details - builtin


@pytest.mark.parametrize("name", [*CLASSES, "Cache", "Changes", "Queue", "Reader", "Worker"])
def test_no_property_says_at_run_time_that_it_gives_one_of_some_values(name: str) -> None:
    """Jedi, which completes names in Jupyter, resolves that and fails: then ``db.`` and the tab key gave nothing."""
    for one in dir(getattr(zlmdb, name)):
        found = inspect.getattr_static(getattr(zlmdb, name), one)
        if isinstance(found, property) and inspect.isfunction(found.fget):
            with suppress(NameError):  # it is known to type checkers only, and Jedi takes it as a text
                assert get_origin(get_type_hints(found.fget).get("return")) is not Literal, one


@pytest.mark.parametrize("name", [*CLASSES, "Cache", "Changes", "Queue", "Worker"])
def test_help_shows_no_default_as_an_object_at_an_address(name: str) -> None:
    cls = getattr(zlmdb, name)
    own = [one for one in dir(cls) if not one.startswith("_") and hasattr(cls, one)]
    methods = [getattr(cls, one) for one in own if inspect.isfunction(getattr(cls, one))]
    ours = [one for one in methods if str(one.__module__).startswith("zlmdb")]  # not `MutableMapping.pop`
    shown = [f"{one.__name__}{inspect.signature(one)}" for one in ours]
    assert not [one for one in shown if " at 0x" in one]


def test_every_public_name_of_a_table_is_refused_as_an_index() -> None:
    assert public("Table") <= reserved.INDEXES


def test_every_public_name_of_a_schema_object_is_refused_as_a_table_but_those_of_the_predecessor() -> None:
    predecessor = {name for name in public("Schema") if name.startswith("SLOT_")} | {"slot"}
    assert public("Schema") - predecessor <= reserved.TABLES


def table_with(index: str, **kwargs: Any) -> Any:
    def body(namespace: dict[str, Any]) -> None:
        namespace[index] = zlmdb.UniqueIndex[str](lambda value: value, version=1)

    return new_class("Texts", (zlmdb.Table[int, str],), kwargs, body)


def schema_with(table: str, kind: Any) -> Any:
    def body(namespace: dict[str, Any]) -> None:
        namespace["__annotations__"] = {table: kind}
        namespace["__module__"] = __name__

    return new_class("Store", (zlmdb.Schema,), {}, body)


@pytest.mark.once  # the same on every interpreter
@pytest.mark.parametrize("name", sorted(reserved.INDEXES))
def test_a_reserved_name_is_refused_as_an_index(name: str) -> None:
    with pytest.raises(TypeError, match=f"an index cannot be called '{name}', the name is reserved"):
        table_with(name)


@pytest.mark.parametrize("name", sorted(reserved.TABLES))
def test_a_reserved_name_is_refused_as_a_table(name: str) -> None:
    with pytest.raises(TypeError, match=f"a table cannot be called '{name}', the name is reserved"):
        zlmdb.open(None, schema_with(name, zlmdb.Table[int, str]))


def test_names_with_an_underscore_are_refused() -> None:
    with pytest.raises(TypeError, match="an index cannot be called '_raw', names that begin with an underscore"):
        table_with("_raw")
    with pytest.raises(TypeError, match="underscore"):
        zlmdb.open(None, schema_with("_raw", zlmdb.Table[int, str]))


def uses(index: str, table: str) -> None:
    """Write, read and find by the *index* of the *table*, whatever they are called."""
    with zlmdb.open(None, schema_with(table, table_with(index))) as db:
        with db.write() as t:
            rows = getattr(t, table)
            rows[1] = "one"
            with t.txn.savepoint():
                rows.put_many([(2, "two"), (3, "three")])
            rows[2] = "deux"
            with pytest.raises(zlmdb.DuplicateKey):
                rows[4] = "one"
            del rows[3]
        with db.read() as t:
            rows = getattr(t, table)
            assert dict(rows) == {1: "one", 2: "deux"}
            assert rows.get(1) == "one"
            assert getattr(rows, index)["deux"] == "deux"
            assert list(getattr(rows, index).select()) == [(2, "deux"), (1, "one")]
            assert list(t) == [table]


INTERNAL = sorted(
    {name.lstrip("_") for cls in (zlmdb.Table, Transaction, zlmdb.Schema, zlmdb.Database) for name in dir(cls)}
    | {"label", "name", "storage", "txn", "writer", "title", "identity", "place", "self", "mro", "register", "open"}
)
GOOD = [name for name in INTERNAL if name.isidentifier() and not keyword.iskeyword(name)]


@pytest.mark.once
@pytest.mark.parametrize("name", GOOD)
def test_what_is_called_so_inside_can_be_an_index_and_a_table(name: str) -> None:
    no_index, no_table = reserved.refused(name, reserved.INDEXES), reserved.refused(name, reserved.TABLES)
    uses("by_text" if no_index else name, "texts" if no_table else name)


IDENTIFIERS = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,20}", fullmatch=True).filter(
    lambda one: not keyword.iskeyword(one)
)


@given(IDENTIFIERS, IDENTIFIERS)
@example("label", "storage")
@example("é", "größe")
def test_any_other_identifier_is_an_index_and_a_table(index: str, table: str) -> None:
    if reserved.refused(index, reserved.INDEXES) or reserved.refused(table, reserved.TABLES):
        return
    uses(index, table)


def test_the_page_lists_what_is_reserved() -> None:
    listed = {
        what: set(names.replace("``", " ").replace(",", " ").split())
        for what, names in re.findall(r"\* as an? (index|table): ((?:.+\n(?:  .+\n)*))", API)
    }
    assert listed == {"index": set(reserved.INDEXES), "table": set(reserved.TABLES)}

"""Attributes that raise, and say what to write instead, are for people who try them, and in nobody's way."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import zlmdb
from zlmdb.missingattributes import has_no, tell, tell_more
from zlmdb.tables.mappingviews import Values


class Helpers:
    """What a program adds to its tables, with names that other libraries have."""

    def find(self) -> str:
        return "found"

    @property
    def broken(self) -> None:
        raise AttributeError("an error of the program itself")


class Texts(zlmdb.Table[int, str], Helpers):
    fetchall = zlmdb.Index[str](lambda text: text, version=1)

    def upsert(self) -> str:
        return "stored"


class Store(zlmdb.Schema):
    texts: Texts
    execute: zlmdb.Table[str, int]


@pytest.fixture
def db() -> Iterator[Any]:
    with zlmdb.open(None, Store) as database, zlmdb.Cache(None) as cache:
        database.cache = cache
        yield database


@pytest.mark.parametrize(
    "cls",
    [
        zlmdb.Table, zlmdb.Queue, zlmdb.IndexView, zlmdb.UniqueIndexView, zlmdb.Selection, zlmdb.Reads, zlmdb.Index,
        zlmdb.Database, zlmdb.Cache, Values, zlmdb.Schema,
    ],
)  # fmt: skip
def test_what_is_read_often_has_no_getattr_with_which_python_reads_all_attributes_slowly(cls: Any) -> None:
    unnamed = cls is zlmdb.Schema and not hasattr(AttributeError(), "obj")  # so that a misspelt table is always told
    assert hasattr(cls, "__getattr__") is unnamed


def test_names_of_a_program_come_before_those_that_raise(db: Any) -> None:
    with db.write() as t:
        t.texts[1] = "one"
        t.execute["a"] = 1
        assert t.texts.fetchall["one"].all() == [(1, "one")]
        assert (t.texts.find(), t.texts.upsert(), dict(t.execute)) == ("found", "stored", {"a": 1})
        assert {"fetchall", "find", "upsert"} <= set(dir(t.texts)) & set(dir(Texts))
        assert {"texts", "execute"} <= set(dir(t))


def test_names_that_raise_are_not_there(db: Any) -> None:
    with db.read() as t:
        for one, name in (
            (t.texts, "append"), (t.texts.fetchall, "filter"), (t.texts.select(), "filter"), (t, "commit"),
            (t.texts.values(), "all"), (t.texts.select().values(), "avg"), (db, "cursor"), (db.cache, "items"),
            (Texts.fetchall, "select"),
        ):  # fmt: skip
            assert not hasattr(one, name)
            assert not hasattr(type(one), name)
            assert name not in dir(one)
            with pytest.raises(AttributeError, match=f"'{name}'[:;] "):
                getattr(one, name)
        assert "append" not in dir(Texts)


def test_an_error_of_a_program_keeps_its_text(db: Any) -> None:
    with pytest.raises(AttributeError, match="^an error of the program itself$"), db.read() as t:
        _ = t.texts.broken
    with pytest.raises(AttributeError, match="^'str' object has no attribute 'nane'$"), db.read() as t:
        _ = t.texts.get(1, "one").nane


def test_a_function_in_a_transaction_is_told_as_a_block_is(db: Any) -> None:
    with pytest.raises(AttributeError, match=r"declares no table 'text'; did you mean 'texts'\?$"):
        db.run(lambda t: t.text)


def test_a_function_that_has_captured_an_index_is_called(db: Any) -> None:
    """Not read: what the methods of the index do depends on the transaction."""
    with db.write() as t:
        t.texts[1] = "one"
        index = t.texts.fetchall
        some = t.texts.where(lambda text: index.count() > 0)
        assert some.keys().all() == [1]
        assert "attribute count of index, which is a IndexView" in str(some.explain())


@pytest.mark.twice
def test_a_thread_may_add_names_while_another_one_looks_at_them() -> None:
    """As databases do that are opened at the same time."""
    errors: list[BaseException] = []

    class Holder:
        """Has no attributes of its own."""

    def work(number: int) -> None:
        try:
            for i in range(100):
                tell_more(Holder, [f"name_{number}_{i}"])
                assert f"name_{number}_{i}" not in dir(Holder())
        except BaseException as error:
            errors.append(error)

    tell(Holder, ("first",), has_no)
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    for error in errors:
        raise error

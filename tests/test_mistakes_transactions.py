"""What newcomers get wrong with blocks, asyncio and functions to run: each is told what to write instead."""

from __future__ import annotations

import asyncio
import copy
import gc
import pickle
import re
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from newcomers import (
    Club,
    Member,
    Note,
    Notebook,
    Task,
)

import zlmdb


def test_a_second_writer_of_a_thread_is_answered_with_the_first_one(notebook: Any, tmp_path: Path) -> None:
    advice = r"use the tables of that one, in `with t\.txn\.savepoint\(\):`"
    with zlmdb.open(tmp_path, Notebook) as other:
        for one in (notebook, other):
            with one.write(), pytest.raises(zlmdb.NestedTransaction, match=advice), one.write():
                pass
            with one.write(), pytest.raises(zlmdb.NestedTransaction, match=advice):
                one.auto.hits["a"] = 1


def test_a_writer_is_told_of_a_block_that_a_task_or_a_generator_of_its_thread_has_left_open(notebook: Any) -> None:
    here = rf"begun at {re.escape(__file__)}:\d+, .* its block is suspended, .*await db\.arun\(function\)"

    async def visit(pause: float) -> None:  # as two requests do
        with notebook.write() as t:
            t.hits.increment("a")
            await asyncio.sleep(pause)

    async def main() -> None:
        task = asyncio.ensure_future(visit(0.05))
        await asyncio.sleep(0)
        with pytest.raises(zlmdb.NestedTransaction, match=here):
            await visit(0)
        await task

    def dependency() -> Iterator[Any]:
        with notebook.write() as t:
            yield t

    asyncio.run(main())
    given = dependency()
    next(given)
    with pytest.raises(zlmdb.NestedTransaction, match=here):
        next(dependency())
    given.close()
    with notebook.read() as t:
        assert dict(t.hits) == {"a": 1}


def test_who_waits_for_a_writer_is_told_where_that_began(notebook: Any) -> None:
    def waits() -> None:
        with pytest.raises(zlmdb.WriterTimeout, match=rf"transaction, begun at {re.escape(__file__)}:\d+, for more"):
            notebook.write(timeout=0.01).__enter__()

    with notebook.write(), ThreadPoolExecutor(1) as threads:
        threads.submit(waits).result()


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="elsewhere the end of a block is found out later")
def test_who_waits_for_a_block_that_was_left_in_another_thread_is_told(tmp_path: Path) -> None:
    def dependency() -> Iterator[Any]:  # as a framework runs one
        with notebook.write() as t:
            yield t

    with zlmdb.open(tmp_path / "db", Notebook) as notebook, ThreadPoolExecutor(1) as threads:
        given = dependency()
        threads.submit(next, given).result()
        with pytest.raises(zlmdb.WrongThread, match="begin the transaction in the function"):
            given.close()
        with pytest.raises(zlmdb.WriterTimeout, match="and left in another thread, while only its own one can end it"):
            notebook.write(timeout=0.01).__enter__()
        threads.submit(notebook.run, lambda t: t.hits.increment("a")).result()  # which does so when it writes next
        notebook.run(lambda t: t.hits.increment("a"))
        assert notebook.auto.hits["a"] == 2


def test_a_function_whose_body_would_not_run_is_refused(tmp_path: Path) -> None:
    async def later(t: Any) -> None:
        t.hits["a"] = 1

    def slowly(t: Any) -> Iterator[int]:
        t.hits["a"] = 1
        yield 1

    async def main(notebook: Any) -> None:
        for call in (notebook.arun, notebook.aread):
            with pytest.raises(TypeError, match=r"later\(\) has 'async' in it.*give a plain function"):
                await call(later)

    with zlmdb.open(tmp_path, Notebook) as notebook, warnings.catch_warnings():
        warnings.simplefilter("error")  # that a coroutine was never awaited
        with pytest.raises(TypeError, match=r"later\(\) has 'async' in it.*give a plain function"):
            notebook.run(later)
        with pytest.raises(TypeError, match=r"slowly\(\) has 'yield' in it.*give a plain function"):
            notebook.run(lambda t: slowly(t))
        with pytest.raises(TypeError, match="'async'"):
            notebook.submit(later).result()
        asyncio.run(main(notebook))
        assert list(notebook.run(lambda t: (number for number in (1, 2)))) == [1, 2]
        assert "a" not in notebook.auto.hits


def test_an_edit_without_with_is_answered_with_it(notebook: Any) -> None:
    with notebook.write() as t:
        record, records = t.notes.edit(1), t.notes.select().edit()
        for use in (lambda: record.title, lambda: setattr(record, "title", "Uno")):
            with pytest.raises(AttributeError, match=r"write `with table\.edit\(key\) as record:`"):
                use()
        with pytest.raises(TypeError, match=r"write `with selection\.edit\(\) as records:`"):
            list(records)
        with record as note:
            note.title = "Uno"
        with records as notes:
            for note in notes:
                note.stars += 1
        assert [(note.title, note.stars) for note in t.notes.values()] == [("Uno", 4), ("Two", 2)]


def test_methods_of_a_transaction_are_not_missed_among_the_tables(notebook: Any) -> None:
    with notebook.write() as t:
        with pytest.raises(AttributeError, match=r"the transaction has it: t\.txn\.commit"):
            t.commit()
        with pytest.raises(AttributeError, match=r"assigned to t\.hit would not be stored; did you mean 'hits'"):
            t.hit = {"a": 1}


def test_a_database_used_as_a_dict_or_a_connection_is_answered_with_its_tables(notebook: Any) -> None:
    for use in (
        lambda: notebook["a"],
        lambda: notebook.__setitem__("a", 1),
        lambda: notebook.__delitem__("a"),
        lambda: list(notebook),
        lambda: "a" in notebook,
    ):
        with pytest.raises(TypeError, match=r"a database is no dict of records: .*with db\.write\(\) as t:"):
            use()
    for name, advice in (
        ("keys", "records are in the tables of its schema"),
        ("execute", "there is no SQL: "),
        ("commit", "a transaction has it: the end of the block .* commits"),
    ):
        with pytest.raises(AttributeError, match=rf"no attribute '{name}': {advice}"):
            getattr(notebook, name)


def test_a_transaction_is_not_copied_which_would_abort_it(notebook: Any) -> None:
    with notebook.write() as t:
        t.notes[1] = Note("One")
        for use in (copy.copy, copy.deepcopy, pickle.dumps):
            for one in (t, t.txn):
                with pytest.raises(TypeError, match="is neither copied nor pickled"):
                    use(one)
        gc.collect()
    with notebook.read() as t:
        assert t.notes[1] == Note("One")


def test_the_tables_without_a_block_are_copied_and_pickled_with_their_database(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "db", Notebook) as notebook:
        notebook.auto.notes[1] = Note("One")
        for use in (copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))):
            for one in (use(notebook.auto).notes, use(notebook.auto.notes)):
                assert one[1] == Note("One")


def test_an_async_block_is_answered_with_a_plain_one(notebook: Any) -> None:
    async def use() -> None:
        async with notebook.write():
            pass

    with pytest.raises(TypeError, match=r"write `with db\.write\(\) as t:` without `await` in it, or `await db\.arun"):
        asyncio.run(use())


def test_a_block_that_is_awaited_is_answered_with_one_that_is_not(notebook: Any) -> None:
    async def use(block: Any) -> None:
        await block

    for block in (notebook.read(), notebook.write()):
        with pytest.raises(TypeError, match=r"write `with db\.read\(\) as t:` .* without `await`, or `await db\.aread"):
            asyncio.run(use(block))
        block.txn.abort()


@pytest.mark.parametrize("method", ["run", "submit", "arun", "aread"])
def test_what_is_no_function_is_not_run(notebook: Any, method: str) -> None:
    async def use(given: Any) -> None:
        await getattr(notebook, method)(given)

    said = rf"^{method}\(\) takes a function .* write db\.{method}\(function\) without parentheses"
    for given in (5, None, use(len)):
        with pytest.raises(TypeError, match=said):
            asyncio.run(use(given))


def test_a_write_awaited_inside_a_write_block_is_refused_and_not_waited_for(planner: Any) -> None:
    async def main() -> None:
        worker = zlmdb.Worker(planner, lambda t: t.jobs)
        with planner.write() as t:
            with pytest.raises(zlmdb.NestedTransaction, match="end the block before you await"):
                await planner.arun(lambda t: t.tasks.clear())
            with pytest.raises(zlmdb.NestedTransaction):
                await worker.aput("a job")
            later = asyncio.ensure_future(planner.arun(lambda t: len(t.tasks)))
            t.tasks[3] = Task("Three")
        assert await later == 3

    asyncio.run(main())


def test_a_block_that_was_not_begun_shows_how_to_begin_it(planner: Any) -> None:
    with planner.write() as t:
        assert repr(t.tasks.edit(1)) == "<a block: write `with table.edit(key) as record:`>"
        assert repr(t.tasks.select().edit()) == "<a block: write `with selection.edit() as records:`>"


@pytest.mark.parametrize(
    ("name", "said"), [("path", "write .dbpath"), ("size", r"db.stats\(\)"), ("schema", r"db.tables\(\)")]
)
def test_what_a_database_is_asked_for_elsewhere_says_where_it_is(shop: Any, name: str, said: str) -> None:
    with pytest.raises(AttributeError, match=rf"'{name}': .*{said}"):
        getattr(shop, name)
    assert name not in dir(shop)


def test_a_table_of_a_file_that_is_open_without_a_schema_is_answered_with_its_name() -> None:
    with zlmdb.open(None) as shop:
        with pytest.raises(
            AttributeError, match=r"^db.auto has the tables that a schema declares, .* and t\['users'\]"
        ):
            _ = shop.auto.users
        named = (
            r"^'Schema' object has no attribute 'users'(: without a schema, a table of the file is t\['users'\]; s|$)"
        )
        with pytest.raises(AttributeError, match=named), shop.read() as t:
            _ = t.users  # type: ignore[attr-defined]


def test_a_table_of_a_database_without_a_schema_is_answered_with_the_block(tmp_path: Path) -> None:
    zlmdb.open(tmp_path / "db", Club).close()
    with zlmdb.open(tmp_path / "db") as db:
        with pytest.raises(
            AttributeError, match=r"'users': without a schema, a table is t\['users'\] in a block, `with"
        ):
            _ = db.users  # type: ignore[attr-defined]
        assert not hasattr(db, "users")


def test_rows_for_async_for_say_so_to_a_loop_and_to_await() -> None:
    async def awaited(db: Any) -> None:
        await db.arows(lambda t: t.users)

    async def read(db: Any, snapshot: bool) -> list[Any]:
        rows = db.arows(lambda t: t.users.fields(lambda u: u.name), snapshot=snapshot)
        first = await rows.__anext__()
        rest = [row async for row in rows]
        await rows.aclose()
        return [first, rest]

    with zlmdb.open(None, Club) as db:
        with db.write() as t:
            t.users.update({1: Member("Ann", 31), 2: Member("Bob", 35)})
        rows: Any = db.arows(lambda t: t.users)
        with pytest.raises(TypeError, match="write `async for row in db.arows"):
            list(rows)
        with pytest.raises(TypeError, match="write `async for row in db.arows"):
            asyncio.run(awaited(db))
        assert asyncio.run(read(db, False)) == asyncio.run(read(db, True)) == ["Ann", ["Bob"]]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("atomic", r"write `with db\.write\(\) as t:`"),
        ("search", r"write `with db\.write\(\) as t:`"),
        ("copy", r"db\.backup\(path\)"),
        ("stat", r"db\.stats\(\)"),
        ("set_mapsize", "the file grows by itself"),
        ("drop_tables", r"t\.table\.clear\(\) empties a table"),
    ],
)
def test_a_method_of_another_database_is_answered(books: Any, name: str, said: str) -> None:
    with pytest.raises(AttributeError, match=said):
        getattr(books, name)


def test_a_selection_that_leaves_its_block_is_answered_with_a_list(books: Any) -> None:
    def found() -> Any:
        with books.read() as t:
            return t.users.where(lambda user: user.name == "Ann")

    with pytest.raises(
        zlmdb.TransactionClosed, match=r"inside its with block, .* returns a list, as \.all\(\) gives it"
    ):
        list(found())

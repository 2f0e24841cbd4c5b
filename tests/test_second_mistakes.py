"""The mistakes of somebody's first week: in indexes and links, in queries, in asyncio, and what a shell shows."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import new_class
from typing import Any, Optional

import pytest

import zlmdb


@dataclass
class Task:
    name: str
    stars: Optional[int] = None
    tags: list[str] = field(default_factory=list)
    owners: list[int] = field(default_factory=list)

    @property
    def rank(self) -> int:
        return self.starz  # type: ignore[attr-defined, no-any-return]


class Tasks(zlmdb.Table[int, Task]):
    by_stars = zlmdb.Index[int]("stars")


class Store(zlmdb.Schema):
    tasks: Tasks
    jobs: zlmdb.Queue[str]


@pytest.fixture
def db() -> Iterator[Any]:
    with zlmdb.open(None, Store) as database:
        with database.write() as t:
            t.tasks.update({1: Task("One", 3), 2: Task("Two", 1)})
        yield database


ByText = zlmdb.Table[str, Task]


def _with(index: Any, model: Any = Task) -> Any:
    """A schema whose table has the *index*."""
    table = new_class("Indexed", (zlmdb.Table[int, model],), {}, lambda body: body.update({"by_it": index}))
    return new_class("S", (zlmdb.Schema,), {}, lambda body: body.update({"__annotations__": {"tasks": table}}))


# -- declarations -----------------------------------------------------------------------------------------------------


def test_an_index_of_a_list_is_answered_with_each() -> None:
    with pytest.raises(TypeError, match=r"'tags' is list\[str\], and .* key type str: add each=True"):
        _with(zlmdb.Index[str]("tags"))
    with pytest.raises(TypeError, match=r"'tags' is list\[str\], which is no key: add each=True"):
        zlmdb.open(None, _with(zlmdb.Index("tags")))
    with pytest.raises(TypeError, match=r"'owners' is list\[int\], .*each=True"):
        zlmdb.open(None, _with(zlmdb.ForeignKey["Indexed"]("owners")))
    with pytest.raises(TypeError, match=r"elements of one type, not str$"):
        _with(zlmdb.Index[str]("name", each=True))


def test_an_index_of_one_field_with_a_tuple_of_types_is_refused() -> None:
    with pytest.raises(TypeError, match=r"'name' is str, .* key type tuple\[str, int\]: give it the type of the field"):
        _with(zlmdb.Index[tuple[str, int]]("name"))


def test_a_carried_field_that_is_not_there_is_answered_with_the_fields() -> None:
    with pytest.raises(TypeError, match=r"carries='starz' .*\(it has name, stars, tags, owners\): name one"):
        zlmdb.open(None, _with(zlmdb.Index[str]("name", carries=("starz",))))


def test_a_link_to_a_class_of_records_is_answered_with_that_of_the_table() -> None:
    link: Any = zlmdb.ForeignKey[Task]("stars")  # type: ignore[type-var]
    with pytest.raises(TypeError, match=r"leads to Task, .* but Indexed: name the class of the table, not that of its"):
        zlmdb.open(None, _with(link))


def test_a_mismatch_names_the_class_of_a_table_only_if_it_has_one(tmp_path: Path) -> None:
    @dataclass
    class Other:
        title: str

    with zlmdb.open(tmp_path, new_class("S", (zlmdb.Schema,), {}, _annotated(Task))):
        pass
    with pytest.raises(zlmdb.SchemaMismatch, match=r"^table 'tasks': "):
        zlmdb.open(tmp_path, new_class("S", (zlmdb.Schema,), {}, _annotated(Other)))
    with pytest.raises(zlmdb.SchemaMismatch, match=r"^table 'tasks' of the class Indexed: "):
        zlmdb.open(tmp_path, _with(zlmdb.Index[str]("title"), Other))
    text_keys: Any = new_class("S", (zlmdb.Schema,), {}, lambda body: body.update(__annotations__={"tasks": ByText}))
    with pytest.raises(zlmdb.SchemaMismatch, match=r"^table 'tasks' in the file has keys of type int, the program"):
        zlmdb.open(tmp_path, text_keys)


def _annotated(model: Any) -> Any:
    return lambda body: body.update({"__annotations__": {"tasks": zlmdb.Table[int, model]}})


def test_a_mode_for_reading_is_answered_with_readonly(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^mode='r': expected the mode of new files.*readonly=True"):
        zlmdb.open(tmp_path, Store, mode="r")  # type: ignore[call-overload]


# -- queries ----------------------------------------------------------------------------------------------------------


def test_the_traceback_of_a_mistake_in_a_query_ends_at_its_line(db: Any) -> None:
    def starred(task: Task) -> bool:
        return task.stars > 2  # type: ignore[operator]

    for wrong, line in (
        (lambda task: task.nmae == "One", "<lambda>"),
        (lambda task: task.name > 3, "<lambda>"),
        (lambda task: task.rank == 3, "rank"),
        (starred, "starred"),
    ):
        with db.read() as t, pytest.raises(TypeError) as caught:
            t.tasks.where(wrong)
        last = traceback.extract_tb(caught.value.__traceback__)[-1]
        assert (last.filename, last.name) == (__file__, line)
        assert "zlmdb.query" not in "".join(traceback.format_exception(TypeError, caught.value, None))


def test_what_rows_lack_is_asked_of_the_records_before(db: Any) -> None:
    with db.read() as t:
        for rows in (t.tasks.fields(lambda task: task.name), t.tasks.select().values().distinct()):
            for name in ("where", "limit", "order_by"):
                with pytest.raises(
                    AttributeError, match=rf"rows of a query .*: write \.{name}\(\.\.\.\) before fields"
                ):
                    getattr(rows, name)
            with pytest.raises(AttributeError, match=r"no attribute 'avg': write \.mean\(\)"):
                rows.avg()
            assert not hasattr(rows, "shape")


def test_changing_as_in_sql_is_answered_with_change(db: Any) -> None:
    with db.read() as t:
        with pytest.raises(AttributeError, match=r"write \.change\(lambda record"):
            t.tasks.select().update()
        with pytest.raises(AttributeError, match=r"write \.all\(\)"):
            t.tasks.select().fetchall()
    with pytest.raises(AttributeError, match=r"with db\.write\(\) as t"):
        db.transaction()


def test_a_group_without_its_function_is_answered_with_both(db: Any) -> None:
    with db.read() as t:
        for given in ((), ("count",)):
            with pytest.raises(TypeError, match=r"write group_by\(lambda record: \.\.\., lambda group: group\.count"):
                t.tasks.group_by(lambda task: task.name, *given)


# -- asyncio, queue and cache -----------------------------------------------------------------------------------------


def test_a_write_awaited_inside_a_write_block_is_refused_and_not_waited_for(db: Any) -> None:
    async def main() -> None:
        worker = zlmdb.Worker(db, lambda t: t.jobs)
        with db.write() as t:
            with pytest.raises(zlmdb.NestedTransaction, match="end the block before you await"):
                await db.arun(lambda t: t.tasks.clear())
            with pytest.raises(zlmdb.NestedTransaction):
                await worker.aput("a job")
            later = asyncio.ensure_future(db.arun(lambda t: len(t.tasks)))
            t.tasks[3] = Task("Three")
        assert await later == 3

    asyncio.run(main())


def test_rows_of_what_is_no_query_are_refused(db: Any) -> None:
    async def main() -> None:
        with pytest.raises(TypeError, match=r"arows\(\) takes a function that returns a table or a query, .* 3$"):
            async for _ in db.arows(lambda t: 3):
                pass

    asyncio.run(main())


def test_a_worker_without_a_function_is_refused(db: Any) -> None:
    with pytest.raises(TypeError, match=r"got 'jobs': Worker\(db, lambda t: t\.jobs\)"):
        zlmdb.Worker(db, "jobs")  # type: ignore[arg-type]


def test_claiming_in_a_read_transaction_is_refused_although_there_is_no_job(db: Any) -> None:
    with db.read() as t, pytest.raises(zlmdb.ReadonlyDatabase, match=r"write in db\.write\(\)"):
        t.jobs.claim()


def test_attempts_that_are_no_number_are_named() -> None:
    for attempts in ("3", 0):
        with pytest.raises(ValueError, match=rf"^attempts={attempts!r}: expected an int, 1 or more"):
            new_class("Jobs", (zlmdb.Queue[str],), {"attempts": attempts})


def test_plain_data_that_does_not_fit_is_called_the_value() -> None:
    told = r"^the cache, key 'task': the value: expected plain data"
    with zlmdb.Cache(None) as cache, pytest.raises(zlmdb.EncodeError, match=told):
        cache["task"] = Task("One")


def test_a_size_of_a_cache_that_is_no_number_is_named() -> None:
    with pytest.raises(ValueError, match=r"^size_limit='1GB': expected a number of bytes"):
        zlmdb.Cache(None, size_limit="1GB")  # type: ignore[call-overload]


# -- what a shell shows -----------------------------------------------------------------------------------------------


def test_views_and_pages_show_their_rows(db: Any) -> None:
    with db.read() as t:
        assert repr(t.tasks.keys()) == "[1, 2]"
        assert repr(t.tasks.values()) == repr(t.tasks.select().values())
        assert repr(t.tasks.items()) == repr(t.tasks.select())
        assert repr(t.tasks.fields(lambda task: task.name).page(1)) == "<Page ['One'], and more>"
        assert repr(t.tasks.fields(lambda task: task.name).page(2)) == "<Page ['One', 'Two']>"


def test_a_block_that_was_not_begun_shows_how_to_begin_it(db: Any) -> None:
    with db.write() as t:
        assert repr(t.tasks.edit(1)) == "<a block: write `with table.edit(key) as record:`>"
        assert repr(t.tasks.select().edit()) == "<a block: write `with selection.edit() as records:`>"


def test_the_names_of_tables_are_not_listed_among_constants_of_classic_programs(db: Any) -> None:
    with db.read() as t:
        assert [name for name in dir(t) if not name.startswith("_")] == ["jobs", "slot", "tasks", "txn"]

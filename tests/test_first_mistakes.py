"""The mistakes of somebody's first programs: what was given is named, and what to write instead."""

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
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from types import new_class
from typing import Any, Optional

import pytest

import zlmdb


@dataclass
class Note:
    title: str
    stars: int = 0
    due: Optional[datetime] = None
    tags: list[str] = field(default_factory=list)


class Notes(zlmdb.Table[int, Note]):
    by_title = zlmdb.UniqueIndex[str]("title")
    by_stars = zlmdb.Index[int]("stars")


class Store(zlmdb.Schema):
    notes: Notes
    hits: zlmdb.Table[str, int]


class Jobs(Store):
    jobs: zlmdb.Queue[str]


@pytest.fixture
def db() -> Iterator[Any]:
    """A database in memory; untyped, as these uses are none that a type checker lets pass."""
    with zlmdb.open(None, Store) as database:
        with database.write() as t:
            t.notes.update({1: Note("One", 3), 2: Note("Two", 1, datetime(2030, 1, 1, tzinfo=timezone.utc))})
        yield database


# -- opening ---------------------------------------------------------------------------------------------------------


def test_a_file_of_something_else_is_shown_as_text(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    path.write_bytes(b"SQLite format 3\0" + bytes(8192))
    with pytest.raises(zlmdb.InvalidDatabase, match=r"begins with b'SQLite format 3.*check the path"):
        zlmdb.open(path, Store)


def test_options_of_other_stores_are_told_what_is_written_here(tmp_path: Path) -> None:
    open_any: Any = zlmdb.open
    for options, said in (
        ({"map_size": 1 << 30}, r"map_size=...\): there is no such option; .* maxsize= bytes"),
        ({"read_only": True}, r"read_only=...\): there is no such option; did you mean 'readonly'"),
        ({"writeback": True}, r"writeback=.*table\.edit\(key\)"),
    ):
        with pytest.raises(TypeError, match=rf"^open\(\.\.\., {said}"):
            open_any(tmp_path / "db", Store, **options)
    with pytest.raises(TypeError, match=r"^open\(\) takes a path and a schema, and got 'r' as well: .*readonly=True"):
        open_any(tmp_path / "db", Store, "r")
    assert not (tmp_path / "db").exists()


def test_a_database_that_nothing_refers_to_any_more_says_so() -> None:
    kept = zlmdb.open(None, Store)
    t = kept.write()
    kept.close()
    with pytest.raises(zlmdb.DatabaseClosed, match=r"^the database in memory is closed: .*nothing refers to"), t:
        pass


def test_a_second_writer_of_a_thread_is_answered_with_the_first_one(db: Any, tmp_path: Path) -> None:
    advice = r"use the tables of that one, in `with t\.txn\.savepoint\(\):`"
    with zlmdb.open(tmp_path, Store) as other:
        for one in (db, other):
            with one.write(), pytest.raises(zlmdb.NestedTransaction, match=advice), one.write():
                pass
            with one.write(), pytest.raises(zlmdb.NestedTransaction, match=advice):
                one.auto.hits["a"] = 1


def test_a_writer_is_told_of_a_block_that_a_task_or_a_generator_of_its_thread_has_left_open(db: Any) -> None:
    here = rf"begun at {re.escape(__file__)}:\d+, .* its block is suspended, .*await db\.arun\(function\)"

    async def visit(pause: float) -> None:  # as two requests do
        with db.write() as t:
            t.hits.increment("a")
            await asyncio.sleep(pause)

    async def main() -> None:
        task = asyncio.ensure_future(visit(0.05))
        await asyncio.sleep(0)
        with pytest.raises(zlmdb.NestedTransaction, match=here):
            await visit(0)
        await task

    def dependency() -> Iterator[Any]:
        with db.write() as t:
            yield t

    asyncio.run(main())
    given = dependency()
    next(given)
    with pytest.raises(zlmdb.NestedTransaction, match=here):
        next(dependency())
    given.close()
    with db.read() as t:
        assert dict(t.hits) == {"a": 1}


def test_who_waits_for_a_writer_is_told_where_that_began(db: Any) -> None:
    def waits() -> None:
        with pytest.raises(zlmdb.WriterTimeout, match=rf"transaction, begun at {re.escape(__file__)}:\d+, for more"):
            db.write(timeout=0.01).__enter__()

    with db.write(), ThreadPoolExecutor(1) as threads:
        threads.submit(waits).result()


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="elsewhere the end of a block is found out later")
def test_who_waits_for_a_block_that_was_left_in_another_thread_is_told(tmp_path: Path) -> None:
    def dependency() -> Iterator[Any]:  # as a framework runs one
        with db.write() as t:
            yield t

    with zlmdb.open(tmp_path / "db", Store) as db, ThreadPoolExecutor(1) as threads:
        given = dependency()
        threads.submit(next, given).result()
        with pytest.raises(zlmdb.WrongThread, match="begin the transaction in the function"):
            given.close()
        with pytest.raises(zlmdb.WriterTimeout, match="and left in another thread, while only its own one can end it"):
            db.write(timeout=0.01).__enter__()
        threads.submit(db.run, lambda t: t.hits.increment("a")).result()  # which does so when it writes next
        db.run(lambda t: t.hits.increment("a"))
        assert db.auto.hits["a"] == 2


# -- functions that run in transactions -------------------------------------------------------------------------------


def test_a_function_whose_body_would_not_run_is_refused(tmp_path: Path) -> None:
    async def later(t: Any) -> None:
        t.hits["a"] = 1

    def slowly(t: Any) -> Iterator[int]:
        t.hits["a"] = 1
        yield 1

    async def main(db: Any) -> None:
        for call in (db.arun, db.aread):
            with pytest.raises(TypeError, match=r"later\(\) has 'async' in it.*give a plain function"):
                await call(later)

    with zlmdb.open(tmp_path, Store) as db, warnings.catch_warnings():
        warnings.simplefilter("error")  # that a coroutine was never awaited
        with pytest.raises(TypeError, match=r"later\(\) has 'async' in it.*give a plain function"):
            db.run(later)
        with pytest.raises(TypeError, match=r"slowly\(\) has 'yield' in it.*give a plain function"):
            db.run(lambda t: slowly(t))
        with pytest.raises(TypeError, match="'async'"):
            db.submit(later).result()
        asyncio.run(main(db))
        assert list(db.run(lambda t: (number for number in (1, 2)))) == [1, 2]
        assert "a" not in db.auto.hits


# -- blocks that change records ---------------------------------------------------------------------------------------


def test_an_edit_without_with_is_answered_with_it(db: Any) -> None:
    with db.write() as t:
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


# -- declarations -----------------------------------------------------------------------------------------------------


def test_a_misspelt_option_of_a_class_is_answered_with_the_nearest_one() -> None:
    with pytest.raises(TypeError, match=r"class Some\(\.\.\., expire=\.\.\.\): .*did you mean 'expires'"):
        new_class("Some", (zlmdb.Table[int, Note],), {"expire": "due"})
    with pytest.raises(TypeError, match=r"retries=.*there are 'lease', 'attempts', 'backoff', 'clock', 'name'"):
        new_class("Some", (zlmdb.Queue[Note],), {"retries": 3})


def test_a_time_to_live_that_is_no_time_is_named() -> None:
    with pytest.raises(ValueError, match="ttl='3h': expected a timedelta, or seconds"):

        class Some(zlmdb.Table[int, Note], expires="due", ttl="3h"):  # type: ignore[arg-type]
            pass


def test_an_index_in_a_schema_is_answered_with_the_table_class() -> None:
    with pytest.raises(TypeError, match=r"by_stars = Index\[int\]\('stars'\) declares no index: .* table class"):

        class Some(zlmdb.Schema):
            notes: zlmdb.Table[int, Note]
            by_stars = zlmdb.Index[int]("stars")


@pytest.mark.parametrize("key", [str, tuple[str, int, int]])
def test_an_index_of_several_fields_with_another_number_of_types_is_refused(key: Any) -> None:
    body = {"by_both": zlmdb.Index[key]("title", "stars")}
    with pytest.raises(TypeError, match=r"of the fields 'title', 'stars' is declared .*tuple.* with a type for"):
        new_class("Some", (zlmdb.Table[int, Note],), {}, lambda namespace: namespace.update(body))


# -- what is there, and what is not -----------------------------------------------------------------------------------


def test_what_a_shell_shows_is_what_one_wrote(db: Any) -> None:
    assert repr(db) == "<database in memory, open>"
    assert repr(Notes.by_title) == "UniqueIndex[str]('title')"
    with db.read() as t:
        assert repr(t) == "<Store in <read transaction in memory, open>>"
        assert repr(t.hits) == "<Table 'hits': []>"
        shown = "[(1, Note(title='One', stars=3, due=None, tags=[])), (2, "
        assert repr(t.notes).startswith(f"<Notes 'notes': {shown}")
        assert repr(t.notes.by_title).startswith(f"<UniqueIndexView notes.by_title: {shown}")
        table = t.notes
    assert repr(t) == "<Store in <read transaction in memory, not open>>"
    assert repr(table) == "<Notes 'notes': [its transaction has ended]>"
    assert repr(zlmdb.Worker(db, lambda t: t.jobs)) == "<worker of <database in memory, open>>"
    db.close()
    with pytest.raises(zlmdb.DatabaseClosed, match="^the database in memory is not open") as raised:
        db.read()
    assert raised.value.__suppress_context__  # what was tried before is nobody's affair
    with zlmdb.Cache(None) as cache:
        assert repr(cache) == "<cache in memory, open>"
    assert repr(zlmdb.DecompressionLimit(7)) == "DecompressionLimit(limit=7)"


def test_methods_of_selections_are_named_where_tables_and_indexes_lack_them(db: Any) -> None:
    with db.read() as t:
        for view, read in ((t.notes.values(), r"\.values\(\)"), (t.notes.keys(), r"\.keys\(\)"), (t.notes.items(), "")):
            with pytest.raises(AttributeError, match=rf"'all': write \.select\(\){read}\.all\(\.\.\.\)$"):
                view.all()
        with pytest.raises(AttributeError, match="no attribute 'title'$"):
            t.notes.values().title  # noqa: B018
        with pytest.raises(AttributeError, match=r"'get': several records .*index\[key\]\.values\(\)\.first\(\)"):
            t.notes.by_stars.get(3)
        for holder, name in ((t.notes, "page"), (t.notes, "distinct"), (t.notes.by_stars, "change")):
            with pytest.raises(AttributeError, match=rf"write \.select\(\)\.{name}\(\.\.\.\), or \.where\("):
                getattr(holder, name)


def test_writing_by_an_index_is_answered_with_the_key(db: Any) -> None:
    with db.write() as t:
        with pytest.raises(TypeError, match=r"del table\[index\.key\(\.\.\.\)\]"):
            del t.notes.by_title["One"]
        with pytest.raises(TypeError, match=r"table\[index\.key\(\.\.\.\)\] = value"):
            t.notes.by_title["One"] = Note("One")
        with pytest.raises(TypeError, match=r"index\[\.\.\.\]\.delete\(\)"):
            del t.notes.by_stars[3]


def test_a_key_that_a_unique_index_cannot_have_is_said_of_the_index(db: Any) -> None:
    with db.read() as t:
        for use in (lambda: t.notes.by_title[7], lambda: 7 in t.notes.by_title):
            with pytest.raises(zlmdb.EncodeError, match=r"^index 'notes\.by_title': 7 is not a key of type str"):
                use()


def test_methods_of_a_transaction_are_not_missed_among_the_tables(db: Any) -> None:
    with db.write() as t:
        with pytest.raises(AttributeError, match=r"the transaction has it: t\.txn\.commit"):
            t.commit()
        with pytest.raises(AttributeError, match=r"assigned to t\.hit would not be stored; did you mean 'hits'"):
            t.hit = {"a": 1}


def test_a_database_used_as_a_dict_or_a_connection_is_answered_with_its_tables(db: Any) -> None:
    for use in (
        lambda: db["a"], lambda: db.__setitem__("a", 1), lambda: db.__delitem__("a"), lambda: list(db),
        lambda: "a" in db,
    ):  # fmt: skip
        with pytest.raises(TypeError, match=r"a database is no dict of records: .*with db\.write\(\) as t:"):
            use()
    for name, advice in (
        ("keys", "records are in the tables of its schema"),
        ("execute", "there is no SQL: "),
        ("commit", "a transaction has it: the end of the block .* commits"),
    ):
        with pytest.raises(AttributeError, match=rf"no attribute '{name}': {advice}"):
            getattr(db, name)


def test_a_table_is_neither_copied_nor_pickled(db: Any) -> None:
    with db.read() as t:
        for use in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match=r"table 'notes' belongs to a transaction .*dict\(table\)"):
                use(t.notes)


def test_a_selection_is_copied_but_neither_deeply_nor_pickled(db: Any) -> None:
    """A selection by an index said `cannot pickle 'mappingproxy' object`."""
    with db.write() as t:
        t.notes[1] = Note("One")
        for selection in (t.notes.select(), t.notes.where(lambda n: n.title == "One"), t.notes.by_stars[0]):
            assert copy.copy(selection).keys().all() == selection.keys().all() != []
            for use in (copy.deepcopy, pickle.dumps):
                for one in (selection, selection.values()):
                    with pytest.raises(TypeError, match=r"table 'notes' belongs to a transaction .*dict\(table\)"):
                        use(one)


def test_a_transaction_is_not_copied_which_would_abort_it(db: Any) -> None:
    with db.write() as t:
        t.notes[1] = Note("One")
        for use in (copy.copy, copy.deepcopy, pickle.dumps):
            for one in (t, t.txn):
                with pytest.raises(TypeError, match="is neither copied nor pickled"):
                    use(one)
        gc.collect()
    with db.read() as t:
        assert t.notes[1] == Note("One")


def test_the_tables_without_a_block_are_copied_and_pickled_with_their_database(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "db", Store) as db:
        db.auto.notes[1] = Note("One")
        for use in (copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))):
            for one in (use(db.auto).notes, use(db.auto.notes)):
                assert one[1] == Note("One")


# -- what others have --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("use", "text"),
    [
        (lambda t: Store("data"), r"Store\(\) opens no database: .*with zlmdb\.open\(path, Store\)"),
        (lambda t: Notes("notes"), r"Notes\(\) makes no table: annotate .*`users: Notes`"),
        (lambda t: Notes.by_stars[3], r"Notes\.by_stars only declares the index: .*as t\.table\.by_stars\[key\]"),
        (lambda t: Notes.by_stars.select(3), r"no attribute 'select': Notes\.by_stars only declares the index"),
        (lambda t: t.notes.where(Notes.by_stars > 3), r"Notes\.by_stars only declares the index"),
        (lambda t: t.notes.select(title="One"), r"and got title: .*where\(lambda record: record\.title == \.\.\.\)"),
        (lambda t: t.notes.by_stars.select(stars=1), r"and got stars: .*record\.stars == "),
        (lambda t: t.notes.update([Note("One")]), r"pairs of key and value, got Note\(.*table\.add\(value\)"),
        (lambda t: t.notes.update(Note("One")), r"pairs of key and value, got Note\("),
        (lambda t: t.notes.update([(1, 2, 3)]), r"pairs of key and value, got \(1, 2, 3\)"),
        (lambda t: t.notes.by_stars[1:3], r"write \.select\(start, stop\) for a range"),
        (lambda t: t.notes.to_json(), r"write zlmdb\.JsonSerializer\(Class\)\.encode\(record\)"),
        (lambda t: t.jobs.append("x"), r"no attribute 'append': write \.put\(body\)"),
        (lambda t: t.jobs.popleft(), r"no attribute 'popleft': write \.claim\(\)"),
        (lambda t: t.notes.where(lambda n: n.title.contains("O")), r"no attribute 'contains'; write `x in \.\.\.`"),
        (
            lambda t: t.notes.order_by(lambda n: n.title.desc()),
            r"no attribute 'desc'; write desc\(\.\.\.\) in order_by",
        ),
        (
            lambda t: t.notes.where(lambda n: n.stars.title),
            r"or look up the record of .*: t\.others\[n\.stars\]\.title",
        ),
        (lambda t: t.jobs.add("x"), r"a job is put, not added: write \.put\('x'\)"),
    ],
)
def test_what_others_have_is_answered_with_what_to_write(use: Any, text: str) -> None:
    with zlmdb.open(None, Jobs) as db, db.write() as t:
        with pytest.raises((TypeError, AttributeError, ValueError), match=text):
            use(t)
        assert len(t.notes) == len(t.jobs) == 0


def test_the_fields_of_an_index_are_given_one_by_one() -> None:
    fields: Any = ["title", "stars"]
    with pytest.raises(TypeError, match=r"takes its fields one by one, got \['title', 'stars'\]: Index\[tuple"):
        zlmdb.Index[tuple[str, int]](fields)


def test_an_option_of_other_caches_is_answered_with_those_of_ours() -> None:
    with zlmdb.Cache(None) as cache:
        use: Any = cache
        for method in (use.set, use.add):
            with pytest.raises(TypeError, match=r"has no option ttl: expire= is the seconds"):
                method("a", 1, ttl=60)
        with pytest.raises(TypeError, match=r"set.. has no option read, retry: values are in .*; nothing"):
            use.set("a", 1, read=True, retry=True)


def test_what_diskcache_returns_beside_a_value_is_named() -> None:
    with zlmdb.Cache(None) as cache:
        use: Any = cache
        use.set("a", 1, tag="t")
        with pytest.raises(TypeError, match=r"^get.. has no option expire_time, tag: cache.details.key. has the"):
            use.get("a", expire_time=True, tag=True)
        with pytest.raises(TypeError, match=r"^get.. has no option read: values are in the database"):
            use.get("a", None, True)
        with pytest.raises(TypeError, match=r"^pop.. has no option tag: .* `with cache.transact..:`"):
            use.pop("a", tag=True)
        assert use.get("a", None, False, expire_time=False, tag=False, retry=False) == 1
        with cache.transact():
            assert cache.details("a") == (use.pop("a", retry=False), None, "t")


def test_a_path_without_a_database_is_named_by_salvage_and_verify(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no database at '.*gone.*': check the path"):
        zlmdb.Database.salvage(tmp_path / "gone", tmp_path / "new")
    with pytest.raises(FileNotFoundError, match=r"no database at '.*gone.*': check the path"):
        zlmdb.Database.verify(tmp_path / "gone")
    assert not list(tmp_path.iterdir())


def test_a_path_with_a_tilde_makes_no_directory_of_that_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"write os\.path\.expanduser\('~/data'\)"):
        zlmdb.open("~/data", Store)
    (tmp_path / "~").mkdir()
    zlmdb.open("~/data", Store).close()


def test_an_async_block_is_answered_with_a_plain_one(db: Any) -> None:
    async def use() -> None:
        async with db.write():
            pass

    with pytest.raises(TypeError, match=r"write `with db\.write\(\) as t:` without `await` in it, or `await db\.arun"):
        asyncio.run(use())


def test_a_block_that_is_awaited_is_answered_with_one_that_is_not(db: Any) -> None:
    async def use(block: Any) -> None:
        await block

    for block in (db.read(), db.write()):
        with pytest.raises(TypeError, match=r"write `with db\.read\(\) as t:` .* without `await`, or `await db\.aread"):
            asyncio.run(use(block))
        block.txn.abort()


@pytest.mark.parametrize("method", ["run", "submit", "arun", "aread"])
def test_what_is_no_function_is_not_run(db: Any, method: str) -> None:
    async def use(given: Any) -> None:
        await getattr(db, method)(given)

    said = rf"^{method}\(\) takes a function .* write db\.{method}\(function\) without parentheses"
    for given in (5, None, use(len)):
        with pytest.raises(TypeError, match=said):
            asyncio.run(use(given))


@pytest.mark.skipif(sys.version_info < (3, 10), reason="errors name the class of a method since Python 3.10")
def test_a_record_asked_of_a_class_is_answered_with_the_table_of_the_transaction(db: Any) -> None:
    cls: Any = Notes
    with pytest.raises(TypeError, match=r"t\.table\.get\(\.\.\.\) .* not of the class"), db.read():
        cls.get(1)


def test_an_empty_file_is_called_empty(tmp_path: Path) -> None:
    (tmp_path / "data").touch()
    with pytest.raises(zlmdb.InvalidDatabase, match=r"data' is empty: check the path"):
        zlmdb.open(tmp_path / "data", readonly=True)
    for schema in (None, zlmdb.Schema):  # which must not make a database either
        with pytest.raises(zlmdb.InvalidDatabase, match=r"data' is empty: check the path"):
            zlmdb.open(tmp_path / "data", schema, create=False)
    assert [one.name for one in tmp_path.iterdir()] == ["data"]


# -- arguments --------------------------------------------------------------------------------------------------------


def test_a_dict_in_place_of_a_record_is_answered_with_how_one_is_made(db: Any) -> None:
    with db.write() as t, pytest.raises(zlmdb.EncodeError, match=r"Note, got .* \(dict\): make .* Note\(\*\*\.\.\.\)$"):
        t.notes.add({"title": "Three"})


def test_values_given_to_put_many_without_keys_are_answered_with_pairs(db: Any) -> None:
    with db.write() as t, pytest.raises(TypeError, match=r"takes pairs of key and value, got Note\("):
        t.notes.put_many([Note("Three")])


def test_a_limit_that_is_no_number_is_named(db: Any) -> None:
    with db.read() as t:
        for limit in (t.notes.limit, t.notes.select().limit):
            with pytest.raises(TypeError, match=r"limit\('2', 0\): give numbers of records"):
                limit("2")


def test_values_without_an_order_are_answered_with_what_to_sort_by(db: Any) -> None:
    with db.read() as t:
        for query in (t.notes.order_by(lambda n: n.due), t.notes.order_by(lambda n: n.due).limit(1)):
            with pytest.raises(
                TypeError, match=r"^order_by: '[<>]' not supported.*\(r\.field is None, r\.field or 0\)"
            ):
                query.all()
        with pytest.raises(TypeError, match=r"^max: '>' not supported.*where\(lambda r: r\.field is not None\)"):
            t.notes.fields(lambda n: n.due).max()
        with pytest.raises(TypeError, match=r"^order_by: .*results can be compared"):
            t.notes.order_by(lambda k, n: 1j * k).all()

        def own(note: Note) -> Any:
            return sorted(dict.fromkeys([note.stars, "a"]))  # type: ignore[type-var]

        with pytest.raises(TypeError, match="^'<' not supported between"):
            t.notes.order_by(lambda n: own(n)).all()


def test_a_cache_names_what_cannot_be_added_and_what_is_no_parameter() -> None:
    with zlmdb.Cache(None) as cache:
        cache["name"] = "Ann"
        with pytest.raises(TypeError, match=r"incr\('name', 1\): the value is 'Ann' \(str\)"):
            cache.incr("name")
        with pytest.raises(ValueError, match=r"ignore: .*visit\(\) has no parameter 'sesion'; did you mean 'session'"):

            @cache.memoize(ignore=("sesion",))
            def visit(session: object, page: int) -> int:
                return page

        @cache.memoize(ignore="session")
        def look(session: object, page: int) -> int:
            return page

        assert look(object(), 1) == look(object(), 1) == 1


def test_a_queue_without_a_type_is_refused() -> None:
    class Bare(zlmdb.Schema):
        jobs: zlmdb.Queue  # type: ignore[type-arg]

    class Mails(zlmdb.Queue, lease=30): ...  # type: ignore[type-arg]

    class Derived(zlmdb.Schema):
        mails: Mails

    with pytest.raises(TypeError, match=r"^table 'jobs': Queue leaves the type ~T open: write Queue\[Type\]"):
        zlmdb.open(None, Bare)
    with pytest.raises(TypeError, match=r"^table 'mails': Mails leaves the type ~T open"):
        zlmdb.open(None, Derived)


def test_a_database_lists_what_it_has_only_and_says_of_its_own_tables_where_they_are(db: Any, tmp_path: Path) -> None:
    class Others(zlmdb.Schema):
        elsewhere: zlmdb.Table[str, int]

    with zlmdb.open(tmp_path, Others) as other:
        made = other.table("made", str, int)
        for name in ("elsewhere", made.name):
            with pytest.raises(
                AttributeError, match=rf"no attribute '{name}': tables are in a transaction.*t\.{name}$"
            ):
                getattr(other, name)
            with pytest.raises(AttributeError, match=rf"'Database' object has no attribute '{name}'$"):
                getattr(db, name)
        assert {"read", "auto"} <= set(dir(other))
        assert {"elsewhere", "made", "get"}.isdisjoint(dir(other))
        assert not hasattr(type(other), "elsewhere")
    with pytest.raises(AttributeError, match=r"'Database' object has no attribute 'raed'$"):
        getattr(db, "raed")  # noqa: B009


def test_what_takes_no_arguments_says_how_a_condition_or_a_key_is_asked_for(db: Any) -> None:
    with db.write() as t:
        for table in (t.notes, t.notes.by_stars):
            for method in ("first", "last", "count", "delete"):
                with pytest.raises(TypeError, match=rf"^{method}\(\) takes no arguments, .*\.{method}\(\) for those"):
                    getattr(table, method)(lambda note: note.stars > 1)
        with pytest.raises(TypeError, match=r"got 1: write .*, del table\[key\] for one record$"):
            t.notes.delete(1)
        some = t.notes.where(lambda note: note.stars > 0)
        for rows in (t.notes, some, some.values()):
            with pytest.raises(
                TypeError, match=r"^first\(\) .*, and got default=None: .*returns None if there is none"
            ):
                rows.first(default=None)
        for method, advice in [("all", "limit"), ("count", "where"), ("keys", "fields"), ("values", "fields")]:
            with pytest.raises(TypeError, match=rf"^{method}\(\) .*, and got 'stars': write \.{advice}\("):
                getattr(some, method)("stars")
        for rows in (some, some.fields(lambda note: note.stars)):
            for asked in ({"page": 2, "per_page": 10}, {"size": 10, "page": 2}, {}):
                with pytest.raises(TypeError, match=r"^page\(\) takes size and after, .* limit\(size, skip\) for one"):
                    rows.page(**asked)
            with pytest.raises(TypeError, match=r"^all\(\) takes no arguments, and got 10"):
                rows.all(10)
        with pytest.raises(TypeError, match=r"^count\(\) takes no arguments"):
            t.notes.group_by(lambda note: note.stars, lambda group: (group.all(), group.count(1)))
        with pytest.raises(zlmdb.EncodeError, match=r"; a function is a condition: write \.where\(lambda record: "):
            t.notes.select(lambda note: note.stars > 1)
        with pytest.raises(TypeError, match=r"got 'stars'; write `lambda v: v\.stars`$"):
            t.notes.order_by("stars")


def test_a_table_that_the_schema_lacks_is_told_how_to_be_declared() -> None:
    @dataclass
    class Remark:
        note: int

    class Remarks(zlmdb.Table[int, Remark]):
        by_note = zlmdb.ForeignKey[Notes]("note")

    class Alone(zlmdb.Schema):
        remarks: Remarks

    with pytest.raises(TypeError, match="leads to Notes, .* but Remarks: declare it in the schema, too: others: Notes"):
        zlmdb.open(None, Alone)
    with pytest.raises(TypeError, match=r"got <class .*Notes'>: declare the tables as its attributes"):
        zlmdb.open(None, Notes)  # type: ignore[type-var]

"""The mistakes of those who come from another store: an ORM, Redis, a shelve, pandas."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import new_class
from typing import Any, ClassVar, Optional

import pytest

import zlmdb
from zlmdb.values.base import FunctionSerializer
from zlmdb.values.depth import limited


@dataclass
class Post:
    title: str
    likes: int = 0
    tags: list[int] = field(default_factory=list)


@dataclass
class Numbered:
    title: str
    id: Optional[int] = None


class Posts(zlmdb.Table[int, Post]):
    by_tag = zlmdb.Index[int]("tags", each=True)


class Named(zlmdb.Table[int, Numbered], key="id"):
    """Records that have their key."""


class Blog(zlmdb.Schema):
    posts: Posts
    named: Named
    jobs: zlmdb.Queue[str]
    marks: zlmdb.SetTable[str, int]


@pytest.fixture
def db() -> Iterator[Any]:
    with zlmdb.open(None, Blog) as database:
        with database.write() as t:
            t.posts.update({1: Post("One", 3, [7]), 2: Post("Two")})
        yield database


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (lambda db, t: t.rollback(), r"declares no table .rollback.; t.txn.abort\(\) undoes"),
        (lambda db, t: t.txn.rollback(), r"has no attribute .rollback.: write .abort\(\), which undoes all changes"),
        (lambda db, t: t.txn.begin_nested(), r"write `with t.txn.savepoint\(\):`"),
        (lambda db, t: t.posts.add_all([]), r"write .put_many\(pairs of key and value\)"),
        (lambda db, t: t.posts.scan(), r"write .select\(start, stop\), or loop over .items\(\)"),
        (lambda db, t: t.posts.expire(1, 60), r"a record expires by a field: class .*, expires=.until.\)"),
        (lambda db, t: t.posts.incr(1), "'incr': write .increment"),
        (lambda db, t: t.add(Post("x")), "declares no table 'add'; that is asked of a table, such as t.posts.add"),
        (lambda db, t: t.query(Post), "such as t.posts: write .where"),
        (lambda db, t: t.posts.to_dict(), "take dict\\(table\\)"),
        (lambda db, t: t.posts.value_counts("title"), "write .group_by"),
        (lambda db, t: t.session.add(Post("x")), r"'session'; t itself is what a session is: t.posts.add\(value\)"),
        (lambda db, t: t.get(Post, 1), r"'get'; that is asked of a table, such as t.posts.get\(key\)"),
        (lambda db, t: t.delete(Post("x")), r"'delete'; that is asked of a table: del t.posts\[key\]"),
        (lambda db, t: t.txn.rollback(), r"'rollback': write .abort\(\)"),
        (lambda db, t: t.posts.insert_one({}), r"table.add\(value\) stores it under a new key"),
        (lambda db, t: t.posts.update_one({}, {}), r"'update_one': write `with table.edit\(key\) as record:`"),
        (lambda db, t: t.posts.delete_many({}), r"'delete_many': write del table\[key\] for one record"),
        (lambda db, t: t.posts.iloc[0], "'iloc': there are no positions: write"),
        (lambda db, t: t.posts.hgetall(1), r"'hgetall': write table\[key\]"),
        (lambda db, t: t.posts.commit(), "'commit': the end of the block"),
        (lambda db, t: t.posts.select().groupby("likes"), r"'groupby': write .group_by\(lambda"),
        (lambda db, t: t.jobs.lpush("x"), r"'lpush': write .put\(body\)"),
        (lambda db, t: t.jobs.apply_async("x"), r"'apply_async': write .put\(body\)"),
        (lambda db, t: db.create_all(), "made when it is opened"),
        (lambda db, t: db.awrite(), r"await db\.arun\(function\)"),
        (lambda db, t: db.pack(), "db.compact\\(\\) makes"),
        (lambda db, t: zlmdb.Worker(db, lambda t: t.jobs).get_nowait(), r"write .get\(timeout=0\)"),
    ],
)
def test_a_method_of_another_store_is_answered_with_what_to_write(db: Any, mistake: Any, said: str) -> None:
    with db.write() as t, pytest.raises(AttributeError, match=said):
        mistake(db, t)


@pytest.mark.skipif(sys.version_info < (3, 10), reason="an AttributeError knows its object since Python 3.10")
def test_the_tables_that_there_are_are_those_that_the_class_declares(db: Any) -> None:
    said = "declares no table 'nothing'; there are 'posts', 'named', 'jobs', 'marks'$"
    with pytest.raises(AttributeError, match=said), db.write() as t:
        t.nothing  # noqa: B018


@pytest.mark.skipif(sys.version_info < (3, 10), reason="errors name the class of a method since Python 3.10")
@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (
            lambda t: t.posts.get(title="One"),
            r"get\(\) got .*; a table of zlmdb looks up keys: write .where\(",
        ),
        (lambda t: t.jobs.pop(), r"pop\(\) missing .*; a table of zlmdb looks up keys"),
        (lambda t: t.posts.values("title"), r"values\(\) takes .*; of a table of zlmdb, write .fields\(lambda record"),
        (lambda t: t.posts.keys("a*"), r"keys\(\) takes .* .where\(lambda record: ...\) for a condition$"),
        (lambda t: t.posts.add(title="One"), r"add\(\) got .*; a table of zlmdb takes one record, and"),
        (lambda t: t.posts.add(1, Post("x")), r"add\(\) takes .*; write table\[key\] = value for a given key"),
        (lambda t: t.posts.put_new(Post("x")), r"put_new\(\) missing .*takes the key and the whole record"),
        (lambda t: t.posts.change(1, title="x"), r"change\(\) got .*a function that returns the new record"),
    ],
)
def test_the_end_of_a_block_says_what_a_method_takes(db: Any, mistake: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said), db.write() as t:
        mistake(t)
    with pytest.raises(TypeError, match=said) as caught, db.write() as t, t.txn.savepoint():
        mistake(t)
    assert str(caught.value).count(";") - str(caught.value).count("; write") == 1  # said once


@pytest.mark.skipif(sys.version_info < (3, 10), reason="Python names the object of an AttributeError since 3.10")
def test_the_end_of_a_block_says_that_a_loop_gives_pairs(db: Any) -> None:
    says = r"'tuple' object has no attribute '{}': .* pairs .* `for key, record in .*, or loop over \.values\(\)$"
    with pytest.raises(AttributeError, match=says.format("title")), db.read() as t:
        [post.title for post in t.posts.where(lambda p: p.likes >= 0)]
    with pytest.raises(AttributeError, match=says.format("likes")), db.write() as t:
        t.posts.group_by(lambda p: p.title, lambda posts: sum([post.likes for post in posts]))
    with pytest.raises(AttributeError, match="'tuple' object has no attribute 'titel'$"), db.read() as t:
        t.posts.first().titel  # noqa: B018
    nothing: Any = ()
    with pytest.raises(AttributeError, match="'tuple' object has no attribute 'title'$"), db.read() as t:
        nothing.title  # noqa: B018


def test_tables_may_have_the_names_that_are_answered() -> None:
    names = ["session", "rollback", "commit", "query", "shape", "copy", "get", "lookup", "tail"]
    made = new_class("S", (zlmdb.Schema,), {}, lambda body: body.update(__annotations__=dict.fromkeys(names, Posts)))
    with zlmdb.open(None, made) as db, db.write() as t:
        for number, name in enumerate(names):
            getattr(t, name)[number] = Post(name)
            assert list(getattr(t, name).items()) == t[name].select().all() == [(number, Post(name))]


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (lambda: zlmdb.Table[Post], r"Table\[Post\]: expected the types of the keys and of the values"),
        (lambda: zlmdb.Table[int, str, str], r"Table\[int, str, str\]: expected the types of the keys"),  # type: ignore[misc]
        (lambda: zlmdb.SetTable[str], r"SetTable\[str\]: expected the types of the keys and of the values of each key"),  # type: ignore[misc]
        (lambda: zlmdb.Index[str, int]("title", "size"), r"that of their tuple: Index\[tuple\[str, int\]\]"),  # type: ignore[misc]
        (lambda: zlmdb.ForeignKey[int, str]("post"), r"the class of the other table: ForeignKey\['Authors'\]"),  # type: ignore[misc]
        (lambda: zlmdb.Index[str]("title", unique=True), "there is no such option; write UniqueIndex"),
        (lambda: zlmdb.ForeignKey[Posts]("post", ondelete="cascade"), "did you mean 'on_delete'"),
        (lambda: zlmdb.ForeignKey[Posts]("post", related_name="x"), "the link selects"),
    ],
)
def test_a_declaration_of_another_store_is_answered_with_ours(mistake: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        mistake()


def test_a_member_of_another_type_than_the_elements_is_named_before_the_list(db: Any) -> None:
    said = r"'python' in p.tags: an element of p.tags is of type int, which 'python' \(str\) is not"
    with db.read() as t:
        with pytest.raises(TypeError, match=said):
            t.posts.where(lambda p: "python" in p.tags)
        with pytest.raises(TypeError, match=r"p.likes in .*: p.likes is of type int"):
            t.posts.where(lambda p: p.likes in ["a"])


def test_a_record_in_place_of_its_key_is_told_so(db: Any) -> None:
    with db.read() as t, pytest.raises(zlmdb.EncodeError, match="this is a record: give its key"):
        t.posts.by_tag[Post("x")]


def test_a_key_that_the_record_has_not_got_yet_is_explained(db: Any) -> None:
    with db.write() as t, pytest.raises(zlmdb.EncodeError, match="leave out key=, and add"):
        t.named.add(Numbered("x"))


def test_a_dataclass_whose_annotations_were_forgotten_is_refused() -> None:
    @dataclass
    class Forgotten:
        name = ""

    @dataclass
    class Empty:
        """It has no fields on purpose."""

        kind: ClassVar[str] = "empty"

        def greet(self) -> str:
            return "hello"

    class Wrong(zlmdb.Schema):
        records: zlmdb.Table[int, Forgotten]

    class Right(zlmdb.Schema):
        records: zlmdb.Table[int, Empty]

    with pytest.raises(TypeError, match="has no fields, and would store nothing: give name a type, such as `name: str"):
        zlmdb.open(None, Wrong)
    zlmdb.open(None, Right).close()


def test_an_object_that_holds_itself_is_told_so() -> None:
    @dataclass
    class Node:
        inner: list[Node] = field(default_factory=list)

    class Tree(zlmdb.Schema):
        nodes: zlmdb.Table[int, Node]

    node = Node()
    node.inner.append(node)
    with zlmdb.open(None, Tree) as tree, tree.write() as t, pytest.raises(zlmdb.EncodeError, match="nested"):
        t.nodes[1] = node


def test_an_end_of_the_stack_while_an_exception_is_noted_is_told_too() -> None:
    def encode(value: Any) -> bytes:  # what PyPy raises at some depths
        raise TypeError("couldn't record exception context for exception 'RecursionError', got: RecursionError('...')")

    with pytest.raises(zlmdb.EncodeError, match="nested"):
        FunctionSerializer("test", encode, bytes).encode([])
    with pytest.raises(ValueError, match="nested"):
        limited(encode, bool)([])


def test_a_number_of_numpy_in_a_field_is_told_how_to_convert_it(db: Any) -> None:
    numpy = pytest.importorskip("numpy", reason="the test needs numpy")
    with db.write() as t, pytest.raises(zlmdb.EncodeError, match=r"expected int, .*convert it, with its .item\(\)"):
        t.posts[3] = Post("x", numpy.int64(3))


def test_methods_of_other_caches_are_answered_and_not_listed() -> None:
    with zlmdb.Cache(None) as cache:
        asked: Any = cache
        for name, said in [("keys", "for key in cache"), ("setex", "expire=seconds"), ("ttl", "details")]:
            with pytest.raises(AttributeError, match=said):
                getattr(asked, name)
            assert name not in dir(cache)
            assert not hasattr(zlmdb.Cache, name)
        with pytest.raises(TypeError, match=r"touch\(key, expire=seconds\)"):
            asked.expire("a", 10)
        with pytest.raises(TypeError, match="memoize.. has no option ttl"):
            asked.memoize(ttl=5)


def test_a_worker_that_is_iterated_over_is_answered_with_a_loop(db: Any) -> None:
    worker: Any = zlmdb.Worker(db, lambda t: t.jobs)
    with pytest.raises(TypeError, match=r"with worker.job\(\) as job"):
        iter(worker)


def test_a_job_that_is_taken_without_its_block_is_answered_with_the_block(db: Any) -> None:
    worker: Any = zlmdb.Worker(db, lambda t: t.jobs)
    for asked, written in [(worker.job, r"`with worker.job\(\) as job:`"), (worker.ajob, "`async with worker.ajob")]:
        with pytest.raises(AttributeError, match=f"'body': .*write {written}"):
            _ = asked(0).body
        assert not hasattr(asked(0), "id")


def test_one_migration_in_place_of_a_tuple_is_told_so() -> None:
    class Alone(zlmdb.Schema):
        posts: zlmdb.Table[int, str]
        migrations = zlmdb.Migration(1, "alone", lambda t: None)

    with pytest.raises(TypeError, match="migrations is one migration: expected a tuple"):
        zlmdb.open(None, Alone)


def test_a_cache_with_keys_of_another_type_is_named(tmp_path: Path) -> None:
    zlmdb.Cache(tmp_path / "cache").close()
    with pytest.raises(zlmdb.SchemaMismatch, match="the cache .* does not have keys of type int: give the type"):
        zlmdb.Cache(tmp_path / "cache", int, str)
    zlmdb.Cache(tmp_path / "cache").close()


@pytest.mark.parametrize("kind", ["table", "index", "selection", "condition"])
@pytest.mark.parametrize(
    ("asked", "advice"),
    [
        (lambda q: q.where("title", "One"), r"where\(\) takes one function: write where\(lambda .* got 'One' as well"),
        (lambda q: q.where(lambda p: p.likes, title="One"), r"write where\(lambda record: record.title == "),
        (lambda q: q.fields("title", "likes"), r"write fields\(lambda .* got 'likes' as well"),
        (lambda q: q.fields(lambda p: p.likes, flat=True), r"write fields\(lambda .* got flat=True as well"),
        (lambda q: q.order_by(lambda p: p.likes, desc=True), r"reverse=True\), or desc\(.* got desc=True as well"),
        (lambda q: q.order_by(key=lambda p: p.likes), r"write order_by\(lambda .* got key=<function"),
        (lambda q: q.limit(10, offset=5), r"write limit\(count, skip\); it got offset=5 as well"),
    ],
)
def test_queries_that_are_asked_as_elsewhere_say_what_to_write(db: Any, kind: str, asked: Any, advice: str) -> None:
    with db.read() as t:
        queries = {"table": t.posts, "index": t.posts.by_tag, "selection": t.posts.select()}
        with pytest.raises(TypeError, match=advice):
            asked(queries.get(kind, t.posts.where(lambda p: p.likes > 1)))


@pytest.mark.parametrize("rows", [[Post("A")], [(1,)], [(1, Post("A"), 3)], ["text"], [None]])
@pytest.mark.parametrize("made", [list, iter, lambda rows: (row for row in rows)])
def test_put_many_of_no_pairs_says_what_it_takes_and_stores_nothing(db: Any, rows: Any, made: Any) -> None:
    with db.write() as t:
        with pytest.raises(
            (TypeError, ValueError), match=r"put_many\(\) takes pairs of key and value, got .* table.add"
        ):
            t.posts.put_many(made(rows))
        assert t.posts.put_many((number, Post("B")) for number in (7, 8, 9)) == 3
        assert t.posts.put_many(iter(())) == t.posts.put_many({}.items()) == 0
        assert [*t.posts] == [1, 2, 7, 8, 9]

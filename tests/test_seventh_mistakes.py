"""What users of Django, LevelDB, ObjectBox, ZODB and of type checkers wrote first: the last line says what to write."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Optional, Union

import pytest

import zlmdb
from zlmdb import desc


@dataclass
class Post:
    title: str
    published: Optional[datetime] = None
    stars: Optional[int] = None


class Blog(zlmdb.Schema):
    posts: zlmdb.Table[int, Post]


@pytest.fixture
def db() -> Iterator[Any]:
    """A database in memory; untyped, as these uses are none that a type checker lets pass."""
    with zlmdb.open(None, Blog) as db:
        yield db


ANY: Any = zlmdb


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda db, t: db.iterator(prefix=b"a"), r"'iterator': write t.table.select\(start, stop\) in a block"),
        (lambda db, t: db.snapshot(), "'snapshot': a block `with db.read.*` is one$"),
        (lambda db, t: db.write_batch(), "'write_batch': a block `with db.write.*` is one$"),
        (lambda db, t: db.prefixed_db(b"a"), "'prefixed_db': the schema declares a table for each"),
        (lambda db, t: db.box(Post), "'box': the schema declares a table for each"),
        (lambda db, t: db.multi_get([1]), "'multi_get': records are in the tables of its schema"),
        (lambda db, t: t.posts.multi_get([1]), r"'multi_get': write .get_many\(keys\)"),
        (lambda db, t: t.posts.seek(1), r"'seek': write .select\(start, stop\)"),
        (lambda db, t: t.posts.add_many([]), r"'add_many': write .put_many\(pairs of key and value\)"),
        (lambda db, t: t.posts.get_all(), r"'get_all': write .select\(\).all\(\)"),
        (lambda db, t: t.posts.remove_all(), r"'remove_all': write .clear\(\)"),
        (lambda db, t: t.posts.is_empty(), "'is_empty': write `not table`"),
        (lambda db, t: t.posts.maxKey(), r"'maxKey': write .select\(\).keys\(\).first\(\), or .last\(\)"),
        (lambda db, t: ANY.DB("data"), r"'DB': write zlmdb.open\(path, Schema\)"),
        (lambda db, t: ANY.Store("data"), r"'Store': write zlmdb.open\(path, Schema\)"),
        (lambda db, t: ANY.FileStorage("data"), r"'FileStorage': write zlmdb.open\(path, Schema\)"),
        (lambda db, t: ANY.WriteBatch(), "'WriteBatch': write `with db.write"),
        (lambda db, t: ANY.Entity(), "'Entity': a model is a dataclass"),
        (lambda db, t: ANY.Persistent, "'Persistent': a model is a dataclass"),
        (lambda db, t: ANY.ManyToManyField(Post), r"'ManyToManyField': write ForeignKey\[Tags\]\('tags', each=True\)"),
    ],
)
def test_names_of_other_stores_are_answered_with_what_to_write(db: Any, asked: Any, said: str) -> None:
    with db.read() as t, pytest.raises(AttributeError, match=said):
        asked(db, t)


def test_ignoring_conflicts_is_answered_with_the_method_that_keeps_records(db: Any) -> None:
    said = r"'ignore_conflicts'; .* .put_new\(key, value\) for each keeps them$"
    if sys.version_info < (3, 10):  # errors do not name the class of a method
        said = r"'ignore_conflicts'$"
    with pytest.raises(TypeError, match=said), db.write() as t:
        t.posts.put_many([(1, Post("a"))], ignore_conflicts=True)


@pytest.mark.parametrize(
    ("fields", "given"),
    [
        (("published",), Optional[datetime]),
        (("stars", "title"), tuple[Optional[int], str]),
        (("stars",), Union[int, str]),
    ],
)
def test_a_key_type_with_none_is_refused_where_the_class_is_made(fields: Any, given: Any) -> None:
    """It was refused when the database was opened, in another place of the program."""
    index: Any = zlmdb.Index
    with pytest.raises(TypeError, match=r"^index 'by_it': .* is not a key type; "):

        class Posts(zlmdb.Table[int, Post]):
            by_it = index[given](*fields)


def test_a_field_that_may_be_none_sorts_the_other_way_round_where_the_condition_excludes_none(db: Any) -> None:
    """`tests/typing/api.py` has it for the checkers, which cannot know of the condition."""
    with db.write() as t:
        t.posts.update({1: Post("a", stars=1), 2: Post("b"), 3: Post("c", stars=3)})
    with db.read() as t:
        rated = t.posts.where(lambda p: p.stars is not None).order_by(lambda p: desc(p.stars))
        assert rated.keys().all() == [3, 1]
        with pytest.raises(TypeError, match="leave out the records with None|ask `p.stars is not None` before"):
            t.posts.order_by(lambda p: desc(p.stars)).keys().all()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda p: p.title.equals("a"), "'equals'; write `... == x`$"),
        (lambda p: p.title.starts_with("a"), r"'starts_with'; write .startswith\(x\)$"),
        (lambda p: p.title.ends_with("a"), r"'ends_with'; write .endswith\(x\)$"),
    ],
)
def test_conditions_of_another_query_language_are_answered_with_those_of_python(db: Any, asked: Any, said: str) -> None:
    with db.read() as t, pytest.raises(TypeError, match=said):
        t.posts.where(asked)


def test_a_name_that_only_type_checkers_import_is_told_as_such() -> None:
    """Whoever imports a model so reads of it; ``localns=`` alone, which only serializers take, was the other advice."""

    @dataclass
    class Author:
        books: list[Book]  # type: ignore[name-defined]  # pyright: ignore[reportUndefinedVariable]  # noqa: F821

    class Authors(zlmdb.Schema):
        authors: zlmdb.Table[int, Author]

    with pytest.raises(TypeError, match=r"'Book' is not defined. Define or import .*, not for type checkers only"):
        zlmdb.open(None, Authors)

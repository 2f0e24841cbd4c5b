"""What newcomers get wrong with what is declared in a schema: each is told what to write instead."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from types import new_class
from typing import Any, ClassVar, Optional, Union

import pytest
from newcomers import Account, Article, Customers, Note, Notes, Person, Post, Posts, Task, Waiting

import zlmdb


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


def test_the_fields_of_an_index_are_given_one_by_one() -> None:
    fields: Any = ["title", "stars"]
    with pytest.raises(TypeError, match=r"takes its fields one by one, got \['title', 'stars'\]: Index\[tuple"):
        zlmdb.Index[tuple[str, int]](fields)


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


def _with(index: Any, model: Any = Task) -> Any:
    """A schema whose table has the *index*."""
    table = new_class("Indexed", (zlmdb.Table[int, model],), {}, lambda body: body.update({"by_it": index}))
    return new_class("S", (zlmdb.Schema,), {}, lambda body: body.update({"__annotations__": {"tasks": table}}))


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


def test_tables_may_have_the_names_that_are_answered() -> None:
    names = ["session", "rollback", "commit", "query", "shape", "copy", "get", "lookup", "tail"]
    made = new_class("S", (zlmdb.Schema,), {}, lambda body: body.update(__annotations__=dict.fromkeys(names, Posts)))
    with zlmdb.open(None, made) as blog, blog.write() as t:
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


PACKAGE: Any = zlmdb


@pytest.mark.parametrize(
    ("asked", "advice"),
    [
        (lambda: new_class("T", (zlmdb.Table[int, str],), {"name": 3}), "^T: name=3: expected a text, the name of the"),
        (
            lambda: new_class("T", (zlmdb.Table[int, str],), {"name": ""}),
            "^T: name='': expected a text, the name",
        ),
        (
            lambda: new_class("T", (zlmdb.Table[int, str],), {"key": 3}),
            "^T: key=3: expected the name of a field .*4",
        ),
        (
            lambda: PACKAGE.Database("nowhere", Waiting),
            r"^maxsize=<class .*; a schema is given to zlmdb.open\(",
        ),
        (lambda: PACKAGE.connect, r"'connect': write zlmdb.open\(path, Schema\)"),
        (
            lambda: PACKAGE.Column,
            r"'Column': a model is a dataclass, and its table is declared: class Users",
        ),
        (lambda: PACKAGE.Session, r"'Session': write `with db.write\(\) as t:`"),
        (lambda: PACKAGE.Uniqueindex, "'Uniqueindex': did you mean 'UniqueIndex'"),
        (lambda: PACKAGE.anything, "^module 'zlmdb' has no attribute 'anything'$"),
    ],
)
def test_a_mistake_in_a_declaration_says_what_is_written(asked: Any, advice: str) -> None:
    with pytest.raises((TypeError, AttributeError), match=advice):
        asked()


@pytest.mark.parametrize(
    ("field", "advice"), [("name.upper", r"or write 'name.upper\(\)'"), ("-name", r", or desc\('name'\)")]
)
def test_an_index_of_a_field_that_is_written_otherwise_says_how(field: str, advice: str) -> None:
    def opened() -> None:
        class Indexed(zlmdb.Table[int, Person]):
            by_name = zlmdb.Index[str](field)

        class Wrong(zlmdb.Schema):
            people: Indexed

        zlmdb.open(None, Wrong)

    with pytest.raises(TypeError, match=advice):
        opened()


ANY: Any = zlmdb


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: ANY.Index[int]("age", nullable=True), r"Optional\[...\]: a record with None in it has no entry"),
        (lambda: ANY.UniqueIndex[str]("email", null=True), r"Optional\[...\]: a record with None in it has no entry"),
        (lambda: ANY.ForeignKey[Customers]("user", nullable=True), r"Optional\[...\]: a record with None in it has no"),
        (lambda: ANY.Index[int]("age", name="ix_age"), "an index has the name of its attribute, by_name = "),
        (lambda: ANY.Index[int]("id", primary_key=True), r"first type of the table, Table\[int, User\]; key='id'"),
    ],
)
def test_an_option_of_a_column_elsewhere_is_answered_with_the_declaration_here(made: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        made()


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

        class Posts(zlmdb.Table[int, Article]):
            by_it = index[given](*fields)


def test_a_name_that_only_type_checkers_import_is_told_as_such() -> None:
    """Whoever imports a model so reads of it; ``localns=`` alone, which only serializers take, was the other advice."""

    @dataclass
    class Author:
        books: list[Book]  # type: ignore[name-defined]  # pyright: ignore[reportUndefinedVariable]  # noqa: F821

    class Authors(zlmdb.Schema):
        authors: zlmdb.Table[int, Author]

    with pytest.raises(TypeError, match=r"'Book' is not defined. Define or import .*, not for type checkers only"):
        zlmdb.open(None, Authors)


class Peer(zlmdb.Table[int, Account]):
    """A table class may have constants, with an annotation or without."""

    SIZE = 10
    limit: int = 20
    kind: ClassVar[str]
    _own: int
    by_name: Any = zlmdb.Index[str]("name")


def test_a_column_in_a_table_class_is_answered_with_a_class_of_records() -> None:
    """It was taken for nothing: the table had no such field, and its records were those of another class."""
    said = r"^T: age: int declares no field, .* such as a dataclass with this line, .* class T\(zlmdb\.Table\[KeyType, "
    base: Any = zlmdb.Table
    for annotation in (int, "int"):
        with pytest.raises(TypeError, match=said):
            type("T", (base,), {"__annotations__": {"age": annotation}})
    with zlmdb.open(None, type("S", (zlmdb.Schema,), {"__annotations__": {"peers": Peer}})) as books, books.read() as t:
        peers: Any = t["peers"]
        assert (peers.SIZE, peers.limit, list(peers.by_name["Ann"])) == (10, 20, [])


def test_a_duration_as_the_field_of_an_expiry_is_answered_with_both() -> None:
    with pytest.raises(TypeError, match=r"^expires=datetime.timedelta\(.*\): expected the name of a field, .*ttl="):

        class T(zlmdb.Table[int, Account], expires=timedelta(hours=1)):  # type: ignore[arg-type]  # the mistake
            pass


def test_a_link_to_a_class_that_was_defined_again() -> None:
    def define() -> Any:
        class Notes(zlmdb.Table[int, Note]): ...

        return Notes

    first, again = define(), define()

    @dataclass
    class Mark:
        note: int

    class Marks(zlmdb.Table[int, Mark]):
        by_note = zlmdb.ForeignKey[first]("note")  # type: ignore[valid-type]

    class Marked(zlmdb.Schema):
        notes: again  # type: ignore[valid-type]
        marks: Marks

    with pytest.raises(
        TypeError,
        match=r"'by_note' leads to another class named Notes .* defined again, .*; define Marks again, too, or",
    ):
        zlmdb.open(None, Marked)

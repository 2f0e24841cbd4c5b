"""Functions that follow links to other tables: the same rows as a loop over all records, however they are found."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

import zlmdb
from zlmdb import ForeignKey, Index, Table, UniqueIndex, desc
from zlmdb.query import remembered
from zlmdb.tables import grouped
from zlmdb.tables.executor import linkscans
from zlmdb.tables.executor.execution import Running
from zlmdb.tables.executor.linkedpaths import LinkedPath


@dataclass
class Author:
    name: str
    born: int
    mentor: Optional[int] = None
    notes: list[str] = field(default_factory=list)

    @property
    def initial(self) -> str:
        return self.name[:1]


@dataclass
class Tag:
    name: str


@dataclass
class Book:
    title: str
    author: int
    editor: Optional[int] = None
    tags: list[str] = field(default_factory=list)
    born: int = 0


class Authors(Table[int, Author]):
    by_name = Index[str]("name")
    by_mentor = ForeignKey["Authors"]("mentor", deferred=True)
    by_born = Index[int]("born")


class Tags(Table[str, Tag]):
    by_name = UniqueIndex[str]("name")


class Books(Table[int, Book]):
    by_author = ForeignKey["Authors"]("author")
    by_editor = ForeignKey["Authors"]("editor")
    by_tag = ForeignKey["Tags"]("tags", each=True)


class Library(zlmdb.Schema):
    authors: Authors
    tags: Tags
    books: Books
    bare: Table[int, Book]


def fill(t: Library, books: int = 200) -> None:
    for key in range(50):
        mentor = None if key % 3 == 0 else key // 2
        t.authors[key] = Author("abcde"[key % 5] + str(key // 10), key % 7, mentor, [str(key)])
    for key in range(20):
        t.tags[f"t{key}"] = Tag(f"tag {key}")
    for key in range(books):
        tags = [f"t{key % 20}", f"t{key % 7}"][: key % 3]
        book = Book(f"b{key}", key * 7 % 50, None if key % 4 == 0 else key % 50, tags, key % 7)
        t.books[key] = t.bare[key] = book


@pytest.fixture(scope="module")
def db() -> Iterator[Any]:
    with zlmdb.open(None, Library) as db:
        with db.write() as t:
            fill(t)
        yield db


def initial(author: Author) -> str:
    return author.initial


CONDITIONS: dict[str, Callable[[Any], Callable[[Book], Any]]] = {
    "equal": lambda t: lambda b: t.authors[b.author].name == "a1",
    "not equal": lambda t: lambda b: t.authors[b.author].name != "a1",
    "range": lambda t: lambda b: t.authors[b.author].born > 5,
    "in": lambda t: lambda b: t.authors[b.author].name in ("a1", "b2", "zz"),
    "startswith": lambda t: lambda b: t.authors[b.author].name.startswith("c1"),
    "none": lambda t: lambda b: t.authors[b.author].name == "nobody",
    "and": lambda t: lambda b: b.born == 3 and t.authors[b.author].name == "a1",
    "or of one": lambda t: lambda b: t.authors[b.author].name == "a1" or t.authors[b.author].name == "b2",
    "or of the record": lambda t: lambda b: t.authors[b.author].name == "a1" or b.born == 3,
    "or, and the other table has an index of that field": lambda t: (
        lambda b: t.authors[b.author].born == 3 or b.born == 4
    ),
    "compared with the record": lambda t: lambda b: t.authors[b.author].born == b.born,
    "not": lambda t: lambda b: not (t.authors[b.author].name == "a1" or b.born == 3),
    "optional": lambda t: lambda b: b.editor is not None and t.authors[b.editor].name == "a1",
    "in the table": lambda t: lambda b: b.editor in t.authors if b.editor is not None else False,
    "get": lambda t: lambda b: t.authors.get(b.author + 30) is None,
    "get of a field": lambda t: lambda b: (a := t.authors.get(b.author)) is not None and a.born == 2,
    "link of a link": lambda t: (
        lambda b: t.authors[b.author].mentor is not None and t.authors[t.authors[b.author].mentor].name == "a0"
    ),
    "each": lambda t: lambda b: any(t.tags[tag].name == "tag 3" for tag in b.tags),
    "each and the record": lambda t: lambda b: any(t.tags[tag].name == "tag 3" and b.born == 3 for tag in b.tags),
    "all": lambda t: lambda b: all(t.tags[tag].name == "tag 3" for tag in b.tags),
    "property": lambda t: lambda b: t.authors[b.author].initial == "a",
    "function": lambda t: lambda b: initial(t.authors[b.author]) == "b",
    "list of the other": lambda t: lambda b: "7" in t.authors[b.author].notes,
    "way back": lambda t: lambda b: t.books.by_author[b.author].count() > 4,
    "way back, truth": lambda t: lambda b: not t.authors.by_mentor[b.author],
    "way back of some": lambda t: lambda b: b.born > 2 and not t.books.by_editor[b.author],
    "in an index": lambda t: lambda b: b.born in t.authors.by_mentor and b.title in t.tags.by_name,
    "unique index": lambda t: lambda b: "t3" in b.tags and t.tags.by_name["tag " + str(b.born)].name == "tag 3",
    "rows of the way back": lambda t: lambda b: any(o.born > 5 for o in t.books.by_author[b.author].values()),
    "a selection that is not used": lambda t: lambda b: (t.books.by_author[b.author], b.born == 3)[1],
    "method of a table": lambda t: lambda b: len(t.authors) == 50 and b.born == 1,
    "item": lambda t: lambda b: t["authors"][b.author].born == 1,
}


def loop(t: Any, condition: Callable[[Book], Any]) -> list[int]:
    return [key for key, book in t.books.items() if condition(book)]


@pytest.mark.twice  # how what was read is answered does not depend on the version of Python
@pytest.mark.parametrize("name", CONDITIONS)
@pytest.mark.parametrize("table", ["books", "bare"])
def test_conditions_on_links_give_what_a_loop_gives(db: Any, name: str, table: str) -> None:
    with db.read() as t:
        condition = CONDITIONS[name](t)
        expected = loop(t, condition)
        for _ in range(2):
            assert t[table].where(condition).keys().all() == expected
        assert t[table].where(condition).count() == len(expected)
        reverse = t[table].select(reverse=True).where(condition)
        assert reverse.keys().all() == expected[::-1]
        assert t[table].where(condition).limit(3, skip=1).keys().all() == expected[1:4]
    with db.write() as t:
        assert t[table].where(CONDITIONS[name](t)).keys().all() == expected


def test_few_records_of_the_other_table_lead_through_the_index_of_the_link(db: Any) -> None:
    with db.read() as t:
        plan = t.books.where(lambda b: t.authors[b.author].name == "a1").explain()
        assert plan.indexes == ("by_author",)
        assert str(plan) == (
            "read   index by_author: (t.authors[b.author].name == 'a1')\n"
            "keep   (t.authors[b.author].name == 'a1')\n"
            "link   (t.authors[b.author].name == 'a1'): 2 records of authors, by index by_name"
        )
        assert t.books.where(lambda b: any(t.tags[x].name == "tag 9" for x in b.tags)).explain().indexes == ("by_tag",)
        assert t.bare.where(lambda b: t.authors[b.author].name == "a1").explain().indexes == ()
        busy = t.books.where(lambda b: t.books.by_author[b.author].count() > 4).explain()
        assert (busy.called, busy.keep) == ((), ("(t.books.by_author[b.author].count() > 4)",))
        last = t.books.where(lambda b: t.books.by_author[b.author].last() is not None).explain()
        assert (last.called, last.keep) == ((), ("(t.books.by_author[b.author].last() is not None)",))


@pytest.mark.parametrize(
    ("condition", "what"),
    [
        (lambda t: lambda b: b.author in t.authors.where(lambda a: a.name == "a1").keys().all(), "t.authors.where"),
        (lambda t: lambda b: b.author in t.authors.by_name.select("a1").keys().all(), "t.authors.by_name.select"),
        (lambda t: lambda b: b.author > t.authors.count(), "t.authors.count"),
    ],
)
def test_a_query_within_a_function_runs_for_each_record_and_explain_says_what_to_write(
    db: Any, condition: Any, what: str
) -> None:
    with db.read() as t:
        asked = t.books.where(condition(t))
        assert asked.keys().all() == [k for k, b in t.books.items() if condition(t)(b)]
        (why,) = asked.explain().called
        assert why.startswith(f"{what}, which runs for each record")
        assert why.endswith(f"keys = {what}(...), and capture it")


def test_each_record_is_looked_up_once_and_each_row_has_its_own_objects(db: Any) -> None:
    with db.read() as t:
        authors = t.authors
        looked: list[bytes] = []
        get = authors._get

        def counting(key: bytes, *rest: Any) -> Any:
            looked.append(key)
            return get(key, *rest)

        def grown_up(book: Book) -> bool:
            return t.authors[book.author].born >= 0

        list(t.bare.where(grown_up))  # the first records are compared with what the function gives
        authors._get = counting
        assert t.bare.where(grown_up).count() == 200
        assert sorted(looked) == [authors._lookup(n) for n in range(50)]
        rows = t.bare.fields(lambda b: t.authors[b.author]).all()
        assert len({id(row) for row in rows}) == 200
        assert [row.notes for row in rows] == [[str(b.author)] for b in t.bare.values()]


def test_what_is_remembered_is_bounded(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from zlmdb.query import remembered

    monkeypatch.setattr(remembered, "MOST", 3)
    with db.read() as t:
        for give in (lambda b: t.authors[b.author].name, lambda b: t.authors[b.author]):
            assert t.bare.fields(give).all() == [give(b) for b in t.bare.values()]


def test_in_a_write_transaction_each_record_is_judged_when_its_turn_comes(db: Any) -> None:
    def change(t: Any, rows: Any) -> Iterator[int]:
        for key, book in rows:
            yield key
            with t.authors.edit(book.author) as author:
                author.name = "changed"
            t.authors[17] = Author("a1", 1)

    seen: list[list[int]] = []
    for plainly in (True, False):
        with zlmdb.open(None, Library) as other, other.write() as t:
            fill(t)

            def wanted(book: Book, t: Any = t) -> bool:
                return t.authors[book.author].name == "a1"

            rows = ((k, b) for k, b in t.books.items() if wanted(b)) if plainly else t.books.where(wanted)
            seen.append(list(change(t, rows)))
    assert seen[0] == seen[1]
    assert len(seen[0]) == 6


def test_statements_in_a_write_transaction_go_through_the_index_of_the_link(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[Any] = []
    choice = Running.choice

    def noted(self: Any, **more: Any) -> Any:
        found = choice(self, **more)
        used.append([access.facts.name for access in found.accesses])
        return found

    others = LinkedPath.others

    def known(self: Any, *given: Any) -> Any:
        used.append([self.begins[0].storage.name])
        return others(self, *given)

    monkeypatch.setattr(Running, "choice", noted)
    monkeypatch.setattr(LinkedPath, "others", known)
    with zlmdb.open(None, Library) as db, db.write() as t:
        fill(t)
        ones = [k for k, b in t.books.items() if t.authors[b.author].name == "a1"]
        named = t.books.where(lambda b: t.authors[b.author].name == "a1")
        assert list(named.keys()) == ones
        assert used.pop() == ["by_author"]  # as a hint: the body of the loop may change the other table
        with named.edit() as books:
            for book in books:
                book.title += "!"
        assert used.pop() == ["by_author"]
        assert [k for k, b in t.books.items() if b.title.endswith("!")] == ones
        assert named.delete() == len(ones)
        assert [k for k, b in t.books.items() if t.authors[b.author].name == "a1"] == []


def test_a_record_that_is_the_same_for_all_is_looked_up_for_the_index_of_statements(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    used: list[Any] = []
    choice = Running.choice

    def noted(self: Any, **more: Any) -> Any:
        found = choice(self, **more)
        used.append([access.facts.name for access in found.accesses])
        return found

    monkeypatch.setattr(Running, "choice", noted)
    with zlmdb.open(None, Library) as db, db.write() as t:
        fill(t)
        same = t.authors.where(lambda a: a.born == t.authors[49].born)
        keys = [k for k, a in t.authors.items() if a.born == t.authors[49].born]
        assert list(same.keys()) == keys
        assert used.pop() == []  # the body of the loop may change the record
        assert same.explain().links == ("t.authors[49]: looked up once, in a loop of this transaction each time",)
        used.clear()
        assert same.all() == [(k, t.authors[k]) for k in keys]
        assert used.pop() == ["by_born"]

        def given(author: Author) -> str:  # a loop, so it is called
            for _ in author.notes:
                break
            else:
                with suppress(KeyError):
                    del t.authors[49]
            return author.name

        with suppress(KeyError):
            same.fields(given).all()
        assert used.pop() == []
        t.authors[49] = Author("again", t.authors[keys[0]].born)
        assert same.change(lambda a: replace(a, name="same")) == len(keys)
        assert used.pop() == ["by_born"]
        assert [k for k, a in t.authors.items() if a.name == "same"] == keys


def test_a_record_that_is_the_same_for_all_is_looked_up_for_the_index(db: Any) -> None:
    def asked(t: Any, n: int) -> list[tuple[Any, Callable[[Any], bool], str]]:
        return [
            (t.books, lambda b: b.author == t.authors[n].mentor, "by_author"),
            (t.authors, lambda a: a.born == t.authors[n].born + 1, "by_born"),
            (t.authors, lambda a: a.name == t.authors[t.books[n].author].initial + "1", "by_name"),
        ]

    def keys(table: Any, asks: Any, *, plain: bool) -> Any:
        try:
            return [key for key, one in table.items() if asks(one)] if plain else table.where(asks).keys().all()
        except KeyError as error:
            return str(error)

    for n in (2, 4, 1, 3, 777, 2):  # 3 has no mentor, and there is no record 777
        with db.read() as t:
            for table, asks, index in asked(t, n):
                if n not in (3, 777):
                    plan = table.where(asks).explain()
                    assert plan.indexes == (index,)
                    assert {text.split(": ")[1] for text in plan.links} == {"looked up once"}
                for _ in range(2):
                    assert keys(table, asks, plain=False) == keys(table, asks, plain=True)


def test_a_record_that_is_the_same_for_all_may_be_written_in_between() -> None:
    with zlmdb.open(None, Library) as db, db.write() as t:
        fill(t)
        seen = []
        for key, _ in t.authors.where(lambda a: a.born == t.authors[49].born):
            seen.append(key)
            if len(seen) == 2:
                t.authors[49] = Author("new", 6)
        assert seen == [0, 7, *range(13, 49, 7), 49]


def test_a_missing_record_raises_where_python_would(db: Any) -> None:
    with db.read() as t:
        for give in (lambda b: t.authors[b.author + 40].name, lambda b: t.authors[b.author + 40]):
            with pytest.raises(KeyError):
                t.books.fields(give).all()
        assert t.books.where(lambda b: b.author < 5 and t.authors[b.author + 40].born == 3).count() == sum(
            b.author < 5 and t.authors[b.author + 40].born == 3 for b in t.books.values()
        )
        assert t.books.where(lambda b: b.author > 90 and t.authors[b.author].born == 3).count() == 0


def test_a_table_that_reads_in_its_own_way_is_called() -> None:
    class Shouting(Table[int, Author]):
        def __getitem__(self, key: int) -> Any:
            return super().__getitem__(key).name.upper()

    class Loud(zlmdb.Schema):
        authors: Shouting
        bare: Table[int, Book]

    with zlmdb.open(None, Loud) as db, db.write() as t:
        t.authors[1] = Author("ann", 1)
        t.bare.update({1: Book("b", 1), 2: Book("c", 1)})
        authors: Any = t.authors
        for condition in (lambda b: t.authors[b.author].isupper(), lambda b: authors[b.author] == "ANN"):
            assert t.bare.where(condition).count() == 2
            assert t.bare.where(condition).explain().called != ()


def test_links_serve_order_groups_and_tables_captured_alone(db: Any) -> None:
    with db.read() as t:
        authors = t.authors
        rows = t.books.select().order_by(lambda b: (authors[b.author].name, desc(b.title))).keys().all()
        books = dict(t.books.items())
        expected = sorted(books, key=lambda k: books[k].title, reverse=True)
        assert rows == sorted(expected, key=lambda k: authors[books[k].author].name)
        groups = t.books.select().group_by(lambda b: t.authors[b.author].initial, lambda g: g.count())
        assert sorted(groups.values()) == [40] * 5
        assert t.books.where(lambda b: authors[b.author].name == "a1").explain().indexes == ("by_author",)


def test_numbers_of_linked_records_are_computed_without_the_rows_of_groups(
    db: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for mode in (db.read, db.write):
        with mode() as t:
            asked: list[Callable[[Any], Any]] = [
                lambda g: (g.fields(lambda b: t.authors[b.author].born).sum(), g.count()),
                lambda g: g.where(lambda b: t.authors[b.author].name < "b").fields(lambda b: b.born).max(),
                lambda g: g.where(lambda b: t.authors[t.authors[b.author].born].born > 2).count(),
            ]
            for into in asked:
                found = t.books.group_by(lambda b: b.title[-1], into)
                with monkeypatch.context() as patched:
                    patched.setattr(grouped, "aggregated", lambda *args: None)
                    assert list(t.books.group_by(lambda b: b.title[-1], into).items()) == list(found.items())
                if sys.implementation.name == "cpython":  # PyPy's code is not read
                    with monkeypatch.context() as patched:
                        patched.setattr(grouped, "Group", None)
                        assert t.books.group_by(lambda b: b.title[-1], into) == found


def test_a_write_transaction_reads_each_linked_record_once_where_all_rows_are_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[Any] = []
    narrow = remembered._narrow

    def counting(table: Any, paths: Any) -> Callable[[Any], Any]:
        load = narrow(table, paths) or table._load
        return lambda data: read.append(data) or load(data)

    monkeypatch.setattr(remembered, "_narrow", counting)
    asked: list[Callable[[Any], Any]] = [
        lambda t: t.books.fields(lambda b: t.authors[b.author].name).all(),
        lambda t: t.books.fields(lambda b: t.authors[b.author].born).sum(),
        lambda t: t.books.order_by(lambda b: (t.authors[b.author].name, b.title)).keys().all(),
        lambda t: t.books.group_by(lambda b: t.authors[b.author].name, lambda g: g.count()),
        lambda t: t.books.where(lambda b: t.authors[b.author].born == b.born).count(),
    ]
    with zlmdb.open(None, Library) as db:
        with db.write() as t:
            fill(t)
        for ask in asked:
            with db.write() as t:
                found = ask(t)
                read.clear()
                assert ask(t) == found
                assert len(read) == 50
                t.authors[7] = Author("zz" if t.authors[7].name < "z" else "aa", t.authors[7].born + 1)
                changed = ask(t)
                assert changed != found
            with db.read() as t:
                assert ask(t) == changed


def test_the_text_of_an_index_is_that_of_the_index(db: Any) -> None:
    with db.write() as t:
        for key in range(20):  # more than the first ones, which are compared
            title = f"{t.books.by_author}" if key == 15 else str(key)
            t.bare[key] = Book(title, 0)
        assert list(t.bare.where(lambda b: b.title == f"{t.books.by_author}").keys()) == [15]


def test_mistakes_behind_a_link_are_told_when_the_query_is_made(db: Any) -> None:
    with db.read() as t, pytest.raises(TypeError, match="Author has no field 'nam', it has name, born, mentor, notes"):
        t.books.where(lambda b: t.authors[b.author].nam == "x")
    with (
        db.read() as t,
        pytest.raises(TypeError, match=r"t.tags\['t1'\] is a record of .*Tag, .* compare with its key"),
    ):
        t.books.where(lambda b: b.title == t.tags["t1"])
    with db.read() as t, pytest.raises(TypeError, match=r"b.title.name: str has no .* t.others\[b.title\].name"):
        t.books.where(lambda b: b.title.name == "x")


def test_the_query_of_one_transaction_does_not_serve_another_schema(db: Any) -> None:
    def ask(t: Any) -> list[int]:
        return list(t.books.where(lambda b: t.authors[b.author].born == 2).keys().all())

    with db.read() as t:
        first = ask(t)
    with zlmdb.open(None, Library) as other, other.write() as u:
        fill(u, 10)
        assert ask(u) == [key for key in first if key < 10]
    with db.read() as t, db.read() as old:
        assert t.books.where(lambda b: old.authors[b.author].born == 2).keys().all() == first


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="transactions are reused where references are counted")
def test_what_is_kept_of_a_query_keeps_no_transaction() -> None:
    def ask() -> int:
        with db.read() as t:
            list(t.books.where(lambda b: t.authors[b.author].name == "a1"))
            t.books.fields(lambda b: t.authors[b.author].name).all()
            return id(t.txn)

    with zlmdb.open(None, Library) as db:
        with db.write() as t:
            fill(t, 10)
        ask()
        gc.collect()
        assert len({ask() for _ in range(5)}) == 1


@st.composite
def conditions(draw: Any) -> tuple[str, str]:
    """A random condition as a source, of t and b."""
    link = draw(st.sampled_from(["t.authors[b.author]", "t.authors[b.born]", "t.authors[t.authors[b.author].born]"]))
    simple = st.one_of(
        st.tuples(st.sampled_from(["==", "<", ">=", "!="]), st.integers(-1, 8)).map(
            lambda one: f"{link}.born {one[0]} {one[1]}"
        ),
        st.tuples(st.sampled_from(["==", "<", ">=", "!="]), st.sampled_from(["a1", "b", "e4"])).map(
            lambda one: f"{link}.name {one[0]} {one[1]!r}"
        ),
        st.sampled_from(["b.born == 3", "b.author < 9", "b.editor is None", f"{link}.name.startswith('c')"]),
        st.sampled_from(
            [
                "any(t.tags[x].name == 'tag 3' for x in b.tags)",
                "any(t.tags[x].name < 'tag 3' and x != 't1' for x in b.tags)",
                "all(t.tags[x].name > 'tag 1' for x in b.tags if t.tags[x].name != 'tag 2')",
                "b.born in t.authors",
                f"{link}.mentor is None",
                f"{link}.initial == 'a'",
            ]
        ),
        st.sampled_from([f"b.born == {link}.born", f"{link}.born + b.born > 7"]),
    )
    parts = draw(st.lists(simple, min_size=1, max_size=3))
    text = parts[0]
    for part in parts[1:]:
        text = f"({text}) {draw(st.sampled_from(['and', 'or', 'and not']))} ({part})"
    return text, draw(st.sampled_from(["read", "write"]))


@given(asked=conditions(), least=st.sampled_from([8, 256]))
def test_random_conditions_give_what_a_loop_gives(db: Any, asked: tuple[str, str], least: int) -> None:
    text, how = asked
    with getattr(db, how)() as t, pytest.MonkeyPatch.context() as patch:
        patch.setattr(linkscans, "LEAST", least)  # beyond it, another table is read as a whole
        condition = eval(f"lambda b: {text}", {"t": t})
        expected: Any = KeyError
        with suppress(KeyError):
            expected = loop(t, condition)
        if expected is not KeyError:
            query = t.books.where(condition)
            assert query.keys().all() == list(query.keys()) == expected
            assert query.count() == len(expected)
            assert query.limit(2, 1).keys().all() == expected[1:3]

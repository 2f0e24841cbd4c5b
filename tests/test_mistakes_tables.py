"""What newcomers get wrong with records, keys and methods of tables: each is told what to write instead."""

from __future__ import annotations

import copy
import pickle
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from typing import Any, ClassVar, Optional

import pytest
from newcomers import (
    Account,
    Article,
    Note,
    Notebook,
    Notes,
    Numbered,
    Post,
)

import zlmdb


class Jobs(Notebook):
    jobs: zlmdb.Queue[str]


def test_what_a_shell_shows_is_what_one_wrote(notebook: Any) -> None:
    assert repr(notebook) == "<database in memory, open>"
    assert repr(Notes.by_title) == "UniqueIndex[str]('title')"
    with notebook.read() as t:
        assert repr(t) == "<Notebook in <read transaction in memory, open>>"
        assert repr(t.hits) == "<Table 'hits': []>"
        shown = "[(1, Note(title='One', stars=3, due=None, tags=[])), (2, "
        assert repr(t.notes).startswith(f"<Notes 'notes': {shown}")
        assert repr(t.notes.by_title).startswith(f"<UniqueIndexView notes.by_title: {shown}")
        table = t.notes
    assert repr(t) == "<Notebook in <read transaction in memory, not open>>"
    assert repr(table) == "<Notes 'notes': [its transaction has ended]>"
    assert repr(zlmdb.Worker(notebook, lambda t: t.jobs)) == "<worker of <database in memory, open>>"
    notebook.close()
    with pytest.raises(zlmdb.DatabaseClosed, match="^the database in memory is not open") as raised:
        notebook.read()
    assert raised.value.__suppress_context__  # what was tried before is nobody's affair
    with zlmdb.Cache(None) as cache:
        assert repr(cache) == "<cache in memory, open>"
    assert repr(zlmdb.DecompressionLimit(7)) == "DecompressionLimit(limit=7)"


def test_writing_by_an_index_is_answered_with_the_key(notebook: Any) -> None:
    with notebook.write() as t:
        with pytest.raises(TypeError, match=r"del table\[index\.key\(\.\.\.\)\]"):
            del t.notes.by_title["One"]
        with pytest.raises(TypeError, match=r"table\[index\.key\(\.\.\.\)\] = value"):
            t.notes.by_title["One"] = Note("One")
        with pytest.raises(TypeError, match=r"index\[\.\.\.\]\.delete\(\)"):
            del t.notes.by_stars[3]


def test_a_key_that_a_unique_index_cannot_have_is_said_of_the_index(notebook: Any) -> None:
    with notebook.read() as t:
        for use in (lambda: t.notes.by_title[7], lambda: 7 in t.notes.by_title):
            with pytest.raises(zlmdb.EncodeError, match=r"^index 'notes\.by_title': 7 is not a key of type str"):
                use()


def test_a_table_is_neither_copied_nor_pickled(notebook: Any) -> None:
    with notebook.read() as t:
        for use in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match=r"table 'notes' belongs to a transaction .*dict\(table\)"):
                use(t.notes)


@pytest.mark.parametrize(
    ("use", "text"),
    [
        (lambda t: Notebook("data"), r"Notebook\(\) opens no database: .*with zlmdb\.open\(path, Notebook\)"),
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
    with zlmdb.open(None, Jobs) as notebook, notebook.write() as t:
        with pytest.raises((TypeError, AttributeError, ValueError), match=text):
            use(t)
        assert len(t.notes) == len(t.jobs) == 0


@pytest.mark.skipif(sys.version_info < (3, 10), reason="errors name the class of a method since Python 3.10")
def test_a_record_asked_of_a_class_is_answered_with_the_table_of_the_transaction(notebook: Any) -> None:
    cls: Any = Notes
    with pytest.raises(TypeError, match=r"t\.table\.get\(\.\.\.\) .* not of the class"), notebook.read():
        cls.get(1)


def test_a_dict_in_place_of_a_record_is_answered_with_how_one_is_made(notebook: Any) -> None:
    with (
        notebook.write() as t,
        pytest.raises(zlmdb.EncodeError, match=r"Note, got .* \(dict\): make .* Note\(\*\*\.\.\.\)$"),
    ):
        t.notes.add({"title": "Three"})


def test_values_given_to_put_many_without_keys_are_answered_with_pairs(notebook: Any) -> None:
    with notebook.write() as t, pytest.raises(TypeError, match=r"takes pairs of key and value, got Note\("):
        t.notes.put_many([Note("Three")])


def test_what_takes_no_arguments_says_how_a_condition_or_a_key_is_asked_for(notebook: Any) -> None:
    with notebook.write() as t:
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
def test_a_method_of_another_store_is_answered_with_what_to_write(blog: Any, mistake: Any, said: str) -> None:
    with blog.write() as t, pytest.raises(AttributeError, match=said):
        mistake(blog, t)


@pytest.mark.skipif(sys.version_info < (3, 10), reason="an AttributeError knows its object since Python 3.10")
def test_the_tables_that_there_are_are_those_that_the_class_declares(blog: Any) -> None:
    said = "declares no table 'nothing'; there are 'posts', 'named', 'jobs', 'marks'$"
    with pytest.raises(AttributeError, match=said), blog.write() as t:
        t.nothing  # noqa: B018


@pytest.mark.skipif(sys.version_info < (3, 10), reason="errors name the class of a method since Python 3.10")
@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (
            lambda t: t.posts.get(title="One"),
            r"get\(\) got .*; a table of zlmdb looks up keys: write .where\(",
        ),
        (lambda t: t.jobs.pop(), r", .claim\(\) for the next job of a queue$"),
        (lambda t: t.jobs.pop(), r"pop\(\) missing .*; a table of zlmdb looks up keys"),
        (lambda t: t.posts.values("title"), r"values\(\) takes .*; of a table of zlmdb, write .fields\(lambda record"),
        (lambda t: t.posts.keys("a*"), r"keys\(\) takes .* .where\(lambda record: ...\) for a condition$"),
        (lambda t: t.posts.add(title="One"), r"add\(\) got .*; a table of zlmdb takes one record, and"),
        (lambda t: t.posts.add(1, Post("x")), r"add\(\) takes .*; write table\[key\] = value for a given key"),
        (lambda t: t.posts.put_new(Post("x")), r"put_new\(\) missing .*takes the key and the whole record"),
        (lambda t: t.posts.change(1, title="x"), r"change\(\) got .*a function that returns the new record"),
    ],
)
def test_the_end_of_a_block_says_what_a_method_takes(blog: Any, mistake: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said), blog.write() as t:
        mistake(t)
    with pytest.raises(TypeError, match=said) as caught, blog.write() as t, t.txn.savepoint():
        mistake(t)
    assert str(caught.value).count(";") - str(caught.value).count("; write") == 1  # said once


@pytest.mark.skipif(sys.version_info < (3, 10), reason="Python names the object of an AttributeError since 3.10")
def test_the_end_of_a_block_says_that_a_loop_gives_pairs(blog: Any) -> None:
    says = r"'tuple' object has no attribute '{}': .* pairs .* `for key, record in .*, or loop over \.values\(\)$"
    with pytest.raises(AttributeError, match=says.format("title")), blog.read() as t:
        [post.title for post in t.posts.where(lambda p: p.likes >= 0)]
    with pytest.raises(AttributeError, match=says.format("likes")), blog.write() as t:
        t.posts.group_by(lambda p: p.title, lambda posts: sum([post.likes for post in posts]))
    with pytest.raises(AttributeError, match="'tuple' object has no attribute 'titel'$"), blog.read() as t:
        t.posts.first().titel  # noqa: B018
    nothing: Any = ()
    with pytest.raises(AttributeError, match="'tuple' object has no attribute 'title'$"), blog.read() as t:
        nothing.title  # noqa: B018


def test_a_record_in_place_of_its_key_is_told_so(blog: Any) -> None:
    with blog.read() as t, pytest.raises(zlmdb.EncodeError, match="this is a record: give its key"):
        t.posts.by_tag[Post("x")]


def test_a_key_that_the_record_has_not_got_yet_is_explained(blog: Any) -> None:
    with blog.write() as t, pytest.raises(zlmdb.EncodeError, match="leave out key=, and add"):
        t.named.add(Numbered("x"))


@pytest.mark.parametrize("rows", [[Post("A")], [(1,)], [(1, Post("A"), 3)], ["text"], [None]])
@pytest.mark.parametrize("made", [list, iter, lambda rows: (row for row in rows)])
def test_put_many_of_no_pairs_says_what_it_takes_and_stores_nothing(blog: Any, rows: Any, made: Any) -> None:
    with blog.write() as t:
        with pytest.raises(
            (TypeError, ValueError), match=r"put_many\(\) takes pairs of key and value, got .* table.add"
        ):
            t.posts.put_many(made(rows))
        assert t.posts.put_many((number, Post("B")) for number in (7, 8, 9)) == 3
        assert t.posts.put_many(iter(())) == t.posts.put_many({}.items()) == 0
        assert [*t.posts] == [1, 2, 7, 8, 9]


@dataclass
class Box:
    width: int
    label: str = ""
    contents: list[str] = field(default_factory=list)
    wider: ClassVar[int] = 0

    def __post_init__(self) -> None:
        self.widths = self.width
        self.labelled = self.label

    @cached_property
    def widths_(self) -> int:
        return self.widths


class Spelled(zlmdb.Schema):
    boxes: zlmdb.Table[int, Box]
    pairs: zlmdb.Table[tuple[int, int], Box]
    texts: zlmdb.Table[str, Box]
    moments: zlmdb.Table[date, Box]


@dataclass
class Street:
    name: str
    number: int = 0


@dataclass
class Made:
    """Makes an attribute of its own."""

    size: int

    def __post_init__(self) -> None:
        self.sizes = 2 * self.size


@dataclass
class Home:
    street: Street
    others: list[Optional[Street]] = field(default_factory=list)
    named: dict[str, Street] = field(default_factory=dict)
    made: Optional[Made] = None


class Homes(zlmdb.Schema):
    homes: zlmdb.Table[int, Home]


@pytest.mark.parametrize("name", ["widht", "Width", "contets", "lable"])
def test_a_misspelt_field_that_a_block_assigns_to_is_refused_and_not_lost(name: str) -> None:
    said = (
        rf"table 'boxes', key 1: Box has no field '{name}', so .*not be stored: did you mean '(width|contents|label)'"
    )
    with zlmdb.open(None, Spelled) as db, db.write() as t:
        t.boxes.update({1: Box(1), 2: Box(2)})

        def edit_one() -> None:
            with t.boxes.edit(1) as box:
                box.width = 7
                setattr(box, name, 3)

        def edit_all() -> None:
            with t.boxes.where(lambda box: box.width > 0).edit() as boxes:
                for box in boxes:
                    box.width = 7
                    setattr(box, name, 3)

        for edit in (edit_one, edit_all):
            with pytest.raises(zlmdb.EncodeError, match=said):
                edit()
        assert t.boxes[1] == Box(1)


@pytest.mark.parametrize("part", [lambda home: home.street, lambda home: home.others[1], lambda home: home.named["a"]])
def test_a_misspelt_field_of_a_nested_object_is_refused_too(part: Callable[[Home], Any]) -> None:
    home = Home(Street("A", 1), [None, Street("B", 2)], {"a": Street("C", 3)}, Made(1))
    said = r"table 'homes', key 1: Street has no field 'nmae', so .*not be stored: did you mean 'name'"
    with zlmdb.open(None, Homes) as db, db.write() as t:
        t.homes[1] = home

        def edit_one() -> None:
            with t.homes.edit(1) as home:
                part(home).nmae = "D"

        def edit_all() -> None:
            with t.homes.select().edit() as homes:
                for home in homes:
                    part(home).nmae = "D"

        for edit in (edit_one, edit_all):
            with pytest.raises(zlmdb.EncodeError, match=said):
                edit()
        assert t.homes[1] == home
        with t.homes.edit(1) as changed:
            part(changed).name, part(changed)._nmae = "D", 1
            changed.made = Made(2)  # which has another attribute
        assert part(t.homes[1]).name == "D"


def test_a_nested_object_that_contains_itself_is_an_error_of_its_value() -> None:
    with zlmdb.open(None, Homes) as db, db.write() as t:
        t.homes[1] = Home(Street("A"))
        with pytest.raises(zlmdb.EncodeError, match="table 'homes'"), t.homes.edit(1) as home:  # noqa: PT012
            others: Any = home.others
            others.append(others)


def test_other_names_of_an_object_are_its_own_affair_in_a_block() -> None:
    with zlmdb.open(None, Spelled) as db, db.write() as t:
        t.boxes.update({1: Box(1), 2: Box(2)})
        with t.boxes.edit(1) as box:
            box._width, box.wider, box.full_label = 1, 2, "anything"  # type: ignore[attr-defined]
            box.widths = 8  # had before
            assert box.widths_ == 8
            box.width = 3
        with t.boxes.select().edit() as boxes:
            for box in boxes:
                box.labelled += "!"  # type: ignore[attr-defined]
                box.width += box.widths_ - box.widths + 1
        assert [box.width for box in t.boxes.values()] == [4, 3]


@pytest.mark.parametrize("table", ["pairs", "texts", "moments"])
def test_a_key_of_which_there_is_no_next_one_is_not_made_up(table: str) -> None:
    with zlmdb.open(None, Spelled) as db, db.write() as t:
        with pytest.raises(TypeError, match=r"new keys of type .* cannot be generated: store with table\[key\]"):
            t[table].add(Box(1))
        assert len(t[table]) == 0


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda t: t.users["01a21db7-2b4f-7177-b3a7-53c1be3c853f"], r"expected a uuid.UUID; write UUID\(...\) for a t"),
        (lambda t: t.sold.get("7"), r"2\*\*63 - 1; write int\(...\) for a text$"),
        (lambda t: t.days["2026-01-01"], r"write date.fromisoformat\(...\) for a text$"),
        (lambda t: t.users.by_age["31"], r"^index 'users.by_age': .*; write int\(...\) for a text$"),
    ],
)
def test_a_text_in_place_of_a_key_is_answered_with_what_makes_the_key(shop: Any, asked: Any, said: str) -> None:
    with shop.read() as t, pytest.raises(zlmdb.EncodeError, match=said):
        asked(t)


@pytest.mark.skipif(
    sys.version_info < (3, 10) or sys.implementation.name == "pypy",
    reason="only CPython, from 3.10 on, says in an error which object has no such attribute, and whose method it is",
)
def test_the_end_of_a_block_says_what_a_table_has(shop: Any) -> None:
    with (
        pytest.raises(AttributeError, match=r"'name': a table is any number of records: write table\[key\].name fo"),
        shop.read() as t,
    ):
        _ = t.users.name
    with (
        pytest.raises(
            AttributeError, match=r"'name': a selection is any .* write .values\(\).first\(\).name for one, "
        ),
        shop.read() as t,
    ):
        _ = t.users.where(lambda user: user.age is not None).name
    for look in (
        lambda t: [user.name for user in t.users],
        lambda t: max(t.users.keys(), key=lambda user: user.age),
        lambda t: t.users.group_by(lambda user: user.name, lambda group: [*map(lambda u: u.age, group.keys())]),
    ):
        for block in (shop.read, shop.write):
            with pytest.raises(AttributeError, match=r"a loop over a table gives its keys.*values\(\)$"), block() as t:
                look(t)
    with pytest.raises(AttributeError, match="'UUID' object has no attribute 'nmae'$"), shop.read() as t:
        _ = [user.nmae for user in t.users]
    with (
        pytest.raises(AttributeError, match=r"pairs of key and record: write `for key, record in ...`"),
        shop.read() as t,
    ):
        t.users.group_by(lambda user: user.name, lambda group: sum(user.age for user in group))
    said = r"'by_name': the class .* its indexes: .*by_name = zlmdb.Index\[...\]\('name'\); without .* record.n"
    with pytest.raises(AttributeError, match=said), shop.read() as t:
        _ = t.users.by_name
    for look, said in (
        (lambda user: user.save, r"'save': .*: write table\[key\] = record, or `with table.edit\(key\) as record:`$"),
        (lambda user: user.delete, r"'delete': .*: write del table\[key\]$"),
        (lambda user: user.id, r"'id': a record does not have its key: loop over .items\(\), or .*key=\"id\"\)$"),
        (lambda user: user.nosuch, "'nosuch'$"),
    ):
        with pytest.raises(AttributeError, match=said), shop.read() as t:
            look(t.users.by_email["ann@x"])
    with pytest.raises(AttributeError, match="'Customers' object has no attribute 'by_colour'$"), shop.read() as t:
        _ = t.users.by_colour
    with pytest.raises(TypeError, match="'age'; it takes a function that returns the new record"), shop.write() as t:
        t.users.where(lambda u: u.age == 31).change(age=32)


ANY: Any = zlmdb


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda t: t.users.get_or_create(name="Ann"), r"'get_or_create': .*by_field.key\(value, None\) is None$"),
        (lambda t: t.users.nunique(), r"'nunique': write .fields\(lambda record: ...\).distinct\(\)"),
        (
            lambda t: t.users.fields(lambda u: u.age).value_counts(),
            r"'value_counts': write collections.Counter\(rows\)",
        ),
        (lambda t: t.users.fields(lambda u: u.age).sort(), r"'sort': write sorted\(rows\)"),
        (lambda t: t.jobs.failed, "'failed': write .dead"),
        (lambda t: ANY.Lock, "'Lock': there are zlmdb.Cache, zlmdb.Queue"),
        (lambda t: ANY.Cache(None).pipeline(), r"'pipeline': write `with cache.transact\(\):`"),
        (lambda t: ANY.Cache(None).lock("a"), r"'lock': .*; cache.add\('lock', 1, expire=60\) is true for one caller"),
    ],
)
def test_methods_of_others_are_answered_with_what_to_write(t: Any, asked: Any, said: str) -> None:
    with pytest.raises(AttributeError, match=said):
        asked(t)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda db, t: db.iterator(prefix=b"a"), r"'iterator': write t.table.select\(start, stop\) in a block"),
        (lambda db, t: db.snapshot(), "'snapshot': a block `with db.read.*` is one$"),
        (lambda db, t: db.write_batch(), "'write_batch': a block `with db.write.*` is one$"),
        (lambda db, t: db.prefixed_db(b"a"), "'prefixed_db': the schema declares a table for each"),
        (lambda db, t: db.box(Article), "'box': the schema declares a table for each"),
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
        (
            lambda db, t: ANY.ManyToManyField(Article),
            r"'ManyToManyField': write ForeignKey\[Tags\]\('tags', each=True\)",
        ),
    ],
)
def test_names_of_other_stores_are_answered_with_what_to_write(magazine: Any, asked: Any, said: str) -> None:
    with magazine.read() as t, pytest.raises(AttributeError, match=said):
        asked(magazine, t)


def test_ignoring_conflicts_is_answered_with_the_method_that_keeps_records(magazine: Any) -> None:
    said = r"'ignore_conflicts'; .* .put_new\(key, value\) for each keeps them$"
    if sys.version_info < (3, 10):  # errors do not name the class of a method
        said = r"'ignore_conflicts'$"
    with pytest.raises(TypeError, match=said), magazine.write() as t:
        t.posts.put_many([(1, Article("a"))], ignore_conflicts=True)


def test_an_id_that_no_store_gives_is_not_answered_with_how_to_lose_a_record(books: Any) -> None:
    """An ORM gives ids; here both records say 0, and the advice was to replace the first one with the second."""
    with books.write() as t:
        t.users.add(Account("Ann"))
        with pytest.raises(
            zlmdb.DuplicateKey, match=r"takes the key from the field 'id'.*: give the record another one"
        ):
            t.users.add(Account("Bob"))


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda t: t.texts.close(), r"db\.close\(\), the database$"),
        (lambda t: t.users.where(lambda u: u.id > 1).close(), r"db\.close\(\), the database$"),
        (lambda t: t.texts.sync(), "the end of the block .* commits what was stored"),
        (lambda t: t.users.avg(lambda u: u.id), r"write \.fields\(lambda record: \.\.\.\)\.mean\(\)"),
        (lambda t: t.users.dicts(), r"write \.fields\("),
        (lambda t: t.users.insert_multiple([]), r"write \.put_many\("),
        (lambda t: t.texts.cursor(), r"write \.select\(start, stop\)"),
        (lambda t: t.close, r"t\.txn\.abort\(\), ends the transaction"),
    ],
)
def test_a_method_of_another_store_is_answered(books: Any, asked: Callable[[Any], Any], said: str) -> None:
    """Of close, Python itself suggested clear, which deletes all records."""
    with pytest.raises(AttributeError, match=said) as raised, books.write() as t:
        asked(t)
    assert "clear" not in str(raised.value)
    assert getattr(raised.value, "obj", None) is None  # which Python makes suggestions from


def test_computing_with_the_views_of_a_table_leads_to_its_fields(notebook: Any) -> None:
    with notebook.read() as t:
        for view, name in ((t.notes.values(), "sum"), (t.notes.items(), "max")):
            with pytest.raises(AttributeError, match=rf"write \.fields\(lambda record: \.\.\.\)\.{name}\(\) of the"):
                getattr(view, name)
        with pytest.raises(AttributeError, match=r"write \.select\(\)\.keys\(\)\.max\(\.\.\.\)$"):
            t.notes.keys().max()
        with pytest.raises(AttributeError, match=r"write \.order_by\(.*\.first\(\) and \.last\(\)"):
            t.notes.max_by(lambda note: note.stars)
        with pytest.raises(AttributeError, match=r"write \.select\(start, stop\)"):
            t.notes.by_stars.between(1, 2)
    with pytest.raises(AttributeError, match=r"db\.dump\(file\) .*db\.load\(file\)"):
        notebook.export("notes.jsonl")


def test_the_first_part_of_a_key_is_told_of_prefix() -> None:
    class Paired(zlmdb.Schema):
        pairs: zlmdb.Table[tuple[int, str], int]

    with zlmdb.open(None, Paired) as db, db.read() as t:
        table: Any = t.pairs
        for first in (1, (1,)):
            with pytest.raises(
                zlmdb.EncodeError, match=r"; write \.select\(prefix=\(1,\)\) for all keys that begin so$"
            ):
                table[first]
        for other in ("a", None, (), (1, "a", 2), [], ["a", 1], [1, "a", 2]):
            with pytest.raises(zlmdb.EncodeError, match=r"expected a tuple of 2 \(int, str\)$"):
                table[other]


def test_a_list_is_answered_with_the_tuple_that_the_key_is() -> None:
    """JSON has no tuples."""

    @dataclass
    class Point:
        x: int
        y: int

    class Points(zlmdb.Table[tuple[int, int], Point]):
        by_place = zlmdb.UniqueIndex[tuple[int, int]]("x", "y")

    class Plane(zlmdb.Schema):
        points: Points

    with zlmdb.open(None, Plane) as db, db.write() as t:
        t.points[1, 2] = Point(1, 2)
        table: Any = t.points
        for use in (
            lambda: table[[1, 2]],
            lambda: table.get([1, 2]),
            lambda: [1, 2] in table,
            lambda: table.__setitem__([1, 2], Point(1, 2)),
            lambda: table.__delitem__([1, 2]),
            lambda: table.by_place[[1, 2]],
        ):
            with pytest.raises(zlmdb.EncodeError, match=r"\(int, int\); write a tuple, \(1, 2\)$"):
                use()
        with pytest.raises(zlmdb.EncodeError, match=r"; write .select\(prefix=\(1,\)\) for all keys that begin so$"):
            table[[1]]
        with pytest.raises(zlmdb.EncodeError, match=r"it takes a tuple; write prefix=\(1,\)$"):
            table.select(prefix=[1])


@pytest.mark.parametrize("names", [("first", "second"), ["first", "second"]])
def test_the_names_of_several_fields_are_no_source_of_keys(names: Any) -> None:
    with pytest.raises(TypeError, match=r"Pairs: key=.*one field has the key; .*write table\[first, second\] = record"):

        class Pairs(zlmdb.Table[tuple[str, str], Note], key=names): ...


def test_attributes_of_the_pages_of_others(notebook: Any) -> None:
    with notebook.read() as t:
        page: Any = t.notes.select().page(3)
        for name, advice in (("items", ".rows"), ("has_next", ".next is not None"), ("cursor", ".next, which")):
            with pytest.raises(AttributeError, match=f"no attribute '{name}': write {re.escape(advice)}"):
                getattr(page, name)


def test_a_message_shows_a_function_without_its_address(notebook: Any) -> None:
    with notebook.read() as t, pytest.raises(TypeError, match=r"and got <function <lambda>>: write \.fields\("):
        t.notes.select().sum(lambda note: note.stars)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda t: t.notes.select(end=3), "and got end: write stop=, or through= to include it$"),
        (lambda t: t.notes.select(after=1, to=3), "write start= and stop=, or through= to include it$"),
        (lambda t: t.notes.select(title="One"), r"write where\(lambda record: record.title == ...\)"),
        (lambda t: t.notes.update(1, title="x"), r"and got 1, title='x': to change fields, write .where\("),
        (
            lambda t: t.notes.where(lambda key: key[0] == 1),
            r"^key\[0\]: key is the record, .* lambda key, record: key\[0\]$",
        ),
    ],
)
def test_arguments_that_other_stores_take_are_answered_with_ours(notebook: Any, asked: Any, said: str) -> None:
    with notebook.write() as t, pytest.raises(TypeError, match=said):
        asked(t)

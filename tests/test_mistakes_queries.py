"""What newcomers get wrong with conditions, orders and groups: each is told what to write instead."""

from __future__ import annotations

import asyncio
import copy
import inspect
import pickle
import traceback
from collections.abc import Iterator
from datetime import date, datetime, timezone
from typing import Any
from uuid import UUID

import pytest
from newcomers import (
    Article,
    Club,
    Customers,
    Member,
    Note,
    Person,
    Task,
)

import zlmdb
from zlmdb import desc


def test_methods_of_selections_are_named_where_tables_and_indexes_lack_them(notebook: Any) -> None:
    with notebook.read() as t:
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


def test_a_selection_is_copied_but_neither_deeply_nor_pickled(notebook: Any) -> None:
    """A selection by an index said `cannot pickle 'mappingproxy' object`."""
    with notebook.write() as t:
        t.notes[1] = Note("One")
        for selection in (t.notes.select(), t.notes.where(lambda n: n.title == "One"), t.notes.by_stars[0]):
            assert copy.copy(selection).keys().all() == selection.keys().all() != []
            for use in (copy.deepcopy, pickle.dumps):
                for one in (selection, selection.values()):
                    with pytest.raises(TypeError, match=r"table 'notes' belongs to a transaction .*dict\(table\)"):
                        use(one)


def test_a_limit_that_is_no_number_is_named(notebook: Any) -> None:
    with notebook.read() as t:
        for limit in (t.notes.limit, t.notes.select().limit):
            with pytest.raises(TypeError, match=r"limit\('2', 0\): give numbers of records"):
                limit("2")


def test_values_without_an_order_are_answered_with_what_to_sort_by(notebook: Any) -> None:
    with notebook.read() as t:
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


def test_the_traceback_of_a_mistake_in_a_query_ends_at_its_line(planner: Any) -> None:
    def starred(task: Task) -> bool:
        return task.stars > 2  # type: ignore[operator]

    for wrong, line, file in (
        (lambda task: task.nmae == "One", "<lambda>", __file__),
        (lambda task: task.name > 3, "<lambda>", __file__),
        (lambda task: task.rank == 3, "rank", inspect.getfile(Task)),
        (starred, "starred", __file__),
    ):
        with planner.read() as t, pytest.raises(TypeError) as caught:
            t.tasks.where(wrong)
        last = traceback.extract_tb(caught.value.__traceback__)[-1]
        assert (last.filename, last.name) == (file, line)
        assert "zlmdb.query" not in "".join(traceback.format_exception(TypeError, caught.value, None))


def test_what_rows_lack_is_asked_of_the_records_before(planner: Any) -> None:
    with planner.read() as t:
        for rows in (t.tasks.fields(lambda task: task.name), t.tasks.select().values().distinct()):
            for name in ("where", "limit", "order_by"):
                with pytest.raises(
                    AttributeError, match=rf"rows of a query .*: write \.{name}\(\.\.\.\) before fields"
                ):
                    getattr(rows, name)
            with pytest.raises(AttributeError, match=r"no attribute 'avg': write \.mean\(\)"):
                rows.avg()
            assert not hasattr(rows, "shape")


def test_changing_as_in_sql_is_answered_with_change(planner: Any) -> None:
    with planner.read() as t:
        with pytest.raises(AttributeError, match=r"write \.change\(lambda record"):
            t.tasks.select().update()
        with pytest.raises(AttributeError, match=r"write \.all\(\)"):
            t.tasks.select().fetchall()
    with pytest.raises(AttributeError, match=r"with db\.write\(\) as t"):
        planner.transaction()


def test_a_group_without_its_function_is_answered_with_both(planner: Any) -> None:
    with planner.read() as t:
        for given in ((), ("count",)):
            with pytest.raises(TypeError, match=r"write group_by\(lambda record: \.\.\., lambda group: group\.count"):
                t.tasks.group_by(lambda task: task.name, *given)


def test_rows_of_what_is_no_query_are_refused(planner: Any) -> None:
    async def main() -> None:
        with pytest.raises(TypeError, match=r"arows\(\) takes a function that returns a table or a query, .* 3$"):
            async for _ in planner.arows(lambda t: 3):
                pass

    asyncio.run(main())


def test_views_and_pages_show_their_rows(planner: Any) -> None:
    with planner.read() as t:
        assert repr(t.tasks.keys()) == "[1, 2]"
        assert repr(t.tasks.values()) == repr(t.tasks.select().values())
        assert repr(t.tasks.items()) == repr(t.tasks.select())
        assert repr(t.tasks.fields(lambda task: task.name).page(1)) == "<Page ['One'], and more>"
        assert repr(t.tasks.fields(lambda task: task.name).page(2)) == "<Page ['One', 'Two']>"
        assert len(t.tasks.select().page(1)) == 1
        assert not t.tasks.where(lambda task: task.name == "Three").page(1)


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
def test_queries_that_are_asked_as_elsewhere_say_what_to_write(blog: Any, kind: str, asked: Any, advice: str) -> None:
    with blog.read() as t:
        queries = {"table": t.posts, "index": t.posts.by_tag, "selection": t.posts.select()}
        with pytest.raises(TypeError, match=advice):
            asked(queries.get(kind, t.posts.where(lambda p: p.likes > 1)))


class People(zlmdb.Schema):
    people: zlmdb.Table[int, Person]


_FIELD = "name"


def _yields(person: Person) -> Iterator[bool]:
    yield person.name == "Ann"


@pytest.mark.parametrize(
    ("asked", "advice"),
    [
        (lambda p: p.order_by(lambda r: -r.name), r"-r.name: a str has no sign; write desc\(...\) in order_by"),
        (lambda p: p.order_by(lambda r: (r.name, -r.born)), "-r.born: a datetime.date has no sign; write desc"),
        (lambda p: p.fields(lambda r: r.name).sum(), "sum: unsupported .*: give a function that returns numbers"),
        (lambda p: p.fields(lambda r: r.city).mean(), "mean: unsupported .*: give a function that returns numbers"),
        (lambda p: p.fields(lambda r: r.tags).distinct().all(), r"^distinct: .*unhashable .*, but tuple\(...\)"),
        (lambda p: p.group_by(lambda r: r.tags, lambda g: g.count()), r"^group_by: .*unhashable .*, but tuple\(...\)"),
        (lambda p: p.group_by(lambda r: r.tags, lambda g: g.first()), r"^group_by: .*unhashable .*, but tuple\(...\)"),
        (lambda p: p.where(_yields), "_yields .* has 'yield' in it: a query needs the answer itself"),
        (lambda p: p.order_by(lambda r: desc("born")), r"'born' is a text, .* the same for all .*write desc\(r.born\)"),
        (lambda p: p.order_by(lambda r: (r.city, "-born")), r"'-born' is a text, .*write desc\(r.born\)$"),
        (lambda p: p.order_by(lambda k, v: [_FIELD]), r"'name' is a text, .*write v.name$"),
        (lambda p: p.order_by(lambda r: desc((_FIELD, r.city))), r"'name' is a text, .*write desc\(r.name\)$"),
        (
            lambda p: p.where(_FIELD == "age"),
            r"got False \(a condition outside of a function is computed at once\); write",
        ),
        (lambda p: p.order_by("-born"), r"got '-born'; write `lambda v: desc\(v.born\)`"),
        (lambda p: p.order_by(desc("born")), r"got desc\('born'\); write `lambda v: desc\(v.born\)`"),
        (
            lambda p: p.where(lambda r: ~(r.name == "Ann")),
            r"~\(r.name == 'Ann'\): ~ of a truth value .*write `not ...`",
        ),
        (
            lambda p: p.update({"name": "Cy"}, lambda r: r),
            r"^update\(\) takes a dict of keys .*\.change\(lambda record",
        ),
        (
            lambda p: p.change(1, {"name": "Cy"}),
            r"^change\(\) takes a function that returns the new value, and got \{'na",
        ),
        (lambda p: p.select().change({"name": "Cy"}), r"^change\(\) takes a function that returns the new record"),
        (lambda p: p.order_by(lambda r: r.is_tagged), r"gives, to sort by, the method is_tagged itself: call it, is_t"),
        (lambda p: p.order_by(lambda r: r.name.upper), r"gives, to sort by, the method upper itself: call it, upper"),
        (
            lambda p: p.group_by(lambda r: r.is_tagged, lambda g: g.count()),
            "gives, to group by, the method is_tagged it",
        ),
        (lambda p: p.group_by(lambda r: r.name, lambda g: g.count), "gives the method count itself: call it, count"),
        (
            lambda p: p.group_by(lambda r: r.name, lambda g: (1, g.fields(lambda r: r.city).max)),
            "the method max itself",
        ),
        (
            lambda p: p.group_by(lambda r: r.name, sum),
            r"got <built-in .*sum> .*, or group.fields\(lambda record: ...\).sum",
        ),
        (
            lambda p: p.group_by(lambda r: r.name, lambda k, g: k),
            r"a function of the selection of a group, and got <fun",
        ),
        (lambda p: p.group_by(lambda r: r.name, sum=lambda r: 1), r"^group_by\(\) takes two functions.*; it got sum=<"),
        (lambda p: p.group_by(by=lambda r: r.name, into=len), r"two functions, without names: write .*; it got by=<"),
        (
            lambda p: p.group_by(lambda r: r.name, len, len),
            r"write .*group.fields\(lambda record: ...\).sum\(\)\)\); it",
        ),
        (lambda p: p.select().group_by(key="name"), r"takes two functions, without names: .*; it got key='name' as"),
        (lambda p: p.group_by(), r"expected a function of a record, got None"),
        (
            lambda p: p.group_by(lambda r: r.name, lambda g: g.group_by(lambda r: r.born, count=len)),
            r"^group_by\(\) takes two functions.*; it got count=<",
        ),
        (
            lambda p: p.group_by(lambda r: r.name, lambda g: g.sum(lambda r: r.born.year)),
            r"^sum\(\) takes no arguments.*write .fields\(lambda record: ...\).sum\(\)",
        ),
        (lambda p: p.group_by(lambda r: r.name, len), r"^len\(...\): .*write .count\(\)"),
        (lambda p: p.group_by(lambda r: r.name, lambda g: g.count(1)), r"^count\(\) takes no arguments, and got 1"),
        (lambda p: p.group_by(lambda r: r.name, lambda g: g.where(name="A").count()), r"write where\(lambda record: "),
        (
            lambda p: p.group_by(lambda r: r.name, lambda g: g.max()),
            r"^max\(\) of pairs of key and value .*write .fields",
        ),
        (lambda p: p.select().max(), r"^max\(\) of pairs .*write .fields\(lambda record: ...\).max\(\), or .keys"),
        (lambda p: p.where(lambda r: r.name != "").sum(), r"^sum\(\) of pairs of key and value .*write .fields"),
        (lambda p: p.select().mean(lambda r: r.born.year), r"^mean\(\) takes no arguments, and got <.*write .fields"),
        (lambda p: p.fields(lambda r: r.born).min(default=None), r"^min\(\) takes no arguments, and got default=None"),
        (lambda p: p.where(lambda r: r.is_tagged), r"gives the method is_tagged itself.*: call it, is_tagged\(\)"),
        (lambda p: p.where(lambda r: r.born and r.name.isupper), r"the method isupper itself.*: call it, isupper\(\)"),
        (
            lambda p: p.where(lambda r: r.name.lower == "ann"),
            r"^r.name.lower is a method, .*: call it, r.name.lower\(\)$",
        ),
        (lambda p: p.where(lambda r: r.name.title != "Ann").count(), r"^r.name.title is a method, .*: call it"),
    ],
)
def test_a_function_that_gives_no_answer_says_what_it_should_give(asked: Any, advice: str) -> None:
    with zlmdb.open(None, People) as db:
        with db.write() as t:
            t.people[1] = Person("Ann", date(2000, 1, 1), ["a"])
            t.people[2] = Person("Bob", date(2001, 1, 1), [])
        with db.write() as t, pytest.raises(TypeError, match=advice):
            asked(t.people)


def test_an_index_is_never_equal_to_a_value_and_says_so() -> None:
    class ByName(zlmdb.Table[int, Person]):
        by_name = zlmdb.UniqueIndex[str]("name")
        by_born = zlmdb.Index[date]("born")

    class Indexed(zlmdb.Schema):
        people: ByName

    index: Any = ByName.by_name
    with pytest.raises(TypeError, match=r"^ByName.by_name == 'Ann': an index is no field.*lambda record: record.field"):
        index == "Ann"  # noqa: B015
    with zlmdb.open(None, Indexed) as db, db.read() as t:
        index = t.people.by_name
        for given in ("Ann", 3, b"", ("Ann", 3)):
            with pytest.raises(TypeError, match=r"^people.by_name [!=]= .*: an index is no field.*write index\[key\]"):
                index == given  # noqa: B015
        assert index == index is t.people.by_name != t.people.by_born != None  # noqa: E711
        assert len({index, t.people.by_born, ByName.by_name}) == 3


def test_a_text_that_is_the_name_of_a_field_may_be_what_a_record_sorts_or_groups_by() -> None:
    """A query is a function: what depends on the record, labels and other constants are as good as any value."""
    with zlmdb.open(None, People) as db, db.write() as t:
        t.people.update({1: Person("Bob", date(2001, 1, 1), []), 2: Person("Ann", date(2000, 1, 1), ["a"])})
        for by in (lambda r: "name" if r.tags else "tags", lambda r: (r.name, "of"), lambda r: getattr(r, _FIELD)):
            assert t.people.order_by(by).keys().all() == sorted([1, 2], key=lambda key: by(t.people[key])) == [2, 1]
        assert t.people.order_by(lambda r: "all").keys().all() == [1, 2]
        assert t.people.group_by(lambda r: "name", lambda g: g.count()) == {"name": 2}
        assert t.people.select().keys().max() == 2


CLASS: Any = Customers


@pytest.mark.parametrize(
    "asked",
    [
        lambda t: t.users.by_age[None],
        lambda t: t.users.by_email[None],
        lambda t: t.users.by_email.get(None),
        lambda t: None in t.users.by_age,
        lambda t: t.users.by_both["Bob", None].count(),
    ],
)
def test_none_in_an_index_is_answered_with_the_condition(shop: Any, asked: Any) -> None:
    with (
        shop.read() as t,
        pytest.raises(zlmdb.EncodeError, match=r"^index '.* no entry for None: write .where\(lambda record: record\.f"),
    ):
        asked(t)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            lambda: CLASS.where(lambda user: user.age == 31),
            r"^where\(\): a class of tables .* as t.table.where\(",
        ),
        (lambda: CLASS.order_by(lambda user: user.name), r"^order_by\(\): a class of tables has no records"),
        (lambda: CLASS.fields(lambda user: user.name), r"^fields\(\): a class of tables has no records"),
        (lambda: CLASS.group_by(lambda user: user.name, len), r"^group_by\(\): a class of tables has no records"),
        (
            lambda: CLASS[UUID(int=7)],
            r"^Customers\[UUID.*\]: a class of tables has no records: read them in a transaction",
        ),
    ],
)
def test_a_query_of_a_table_class_is_answered_with_a_transaction(asked: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        asked()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda t: t.users.columns, r"'columns': those of the class are its fields; db.tables\(\)"),
        (lambda t: t.users.describe(), r"'describe': write .fields\(lambda record: record.field\), which has .count"),
        (lambda t: t.users.sample(3), r"'sample': write table.get_many\(random.sample\(table.keys\(\).all\(\), 10\)\)"),
        (lambda t: t.users.fields(lambda u: u.name).std(), r"'std': write statistics.stdev\(rows\)"),
        (lambda t: t.users.fields(lambda u: u.name).median(), r"'median': write statistics.median\(rows\)"),
    ],
)
def test_methods_of_frames_are_answered_with_what_to_write(shop: Any, asked: Any, said: str) -> None:
    t = shop.read()
    with pytest.raises(AttributeError, match=said):
        asked(t)
    t.txn.abort()


@pytest.mark.parametrize(
    ("into", "said"),
    [
        (lambda g: g.fields(lambda u: u.age).sum(), "^sum: unsupported .*; leave out None by where"),
        (lambda g: g.fields(lambda u: u.age).mean(), "^mean: unsupported .*; leave out None by where"),
        (lambda g: g.fields(lambda u: u.age).max(), r"^max: .*leave out the records with None by where\([^()]*\)$"),
        (
            lambda g: (g.fields(lambda u: u.age).min(), list(g)),
            r"^min: .*leave out the records with None by where\([^()]*\)$",
        ),
    ],
)
def test_none_in_an_aggregate_of_groups_is_told_as_in_one_of_all(shop: Any, into: Any, said: str) -> None:
    with shop.read() as t, pytest.raises(TypeError, match=said):
        t.users.group_by(lambda u: u.email[3:], into)


WANTED = "Bob"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda u: u.name == "Ann" or "Bob", r"u.name == 'Ann'\) is False, it is 'Bob', .*; write u.name in \('Ann', "),
        (lambda u: (u.age > 9 and u.name == "Ann") or "Bob", r"write u.name in \('Ann', 'Bob'\)"),
        (lambda u: u.age == 1 or 2, r"write u.age in \(1, 2\)"),
        (lambda u: u.nick == "Ann" or "Bob", "it is 'Bob', which is true; compare it with a field"),
        (lambda u: u.name != "Ann" or "Bob", "it is 'Bob', which is true; compare it with a field"),
        (lambda u: "a" in u.tags or "b", "it is 'b', which is true; compare it with a field"),
    ],
)
def test_a_constant_in_place_of_a_comparison_is_refused_where_it_makes_a_condition_true(
    t: Any, asked: Any, said: str
) -> None:
    with pytest.raises(TypeError, match="^the condition is true for all records: where .*" + said):
        t.users.where(asked)


@pytest.mark.parametrize(
    "asked",
    [
        lambda u: u.name == "Bob" or True,
        lambda u: u.name == "Bob" or WANTED,
        lambda u: u.name == "Ann" and "Bob",
        lambda u: 1,
        lambda u: u.nick is None or u.nick == "Bob" or 0,
        lambda u: 1 if u.age > 9 else 0,
    ],
)
def test_a_condition_that_is_meant_to_be_true_is_not_refused(t: Any, asked: Any) -> None:
    assert t.users.where(asked).count() == 1


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (lambda u: u == 2, r"^u == 2: u is the record, of .*Member: compare a field of it, u.name, or its key, .*= 2"),
        (lambda key: key > 2, "^key > 2: key is the record, of "),
        (lambda u: u in (1, 2), r"^u in ...: u is the record, of "),
        (lambda u: u["name"] == "Ann", r"^u\['name'\]: .*Member has no items; write u.name"),
        (lambda u: u.name == "Ann" | u.age == 1, r"'Ann' \| u.age: \| joins .*; between conditions, write `or`"),
        (lambda u: u.age > 1.5 & u.age, r"1.5 & u.age: & joins .*; between conditions, write `and`"),
    ],
)
def test_what_is_never_asked_of_a_record_is_refused_with_what_to_write(t: Any, asked: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        t.users.where(asked)


def test_whole_numbers_and_conditions_in_parentheses_are_joined(t: Any) -> None:
    assert t.users.where(lambda u: u.age & 1 == 1).count() == 1
    assert t.users.where(lambda u: (u.name == "Bob") | (u.age == 31)).count() == 1
    assert t.users.where(lambda u: u == Member("Ann", 31)).count() == 1


def test_a_time_without_a_zone_that_the_function_makes_is_told_with_the_record() -> None:
    with zlmdb.open(None, Club) as db:
        with db.write() as t:
            t.times[1] = datetime(2026, 1, 1, tzinfo=timezone.utc)
        with db.read() as t, pytest.raises(TypeError, match=r"key 1: .*zone, such as datetime.now\(timezone.utc\)$"):
            t.times.where(lambda time: time > datetime.now()).count()


def test_a_field_that_may_be_none_sorts_the_other_way_round_where_the_condition_excludes_none(magazine: Any) -> None:
    """`tests/typing/api.py` has it for the checkers, which cannot know of the condition."""
    with magazine.write() as t:
        t.posts.update({1: Article("a", stars=1), 2: Article("b"), 3: Article("c", stars=3)})
    with magazine.read() as t:
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
def test_conditions_of_another_query_language_are_answered_with_those_of_python(
    magazine: Any, asked: Any, said: str
) -> None:
    with magazine.read() as t, pytest.raises(TypeError, match=said):
        t.posts.where(asked)


def test_two_functions_to_order_by_are_answered_with_a_tuple(books: Any) -> None:
    with books.read() as t, pytest.raises(TypeError, match=r"which may return a tuple, \(record\.name, desc\(record"):
        t.users.order_by(lambda user: user.name, lambda user: user.id)

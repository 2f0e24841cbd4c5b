"""What newcomers write first, in notebooks, in tests and from other stores: the last line says what to do."""

from __future__ import annotations

import enum
import sys
import typing
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, make_dataclass
from datetime import date, datetime
from functools import cached_property
from types import new_class
from typing import Any, ClassVar, Optional

import pytest

import zlmdb
from zlmdb import desc
from zlmdb.values import serializer

PACKAGE: Any = zlmdb


class Store(zlmdb.Schema):
    jobs: zlmdb.Queue[str]


class Local(datetime):
    """As pandas and freezegun have one."""


class Stamp(datetime):
    def to_pydatetime(self) -> datetime:
        return datetime(self.year, self.month, self.day)


class NaTType(datetime):
    """As pandas has one, for a time that is missing; its ``to_pydatetime`` returns itself."""

    __module__ = "pandas.api.typing"


class Ambiguous:
    """As arrays and ``pandas.NA`` are, it cannot be asked whether it equals something."""

    def __eq__(self, other: object) -> Any:
        return self

    __ne__ = __eq__
    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise ValueError("the truth value is ambiguous")

    def __repr__(self) -> str:
        return "an array of numbers"


@dataclass
class Moment:
    when: datetime
    names: dict[str, int]


@pytest.mark.parametrize("form", [zlmdb.Msgpack, zlmdb.Json])
@pytest.mark.parametrize("around", [lambda cls: cls, lambda cls: Optional[cls], lambda cls: list[cls]])
def test_an_object_of_a_class_that_was_defined_again_is_told_as_such(form: Any, around: Any) -> None:
    """A cell of a notebook that runs twice makes another class of the same name."""
    one, other = make_dataclass("City", [("name", str)]), make_dataclass("City", [("name", str)])
    one.__module__ = other.__module__ = __name__
    value = [other("Bonn")] if around(one) == list[one] else other("Bonn")  # type: ignore[valid-type]
    with pytest.raises(zlmdb.EncodeError, match=r"another class of this name: it was defined again.* open the data"):
        serializer(form[around(one)]).encode(value)


def test_a_member_of_an_enum_that_was_defined_again_is_told_as_such() -> None:
    one, other = enum.Enum("Color", {"RED": "red"}), enum.Enum("Color", {"RED": "red"})
    with pytest.raises(zlmdb.EncodeError, match="another class of this name"):
        serializer(one).encode(other.RED)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        (Moment(Local(2026, 1, 1), {}), "a subclass, which would be read as datetime.datetime: convert it, with datet"),
        (Moment(Stamp(2026, 1, 1), {}), r"convert it, with its .to_pydatetime\(\)"),
        (
            Moment(NaTType(1, 1, 1), {}),
            "as pandas has for a missing value: give None in place of it, and the field an Op",
        ),
        (Moment(float("nan"), {}), r"got nan \(float\), as pandas has for a missing value: give None"),  # type: ignore[arg-type]
        (Moment(Ambiguous(), {}), "expected datetime.datetime, got an array of numbers"),  # type: ignore[arg-type]
        (Moment(datetime(2026, 1, 1), OrderedDict(a=1)), r"read as dict: convert it, with dict\(...\)"),
    ],
)
def test_an_object_of_a_subclass_is_refused_with_what_to_do(value: Moment, advice: str) -> None:
    with pytest.raises(zlmdb.EncodeError, match=advice):
        serializer(Moment).encode(value)


def test_get_of_a_queue_without_a_key_says_how_a_job_is_claimed() -> None:
    with zlmdb.open(None, Store) as db, db.write() as t:
        queue: Any = t.jobs
        with pytest.raises(TypeError, match=r"get\(\) looks up the key of a job: write .claim\(\)"):
            queue.get()
        t.jobs.put("one")
        key, job = next(iter(t.jobs.items()))
        assert t.jobs.get(key) == job
        assert queue.get((0, 0, key[2]), None) == job


class Names(zlmdb.Table[int, str], feed=True):
    """Names, whose changes are recorded."""


class Recorded(zlmdb.Schema):
    names: Names
    plain: zlmdb.Table[int, str]


@pytest.mark.parametrize(
    ("asked", "advice"),
    [
        (lambda db, c: db.changes("plain"), "'plain' has no change feed: declare it, .*feed=True"),
        (lambda db, c: db.changes("nmaes"), "no table 'nmaes' in the file; did you mean 'names'"),
        (lambda db, c: db.changes("names", after="1"), "^after='1': expected the number of a change, or 0 for all$"),
        (lambda db, c: db.changes("names", after=True), "^after=True: expected the number of a change"),
        (lambda db, c: db.changes("names", after=-1), "^after=-1: expected the number of a change"),
        (lambda db, c: db.changes("names", after=c.take()[0]), r"^after=<change 1.*: .*; write after=change.number"),
        (lambda db, c: db.changes("names", timeout="1"), "^timeout='1': expected seconds, 0 or more, or None"),
        (lambda db, c: db.changes("names", timeout=-1), "^timeout=-1: expected seconds, 0 or more, or None"),
        (lambda db, c: db.changes("names", timeout=float("nan")), "^timeout=nan: expected seconds"),
        (lambda db, c: db.changes("names", consumer=3), "^consumer=3: expected a name, which is a text"),
        (lambda db, c: c.acknowledge("1"), r"^acknowledge\('1'\): expected a change, or its number"),
        (lambda db, c: c.acknowledge(1.0), r"^acknowledge\(1.0\): expected a change, or its number"),
        (lambda db, c: c.acknowledge(-1), r"^acknowledge\(-1\): the changes of 'names' end with 1"),
        (lambda db, c: c.acknowledge(9), r"^acknowledge\(9\): the changes of 'names' end with 1"),
        (lambda db, c: c.take("3"), r"^take\('3'\): expected the greatest number of changes, 0 or more"),
        (lambda db, c: c.take(-1), r"^take\(-1\): expected the greatest number of changes, 0 or more"),
        (lambda db, c: c.trim(through="3"), r"^trim\(through='3'\): expected the number of a change"),
        (lambda db, c: c.trim(max_count="3"), r"^Feed\(max_count='3'\): expected a number of changes"),
        (lambda db, c: zlmdb.Feed(max_age=3), r"^Feed\(max_age=3\): expected a timedelta, such as timedelta\(days"),  # type: ignore[arg-type]
        (lambda db, c: c.poll(), r"'poll': write `for change in changes:`, or changes.take\(\)"),
        (lambda db, c: c.commit(), r"'commit': write .acknowledge\(\), with consumer="),
        (lambda db, c: c.take()[0].value, "'value': write .new for the value after the change"),
        (lambda db, c: c.take()[0].timestamp, "'timestamp': write .time, a datetime in UTC"),
        (lambda db, c: c.take()[0].op, "'op': write .kind, which is 'put', 'delete' or 'clear'"),
        (
            lambda db, c: db.run(lambda t: t.names.changes()),
            r"'changes': write db.changes\('...'\) outside of the block",
        ),
    ],
)
def test_a_mistake_with_a_change_feed_says_what_to_give(asked: Any, advice: str) -> None:
    with zlmdb.open(None, Recorded) as db:
        db.run(lambda t: t.names.add("Ann"))
        with pytest.raises((TypeError, ValueError, AttributeError, KeyError), match=advice):
            asked(db, db.changes("names", consumer="one"))
        assert db.changes("names").consumers() == {"one": 0}


def _yields_nothing() -> int:
    return 1


@pytest.mark.parametrize(
    ("asked", "advice"),
    [
        (lambda cache: cache.set(1, 2), "the cache, key 1: 1 is not a key of type str"),
        (lambda cache: cache.set("", 2), "the cache: the key is empty"),
        (lambda cache: cache.evict(5), r"evict\(5\): expected a tag, which is a text"),
        (
            lambda cache: cache.memoize(60)(_yields_nothing),
            r"memoize\(60\): expected the name of the results.* write expire=",
        ),
        (
            lambda cache: cache.set("x" * 600, 2),
            r"the cache: the key 'x.* takes 600 bytes, at most 511 fit: shorten it$",
        ),
        (lambda cache: cache.get("x" * 600), r"the cache: the key 'x.* takes 600 bytes, at most 511 fit: shorten it$"),
        (
            lambda cache: cache.set("x", 2, tag="y" * 600),
            r"the cache: the tag with the key \('y.* takes 60. .*shorten",
        ),
        (lambda cache: cache.set("x" * 509, 2, expire=9), r"the cache: the time of expiry with the key \(.* takes 5.."),
        (lambda cache: cache.incr("x", "2"), r"incr\('x', '2'\): the value is 0 \(int\), to which '2' cannot be added"),
        (lambda cache: zlmdb.Cache(3), r"expected a path, or None for a cache in memory, got 3: zlmdb.Cache\(path\)"),  # type: ignore[call-overload]
        (lambda cache: zlmdb.Cache(None, Moment, str), r"Cache\(path, key, value\): .*Moment is not a key type"),
    ],
)
def test_a_mistake_with_a_cache_is_told_of_the_cache_and_not_of_its_tables(asked: Any, advice: str) -> None:
    with zlmdb.Cache(None) as cache, pytest.raises((TypeError, zlmdb.EncodeError), match=f"^{advice}"):
        asked(cache)


@dataclass
class Person:
    name: str
    born: date
    tags: list[str]
    city: Optional[str] = None

    def is_tagged(self) -> bool:
        return bool(self.tags)


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


class Spelled(zlmdb.Schema):
    boxes: zlmdb.Table[int, Box]
    pairs: zlmdb.Table[tuple[int, int], Box]
    texts: zlmdb.Table[str, Box]
    moments: zlmdb.Table[date, Box]


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
            lambda: PACKAGE.Database("nowhere", Store),
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


@pytest.mark.parametrize(
    ("asked", "advice"),
    [
        (
            lambda db, w: zlmdb.Worker(Store, lambda t: t.jobs),
            r"^expected a database, got <class .*outside of its",
        ),
        (
            lambda db, w: zlmdb.Worker(db, lambda t: t).get(0),
            r"returns <Store in .*, no queue: Worker\(db, lambda t: t.jobs",
        ),
        (lambda db, w: w.get("1"), "^timeout='1': expected seconds, or None to wait for ever"),
        (lambda db, w: w.put("x", priority=1.5), "^priority=1.5: expected an int of 64 bits"),
        (lambda db, w: w.put("x", priority=True), "^priority=True: expected an int of 64 bits"),
    ],
)
def test_a_mistake_with_a_worker_says_what_it_takes(asked: Any, advice: str) -> None:
    with zlmdb.open(None, Store) as db, pytest.raises((TypeError, ValueError), match=advice):
        asked(db, zlmdb.Worker(db, lambda t: t.jobs))


def test_a_lease_used_as_a_block_is_answered_with_the_block_of_a_job() -> None:
    with zlmdb.open(None, Store) as db:
        worker: Any = zlmdb.Worker(db, lambda t: t.jobs)
        worker.put("one")
        with pytest.raises(TypeError, match="^a lease is no block: write `with worker.job"), worker.get(0):
            pass


@pytest.mark.parametrize("table", ["pairs", "texts", "moments"])
def test_a_key_of_which_there_is_no_next_one_is_not_made_up(table: str) -> None:
    with zlmdb.open(None, Spelled) as db, db.write() as t:
        with pytest.raises(TypeError, match=r"new keys of type .* cannot be generated: store with table\[key\]"):
            t[table].add(Box(1))
        assert len(t[table]) == 0


def test_a_text_that_is_the_name_of_a_field_may_be_what_a_record_sorts_or_groups_by() -> None:
    """A query is a function: what depends on the record, labels and other constants are as good as any value."""
    with zlmdb.open(None, People) as db, db.write() as t:
        t.people.update({1: Person("Bob", date(2001, 1, 1), []), 2: Person("Ann", date(2000, 1, 1), ["a"])})
        for by in (lambda r: "name" if r.tags else "tags", lambda r: (r.name, "of"), lambda r: getattr(r, _FIELD)):
            assert t.people.order_by(by).keys().all() == sorted([1, 2], key=lambda key: by(t.people[key])) == [2, 1]
        assert t.people.order_by(lambda r: "all").keys().all() == [1, 2]
        assert t.people.group_by(lambda r: "name", lambda g: g.count()) == {"name": 2}
        assert t.people.select().keys().max() == 2


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


@pytest.mark.skipif(sys.version_info < (3, 13), reason="typing has ReadOnly since Python 3.13")
@pytest.mark.parametrize("form", [zlmdb.Msgpack, zlmdb.Json, zlmdb.Cbor, zlmdb.FlatBuffers])
def test_an_item_that_is_read_only_for_checkers_is_stored_as_any_other(form: Any) -> None:
    read_only: Any = vars(typing)["ReadOnly"]
    Item: Any = typing.TypedDict("Item", {"a": int, "b": read_only[str]})
    Items = make_dataclass("Items", [("one", Item), ("all", list[Item])])
    value = Items({"a": 1, "b": "x"}, [{"a": 2, "b": "y"}])
    codec = serializer(form[Items])
    assert codec.decode(codec.encode(value)) == value
    with pytest.raises(zlmdb.EncodeError, match=r"one.*b.*: expected str.*, got 3"):
        codec.encode(Items({"a": 1, "b": 3}, []))

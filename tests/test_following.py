"""How a function of a record is read: what is followed, what is called and why, what is refused, what is kept."""

from __future__ import annotations

import enum
import functools
import gc
import operator
import random
import sys
import threading
import time
import weakref
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from types import ModuleType
from typing import Any, NamedTuple, Optional, TypedDict

import attrs
import pytest
from followed import Address, Kind, User, agree, following, users

from zlmdb.query.following import Following, walk
from zlmdb.query.following.bycode import ByCode
from zlmdb.query.following.code import understood
from zlmdb.query.following.nodes import Called, Parameter
from zlmdb.query.following.operations import Compare

Function = Callable[..., Any]
NORDIC = {"NO", "SE"}
low = 20


def read(function: Function) -> str:
    """*function* as a condition, as it is written once it is read."""
    return repr(following().condition(function))


def given(function: Function) -> str:
    return repr(following().value(function))


# -- what comes out --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda u: u.age > 30 and u.country == "NO", "((u.age > 30) and (u.country == 'NO'))"),
        (lambda u: (u.age > 30) & (u.country == "NO"), "((u.age > 30) and (u.country == 'NO'))"),
        (lambda u: not u.active or u.age < 18, "((not u.active) or (u.age < 18))"),
        (lambda u: 18 <= u.age < 65, "((u.age >= 18) and (u.age < 65))"),
        (lambda u: u.country in ("NO", "SE"), "(u.country in ('NO', 'SE'))"),
        (lambda u: u.country not in {"NO", "SE"}, "(u.country not in {'NO', 'SE'})"),
        (lambda u: u.country == "NO" or u.country == "SE", "(u.country in ('NO', 'SE'))"),
        (lambda u: u.country != "NO" and u.country != "SE", "(u.country not in ('NO', 'SE'))"),
        (lambda u: u.country in NORDIC, "(u.country in NORDIC)"),
        (lambda u: u.mayor is not None and u.mayor < "B", "((u.mayor is not None) and (u.mayor < 'B'))"),
        (lambda u: u.mayor == "Ann", "(u.mayor == 'Ann')"),
        (lambda u: u.mayor is None or u.mayor != "Ann", "(u.mayor != 'Ann')"),
        (lambda u: bool(u.mayor), "u.mayor"),
        (lambda u: u.age > 3 if u.active else u.age > 5, "((u.age > 3) if u.active else (u.age > 5))"),
        (lambda u: u.adult and u.active, "((u.age >= u.LIMIT) and u.active)"),
        (lambda u: u.older(low), "(u.age > low)"),
        (lambda u: u.kind is Kind.A, "(u.kind == Kind.A)"),
        (lambda u: u.kind in {Kind.A, Kind.B}, "(u.kind in (Kind.A, Kind.B))"),
        (
            lambda u: u.kind != Kind.A and u.kind != Kind.B and u.age > 3,
            "((u.kind not in (Kind.A, Kind.B)) and (u.age > 3))",
        ),
        (lambda u: any(tag == "x" for tag in u.tags), "any((x0 == 'x') for x0 in u.tags)"),
        (lambda u: len(u.tags) > 1, "(len(u.tags) > 1)"),
        (lambda u: u.name.lower().startswith("a"), "u.name.lower().startswith('a')"),
        (lambda u: u.age in range(3, 9), "(u.age in range(3, 9))"),
        (
            lambda u: (
                (u.age > 30 or u.active)
                and (u.country == "NO" or u.name == "Bob")
                and (u.score > 1 or u.price > 1)
                and (u.tags == [] or u.mayor is None)
            ),
            "(((u.age > 30) or u.active) and ((u.country == 'NO') or (u.name == 'Bob')) and "
            "((u.score > 1) or (u.price > 1)) and ((u.tags == []) or (u.mayor is None)))",
        ),
    ],
)
def test_conditions_come_back_as_they_were_written(function: Function, text: str) -> None:
    assert read(function).replace("User.LIMIT", "u.LIMIT") == text


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda u: (u.name, u.mayor), "(u.name, u.mayor)"),
        (lambda u: {"n": u.name, "c": None if u.address is None else u.address.city}, None),
        (lambda u: u.name if u.active else "-", "(u.name if u.active else '-')"),
        (lambda u: u.capital, "(None if (u.mayor is None) else u.mayor.upper())"),
        (lambda u: [u.name, u.age + 1], "[u.name, (u.age + 1)]"),
        (lambda u: replace(u, age=u.age + 1), "replace(u, age=(u.age + 1))"),
        (lambda u: (u.adult, not u.active), None),
    ],
)
def test_values_come_back_as_they_were_written(function: Function, text: Optional[str]) -> None:
    followed = following().value(function)
    assert followed.reasons == ()
    agree(followed, function, users(), condition=False)
    assert text is None or repr(followed) == text


def test_a_key_and_a_value_are_told_by_the_number_of_arguments() -> None:
    reader = following(User, int)
    followed = reader.condition(lambda k, u: k > 3 and u.active)
    assert repr(followed) == "((k > 3) and u.active)"
    assert followed(4, users()[0]) is True
    assert followed(3, users()[0]) is False
    assert repr(reader.condition(lambda u, least=3: u.age > least)) == "(u.age > least)"
    for wrong in (lambda: True, lambda a, b, c: True, 3):
        with pytest.raises(TypeError, match="expected a function"):
            reader.condition(wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"k < 'a': k is of type int"):
        reader.condition(lambda k, u: k < "a")


def test_the_expression_can_be_walked() -> None:
    followed = following().condition(lambda u: u.age > low and u.name == "Ann")
    compares = [node for node in walk(followed.node) if isinstance(node, Compare)]
    assert [node.operator for node in compares] == [">", "=="]
    parameters = [node for node in walk(followed.node) if isinstance(node, Parameter)]
    assert [followed.parameters[node.number] for node in parameters] == [20]


# -- what is called, and what never is -----------------------------------------------------------------------------


def test_only_the_branch_that_cannot_be_followed_is_called() -> None:
    called = []

    def weird(u: User) -> bool:
        called.append(u.name)
        return "n" in u.name

    function = lambda u: u.age > 30 and weird(u)  # noqa: E731
    followed = following().condition(function)
    assert called == []
    assert repr(followed) == "((u.age > 30) and <called>)"
    assert "called.append" in followed.reasons[0]
    assert [followed.evaluated(user) for user in users()] == [True, False, False, False, False]
    assert called == ["Ann", "Cid"]


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda u: time.time() > u.age, "time.time"),
        (lambda u: random.random() > u.age, "random"),
        (lambda u: open(u.name), "open"),  # noqa: SIM115
        (lambda u: print(u.age), "print"),
        (lambda u: [1 for tag in u.tags], "a loop over u.tags"),
        (lambda u: f"{u.name!r}", "repr() of u.name"),
        (lambda u: [f"{u.name}"], "format() of u.name"),
        (lambda u: type(u.age) is int, "is"),
        (lambda u: u.__class__ is User, "it uses __class__"),
        (lambda u: hash(u.name), "hash"),
        (lambda u: {u.name: 1}["Ann"], "hash() of u.name"),
    ],
)
def test_the_reason_of_a_call_is_told(function: Function, reason: str) -> None:
    followed = following().value(function)
    assert isinstance(followed.node, Called)
    assert reason in followed.reasons[0]


def test_nothing_is_called_while_following() -> None:
    """Each of these would be noticed: it counts, or raises what nobody catches."""
    counts: list[str] = []

    class Noticed:
        def __call__(self, *args: Any) -> bool:
            counts.append("call")
            return True

        def __eq__(self, other: object) -> bool:
            counts.append("eq")
            return True

        def __hash__(self) -> int:
            counts.append("hash")
            return 1

        def __bool__(self) -> bool:
            counts.append("bool")
            return True

        def __len__(self) -> int:
            counts.append("len")
            return 1

        def __iter__(self) -> Any:
            counts.append("iter")
            return iter("a")

        def __contains__(self, other: object) -> bool:
            counts.append("contains")
            return True

        def __getattr__(self, name: str) -> Any:
            if not name.startswith("__"):  # a test runner looks for some
                counts.append(name)
            return self

        def __str__(self) -> str:
            counts.append("str")
            return "x"

        def __add__(self, other: Any) -> Any:
            counts.append("add")
            return self

        __radd__ = __add__

    class Enough(BaseException):
        pass

    def fatal(*args: Any) -> Any:
        raise Enough

    noticed = Noticed()
    names, kept = [noticed], {"a": noticed}
    functions: list[Function] = [
        lambda u: noticed(u),
        lambda u: noticed == u.age,
        lambda u: u.age == noticed,
        lambda u: u.age in {noticed},
        lambda u: u.age in (noticed,),
        lambda u: u.age in noticed,
        lambda u: bool(noticed),
        lambda u: noticed and u.age,
        lambda u: len(noticed) < u.age,
        lambda u: any(noticed),
        lambda u: [*noticed],
        lambda u: noticed.name,
        lambda u: f"{noticed}",
        lambda u: str(noticed),
        lambda u: noticed + u.age,
        lambda u: u.age + noticed,
        lambda u: 1 + noticed,
        lambda u: names[0](u),
        lambda u: kept["a"](u),
        lambda u: max(names, key=fatal),
        lambda u: sorted([1, 2], key=noticed),
        lambda u: list(map(noticed, [1])),
        lambda u: getattr(noticed, "x"),  # noqa: B009
        lambda u: isinstance(noticed, User),
        lambda u: isinstance(u, type(noticed)),
        lambda u: setattr(noticed, "x", 1),
        lambda u: counts.append("append"),
        lambda u: counts.__iadd__(["x"]),
        lambda u: kept.update(b=1),
        lambda u: kept.pop("a"),
        lambda u: exec("counts.append(1)"),
        lambda u: __import__("os").getcwd(),
        lambda u: (_ for _ in ()).throw(Enough),
        lambda u: threading.Thread(target=fatal).start(),
        lambda u: sys.exit(),
        lambda u: users(),
    ]
    reader = following()
    for function in functions:
        for followed in (reader.condition(function), reader.value(function)):
            assert followed.node is not None
    assert counts == []
    assert list(kept) == ["a"]


def test_nothing_is_changed() -> None:
    before = {name: id(value) for name, value in globals().items()}
    helper = read
    copies = [(f, f.__code__, f.__globals__, f.__defaults__) for f in (helper, User.older, User.adult.fget)]
    for function in (lambda u: helper(u), lambda u: u.adult and u.older(3), lambda u: len(u.tags) > low):
        following().condition(function)
    assert {name: id(value) for name, value in globals().items()} == before
    assert all(f.__code__ is code and f.__globals__ is space for f, code, space, _ in copies)


# -- what is refused ------------------------------------------------------------------------------------------------


HOME = Address("Oslo")


@dataclass
class OwnEqual:
    """It equals its name."""

    name: str

    def __eq__(self, other: object) -> bool:
        return self.name == other

    def __hash__(self) -> int:
        return hash(self.name)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda u: u.agee > 3, "u.agee: followed.User has no field 'agee', it has name, age"),
        (lambda u: u.address is not None and u.address.town == "x", "u.address.town: followed.Address has no field"),
        (lambda u: u.pk == 3, "the key is the first parameter of `lambda key, record: ...`"),
        (lambda u: u.name.startwith("x"), "u.name.startwith: str has no attribute"),
        (lambda u: u.age > "3", "u.age > '3': u.age is of type int, which '3' (str) is not"),
        (lambda u: u.age == "3", "u.age == '3': u.age is of type int"),
        (lambda u: u.name in {1, 2}, "is of type str"),
        (lambda u: u.age < u.name, "compare values of one type"),
        (lambda u: u.age == [3], "u.age is of type int, [3] of type list; compare values of one type"),
        (lambda u: u.pair == [1, "x"], "u.pair is of type tuple, [1, 'x'] of type list; compare"),
        (lambda u: u.pair == u.tags, "u.pair is of type tuple, u.tags of type list; compare"),
        (lambda u: u.kind == 1, "u.kind == 1: u.kind is of type followed.Kind"),
        (lambda u: u.name == HOME, "HOME is a record of followed.Address, and u.name is not one; compare with its key"),
        (lambda u: u.name != u.homes[0], "u.homes[0] is a record of followed.Address, and u.name is not one; compare"),
        (lambda u: u.name in [HOME], "a record of followed.Address, and u.name is not one"),
        (lambda u: u.mayor < "B", "u.mayor may be None: "),
        (lambda u: u.address.city == "x", "u.address may be None: "),
        (lambda u: u.age > None, "None has no order"),
        (lambda u: setattr(u, "age", 3), "u.age = ...: a query changes nothing"),
        (lambda u: u.tags.append("x"), "u.tags.append(): a query changes nothing"),
        (lambda u: u.marks.update(a=3), "u.marks.update(): a query changes nothing"),
        (lambda u: u.extra.pop("a"), "u.extra.pop(): a query changes nothing"),
        (lambda u: replace(u, aeg=3), "it has no field 'aeg'"),
        (lambda u: u.pair[3], "it has 2 elements"),
        (lambda u: any(home.town for home in u.homes), "followed.Address has no field 'town'"),
    ],
)
def test_mistakes_are_refused_at_once(function: Function, text: str) -> None:
    for refuse in (following().condition, following().value):
        with pytest.raises(TypeError) as caught:
            refuse(function)
        assert text in str(caught.value)


def test_what_may_be_equal_is_compared() -> None:
    named = OwnEqual(users()[0].name)
    equals_name: Function = lambda u: u.name == named  # noqa: E731
    plain = [lambda u: u.tags == [], lambda u: u.mayor == u.address, lambda u: u.pair == (1, "x")]
    for function in (*plain, equals_name):
        answer = following().condition(function)
        assert [answer(user) for user in users()] == [function(user) for user in users()]


def test_a_captured_none_is_named_beside_the_field_that_may_be_none() -> None:
    def asked(least: Any) -> Function:
        return lambda k, u: u.mayor is None and k < least

    reader = following(User, int)
    assert reader.condition(asked(3))(2, users()[0]) is True
    for _ in range(2):
        with pytest.raises(TypeError) as caught:
            reader.condition(asked(None))
        assert str(caught.value).startswith("least is None, and u.mayor may be None: k < None: ")
        assert str(caught.value).endswith(
            "; ask `least is not None` or `u.mayor is not None` before, in the same function"
        )
    with pytest.raises(
        TypeError, match=r"^u.mayor may be None: .*; ask `u.mayor is not None` before, in the same function$"
    ):
        reader.condition(lambda k, u: u.mayor < "B" or k < 3)


def test_assignments_are_refused() -> None:
    def assigns(u: User) -> bool:
        u.age = 3
        return True

    def assigns_item(u: User) -> bool:
        u.marks["a"] = 3
        return True

    def adds(u: User) -> bool:
        u.tags += ["x"]
        return True

    def deletes(u: User) -> bool:
        del u.marks["a"]
        return True

    for function in (assigns, assigns_item, adds, deletes):
        with pytest.raises(TypeError, match="a query changes nothing"):
            following().condition(function)


def test_a_variable_may_go_on_counting_from_a_member_of_an_enum() -> None:
    def counts(u: User) -> bool:
        number: int = u.level
        number -= 3
        return number > 3

    followed = following().condition(counts)
    assert followed.reasons == ()
    agree(followed, counts, users(), condition=True)


def test_bytes_are_searched_in_constant_bytes() -> None:
    def searches(u: User) -> bool:
        return b"b" in b"abc" and u.blob in b"abc" and 97 in b"abc"

    followed = following().condition(searches)
    agree(followed, searches, users(), condition=True)


def test_asynchronous_functions_are_refused() -> None:
    async def later(u: User) -> bool:
        return u.active

    with pytest.raises(TypeError, match="is asynchronous"):
        following().condition(later)


def test_what_types_have_ruled_out_is_no_mistake() -> None:
    kind, value = "age", 3

    def chosen(u: User) -> bool:
        return u.age > value if kind == "age" else u.name > value  # type: ignore[operator]

    assert read(chosen) == "(u.age > value)"
    followed = following().condition(lambda u: isinstance(u.anything, int) and u.anything > 2)
    agree(followed, lambda u: isinstance(u.anything, int) and u.anything > 2, users(), condition=True)


# -- models of other kinds -------------------------------------------------------------------------------------------


class Named(NamedTuple):
    name: str
    age: Optional[int]


class Typed(TypedDict, total=False):
    name: str
    age: int


@attrs.define
class Defined:
    name: str
    age: int = 0


class Plain:
    """A class that declares nothing."""

    def __init__(self) -> None:
        self.age = 3


def test_records_of_all_kinds_of_models() -> None:
    named = [Named("a", None), Named("b", 5)]
    function: Function = lambda r: r.age is not None and r.age > 3 and r.name == "b"  # noqa: E731
    followed = Following(Named).condition(function)
    assert followed.reasons == ()  # nothing is called: on PyPy fields of a NamedTuple are properties
    agree(followed, function, named, condition=True)
    unpacked: Function = lambda r: r[0] == "b"  # noqa: E731
    agree(Following(Named).condition(unpacked), unpacked, named, condition=True)
    defined = [Defined("a"), Defined("b", 9)]
    own: Function = lambda r: r.age > 3 or r.name == "a"  # noqa: E731
    followed = Following(Defined).condition(own)
    assert followed.reasons == ()
    agree(followed, own, defined, condition=True)
    with pytest.raises(TypeError, match="has no field 'agee'"):
        Following(Defined).condition(lambda r: r.agee)


class Halved(Named):
    @property
    def age(self) -> Optional[int]:  # type: ignore[override]
        return None if self[1] is None else self[1] // 2


def test_a_property_in_place_of_the_field_of_a_namedtuple_is_read() -> None:
    function: Function = lambda r: r.age == 4  # noqa: E731
    agree(Following(Halved).condition(function), function, [Halved("a", 4), Halved("b", 8)], condition=True)


ages = operator.attrgetter("age", "name")
second = operator.itemgetter(1)


def test_getters_of_operator_are_followed() -> None:
    function: Function = lambda r: ages(r)[0] == 5 and second(r) == 5  # noqa: E731
    followed = Following(Named).condition(function)
    assert followed.reasons == ()
    agree(followed, function, [Named("a", None), Named("b", 5)], condition=True)


Bare = namedtuple("Bare", "name age")


def test_named_tuples_without_types_have_their_items() -> None:
    named = [Bare("a", 1), Bare("b", 5)]
    functions: list[Function] = [
        lambda r: r._asdict(),
        lambda r: r[1] > 3 and r[-2] == "b",
        lambda r: [one for one in r],
        lambda r: dict(zip("xy", r)),
        lambda r: any(one == 5 for one in r),
        lambda r: Bare(r.age, r.name)[0],
        lambda r: 5 in Bare(r.age, 3),
        lambda r: [*r],
    ]
    for function in functions:
        agree(Following(Bare).condition(function), function, named, condition=True)
        agree(Following(Bare).value(function), function, named, condition=False)


def test_identity_by_a_function_is_that_of_the_values() -> None:
    functions: list[Function] = [
        lambda u: operator.is_(u.kind, Kind.A),
        lambda u: operator.is_not(u.kind, Kind.B),
        lambda u: operator.is_(u.active, True),
        lambda u: operator.is_(u.anything, None),
        lambda u: functools.reduce(operator.is_, [u.kind, Kind.A]),
        lambda u: list(map(operator.is_, [u.kind], Kind)),
        lambda u: operator.is_(u, u),
    ]
    for function in functions:
        for number in range(len(users())):  # the first record decides whether the expression is trusted
            followed = following().condition(function)
            agree(followed, function, users()[number:], condition=True)


def test_records_that_are_dicts() -> None:
    records = [{"name": "a", "age": 3}, {"name": "b"}, {}]
    function: Function = lambda r: r.get("age") is not None and r["age"] > 2  # noqa: E731
    for kind in (Typed, dict, dict[str, Any], Any):
        followed = Following(kind).condition(function)
        agree(followed, function, records, condition=True)
    with pytest.raises(TypeError, match="has no item 'agee'"):
        Following(Typed).condition(lambda r: r["agee"] > 3)


def test_records_that_are_plain_values() -> None:
    function: Function = lambda text: text.lower() in ("a", "b")  # noqa: E731
    followed = Following(str).condition(function)
    assert repr(followed) == "(text.lower() in ('a', 'b'))"
    agree(followed, function, ["A", "b", "c"], condition=True)
    agree(Following(Plain).condition(lambda p: p.age == 3), lambda p: p.age == 3, [Plain()], condition=True)


def test_a_model_that_names_classes_of_a_function() -> None:
    @dataclass
    class Inner:
        x: int

    @dataclass
    class Outer:
        inner: Inner

    followed = Following(Outer, names={"Inner": Inner}).condition(lambda o: o.inner.x > 3)
    assert followed(Outer(Inner(4))) is True
    with pytest.raises(TypeError, match="has no field 'y'"):
        Following(Outer, names={"Inner": Inner}).condition(lambda o: o.inner.y > 3)


# -- what is kept ---------------------------------------------------------------------------------------------------


def counting(monkeypatch: pytest.MonkeyPatch, reader: Following) -> list[Any]:
    """A list to which each function that is followed is added."""
    followed: list[Any] = []
    original = Following._read

    def reads(self: Following, function: Function, condition: bool) -> Any:
        followed.append(function)
        return original(self, function, condition)

    monkeypatch.setattr(Following, "_read", reads)
    return followed


def test_a_function_of_the_same_code_is_followed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = following()
    counted = counting(monkeypatch, reader)

    def older(age: float, name: Optional[str] = None) -> Function:
        return lambda u: u.age > age and (name is None or u.name.startswith(name))

    for age in (3, 20, 60):
        for name in ("A", "B"):
            agree(reader.condition(older(age, name)), older(age, name), users(), condition=True)
    assert len(counted) == 1
    agree(reader.condition(older(3)), older(3), users(), condition=True)
    agree(reader.condition(older(3.5)), older(3.5), users(), condition=True)
    assert len(counted) == 3  # None and another type are other functions
    agree(reader.condition(older(4)), older(4), users(), condition=True)
    assert len(counted) == 3


def test_what_captured_values_decide_is_read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = following()
    counted = counting(monkeypatch, reader)

    def chosen(number: int) -> Function:
        return lambda u: u.age > number if number > 10 else [u.age, 3][number] > 2

    for number in (20, 30, 0, 1, 0, 20):
        agree(reader.condition(chosen(number)), chosen(number), users(), condition=True)
    assert len(counted) == 3


TEXTS: list[Function] = [
    lambda n, w: lambda u: u.name == f"{n}",
    lambda n, w: lambda u: f"A{n}" != u.name and u.age > 3,
    lambda n, w: lambda u: u.name >= f"{n:>3}{w}-" or u.name == f"x{w:03}{n}",
    lambda n, w: lambda u: u.name.startswith(f"A{n}") or u.name.lower().endswith(f"{w}"),
    lambda n, w: lambda u: any([tag == f"{n}{w}" for tag in u.tags]) or any(tag > f"t{n}" for tag in u.tags),
    lambda n, w: lambda u: len(u.name.replace(f"{n}", f"{w}{n}")) > 3,
    lambda n, w: lambda u: u.name == "A{}".format(n) or u.name.startswith("{0:>2}{0}{x:03}".format(n, x=w)),  # noqa: UP032
    lambda n, w: lambda u: f"{n}" in u.name or f"t{w}" not in u.tags,
    lambda n, w: lambda u: u.name == f"A{n.strip()}" or u.name > f"{w}{n.replace('n', n)}{len(n)}{n.upper():>2}",
    lambda n, w: lambda u: u.name == n.join(f"{w}{n.lower()}") or u.name.startswith(f"{w}{n.upper()}"),
    lambda n, w: (
        lambda u: u.name in ("x", f"{n}", n, f"A{n}", str(w), f"{w % 3}", "Ann") and u.age not in (w % 5, w // 3)
    ),
    lambda n, w: lambda u: u.name not in [f"A{n}", f"{w:>3}"] or u.name in {f"A{n}", "Bob", f"{n}{w}"},
    lambda n, w: lambda u: any(tag in (f"{n}", "t1", f"t{w}") for tag in u.tags) or u.name in (f"{u.age}", u.name[:1]),
    lambda n, w: lambda u: u.mayor == f"{n}",
    lambda n, w: lambda u: f"A{n}" == u.mayor or u.mayor in (f"{n}", "Bob", f"t{w}"),
    lambda n, w: lambda u: u.mayor != f"{n}" and u.age > 3,
    lambda n, w: lambda u: u.mayor not in (f"{n}", f"A{n}") or u.name == f"A{w}",
    lambda n, w: lambda u: u.name in ("Ann", "Bob") or u.name == f"A{n}" or u.mayor in ("Ann", f"{w}", "n"),
    lambda n, w: lambda u: _has_mayor(u, n) or _has_mayor(u, n + "x"),
    lambda n, w: lambda u: u.mayor == f"{u.name}" or (u.mayor is not None and u.mayor in (f"A{n}",)),
]


def _has_mayor(u: Any, name: str) -> bool:
    return u.mayor == f"{name}" if u.age > 3 else f"A{name}" != u.mayor


def test_a_range_between_captured_numbers_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = following()
    counted = counting(monkeypatch, reader)

    def between(low: Any, high: Any) -> Function:
        return lambda u: u.age in range(low, high) or (u.name.startswith("A") and u.age not in range(high))

    for low, high in [(0, 30), (30, 60), (60, 10), (-5, 10**30)]:
        agree(reader.condition(between(low, high)), between(low, high), users(), condition=True)
    assert len(counted) == 1
    for function in (
        lambda u, n=3: any(u.age == one for one in range(n)),
        lambda u, n=3: u.age == len(range(n)) or u.age == sum(range(1, n)),
        lambda u, n=3: u.age in list(range(n)) or [u.age] == [*range(n)],
        lambda u, n=3: u.age == range(n, 9)[1] or u.age in range(0, 60, n),
        lambda u, n=0: u.name == "Ann" or (bool(range(n)) and u.age in range(n)),
        lambda u, n=True: u.age in range(n),
        lambda u, some=range(30, 60): u.age in some or len(some) == u.age or u.age == some[3],
        lambda u, some=range(30, 60): any(u.age == one for one in some) and bool(some),
        lambda u, some=range(30, 60): u.age == some.start or some == range(30, 60),
    ):
        agree(reader.condition(function), function, users(), condition=True)
    agree(reader.condition(between("3", 4)), between("3", 4), users(), condition=True)  # both raise


@pytest.mark.parametrize("make", TEXTS)
def test_texts_of_captured_values_are_read_once(make: Function, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = following()
    counted = counting(monkeypatch, reader)
    for n, w in [("n", 1), ("nn", 7), ("e", 10**6), ("", -1)]:
        some = [replace(users()[0], name=name, mayor=mayor) for name in (f"A{n}", "") for mayor in (n, f"A{n}", None)]
        agree(reader.condition(make(n, w)), make(n, w), [*users(), *some], condition=True)
    assert len(counted) == 1


def _is_five(u: Any, text: str) -> bool:
    return u.name != text and text == "5"


def _is_kind(u: Any, text: str) -> bool:
    return text == "5" and u.active == text


class Five:
    mayor = "5"


FIVE = Five()


def _is_mayors(one: Any, n: int) -> bool:
    return one.mayor == f"{n}"


@pytest.mark.parametrize(
    "make",
    [
        lambda n: lambda u: f"{n}" == "5",
        lambda n: lambda u: u.age == 3 if f"{n}" == "5" else u.name == f"{n}",
        lambda n: lambda u: _is_five(u, f"{n}"),
        lambda n: lambda u: u.name in (f"{n}", "Ann"),
        lambda n: lambda u: f"{n}" in (u.name, u.name + "x", "Ann"),
        lambda n: lambda u: f"{n}" in ["5", u.name],
        lambda n: lambda u: "5" in (f"{n}", u.name) or "6" in (u.name, f"{n}") or "x" in ("y", f"{n}", u.name),
        lambda n: lambda u: any(one in ("Bob", f"{n}", u.name) for one in ("5", u.name, "Ann")),
        lambda n: lambda u: (u.name, f"{n}") in ((u.name, "5"), (f"{n}", "6")) or "5" in (f"{n}", f"{n}x"),
        lambda n: lambda u: u.name in ((f"{n}", "5")[1], "5x"[: n % 3], f"{10 // n if n else n}"),
        lambda n: lambda u: f"{n}" in (f"{n % 6}", u.name) or u.name in [f"{n}", *[f"{n}x"]],
        lambda n: lambda u: u.name == "{}".format(n).strip() or u.name == "{!r}".format(n),  # noqa: UP032
        lambda n: lambda u: "{}".format(n) == "5" or u.name == str.format("{}", n),  # noqa: UP032
        lambda n: lambda u: u.name == "{:>5}".format(f"{n}") or u.name == "x".ljust(3, f"{n}"),
        lambda n: lambda u: u.name.startswith("{:.1}".format(f"{n}")) or u.name == "{:0>3}".format("{}".format(n)),  # noqa: UP032
        lambda n: lambda u: (u.name == f"{n}") == (f"{n}" == "5") and u.name != f"{n:>2}",
        lambda n: lambda u: f"{n}" in f"{n}5" and u.name > f"{n}",
        lambda n: lambda u: u.name > f"\ue000{n}\ue000" or u.name in "\ue000",
        lambda n: lambda u: u.name == f"{n:{n}}",
        lambda n: lambda u: u.name < f"{n}" < "6",
        lambda n: lambda u: u.name == (f"{n}" if n else f"-{n}"),
        lambda n: lambda u: u.name == f"{n}x" + f"{n!r}",
        lambda n: lambda u: {"5": True}.get(f"{n}", u.active),
        lambda n: lambda u: f"{u.name}{n}" == "Ann5",
        lambda n: lambda u: len(f"{n}") > 1 or u.name.startswith(f"{n}"[:1]),
        lambda n: lambda u: any(one.mayor == f"{n}" for one in (u, FIVE)),
        lambda n: lambda u: [one.mayor == f"{n}" for one in (u, FIVE)][-1],
        lambda n: lambda u: "5" in (u.mayor, f"{n}") or f"{n}" in (u.mayor, "5"),
        lambda n: lambda u: u.mayor == (f"{n}" if n == 5 else u.name) or (u.mayor, "5") == ("x", f"{n}"),
        lambda n: lambda u: _is_mayors(u, n) or _is_mayors(FIVE, n),
        lambda n: lambda u: u.mayor in (f"{n}", FIVE.mayor) or FIVE.mayor in (f"{n}", u.mayor),
        lambda n: lambda u: (u.mayor or FIVE.mayor) == f"{n}",
        lambda n: lambda u: (u.mayor if u.age > 30 else "5") == f"{n}",
        lambda n: lambda u: u.mayor == f"{10 // n}",
    ],
)
def test_a_text_that_python_looks_at_is_that_of_the_value(make: Function) -> None:
    reader = following()
    for n in (5, 6, 10, 5, 0):
        named = [replace(users()[0], name=name) for name in (f"{n}", f"{n:>5}", f"{n:0>3}", f"x{n}{n}"[:3])]
        named += [replace(users()[0], mayor=mayor) for mayor in ("5", "6", "0", "2", None)]
        agree(reader.condition(make(n)), make(n), [*users(), *named], condition=True)


def _joined(u: Any, sign: str) -> str:
    return f"{u.name}{sign}{u.age}"


def _shouted(u: Any) -> Any:
    def said() -> str:
        return f"{u.name}!"

    return said().upper()


FORMATTED: list[tuple[Function, str]] = [
    (lambda u: f"{u.name}-{u.age}" == "Ann-31", "('Ann-31' == ((u.name + '-') + str(u.age)))"),
    (lambda u: f"{u.name}{u.name[:1]}" > "B", "('B' < (u.name + u.name[:1]))"),
    (lambda u: f"{u.seen:%Y}" in u.name, "(format(u.seen, '%Y') in u.name)"),
    (lambda u: f"{u.price}", "format(u.price, '')"),
    (lambda u: (u.age, f"{u.age:03}", (f"{u.name!s}", 2)), "(u.age, format(u.age, '03'), (u.name, 2))"),
    (lambda u: f"{u.mayor}", "('None' if (u.mayor is None) else u.mayor)"),
    (lambda u: _joined(u, ":"), "((u.name + ':') + str(u.age))"),
    (lambda u: (_joined(u, ":").upper(), f"{u.name}"), "(((u.name + ':') + str(u.age)).upper(), u.name)"),
    (lambda u: any(f"{tag}{u.age}" == u.name for tag in u.tags), "any((u.name == (x0 + str(u.age))) for x0 in u.tags)"),
    (lambda u: f"{u.name}" in ("Ann", "Bob"), "(u.name in ('Ann', 'Bob'))"),
    # Python, or a function that is called by itself, sees the text of these.
    (_shouted, "<called>"),
    (lambda u: _shouted(u) + f"{u.name}", "<called>"),
    (lambda u: f"{u.name}".lower() == "ann", "<called>"),
    (lambda u: f"{u.name}" and u.age, "<called>"),
    (lambda u: {"Ann": 1}.get(f"{u.name}"), "<called>"),
    (lambda u: f"\ue0001.0\ue000{u.name}", "<called>"),
    (lambda u: (f"{u.name}",).count("Ann"), "<called>"),
    (lambda u: (f"{u.name}",) == ("Ann",), "<called>"),
    (lambda u: f"{u.seen:{u.name}}", "<called>"),
    (lambda u: (f"{u.name}" == "Ann") + (u.name == "Ann"), "<called>"),  # one constant for both
]


@pytest.mark.parametrize(("function", "text"), FORMATTED)
def test_texts_made_of_fields_are_followed(function: Function, text: str) -> None:
    followed = following().value(function)
    agree(followed, function, [*users(), replace(users()[0], name="Ann", age=31)], condition=False)
    assert str(followed) == text


def test_a_text_that_is_returned_is_read_once_for_all_captured_values(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = following()
    counted = counting(monkeypatch, reader)

    def made(sign: Any) -> Function:
        return lambda u: (u.name, f"{sign}", f"<{_joined(u, sign)}>")

    for sign in "-+:":
        agree(reader.value(made(sign)), made(sign), users(), condition=False)
    assert len(counted) == 1


def test_a_format_that_a_field_does_not_have_raises_where_the_function_raises() -> None:
    for function in (
        lambda u: f"{u.age:s}",
        lambda u: u.age > 30 and f"{u.name:d}" == "x",
        lambda u: [f"{u.age:s}", 1][1],
    ):
        agree(following().value(function), function, users(), condition=False)


class Stage(enum.Enum):
    NEW = "new"
    PAID = "paid"
    SENT = "sent"
    DONE = "done"


@dataclass
class Parcel:
    stage: Stage
    last: Optional[Stage] = None
    weight: int = 0


PARCELS = [Parcel(one, last, weight) for one in Stage for last in (None, *Stage) for weight in (0, 5)]


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda p: p.stage is Stage.NEW, "(p.stage == Stage.NEW)"),
        (lambda p: p.stage is Stage.SENT, "(p.stage == Stage.SENT)"),
        (lambda p: p.stage is Stage.DONE, "(p.stage == Stage.DONE)"),
        (lambda p: p.stage is not Stage.NEW, "(p.stage != Stage.NEW)"),
        (lambda p: p.stage is not Stage.SENT, "(p.stage != Stage.SENT)"),
        (lambda p: p.stage is not Stage.DONE, "(p.stage != Stage.DONE)"),
        (lambda p: p.last is not Stage.DONE, "(p.last != Stage.DONE)"),
        (lambda p: p.last is Stage.DONE, "(p.last == Stage.DONE)"),
        (lambda p: p.last is Stage.PAID and p.weight > 1, "((p.last == Stage.PAID) and (p.weight > 1))"),
        (lambda p: p.stage is Stage.DONE or p.weight > 1, "((p.stage == Stage.DONE) or (p.weight > 1))"),
        (lambda p: p.stage != Stage.NEW and p.stage != Stage.PAID, "(p.stage not in (Stage.NEW, Stage.PAID))"),
        (lambda p: p.stage != Stage.NEW and p.stage == Stage.PAID, "(p.stage == Stage.PAID)"),
        (lambda p: p.last != Stage.NEW and p.last != Stage.PAID, "(p.last not in (Stage.NEW, Stage.PAID))"),
        (
            lambda p: p.last not in (Stage.NEW, Stage.PAID, Stage.SENT),
            "(p.last not in (Stage.NEW, Stage.PAID, Stage.SENT))",  # it may be None
        ),
    ],
)
def test_what_is_asked_of_a_member_is_told_as_it_is_written(function: Function, text: str) -> None:
    reader = Following(Parcel)
    for condition, followed in ((True, reader.condition(function)), (False, reader.value(function))):
        agree(followed, function, PARCELS, condition=condition)
    assert str(reader.condition(function)) == text


def test_what_is_no_member_is_not_the_last_one() -> None:
    """A pickle may hold None, whatever the class says."""
    records: Any = [replace(one, stage=None) for one in PARCELS]
    for function in (
        lambda p: p.stage is Stage.DONE,
        lambda p: p.stage is not Stage.DONE,
        lambda p: p.stage not in (Stage.NEW, Stage.PAID, Stage.SENT),
        lambda p: p.stage != Stage.NEW and p.stage != Stage.PAID and p.stage != Stage.SENT,
    ):
        agree(Following(Parcel).condition(function), function, [*PARCELS, *records], condition=True)


def test_no_mistake_is_told_on_a_way_that_a_mark_has_opened() -> None:
    """``u.active == text`` is one for each text, but no record gets there."""
    n = 6
    agree(following().condition(lambda u: _is_kind(u, f"{n}")), lambda u: False, users(), condition=True)
    agree(following().condition(lambda u: f"{n}" == "5" and u.active == "5"), lambda u: False, users(), condition=True)
    with pytest.raises(TypeError, match="active"):
        following().condition(lambda u: f"{n}" == "6" and u.active == f"{n}")


def test_what_equals_a_captured_value_is_not_always_the_same() -> None:
    """The text of -0.0, and of a Decimal with zeros at its end, was given for what equals these, too."""
    reader = following()
    for value in (-0.0, 0.0, Decimal("1.0"), Decimal("1.00"), (1, 0.0), (1, -0.0), 1, True):

        def texts(value: Any = value) -> Function:
            return lambda u: [f"{value}", u.age]

        assert reader.value(texts()).evaluated(users()[0]) == texts()(users()[0])


def test_globals_that_change_are_seen() -> None:
    space: dict[str, Any] = {"least": 3, "test": lambda u: u.age > 50}
    exec("def f(u): return u.age > least or test(u)\ndef g(u): return len(u.tags) > 1", space)
    reader, f, g = following(), space["f"], space["g"]
    for change in (
        {},
        {"least": 40},
        {"least": 40.5},
        {"test": lambda u: u.active},
        {"test": len},
        {"test": None},
        {"least": None},
    ):
        space.update(change)
        try:
            followed = reader.condition(f)
        except TypeError:
            assert space["least"] is None
            continue
        agree(followed, f, users(), condition=True)
    agree(reader.condition(g), g, users(), condition=True)
    space["len"] = lambda tags: 5
    agree(reader.condition(g), g, users(), condition=True)
    del space["len"]
    agree(reader.condition(g), g, users(), condition=True)


def test_captured_sets_are_read_when_they_are_asked() -> None:
    names = {"Ann"}
    followed = following().condition(lambda u: u.name in names)
    assert [followed(user) for user in users()][:2] == [True, False]
    names.add("Bob")
    assert [followed(user) for user in users()][:2] == [True, True]


def test_a_property_that_is_replaced_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, function = following(), lambda u: u.adult
    assert repr(reader.condition(function)) == "(u.age >= User.LIMIT)"
    monkeypatch.setattr(User, "adult", property(lambda self: self.active))
    assert repr(reader.condition(function)) == "u.active"


def test_attributes_of_objects_are_captured() -> None:
    class Search:
        def __init__(self, least: int) -> None:
            self.least = least

        def run(self, reader: Following) -> list[bool]:
            followed = reader.condition(lambda u: u.age > self.least)
            assert repr(followed) == "(u.age > self.least)"
            return [followed(user) for user in users()]

    reader = following()
    for least in (3, 20, 60):
        assert Search(least).run(reader) == [user.age > least for user in users()]


def test_what_is_kept_is_bounded_and_weak() -> None:
    reader = following()
    for number in range(700):
        reader.condition(eval(f"lambda u: u.age > {number}"))
    gc.collect()
    assert len(reader) <= 2  # the code of each is gone
    kept = [eval(f"lambda u: u.age > {number}") for number in range(700)]
    for function in kept:
        reader.condition(function)
    assert len(reader) <= 258


def test_captured_values_are_not_kept() -> None:
    class Big(list):  # type: ignore[type-arg]
        pass

    class Owner:
        least = 3

    def query(owner: Any, values: Any, reader: Following) -> None:
        reader.condition(lambda u: u.age in values or u.age > owner.least)
        reader.condition(lambda u: [u.age, values.nothing])

    reader = following()
    owner, values = Owner(), Big()
    gone = [weakref.ref(owner), weakref.ref(values)]
    query(owner, values, reader)
    del owner, values
    for _ in range(3):
        gc.collect()
    assert [one() for one in gone] == [None, None]


def test_a_model_that_goes_takes_all_with_it() -> None:
    def model() -> Any:
        @dataclass
        class Gone:
            age: int

            @property
            def old(self) -> bool:
                return self.age > 60

        reader = Following(Gone)
        assert reader.condition(lambda g: g.old)(Gone(61)) is True
        return weakref.ref(Gone)

    gone = model()
    for _ in range(3):
        gc.collect()
    assert gone() is None


def test_threads_read_at_once() -> None:
    reader, wrong, errors = following(), [], []
    functions = [
        lambda u: u.age > low and u.active,
        lambda u: u.mayor is not None and u.mayor < "B",
        lambda u: any(tag == "x" for tag in u.tags),
        lambda u: u.adult or u.kind is Kind.A,
    ]
    wanted = [[bool(function(user)) for user in users()] for function in functions]

    def work() -> None:
        try:
            for _ in range(30):
                for function, answers in zip(functions, wanted):
                    followed = reader._read(function, True) if random.random() < 0.5 else reader.condition(function)
                    if [followed(user) for user in users()] != answers:
                        wrong.append(function)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (wrong, errors) == ([], [])


# -- the self-check ---------------------------------------------------------------------------------------------------


def test_a_function_that_gives_another_answer_is_called_from_then_on() -> None:
    @dataclass
    class Lying:
        name: str
        kept: int

        def __eq__(self, other: object) -> bool:
            return True

    @dataclass
    class Holder:
        text: str

    reader = Following(Holder)
    function: Function = lambda h: h.text is None  # noqa: E731  # the type says that it never is
    followed = reader.condition(function)
    assert followed.evaluated(Holder(None)) is False  # type: ignore[arg-type]
    assert followed(Holder(None)) is True  # type: ignore[arg-type]
    assert followed.reasons == ("the expression found gave another answer than the function",)
    assert followed(Holder("a")) is False
    assert reader.condition(function)(Holder(None)) is True  # type: ignore[arg-type]


def test_not_equal_is_not_the_contrary_of_equal_for_any_class() -> None:
    class Same(int):
        """Equals everything, and differs from all but its like, as `int` says."""

        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = int.__hash__

    reader, twelve = following(), Same(12)
    for function in (lambda u: u.age != twelve, lambda u: twelve != u.age):
        followed = reader.condition(function)
        assert [followed.evaluated(User("", age)) for age in (11, 12)] == [function(User("", age)) for age in (11, 12)]


def test_errors_are_those_of_the_function() -> None:
    followed = following().condition(lambda u: 100 // u.age > 3)
    with pytest.raises(ZeroDivisionError):
        followed(User("", 0))
    assert followed.reasons == ()
    assert followed(User("", 1)) is True


def test_what_raises_and_is_not_used_still_raises() -> None:
    def checks(u: User) -> bool:
        _ = 100 // u.age
        return u.active

    followed = following().condition(checks)
    with pytest.raises(ZeroDivisionError):
        followed.evaluated(User("", 0))


@pytest.mark.parametrize(
    ("function", "error"),
    [
        (lambda u: [u.name[:: u.age], True][1], ValueError),
        (lambda u: [u.name.startswith(u.mayor), True][1], TypeError),
        (lambda u: u.name.startswith(u.mayor) or True, TypeError),
        (lambda u: [u.marks.get(u.tags), True][1], TypeError),
    ],
)
def test_a_method_or_slice_that_raises_for_some_values_is_not_left_out(function: Function, error: Any) -> None:
    with pytest.raises(error):
        following().condition(function).evaluated(User("", 0))


def test_what_is_captured_may_be_compared_with_values_of_several_types() -> None:
    def wanted(age: Any) -> Function:
        return lambda u: age == "all" or age in {None, "any"} or age in [(), b"every"] or u.age == age

    for age, found in (("all", 5), ("any", 5), (b"every", 5), ((), 5), (17, 1), (16, 0)):
        assert len(list(filter(following().condition(wanted(age)), users()))) == found
    with pytest.raises(TypeError, match=r"u\.age is of type int, which 'none'"):
        following().condition(wanted("none"))


class Limits:
    low = 20

    def __init__(self, high: int) -> None:
        self.high = high


@pytest.mark.parametrize("checked", [False, True], ids=["at first", "when the function is known"])
def test_what_is_captured_is_what_it_was_when_the_query_was_made(monkeypatch: Any, checked: bool) -> None:
    reader, limits = following(), Limits(50)
    functions: list[Function] = [lambda u: u.age < low, lambda u: u.age < limits.high, lambda u: 600 // u.age > low]
    for function, age in zip(functions, (19, 49, 20)):
        if checked:
            for _ in range(8):
                reader.condition(function)(User("", age))
        followed = reader.condition(function)
        with monkeypatch.context() as later:
            later.setitem(globals(), "low", 10**6 if "low" in function.__code__.co_names and age == 20 else 5)
            later.setattr(limits, "high", 0)
            assert followed(User("", age)) is True
        assert followed.reasons == ()
        assert reader.condition(function)(User("", age)) is True


def test_a_comparison_with_a_decimal_may_raise() -> None:
    def compares(u: User) -> bool:
        return any([u.age == 17, u.price > u.score])  # a Decimal has no order beside what is not a number

    followed = following().condition(compares)
    with pytest.raises(InvalidOperation):
        followed.evaluated(users()[1])


def test_this_python_is_understood() -> None:
    assert understood()


def test_a_python_that_is_not_understood_calls_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zlmdb.query.following.code._tried", [False])
    followed = following().condition(lambda u: u.age > 3)
    assert followed.reasons == ("this version of Python is not known",)
    assert followed(users()[0]) is True


@pytest.mark.parametrize("name", ["_BUILD_SET", "_LOAD_CONST", "_IN", "_IS"])
def test_a_python_without_a_known_instruction_is_not_understood(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Its functions are called, and no query raises what the attempt to understand it raised."""
    missing: Any = None if name in ("_BUILD_SET", "_LOAD_CONST") else frozenset()
    monkeypatch.setattr(f"zlmdb.query.following.code.{name}", missing)
    monkeypatch.setattr("zlmdb.query.following.code._tried", [])
    monkeypatch.setattr("zlmdb.query.following.code._examined", ByCode(8))
    followed = following().condition(lambda u: u.age > 3)
    assert followed.reasons == ("this version of Python is not known",)
    assert followed(users()[0]) is True


@pytest.mark.parametrize("name", ["node", "original", "ready", "_name", "_kind", "_session", "_slot", "_blocked"])
def test_what_objects_classes_and_modules_have_is_found_whatever_it_is_called(name: str) -> None:
    for held in (Held(), type("Held", (), {}), ModuleType("held")):
        setattr(held, name, False)
        function = eval(f"lambda u: u.age > 30 if held.{name} else u.age < 30", {"held": held})
        followed = following().condition(function)
        assert repr(followed) == "(u.age < 30)"
        agree(followed, function, users(), condition=True)


class Held:
    """It has what the test gives to it."""


class Settings:
    old = True
    least = 17

    def holds(self, age: int) -> bool:
        return age > 30


def test_what_an_object_has_in_place_of_what_its_class_defines_counts() -> None:
    own = Settings()
    own.old, own.least, own.holds = False, 31, lambda age: age > 17  # type: ignore[method-assign]
    for make in (
        lambda held: lambda u: u.age > 30 if held.old else u.age < 30,
        lambda held: lambda u: u.age > held.least,
        lambda held: lambda u: held.holds(u.age),
    ):
        reader = following()
        for held in (Settings(), own, Settings()):
            agree(reader.condition(make(held)), make(held), users(), condition=True)


@dataclass
class Grown:
    age: int
    least = 18
    old = False

    def __post_init__(self) -> None:
        self.old = self.age > self.least

    @property
    def young(self) -> bool:
        return self.age < 18


def test_what_a_record_has_in_place_of_what_its_class_defines_counts() -> None:
    reader = following(Grown)
    for function in (lambda one: one.old, lambda one: one.young):
        agree(reader.condition(function), function, [Grown(3), Grown(33)], condition=True)


class Doubling:
    """A descriptor that gives another value than the instance has in its dict."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, holder: Any, owner: Any = None) -> int:
        return int(vars(holder)[self.name] * 2)

    def __set__(self, holder: Any, value: int) -> None:
        vars(holder)[self.name] = value


def test_a_descriptor_is_asked_before_the_object_that_has_a_value_of_that_name() -> None:
    held = type("Held", (), {"age": Doubling()})()
    held.age = 15
    followed = following().condition(lambda u: u.age > held.age)
    assert followed.reasons == ("held.age, which is a Doubling",)
    agree(followed, lambda u: u.age > 30, users(), condition=True)


def test_more_ways_than_are_followed_are_called() -> None:
    function = eval("lambda u: " + " ^ ".join(f"(u.age > {number})" for number in range(7)))
    followed = following().condition(function)
    assert followed.reasons == ()
    many = eval("lambda u: (" + ") != (".join(f"u.age > {number} or u.age < -{number}" for number in range(7)) + ")")
    agree(following().condition(many), many, users(), condition=True)
    sums = eval("lambda u: " + " + ".join(f"(1 if u.age > {number} else 2)" for number in range(8)))
    followed = following().condition(sums)
    assert followed.reasons == ("there are more ways through it than are followed",)
    agree(followed, sums, users(), condition=True)


def test_an_expression_that_doubles_with_each_line_is_called() -> None:
    """It has 40 nodes, and 2 ** 40 of them written out: nothing that looks at each would end."""
    doubled: Function = eval("lambda u: " + "(lambda x: (x + x) % 997)(" * 40 + "u.age" + ")" * 40)
    source = "def function(u):\n    x = u.age\n" + "    x = (x + x) % 997\n" * 40 + "    return x > 5\n"
    space: dict[str, Any] = {}
    exec(source, space)
    for function in (space["function"], doubled):
        followed = following().condition(function)
        assert followed.reasons
        assert followed.node.size < 10
        agree(followed, function, users(), condition=True)


@pytest.mark.parametrize("count", [90, 400, 4000])
def test_a_sum_of_thousands_of_parts_needs_no_deep_stack(count: int) -> None:
    source = "def function(u):\n    x = 0\n" + "".join(f"    x += u.age * {n}\n" for n in range(count)) + "    return x"
    space: dict[str, Any] = {}
    exec(source, space)
    followed = following().value(space["function"])
    assert followed.reasons == (() if count == 90 else ("it computes more than is followed",))
    agree(followed, space["function"], users(), condition=False)


def test_an_address_is_compared_whole() -> None:
    function: Function = lambda u: u.address == Address("Oslo")  # noqa: E731
    followed = following().condition(function)
    assert followed.reasons == ()
    agree(followed, function, users(), condition=True)

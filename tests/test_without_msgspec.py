"""Without msgspec, generated functions write model classes as json does, and make them as cattrs does."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any, Optional
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wide_model import Color, Inner, Pair, Wide
from zlmdb.values.jsonwriter import writer
from zlmdb.values.loading import by_cattrs, generated, loader, uuid_of_text
from zlmdb.values.models import Model
from zlmdb.values.shapes import Record

pytest.importorskip("cattrs", reason="made by msgspec, where cattrs is not installed")

FORMS: tuple[Any, ...] = ("json", "msgpack", "cbor")
INTS = st.integers(-(2**63), 2**64 - 1)
FLOATS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-5, 5)
TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=20) | st.sampled_from(['"', "\\", "\x1f", "\x7f"])


@dataclass
class Outer(Wide):
    some: Optional[list[int]]
    anything: Any
    size: tuple[int, int] = (0, 0)
    tags: list[bool] = field(default_factory=list)
    next: Optional[Outer] = None


@dataclass
class Empty:
    """No fields."""


INNERS = st.builds(Inner, INTS, st.none() | TEXTS)
UTC = timezone.utc
OUTERS = st.builds(
    Outer,
    INTS, FLOATS, TEXTS, st.booleans(), st.binary(max_size=30), st.uuids(), st.dates(),
    st.datetimes(timezones=st.just(UTC)), st.times(), st.timedeltas(), st.decimals(allow_nan=False),
    st.sampled_from(Color), st.sampled_from(["a", 1]), st.builds(Pair, INTS, TEXTS), INNERS, st.none() | INNERS,
    INTS | TEXTS | st.none(), st.none() | st.uuids(), st.lists(INTS, max_size=5), st.lists(FLOATS, max_size=5),
    st.lists(TEXTS, max_size=5), st.lists(INNERS, max_size=3), st.sets(TEXTS, max_size=3),
    st.lists(INTS, max_size=3).map(tuple), st.dictionaries(TEXTS, FLOATS, max_size=5),
    st.dictionaries(INTS, TEXTS, max_size=3), st.dictionaries(TEXTS, INNERS, max_size=3),
    st.none() | st.lists(INTS, max_size=3), st.none() | st.dictionaries(TEXTS, INTS, max_size=2),
)  # fmt: skip
PLAIN = st.recursive(
    st.none() | st.booleans() | INTS | FLOATS | TEXTS | st.uuids().map(str) | st.dates().map(str),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(TEXTS, inside, max_size=3),
    max_leaves=5,
)


def text_of(plain: Any) -> str:
    return json.dumps(plain, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def record_of(cls: Any, form: Any) -> Record:
    shape = Model(cls, form, lambda plain: text_of(plain).encode()).shape
    assert isinstance(shape, Record)
    return shape


OUTER = {form: record_of(Outer, form) for form in FORMS}
LOADS = {form: (by_cattrs(record), generated(record, by_cattrs(record))) for form, record in OUTER.items()}
WRITE = writer(OUTER["json"], text_of)


@given(OUTERS)
def test_every_byte_of_json_is_the_one_of_the_standard_library(value: Outer) -> None:
    value.next = Outer(**vars(value)) if value.yes else None
    assert WRITE is not None
    for _ in range(2):  # keys of dicts are remembered
        assert WRITE(value) == text_of(OUTER["json"].dump(value)).encode()


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("number", True), ("number", 1.5), ("real", "x"), ("text", 5), ("numbers", (1, 2)), ("numbers", [None]),
        ("scores", {"a": None}), ("scores", {1: 1.5}), ("texts", [1]), ("yes", 1), ("maybe", None), ("tags", ()),
    ],
)  # fmt: skip
def test_json_of_what_nobody_checked_is_that_of_the_standard_library_too(name: str, wrong: Any) -> None:
    value = Outer(
        1, 0.5, "t", True, b"", UUID(int=1), date(2000, 1, 1), datetime(2000, 1, 1, tzinfo=UTC), time(), timedelta(),
        Decimal(1), Color.RED, "a", Pair(1), Inner(1), None, None, None, [], [], [], [], set(), (), {}, {}, {}, None,
        None,
    )  # fmt: skip
    setattr(value, name, wrong)
    assert WRITE is not None
    assert WRITE(value) == text_of(OUTER["json"].dump(value)).encode()


def test_a_record_without_fields_is_an_empty_object() -> None:
    write = writer(record_of(Empty, "json"), text_of)
    assert write is not None
    assert write(Empty()) == b"{}"
    assert loader(record_of(Empty, "json"))({}) == Empty()


@pytest.mark.parametrize("form", FORMS)
@given(value=OUTERS)
def test_objects_are_made_as_cattrs_makes_them(form: Any, value: Outer) -> None:
    plain = OUTER[form].dump(value)
    slow, fast = LOADS[form]
    assert same(fast(plain), slow(plain))
    assert fast(plain) == value


@pytest.mark.parametrize("form", FORMS)
@given(data=st.data(), value=OUTERS)
def test_what_does_not_fit_is_refused_as_cattrs_refuses_it(form: Any, data: st.DataObject, value: Outer) -> None:
    plain = OUTER[form].dump(value)
    name = data.draw(st.sampled_from(sorted(plain)))
    if data.draw(st.booleans()):
        plain[name] = data.draw(PLAIN)
    else:
        del plain[name]
    slow, fast = LOADS[form]
    assert same(outcome(fast, plain), outcome(slow, plain))


@pytest.mark.parametrize("plain", [None, [], "text", 5, {}])
def test_what_is_no_map_of_all_fields_is_refused(plain: Any) -> None:
    slow, fast = LOADS["json"]
    assert outcome(fast, plain) is outcome(slow, plain) is ValueError


def test_fields_that_a_class_sets_itself_are_left_to_cattrs() -> None:
    @dataclass
    class Counted:
        text: str
        size: int = field(default=0, init=False)

        def __post_init__(self) -> None:
            self.size = len(self.text)

    load = loader(record_of(Counted, "json"))
    assert load.__code__.co_filename.endswith("loading.py"), "not a generated function"
    assert load({"text": "abc", "size": 3}).size == 3


@given(st.uuids().map(str) | st.text("0123456789abcdefABCDEFurn:id{}-_ ", max_size=40) | TEXTS)
def test_texts_are_uuids_where_the_class_says_so(text: str) -> None:
    assert outcome(uuid_of_text, text) == outcome(UUID, text)


def outcome(load: Any, plain: Any) -> Any:
    """What is made of *plain*, or ValueError for any error that means that it does not fit."""
    try:
        return load(plain)
    except (ValueError, TypeError, ArithmeticError, AttributeError):
        return ValueError


def same(one: Any, other: Any) -> bool:
    """Whether they are equal, and all that is in them is of the same types."""
    return repr(one) == repr(other)

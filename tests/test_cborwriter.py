"""The generated CBOR encoder of model classes writes what cbor2 writes, the fields of records in their order."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timezone
from typing import Any, Optional

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wide_model import Color, Inner, Pair, Wide
from zlmdb.errors import EncodeError
from zlmdb.values import Cbor, serializer
from zlmdb.values.cborwriter import head, writer
from zlmdb.values.models import Model
from zlmdb.values.recurring import EVERY, MISSES, OFTEN

pytestmark = pytest.mark.twice  # encodings do not depend on the version of Python

INTS = st.integers(-(2**63), 2**64 - 1) | st.sampled_from(
    [n + d for n in (0, 24, 256, 2**16, 2**32) for d in (-1, 0, 1)]
)
FLOATS = st.floats() | st.sampled_from([0.0, -0.0, 1e308, float("inf"), float("nan")])
TEXTS = st.text(max_size=30) | st.integers(0, 300).map("x".__mul__)


@dataclass
class Outer(Wide):
    counts: dict[str, int]
    size: tuple[int, int] = (0, 0)
    tags: list[bool] = field(default_factory=list)


INNERS = st.builds(Inner, INTS, st.none() | TEXTS)
UTC = timezone.utc
OUTERS = st.builds(
    Outer,
    INTS, FLOATS | st.integers(-5, 5), TEXTS, st.booleans(), st.binary(max_size=300), st.uuids(), st.dates(),
    st.datetimes(timezones=st.just(UTC)), st.times(), st.timedeltas(), st.decimals(allow_nan=False),
    st.sampled_from(Color), st.sampled_from(["a", 1]), st.builds(Pair, INTS, TEXTS), INNERS, st.none() | INNERS,
    INTS | TEXTS | st.none(), st.none() | st.uuids(), st.lists(INTS, max_size=10), st.lists(FLOATS, max_size=5),
    st.lists(TEXTS, max_size=5), st.lists(INNERS, max_size=3), st.sets(TEXTS, max_size=3),
    st.lists(INTS, max_size=3).map(tuple), st.dictionaries(TEXTS, FLOATS | st.integers(-5, 5), max_size=5),
    st.dictionaries(INTS, TEXTS, max_size=3), st.dictionaries(TEXTS, INNERS, max_size=3),
    st.dictionaries(TEXTS, INTS, max_size=3),
)  # fmt: skip


def reordered(plain: Any, like: Any) -> Any:
    """*plain* with the keys of its dicts in the order that they have in *like*."""
    if isinstance(plain, dict):
        assert plain.keys() == like.keys()
        return {key: reordered(plain[key], item) for key, item in like.items()}
    return [reordered(one, other) for one, other in zip(plain, like)] if isinstance(plain, list) else plain


@given(OUTERS)
def test_every_byte_is_the_one_of_cbor2(value: Outer) -> None:
    codec = serializer(Cbor[Outer])
    model = Model(Outer, "cbor", cbor2.dumps)
    plain = model.shape.dump(value)
    expected = cbor2.dumps(reordered(plain, cbor2.loads(codec.encode(value))))
    for _ in range(2):  # what is kept of the first time leaves no traces
        assert codec.encode(value) == expected
    assert list(cbor2.loads(expected)["scores"]) == list(value.scores), "dicts keep their order"


def test_fields_are_in_the_order_of_their_encoded_names() -> None:
    @dataclass
    class Names:
        b: int = 1
        aa: int = 2
        a: int = 3
        é: int = 4
        a_long_name_of_24_bytes_: int = 5
        B: Optional[Inner] = None

    names = list(cbor2.loads(serializer(Cbor[Names]).encode(Names())))
    assert names == sorted(names, key=cbor2.dumps)
    assert names == ["B", "a", "b", "aa", "é", "a_long_name_of_24_bytes_"]


def test_a_tag_has_its_place_in_the_order() -> None:
    msgspec = pytest.importorskip("msgspec", reason="no msgspec here")

    class Cat(msgspec.Struct, tag_field="kind", tag="cat"):  # type: ignore[misc]
        z: int
        legs: int

    assert list(cbor2.loads(serializer(Cbor[Cat]).encode(Cat(1, 4)))) == ["z", "kind", "legs"]


KEYS = ("", "a", "key of 24 bytes and more", "ä", "quote ' and \" and \\ and \n", "nul \0")
TURNS = (EVERY + 1) * OFTEN
"""How many times a dict is written until its keys are known."""


@pytest.mark.parametrize("count", [1, 2, len(KEYS), 64, 65])
def test_dicts_of_known_keys_are_written_as_any(count: int) -> None:
    keys = [*KEYS, *map(str, range(count))][:count]
    codec = serializer(Cbor[Scored])
    for number in range(TURNS):
        scores = {key: number / 7 for key in keys}
        assert codec.encode(Scored(scores)) == cbor2.dumps({"scores": scores})
    known = functions_of_dicts(codec)
    assert len(known) == (count <= 64)
    for odd in (1, float("inf"), float("-inf"), float("nan"), 1.7e308, -0.0, 5e-324):
        scores = {**dict.fromkeys(keys, 1.7e308), keys[-1]: odd}
        assert codec.raw_encode(Scored(scores)) == cbor2.dumps({"scores": scores})
    for bad in (True, "text"):
        with pytest.raises(EncodeError, match=r"scores\["):
            codec.encode(Scored({**dict.fromkeys(keys, 0.5), keys[-1]: bad}))  # type: ignore[dict-item]


def test_known_keys_whose_values_are_no_floats_any_more_are_forgotten() -> None:
    codec = serializer(Cbor[Scored])
    for _ in range(TURNS):
        codec.encode(Scored({"a": 0.5}))
    known = functions_of_dicts(codec)
    assert list(known) == [("a",)]
    for _ in range(MISSES + 1):
        assert codec.encode(Scored({"a": 1})) == cbor2.dumps({"scores": {"a": 1}})
    assert not known


def functions_of_dicts(codec: Any) -> Any:
    """What the encoder knows of the dicts of `Scored`."""
    return codec.raw_encode.__globals__["encode"].__globals__["w0"].__self__


@given(st.lists(st.dictionaries(st.sampled_from("abcdef"), FLOATS), max_size=10))
def test_dicts_of_many_kinds_of_keys_are_not_mixed_up(dicts: list[dict[str, float]]) -> None:
    codec = serializer(Cbor[Scored])
    for scores in dicts:
        assert codec.encode(Scored(scores)) == cbor2.dumps({"scores": scores})


@dataclass
class Scored:
    scores: dict[str, float]


def test_more_kinds_of_keys_than_are_kept() -> None:
    codec = serializer(Cbor[Scored])
    for number in range(200):
        scores = {f"key{number}": 1.5, "b": 2.0}
        assert codec.encode(Scored(scores)) == cbor2.dumps({"scores": scores})


def test_long_lists_and_dicts() -> None:
    codec = serializer(Cbor[Long])
    for size in (1, 2, 23, 24, 64, 65, 300):
        value = Long([2**40 + n for n in range(size)], {f"key {n}": n / 7 for n in range(size)}, ["x" * size] * size)
        assert codec.encode(value) == cbor2.dumps({"t": value.t, "scores": value.scores, "numbers": value.numbers})


@dataclass
class Long:
    numbers: list[int]
    scores: dict[str, float]
    t: list[str]


@pytest.mark.parametrize("size", [0, 23, 24, 255, 256, 65535, 65536, 2**32 - 1, 2**32, 2**64 - 1])
def test_heads_are_those_of_rfc_8949(size: int) -> None:
    assert head(0, size) == cbor2.dumps(size)


@dataclass
class Endless:
    next: Optional[Endless] = None


@dataclass
class Open:
    anything: Any = None


@pytest.mark.parametrize("annotation", [int, list[int], Pair, Endless, Open, Optional[Inner]])
def test_what_may_be_of_any_depth_is_left_to_cbor2(annotation: Any) -> None:
    assert writer(Model(annotation, "cbor", cbor2.dumps).shape, cbor2.dumps) is None


@pytest.mark.parametrize("bits", [0, 5, 8, 16, 32, 63, 64, 70])
def test_integers_of_every_width(bits: int) -> None:
    codec = serializer(Cbor[Inner])
    for number in (sign * 2**bits + more for sign in (1, -1) for more in (-25, -24, -1, 0, 1, 24)):
        data = codec.encode(Inner(number))
        assert data == cbor2.dumps({"a": number, "b": None})
        assert codec.decode(data) == Inner(number)

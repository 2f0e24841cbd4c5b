"""The laws of all key codecs, the bytes of the classic key types, and what is refused."""

from __future__ import annotations

import datetime as dt
import enum
import os
import pickle
import subprocess
import sys
import typing
import uuid
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import cache
from typing import Annotated, Any, Literal, NewType, Optional, Union, get_args, get_origin, get_type_hints
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import zlmdb
from zlmdb import keys as k
from zlmdb.errors import DecodeError, EncodeError
from zlmdb.keys import KeyCodec, TupleKey, from_name, key_codec
from zlmdb.keys.dates import DatetimeKey
from zlmdb.keys.uuids import _Version7

pytestmark = pytest.mark.twice  # encodings do not depend on the version of Python

np = pytest.importorskip("numpy")

CLASSIC: dict[str, Any] = {
    "Uuid": k.Uuid,
    "UuidUuid": tuple[k.Uuid, k.Uuid],
    "UuidUuidUuid": tuple[k.Uuid, k.Uuid, k.Uuid],
    "UuidUuidUuidUuid": tuple[k.Uuid, k.Uuid, k.Uuid, k.Uuid],
    "UuidString": tuple[k.Uuid, k.String],
    "UuidUuidString": tuple[k.Uuid, k.Uuid, k.String],
    "UuidUuidUuidString": tuple[k.Uuid, k.Uuid, k.Uuid, k.String],
    "UuidTimestamp": tuple[k.Uuid, k.Timestamp],
    "UuidTimestampUuid": tuple[k.Uuid, k.Timestamp, k.Uuid],
    "UuidBytes32": tuple[k.Uuid, k.Bytes32],
    "UuidBytes20Uint8": tuple[k.Uuid, k.Bytes20, k.Uint8],
    "UuidBytes20Uint8Uuid": tuple[k.Uuid, k.Bytes20, k.Uint8, k.Uuid],
    "UuidBytes20Bytes20Uint8Uuid": tuple[k.Uuid, k.Bytes20, k.Bytes20, k.Uint8, k.Uuid],
    "Timestamp": k.Timestamp,
    "TimestampUuid": tuple[k.Timestamp, k.Uuid],
    "TimestampString": tuple[k.Timestamp, k.String],
    "TimestampUuidString": tuple[k.Timestamp, k.Uuid, k.String],
    "TimestampBytes32": tuple[k.Timestamp, k.Bytes32],
    "Uint64Timestamp": tuple[k.Uint64, k.Timestamp],
    "Uint16UuidTimestamp": tuple[k.Uint16, k.Uuid, k.Timestamp],
    "String": k.String,
    "StringString": tuple[k.String, k.String],
    "StringStringString": tuple[k.String, k.String, k.String],
    "StringOid": tuple[k.String, k.Oid],
    "StringTimestamp": tuple[k.String, k.Timestamp],
    "Oid": k.Oid,
    "OidOid": tuple[k.Oid, k.Oid],
    "Oid3": tuple[k.Oid, k.Oid, k.Oid],
    "OidString": tuple[k.Oid, k.String],
    "OidTimestamp": tuple[k.Oid, k.Timestamp],
    "OidTimestampString": tuple[k.Oid, k.Timestamp, k.String],
    "Bytes32": k.Bytes32,
    "Bytes32Bytes32": tuple[k.Bytes32, k.Bytes32],
    "Bytes32Uuid": tuple[k.Bytes32, k.Uuid],
    "Bytes32String": tuple[k.Bytes32, k.String],
    "Bytes20": k.Bytes20,
    "Bytes20Bytes20": tuple[k.Bytes20, k.Bytes20],
    "Bytes20String": tuple[k.Bytes20, k.String],
    "Bytes20Timestamp": tuple[k.Bytes20, k.Timestamp],
    "Bytes16": k.Bytes16,
    "Bytes16Timestamp": tuple[k.Bytes16, k.Timestamp],
    "Bytes16TimestampUuid": tuple[k.Bytes16, k.Timestamp, k.Uuid],
    "SlotUuid": tuple[k.Slot, k.Uuid],
}
TUPLES: Sequence[Any] = [
    tuple[int],
    tuple[str],
    tuple[int, int],
    tuple[str, int],
    tuple[str, str],
    tuple[str, bytes, str],
    tuple[bytes, bytes],
    tuple[UUID, dt.datetime],
    tuple[str, dt.datetime, float],
    tuple[bool, dt.date, float, bytes, UUID],
    tuple[tuple[str, int], str],
    tuple[str, tuple[str, tuple[bytes, int]], UUID, str],
    tuple[tuple[int, UUID], tuple[UUID, int]],
    # named and plain types together, a text in front of what begins with a zero byte among them
    tuple[k.String, int],
    tuple[k.String, k.Oid, k.String],
    tuple[k.String, k.Oid, str, k.Bytes20],
    tuple[k.String, k.Uint64, k.Uint8],
    tuple[k.String, tuple[k.Oid, str], k.String],
    tuple[str, k.Timestamp, k.String, dt.datetime],
    tuple[k.Slot, str, k.Uint32],
]

UUID1 = UUID(bytes=bytes(range(0x10, 0x20)))
UUID2 = UUID(bytes=bytes(range(0x20, 0x30)))
B20 = bytes(range(20))
TS = np.datetime64(1_700_000_000_123_456_789, "ns")
UTC = dt.timezone.utc


def _all_codecs() -> list[KeyCodec[Any]]:
    codecs = [*k.ATOMS, *map(key_codec, CLASSIC.values()), *map(key_codec, TUPLES)]
    codecs += [codec.classic() for codec in codecs]
    return list({codec.name: codec for codec in reversed(codecs)}.values())


CODECS = _all_codecs()
SORTED = [codec for codec in CODECS if codec.sorts and "string-open" not in codec.name]


def params(codecs: Sequence[KeyCodec[Any]]) -> list[Any]:
    """All codecs; what a tuple makes of its parts is tried on PyPy with every other tuple of them."""
    tuples = [codec for codec in codecs if isinstance(codec, TupleKey)]
    return [pytest.param(one, marks=[pytest.mark.once] if one in tuples[1::2] else [], id=one.name) for one in codecs]


each_codec = pytest.mark.parametrize("codec", params(CODECS))
each_sorted_codec = pytest.mark.parametrize("codec", params(SORTED))
# On PyPy each of the hundreds of properties warms up anew.
few = settings(max_examples=4 if sys.implementation.name == "pypy" else 10, deadline=None)


@cache  # for each property anew, to build the strategies takes as long as to try them
def _texts(alphabet: str) -> st.SearchStrategy[str]:
    characters = st.characters(exclude_categories=["Cs"], exclude_characters="" if "\0" in alphabet else "\0")
    return st.text(alphabet, max_size=4) | st.text(characters, max_size=6)


ATOM_KEYS: dict[str, st.SearchStrategy[Any]] = {
    "int": st.integers(-(2**63), 2**63 - 1),
    "bytes": st.binary(max_size=5) | st.lists(st.sampled_from([0, 1, 97, 255]), max_size=4).map(bytes),
    "bool": st.booleans(),
    "float": st.floats(allow_nan=False),
    "uuid": st.uuids(),
    "date": st.dates(),
    "datetime": st.datetimes(
        dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30), timezones=st.timezones() | st.just(UTC)
    ).map(lambda moment: moment.replace(fold=0).astimezone(UTC)),
    "time": st.times().map(lambda moment: moment.replace(fold=0)),
    "timedelta": st.timedeltas(),
    "decimal": st.decimals(allow_nan=False) | st.decimals(-9, 9, places=2),
    "uint128": st.integers(0, 2**128 - 1),
    "timestamp": st.integers(0, 2**63 - 1).map(lambda number: np.datetime64(number, "ns")),
}


@cache
def keys_of(codec: Any, *, last: bool = True) -> st.SearchStrategy[Any]:
    """Keys that *codec* takes, close neighbours among them; a named text that is not *last* has no NUL."""
    if isinstance(codec, TupleKey):
        end = len(codec.parts) - 1
        parts = [keys_of(part, last=last and i == end) for i, part in enumerate(codec.parts)]
        return st.tuples(*parts) | st.sampled_from(codec.examples)
    if isinstance(codec, k.StringKey):
        return _texts("\0\1a\x1f\x7fäb" if last and not codec.open else "\1a\x1f\x7fäb")
    if isinstance(codec, k.StrKey):
        return _texts("\0\1a\x7f\xff")
    if isinstance(codec, k.UintKey):
        keys: st.SearchStrategy[Any] = st.integers(0, codec.maximum)
    elif isinstance(codec, k.BytesKey):
        keys = st.binary(min_size=codec.width, max_size=codec.width)
    else:
        keys = ATOM_KEYS.get(codec.name.replace("-le", ""), st.nothing())  # a new key type has its examples at first
    return keys | st.sampled_from(codec.examples)


# The laws


@pytest.mark.once  # the same on every interpreter
def test_each_alias_of_a_key_type_is_a_public_name() -> None:
    public = {name: getattr(k, name) for name in k.__all__}  # each of them can be imported
    assert [alias for alias in k.NAMED if alias not in public.values()] == []


def test_every_classic_key_type_is_here() -> None:
    assert len(CLASSIC) == 43


@each_codec
def test_examples_ascend_and_so_do_their_encodings(codec: KeyCodec[Any]) -> None:
    examples = list(codec.examples)
    assert len(examples) >= 2
    assert all(a < b for a, b in zip(examples, examples[1:]))
    encoded = [codec.encode(key) for key in examples]
    assert len(set(encoded)) == len(encoded)
    assert [codec.decode(data) for data in encoded] == examples
    if codec in SORTED:
        assert encoded == sorted(encoded)


@each_codec
def test_keys_come_back_with_their_type_from_bytes_and_memoryview(codec: KeyCodec[Any]) -> None:
    @few
    @given(keys_of(codec))
    def check(key: Any) -> None:
        data = codec.encode(key)
        assert type(data) is bytes
        assert codec.width in (None, len(data))
        for stored in (data, memoryview(data), memoryview(bytearray(b"--" + data))[2:]):
            for decode in (codec.decode, codec.raw_decode):
                back = decode(stored)
                assert back == key
                assert _types(back) == _types(key)

    check()


def _types(key: Any) -> Any:
    return [_types(part) for part in key] if issubclass(type(key), tuple) else type(key).__qualname__


@each_sorted_codec
def test_encodings_sort_as_keys_do(codec: KeyCodec[Any]) -> None:

    @few
    @given(keys_of(codec), keys_of(codec))
    def check(a: Any, b: Any) -> None:
        assert bool(a < b) == (codec.encode(a) < codec.encode(b))
        assert bool(a == b) == (codec.encode(a) == codec.encode(b))

    check()


@each_sorted_codec
def test_no_encoding_of_a_leading_part_begins_with_another(codec: KeyCodec[Any]) -> None:
    # What stands in front must end where it ends, whatever follows: checked with a part behind.
    longer = TupleKey([codec, k.IntKey()])

    @few
    @given(keys_of(codec, last=False), keys_of(codec, last=False), st.integers(-2, 2), st.integers(-2, 2))
    def check(a: Any, b: Any, i: int, j: int) -> None:
        assert ((a, i) < (b, j)) == (longer.encode((a, i)) < longer.encode((b, j)))
        assert longer.decode(longer.encode((a, i))) == (a, i)

    check()


@each_codec
def test_lookup_gives_the_prefix_and_the_encoding(codec: KeyCodec[Any]) -> None:
    lookups = {prefix: codec.lookup(prefix) for prefix in (b"", b"\0\7", b"\xff\xfe", b"abc")}

    @few
    @given(keys_of(codec))
    def check(key: Any) -> None:
        for prefix, lookup in lookups.items():
            assert lookup(key) == prefix + codec.encode(key)

    check()


@each_codec
def test_lookup_of_what_does_not_fit_never_gives_the_bytes_of_another_key(codec: KeyCodec[Any]) -> None:
    wrong: list[Any] = [None, True, 1, -1, 2**64, 1.0, "ab", "ab" * 10, "\ud800", b"a", bytes(20), bytearray(b"ab")]
    wrong += [[1], (), ("ab",), ["a", "b"], ("a\0b", "c"), (1, 2), ("a", 2**60), UUID1, object()]
    wrong += [dt.datetime.now(), dt.date.today(), np.uint64(2**63), np.float64("nan"), np.int8(5)]
    wrong += [np.datetime64("NaT", "ns"), np.datetime64(-1, "ns"), np.datetime64(5, "ps"), np.bytes_(b"a" * 20)]
    for key in wrong:
        try:
            data = codec.lookup(b"\0\7")(key)
        except Exception:
            continue
        try:
            same = bool(codec.decode(data[2:]) == key)
        except DecodeError:
            continue  # no key at all has these bytes
        assert same or data[2:] == codec.encode(key), key


@each_codec
def test_decode_takes_what_encode_writes_and_raises_decode_error_for_the_rest(codec: KeyCodec[Any]) -> None:
    @few
    @given(st.binary(max_size=40) | _damaged(codec))
    def check(data: bytes) -> None:
        try:
            key = codec.decode(data)
        except DecodeError:
            with pytest.raises(Exception):  # noqa: B017, PT011 - raw_decode raises whatever comes
                codec.raw_decode(data)
            return
        assert codec.decode(memoryview(data)) == key or "timestamp" in codec.name  # NaT is not equal to itself
        try:
            assert codec.encode(key) == data
        except EncodeError:
            assert "timestamp" in codec.name  # times before 1970 in old files can be read, not written

    check()


@st.composite
def _damaged(draw: st.DrawFn, codec: KeyCodec[Any]) -> bytes:
    data = bytearray(codec.encode(draw(keys_of(codec))))
    if data and draw(st.booleans()):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.sampled_from([0, 1, 2, 127, 128, 255]))
    start = draw(st.integers(0, 2))
    return bytes(data[start : len(data) - draw(st.integers(0, 2))]) + draw(st.binary(max_size=2))


@each_codec
def test_a_name_builds_an_equal_codec(codec: KeyCodec[Any]) -> None:
    again = from_name(codec.name)
    assert again == codec
    assert hash(again) == hash(codec)
    assert again.width == codec.width
    assert again.sorts == codec.sorts
    assert [again.encode(key) for key in codec.examples] == [codec.encode(key) for key in codec.examples]
    assert again != key_codec(tuple[bool, bool])


@each_codec
def test_new_keys_are_keys_and_differ(codec: KeyCodec[Any]) -> None:
    unmade = {"str", "bytes", "bool", "float", "date", "time", "timedelta", "decimal"}
    if {leaf.name for leaf in getattr(codec, "leaves", [codec])} & unmade:
        with pytest.raises(TypeError, match="cannot be generated"):
            codec.new_key()
        return
    key = codec.new_key()
    assert codec.decode(codec.encode(key)) == key
    if not codec.name.startswith(("uint", "slot", "tuple(slot")):
        assert codec.new_key() != key or codec.name.startswith(("timestamp", "datetime"))


# Choices


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    HIGH = 3
    LOW = 1


def test_members_of_an_enum_are_keys_by_value_and_sort_so() -> None:
    colors, levels = key_codec(Color), key_codec(Level)
    assert (colors.name, levels.name) == ("str", "int")
    assert colors.encode(Color.RED) == b"red"
    assert colors.decode(b"blue") is Color.BLUE
    assert levels.decode(levels.encode(Level.LOW)) is Level.LOW
    assert sorted(levels.encode(level) for level in Level) == [levels.encode(Level.LOW), levels.encode(Level.HIGH)]
    assert key_codec(tuple[Color, int]).decode(key_codec(tuple[str, int]).encode(("red", 1))) == (Color.RED, 1)


@pytest.mark.parametrize("key", ["red", 1, None, [], Level.LOW])
def test_what_is_no_member_is_no_key_and_said_so(key: Any) -> None:
    with pytest.raises(EncodeError, match="one of <Color.RED"):
        key_codec(Color).encode(key)
    with pytest.raises(DecodeError):
        key_codec(Color).decode(b"green")


def test_a_literal_is_a_key() -> None:
    codec = key_codec(Literal["b", "a"])
    assert codec.encode("a") == b"a"
    assert codec.decode(b"b") == "b"
    with pytest.raises(EncodeError, match="one of 'b', 'a'"):
        codec.encode("c")
    with pytest.raises(EncodeError, match="one of 1, 2"):
        key_codec(Literal[1, 2]).encode(True)


def test_choices_that_have_no_order_are_refused() -> None:
    class Mixed(enum.Enum):
        A = "a"
        B = 1

    class Flags(enum.Flag):
        A = 1
        B = 2

    for annotation in (Mixed, Flags, Literal["a", 1]):
        with pytest.raises(TypeError, match="is not a key type"):
            key_codec(annotation)


# Ranges: prefixes, beginnings and bounds


def is_in(data: bytes, span: tuple[bytes, bytes]) -> bool:
    return span[0] <= data < span[1]


def fits_an_index(codec: KeyCodec[Any], *keys: Any) -> bool:
    """A named string takes a NUL in the last place only, which it does not have in an index."""
    stored = TupleKey([codec, k.UuidKey()])
    return all(not isinstance(outcome(stored.encode, (key, UUID1)), str) for key in keys)


def outcome(call: Callable[[Any], Any], given: Any) -> Any:
    try:
        return call(given)
    except EncodeError as error:
        return str(error)


RANGED = [one for one in CODECS if "string-open" not in one.name]


@pytest.mark.parametrize("codec", params([one for one in RANGED if isinstance(one, TupleKey)]))
def test_a_prefix_selects_exactly_the_keys_with_these_parts(codec: Any) -> None:
    """The last part too: ("rome", "ann") does not select ("rome", "anna")."""
    stored = TupleKey([codec, k.UuidKey()])  # as in an index

    @few
    @given(keys_of(codec), keys_of(codec), st.integers(0, 4))
    def check(a: Any, b: Any, count: int) -> None:
        parts = a[:count]
        assert is_in(codec.encode(b), codec.span(parts)) == (b[:count] == parts)
        if fits_an_index(codec, a, b):
            assert is_in(stored.encode((b, UUID1)), stored.span_of_first(parts)) == (b[:count] == parts)

    check()


@pytest.mark.parametrize("codec", params(RANGED))
def test_a_beginning_selects_exactly_the_texts_and_bytes_that_begin_so(codec: KeyCodec[Any]) -> None:
    leaves = codec.leaves if isinstance(codec, TupleKey) else [codec]

    @few
    @given(keys_of(codec), keys_of(codec), st.integers(0, 3), st.integers(0, 2))
    def check(a: Any, b: Any, count: int, cut: int) -> None:
        if not isinstance(codec, TupleKey):
            parts, first, other, prefix = (), a, b, None
        elif count >= len(codec.parts) or len(leaves) > len(codec.parts):
            return
        else:
            parts, first, other, prefix = a[:count], a[count], b[count], a[:count]
        if not isinstance(first, (str, bytes)):
            with pytest.raises(EncodeError, match="begin with|is not a key"):
                codec.span(prefix, "x")
            return
        expected = (prefix is None or b[:count] == parts) and other.startswith(first[:cut])
        assert is_in(codec.encode(b), codec.span(prefix, first[:cut])) == expected
        stored = TupleKey([codec, k.UuidKey()])
        if not fits_an_index(codec, a, b):
            return
        assert is_in(stored.encode((b, UUID1)), stored.span_of_first(prefix, first[:cut])) == expected

    check()


@pytest.mark.parametrize("codec", params([one for one in RANGED if one.sorts]))
def test_a_bound_may_be_leading_parts_which_come_first_as_in_python(codec: KeyCodec[Any]) -> None:
    stored = TupleKey([codec, k.UuidKey()])

    @few
    @given(keys_of(codec), keys_of(codec), st.integers(0, 4))
    def check(a: Any, b: Any, count: int) -> None:
        bound = a[:count] if isinstance(codec, TupleKey) else a
        through = b[:count] <= bound if isinstance(codec, TupleKey) else b <= bound
        assert (codec.encode(b) >= codec.bound(bound)) == bool(b >= bound)
        assert (codec.encode(b) < codec.bound(bound, through=True)) == bool(through)
        if fits_an_index(codec, a, b):
            data = stored.encode((b, UUID1))
            assert (data >= stored.bound_of_first(bound)) == bool(b >= bound)
            assert (data < stored.bound_of_first(bound, through=True)) == bool(through)

    check()


OUTSIDE = [
    (int, -(2**70), 2**70), (k.Oid, -1, 2**53 + 1), (k.Uint8, -5, 256), (k.Uint16, -1, 65536), (k.Slot, -1, 65536),
    (k.Timestamp, np.datetime64("1969-12-31"), np.datetime64("2300-01-01")), (float, -(10**400), None),
    (k.Timestamp, np.datetime64(-1, "ns"), np.datetime64(10**9, "Y")),
    (
        dt.datetime,
        dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1))),
        dt.datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=dt.timezone(dt.timedelta(hours=-1))),
    ),
]  # fmt: skip


@pytest.mark.parametrize("codec", params([one for one in RANGED if one.exact is not None]))
def test_of_its_exact_type_a_look_up_gives_the_bound(codec: KeyCodec[Any]) -> None:
    look_up = codec.lookup(b"p")
    examples = [key for key in codec.examples if type(key) is codec.exact]
    assert examples
    assert [look_up(key) for key in examples] == [b"p" + codec.bound(key) for key in examples]


@pytest.mark.parametrize(("annotation", "low", "high"), OUTSIDE)
def test_a_bound_out_of_the_range_of_its_type_is_the_end_of_the_range(annotation: Any, low: Any, high: Any) -> None:
    """The idiom for all with x, ``select((x, 0), (x, MAX_OID + 1))``, gave EncodeError."""
    codec = key_codec(annotation)
    pair = TupleKey([codec, codec])
    examples = [one for one in codec.examples if not isinstance(one, float) or one != float("-inf")]
    for key in examples:
        data, both = codec.encode(key), pair.encode((examples[1], key))
        for through in (False, True):
            assert codec.bound(low, through=through) <= data
            assert pair.encode((examples[0], key)) < pair.bound((examples[1], low), through=through) <= both
            if high is not None:
                assert data < codec.bound(high, through=through)
                assert both < pair.bound((examples[1], high), through=through) <= pair.encode((examples[2], key))


def test_a_bound_between_two_keys_is_where_it_lies() -> None:
    codec = key_codec(float)
    assert codec.encode(2.0**53) < codec.bound(2**53 + 1) <= codec.encode(2.0**53 + 2)
    assert codec.encode(1.7976931348623157e308) < codec.bound(10**400) <= codec.encode(float("inf"))
    texts = key_codec(tuple[k.String, k.String])
    assert texts.encode(("a", "z")) < texts.bound(("a\0", "")) < texts.encode(("a\1", ""))


@pytest.mark.parametrize("bound", ["7", 1.5, None, True, (1,), float("nan")])
def test_a_bound_of_another_type_is_refused(bound: Any) -> None:
    for codec in (key_codec(int), key_codec(k.Uint32)):
        if bound is not None or not codec.takes_none:
            with pytest.raises(EncodeError):
                codec.bound(bound)
            with pytest.raises(EncodeError, match="part 2"):
                TupleKey([key_codec(str), codec]).bound(("a", bound))


def test_a_nested_tuple_in_a_prefix_may_be_given_in_part() -> None:
    codec = key_codec(tuple[tuple[str, int], UUID])
    data = codec.encode((("a", 5), UUID1))
    assert is_in(data, codec.span((("a",),)))
    assert is_in(data, codec.span((("a", 5),)))
    assert is_in(data, codec.span((("a", 5), UUID1)))
    with pytest.raises(EncodeError, match="it has 1"):
        codec.span((("a",), UUID1))


@pytest.mark.parametrize("prefix", ["rome", b"rome", ["rome"], 5])
def test_a_prefix_that_is_no_tuple_is_refused_with_the_line_to_write(prefix: Any) -> None:
    advice = "startswith=" if isinstance(prefix, (str, bytes)) else r"prefix=\("
    with pytest.raises(EncodeError, match=advice):
        key_codec(tuple[str, int]).span(prefix)
    with pytest.raises(EncodeError, match="startswith=|leave it out"):
        key_codec(str).span(prefix)
    with pytest.raises(EncodeError, match="leave it out"):
        key_codec(str).span(("rome",))


def test_what_begins_behind_the_last_part_is_refused() -> None:
    with pytest.raises(EncodeError, match="all parts"):
        key_codec(tuple[str, str]).span(("a", "b"), "c")


def test_an_unended_classic_text_is_refused_as_a_prefix() -> None:
    codec = key_codec(CLASSIC["StringTimestamp"]).classic()
    for prefix, start in ((None, "ab"), (("ab",), None)):
        with pytest.raises(EncodeError, match="select a range"):
            codec.span(prefix, start)
    assert is_in(codec.encode(("ab", TS)), codec.span(("ab", TS)))
    assert codec.span(None, "")[0] == b""


# The bytes on disk, which never change

U1, U2, T1 = "101112131415161718191a1b1c1d1e1f", "202122232425262728292a2b2c2d2e2f", "17979cfe3d85cd15"
LE = "15cd853dfe9c9717"
GOLDEN: Sequence[tuple[str, Any, str]] = [
    ("Oid", 5, "0000000000000005"),
    ("OidOid", (5, 6), "00000000000000050000000000000006"),
    ("Oid3", (5, 6, 7), "000000000000000500000000000000060000000000000007"),
    ("OidString", (5, "ab"), "00000000000000056162"),
    ("OidTimestamp", (5, TS), "0000000000000005" + LE),
    ("OidTimestampString", (5, TS, "ab"), "0000000000000005" + LE + "6162"),
    ("String", "ab", "6162"),
    ("StringString", ("ab", "cd"), "6162006364"),
    ("StringStringString", ("a", "b", "c"), "6100620063"),
    ("StringOid", ("ab", 5), "61620000000000000005"),
    ("StringTimestamp", ("ab", TS), "6162" + T1),
    ("Uuid", UUID1, U1),
    ("UuidString", (UUID1, "ab"), U1 + "6162"),
    ("UuidTimestamp", (UUID1, TS), U1 + T1),
    ("UuidTimestampUuid", (UUID1, TS, UUID2), U1 + T1 + U2),
    ("Uint16UuidTimestamp", (258, UUID1, TS), "0201" + U1 + T1),
    ("UuidBytes20Uint8", (UUID1, B20, 7), U1 + B20.hex() + "07"),
    ("Timestamp", TS, T1),
    ("Timestamp", np.datetime64(0, "ns"), "0000000000000000"),
    ("TimestampUuid", (TS, UUID1), T1 + U1),
    ("TimestampString", (TS, "ab"), T1 + "6162"),
    ("TimestampUuidString", (TS, UUID1, "ab"), T1 + U1 + "6162"),
    ("Uint64Timestamp", (2**63 + 1, TS), "8000000000000001" + T1),
    ("SlotUuid", (3, UUID1), "0003" + U1),
    ("Bytes20Timestamp", (B20, TS), B20.hex() + T1),
    ("UuidBytes32", (UUID1, bytes(range(32))), U1 + bytes(range(32)).hex()),
]
TABLES_LAYOUT = {
    "OidTimestamp": "0000000000000005" + T1,
    "OidTimestampString": "0000000000000005" + T1 + "6162",
    "Uint16UuidTimestamp": "0102" + U1 + T1,
    "StringTimestamp": "616200" + T1,
}


@pytest.mark.parametrize(("name", "key", "golden"), GOLDEN, ids=[row[0] for row in GOLDEN])
def test_classic_key_types_keep_their_bytes(name: str, key: Any, golden: str) -> None:
    codec = key_codec(CLASSIC[name])
    classic = codec.classic()
    assert classic.encode(key).hex() == golden
    assert classic.decode(bytes.fromhex(golden)) == key
    assert classic.classic() == classic
    assert codec.encode(key).hex() == TABLES_LAYOUT.get(name, golden)
    assert (classic is codec) == (name not in TABLES_LAYOUT)


def test_only_the_little_endian_classic_types_do_not_sort() -> None:
    unsorted = {name for name, annotation in CLASSIC.items() if not key_codec(annotation).classic().sorts}
    assert unsorted == {"OidTimestamp", "OidTimestampString", "Uint16UuidTimestamp"}
    assert all(key_codec(annotation).sorts for annotation in CLASSIC.values())


@pytest.mark.parametrize(
    ("annotation", "key", "golden"),
    [
        (int, 0, "8000000000000000"),
        (int, -1, "7fffffffffffffff"),
        (str, "é\0", "c3a900"),
        (bytes, b"\0", "00"),
        (bool, True, "01"),
        (dt.time, dt.time(0, 0, 1), "00000f4240"),
        (dt.timedelta, dt.timedelta(0), "800000000000000000"),
        (dt.timedelta, dt.timedelta(seconds=-1), "7ffffffffffff0bdc0"),
        (Decimal, Decimal("12.50"), "c0810d33"),
        (Decimal, Decimal("-12.5"), "407ef2ccff"),
        (Decimal, Decimal(0), "80"),
        (Decimal, 7, "c08047"),
        (float, 0.0, "8000000000000000"),
        (float, 1.5, "bff8000000000000"),
        (float, -1.5, "4007ffffffffffff"),
        (float, float("-inf"), "000fffffffffffff"),
        (dt.datetime, dt.datetime(1970, 1, 1, 0, 0, 0, 1, UTC), "8000000000000001"),
        (dt.datetime, dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC), "7fffffffffffffff"),
        (dt.date, dt.date(1970, 1, 2), "80000001"),
        (dt.date, dt.date(1969, 12, 31), "7fffffff"),
        (tuple[str, int], ("a", 5), "61" + "0000" + "8000000000000005"),
        (tuple[str, str], ("a\0b", "c\0"), "61000162" + "0000" + "6300"),
        (tuple[bytes, bytes], (b"", b""), "0000"),
        (tuple[tuple[str, int], str], (("a", 0), "b"), "61" + "0000" + "8000000000000000" + "62"),
        (tuple[UUID, dt.date], (UUID1, dt.date(1970, 1, 1)), U1 + "80000000"),
    ],
)
def test_plain_key_types_keep_their_bytes(annotation: Any, key: Any, golden: str) -> None:
    codec = key_codec(annotation)
    assert codec.encode(key).hex() == golden
    assert codec.decode(bytes.fromhex(golden)) == key
    assert codec.classic() is codec


def test_stored_times_before_1970_and_no_times_can_be_read() -> None:
    codec = key_codec(k.Timestamp)
    assert codec.decode(b"\xff" * 8) == np.datetime64(-1, "ns")
    assert np.isnat(codec.decode(b"\x80" + bytes(7)))
    assert key_codec(tuple[k.Uuid, k.Timestamp]).decode(UUID1.bytes + b"\xff" * 8) == (UUID1, np.datetime64(-1, "ns"))


def test_empty_texts_in_classic_keys_come_back() -> None:
    for name in (
        "OidString",
        "UuidUuidString",
        "TimestampString",
        "StringTimestamp",
        "StringStringString",
        "StringOid",
    ):
        for codec in (key_codec(CLASSIC[name]), key_codec(CLASSIC[name]).classic()):
            key = tuple("" if isinstance(part, str) else part for part in codec.examples[-1])
            assert codec.decode(codec.encode(key)) == key


# None


@pytest.mark.parametrize(
    ("annotation", "zero"),
    [
        (k.Oid, 0),
        (k.Uint8, 0),
        (k.Slot, 0),
        (k.Uuid, UUID(int=0)),
        (k.String, ""),
        (k.Bytes20, bytes(20)),
        (k.Timestamp, np.datetime64(0, "ns")),
        (tuple[k.Uuid, k.Timestamp], (UUID(int=0), np.datetime64(0, "ns"))),
        (tuple[k.String, k.String], ("", "")),
        (tuple[k.Bytes16, k.Oid], (bytes(16), 0)),
    ],
)
def test_none_is_the_zero_value_of_named_types(annotation: Any, zero: Any) -> None:
    codec: Any = key_codec(annotation)
    none: Any = (None,) * len(codec.parts) if isinstance(codec, TupleKey) else None
    assert codec.encode(none) == codec.encode(zero)
    assert codec.decode(codec.encode(none)) == zero


@pytest.mark.parametrize("annotation", [*k.PLAIN, tuple[int, str], tuple[k.Uuid, int]])
def test_plain_types_refuse_none(annotation: Any) -> None:
    with pytest.raises(EncodeError, match="None is not a key"):
        key_codec(annotation).encode(None)
    if annotation not in k.PLAIN:
        with pytest.raises(EncodeError, match=r"part 2 .*None is not a key"):
            key_codec(annotation).encode((1 if annotation == tuple[int, str] else UUID1, None))


# What is refused

REFUSED: Sequence[tuple[Any, Any, str]] = [
    (k.Oid, -1, "out of range.*from 0 to 9007199254740992"),
    (k.Oid, 2**53 + 1, "out of range"),
    (k.Oid, True, "True is not a key of type oid"),
    (k.Oid, 1.0, "expected an int"),
    (k.Oid, "1", "expected an int"),
    (k.Uint8, 256, "from 0 to 255"),
    (k.Uint16, 65_536, "from 0 to 65535"),
    (k.Slot, 65_536, "slot"),
    (k.Uint64, 2**64, "out of range"),
    (k.Uuid, str(UUID1), "expected a uuid.UUID"),
    (k.Uuid, UUID1.bytes, "expected a uuid.UUID"),
    (k.String, b"a", "expected a str"),
    (k.String, "\ud800", "surrogates"),
    (k.Bytes20, bytes(19), "19 bytes.*length 20"),
    (k.Bytes20, b"", "0 bytes"),
    (k.Bytes20, "a" * 20, "expected bytes"),
    (k.Bytes32, bytearray(31), "it has 31 bytes"),
    (k.Uint128, 2**128, "out of range"),
    (k.Uint128, -1, "out of range"),
    (k.Uint128, True, "expected an int"),
    (k.Timestamp, np.datetime64("NaT", "D"), "not a time"),
    (k.Timestamp, np.datetime64("NaT", "ns"), "not a time"),
    (k.Timestamp, np.datetime64(-1, "ns"), "before 1970"),
    (k.Timestamp, np.datetime64("1969-12-31"), "before 1970"),
    (k.Timestamp, np.datetime64("1960", "Y"), "out of range"),
    (k.Timestamp, np.datetime64("2263", "Y"), "out of range"),
    (k.Timestamp, np.datetime64("2262-05", "M"), "out of range"),
    (k.Timestamp, np.datetime64("2262-04-12"), "beyond 2262"),
    (k.Timestamp, np.datetime64(2**62, "s"), "beyond 2262"),
    (k.Timestamp, np.datetime64(1001, "ps"), "finer than nanoseconds"),
    (k.Timestamp, 1_700_000_000, "expected a numpy.datetime64"),
    (k.Timestamp, dt.datetime.now(UTC), "expected a numpy.datetime64"),
    (int, True, "expected an int"),
    (int, 2**63, "out of range"),
    (int, -(2**63) - 1, "out of range"),
    (int, np.uint64(2**63), "out of range"),
    (int, 1.0, "expected an int"),
    (int, "1", "expected an int"),
    (str, b"a", "expected a str"),
    (str, 1, "expected a str"),
    (str, "a\udfff", "surrogates"),
    (bytes, "a", "expected bytes"),
    (bytes, 5, "expected bytes"),
    (bool, 1, "True or False"),
    (float, float("nan"), "NaN"),
    (float, np.float64("nan"), "NaN"),
    (float, True, "float"),
    (float, "1.0", "float"),
    (float, 2**53 + 1, "not exact"),
    (float, 10**400, "float"),
    (UUID, 1, "uuid.UUID"),
    (dt.datetime, dt.datetime(2024, 1, 1), "no time zone"),
    (dt.datetime, dt.date(2024, 1, 1), "a datetime with a time zone"),
    (dt.datetime, "2024-01-01", "a datetime with a time zone"),
    (dt.datetime, dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1))), "out of range in UTC"),
    (dt.datetime, dt.datetime(9999, 12, 31, 23, tzinfo=dt.timezone(-dt.timedelta(hours=1))), "out of range in UTC"),
    (dt.date, dt.datetime(2024, 1, 1, tzinfo=UTC), "not a datetime"),
    (dt.date, "2024-01-01", "datetime.date"),
    (tuple[k.String, k.String], ("a\0", "b"), "part 1 .*NUL"),
    (tuple[k.String, k.Oid], ("a\0", 1), "part 1 .*NUL"),
    (tuple[k.String, k.Timestamp], ("a\0", TS), "NUL"),
    (tuple[k.String, k.Oid], ("a", 2**53 + 1), "part 2 .*out of range"),
    (tuple[str, str], ("a", "\ud800"), "part 2 .*surrogates"),
    (tuple[str, str], ("\ud800", "a"), "part 1 .*surrogates"),
    (tuple[str, str], "ab", "a tuple of 2"),
    (tuple[str, str], ["a", "b"], "a tuple of 2"),
    (tuple[str, str], ("a",), "it has 1"),
    (tuple[str, str], ("a", "b", "c"), "it has 3"),
    (tuple[tuple[str, str], int], ("ab", 1), "a tuple of 2"),
    (tuple[tuple[str, str], int], (["a", "b"], 1), "a tuple of 2"),
    (tuple[UUID, int], (UUID1, True), "part 2 .*True"),
    (tuple[UUID, int], (UUID1, 2**63), "part 2 .*out of range"),
]


@pytest.mark.parametrize(("annotation", "key", "message"), REFUSED, ids=repr)
def test_what_does_not_fit_is_refused_with_a_message(annotation: Any, key: Any, message: str) -> None:
    with pytest.raises(EncodeError, match=message) as caught:
        key_codec(annotation).encode(key)
    assert isinstance(caught.value, ValueError)
    assert "expected" in str(caught.value)


@pytest.mark.parametrize("annotation", [str, k.String, tuple[str, int], tuple[int, str]], ids=repr)
def test_a_lone_surrogate_in_the_file_is_no_text(annotation: Any) -> None:
    codec = key_codec(annotation)
    key = (
        tuple(["abc" if part is str else 1 for part in get_args(annotation)])
        if get_origin(annotation) is tuple
        else "abc"
    )
    assert codec.decode(codec.encode(key)) == key
    with pytest.raises(DecodeError):
        codec.decode(codec.encode(key).replace(b"abc", b"\xed\xa0\x80"))


def test_the_classic_text_refuses_nul_too() -> None:
    codec = key_codec(tuple[k.String, k.Timestamp]).classic()
    with pytest.raises(EncodeError, match="NUL"):
        codec.encode(("a\0", TS))
    with pytest.raises(DecodeError, match="NUL"):
        codec.decode(b"a\0b" + bytes(8))


def test_nul_is_welcome_in_a_last_named_text() -> None:
    codec = key_codec(tuple[k.String, k.String])
    assert codec.decode(codec.encode(("a", "b\0c"))) == ("a", "b\0c")
    assert codec.decode(codec.encode(("", "\0"))) == ("", "\0")


# What is taken besides


def test_numpy_integers_are_ints() -> None:
    for number in (np.int64(5), np.uint8(5), np.int16(5), np.uint64(5)):
        for annotation in (k.Oid, k.Uint8, int):
            codec = key_codec(annotation)
            assert codec.encode(number) == codec.encode(5) == codec.lookup()(number)
        codec = key_codec(tuple[int, k.Oid])
        assert codec.encode((number, number)) == codec.encode((5, 5))
    with pytest.raises(EncodeError):
        key_codec(k.Oid).encode(np.int64(-1))
    assert type(key_codec(int).decode(key_codec(int).encode(np.int64(5)))) is int


def test_bools_of_numpy_1_are_no_numbers() -> None:
    """They are of a class `bool_`, and have ``__index__``."""
    made = type(
        "bool_", (), {"__module__": "numpy", "__index__": lambda self: 1, "__repr__": lambda self: "True",
                      "__add__": lambda self, other: 1 + other, "__float__": lambda self: 1.0},
    )  # fmt: skip
    for annotation in (int, float, k.Oid, k.Uint8, k.Uint128, bool, tuple[int, str]):
        codec = key_codec(annotation)
        key = (made(), "") if annotation == tuple[int, str] else made()
        with pytest.raises(EncodeError, match=r"True \(numpy.bool_\) is not a key of type"):
            codec.encode(key)
        if codec.quick_check is not None:
            assert not eval(codec.quick_check, {"key": key})
    for number in (5, np.int64(5), np.uint8(5)):
        assert eval(key_codec(k.Uint64).quick_check or "", {"key": number})
    for flag in (True, False, np.bool_(True)):
        assert not eval(key_codec(k.Uint64).quick_check or "", {"key": flag})


def test_timestamps_of_every_unit_become_nanoseconds() -> None:
    codec = key_codec(k.Timestamp)
    for unit in ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns"):
        key = np.datetime64("2021-07-01T00:00:00", "s").astype(f"M8[{unit}]")
        assert codec.decode(codec.encode(key)) == key, unit
        assert codec.decode(codec.encode(key)).dtype == np.dtype("M8[ns]")
        assert codec.lookup()(key) == codec.encode(key)
    assert codec.decode(codec.encode(np.datetime64(7000, "ps"))) == np.datetime64(7, "ns")
    assert codec.decode(codec.encode(np.datetime64(3, "25s"))) == np.datetime64(75, "s")
    assert codec.encode(np.datetime64("2262-04", "M")) < codec.encode(np.datetime64(2**63 - 1, "ns"))


def test_minus_zero_is_zero_and_whole_numbers_are_floats() -> None:
    codec = key_codec(float)
    assert codec.encode(-0.0) == codec.encode(0.0) == codec.encode(0)
    assert str(codec.decode(codec.encode(-0.0))) == "0.0"
    assert codec.encode(2**53) == codec.encode(float(2**53))
    assert codec.encode(np.float64(1.5)) == codec.encode(1.5)
    for bits in ("7fffffffffffffff", "fff8000000000000", "0000000000000000"):  # -0.0 and two NaNs
        with pytest.raises(DecodeError, match=r"NaN or -0\.0"):
            codec.decode(bytes.fromhex(bits))


def test_datetimes_of_any_zone_come_back_in_utc() -> None:
    codec = key_codec(dt.datetime)
    moment = dt.datetime(2024, 7, 1, 12, 0, 0, 1, dt.timezone(dt.timedelta(hours=5, minutes=30)))
    back = codec.decode(codec.encode(moment))
    assert back == moment
    assert back.utcoffset() == dt.timedelta(0)
    assert codec.encode(moment) == codec.encode(back)


def test_a_datetime_finer_than_microseconds_is_refused() -> None:
    class Finer(dt.datetime):
        nanosecond = 1

    with pytest.raises(EncodeError, match="finer"):
        key_codec(dt.datetime).encode(Finer.now(UTC))


def test_subclasses_of_the_types_are_taken() -> None:
    class Name(str):
        __slots__ = ()

    class Pair(tuple[str, int]):
        __slots__ = ()

    codec = key_codec(tuple[str, int])
    assert codec.encode(Pair(("a", 1))) == codec.encode((Name("a"), 1)) == codec.encode(("a", 1))


# UUIDs


def test_decoded_uuids_are_whole_uuids() -> None:
    decode = key_codec(UUID).raw_decode
    made = uuid.uuid4()
    for stored in (made.bytes, memoryview(made.bytes)):
        back = decode(stored)
        assert back == made
        assert hash(back) == hash(made)
        assert str(back) == str(made)
        assert back.is_safe is uuid.SafeUUID.unknown
        assert pickle.loads(pickle.dumps(back)) == made
        with pytest.raises(TypeError):
            back.int = 5


def test_new_uuids_ascend_and_are_of_version_7(monkeypatch: pytest.MonkeyPatch) -> None:
    new_key = key_codec(UUID).new_key
    made = [new_key() for _ in range(2000)]
    assert made == sorted(made)
    assert len(set(made)) == len(made)
    assert {(one.version, one.variant) for one in made} == {(7, uuid.RFC_4122)}
    age = dt.datetime.now(UTC).timestamp() * 1000 - (made[0].int >> 80)
    assert -2_000 < age < 60_000
    monkeypatch.setattr("zlmdb.keys.uuids.time.time_ns", lambda: 0)  # a clock set back
    assert made[-1] < new_key() < new_key()


def test_new_uuids_ascend_with_a_clock_beyond_their_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """It raised ValueError, and went on to do so when the clock was right again."""
    new_uuid = _Version7()
    monkeypatch.setattr("zlmdb.keys.uuids.time.time_ns", lambda: 10**21)
    made = [new_uuid(), new_uuid()]
    monkeypatch.undo()
    assert made[0] < made[1] < new_uuid()
    assert made[0].version == 7


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_makes_uuids_of_its_own() -> None:
    program = (
        "import os, uuid; from zlmdb.keys import key_codec\n"
        "new = key_codec(uuid.UUID).new_key; new(); r, w = os.pipe()\n"
        "if os.fork() == 0: os.write(w, new().bytes); os._exit(0)\n"
        "mine = new(); os.wait(); assert os.read(r, 16) != mine.bytes"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_new_numbers_follow_the_last_one() -> None:
    assert key_codec(int).new_key(41) == 42
    assert key_codec(int).new_key(-5) == -4
    assert key_codec(k.Oid).new_key(0) == 1
    assert 0 <= key_codec(k.Oid).new_key() <= 2**53
    with pytest.raises(EncodeError):
        key_codec(k.Uint8).new_key(255)
    with pytest.raises(EncodeError):
        key_codec(int).new_key(2**63 - 1)
    last = np.datetime64(2**62, "ns")
    assert key_codec(k.Timestamp).new_key(last) == last + np.timedelta64(1, "ns")
    late = dt.datetime(2999, 1, 1, tzinfo=UTC)
    assert key_codec(dt.datetime).new_key(late) == late + dt.timedelta(microseconds=1)


# Annotations and names

UserId = NewType("UserId", int)


@pytest.mark.parametrize(
    ("annotation", "name"),
    [
        (int, "int"),
        (k.Oid, "oid"),
        (str, "str"),
        (k.String, "string"),
        (UUID, "uuid"),
        (k.Uuid, "uuid"),
        (UserId, "int"),
        (Annotated[int, "metres"], "int"),
        (Annotated[bytes, k.BytesKey(64)], "bytes64"),
        (Annotated[k.Oid, "of a user"], "oid"),
        (tuple[k.Uuid, k.Timestamp], "tuple(uuid,timestamp)"),
        (typing.Tuple[k.Uuid, tuple[int, str]], "tuple(uuid,tuple(int,str))"),  # noqa: UP006 - the old spelling
        (tuple[UserId], "tuple(int)"),
    ],
)
def test_annotations_say_the_codec(annotation: Any, name: str) -> None:
    assert key_codec(annotation).name == name
    assert from_name(name) == key_codec(annotation)


@pytest.mark.parametrize(
    "annotation",
    [
        *(tuple[int, ...], tuple, typing.Tuple, tuple[()], list, list[int], dict, tuple[int, list[int]]),  # noqa: UP006
        *(Optional[int], Union[int, str], Any, None, object, complex, dt.tzinfo, TypeError),
        *("int", k.UintKey, k.UintKey(8)),
    ],
    ids=repr,
)
def test_other_annotations_raise_a_type_error_that_lists_the_key_types(annotation: Any) -> None:
    with pytest.raises(TypeError, match="is not a key type; there are int, str, bytes"):
        key_codec(annotation)


@pytest.mark.parametrize(
    ("annotation", "advice"),
    [(Optional[str], "without it; an index has no entry"), (tuple[int, ...], "each part, as in"), (tuple, "each part")],
)
def test_annotations_that_are_nearly_a_key_type_are_answered_with_what_to_write(annotation: Any, advice: str) -> None:
    with pytest.raises(TypeError, match=rf"is not a key type; there are int, .*{advice}"):
        key_codec(annotation)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "integer",
        "tuple()",
        "tuple(int",
        "tuple(int,)",
        "bytes0",
        "uuid)",
        "tuple(int))",
        "desc(" * 5000 + "int" + ")" * 5000,
    ],
    ids=lambda name: name[:12],
)
def test_unknown_names_raise_a_value_error(name: str) -> None:
    with pytest.raises(ValueError, match="there is no key type named"):
        from_name(name)


def test_a_user_codec_works_alone_and_as_any_part_of_a_tuple() -> None:
    class Caseless(k.StrKey):
        """Text that sorts without regard to case."""

        name = "caseless"

        def encode(self, key: str) -> bytes:
            return super().encode(key.lower())

        def inline(self) -> k.Inline:
            return k.Inline("", "True", "{codec}.encode({x})", "{codec}.raw_decode({x})")

    codec = key_codec(tuple[Annotated[str, Caseless()], int, Annotated[str, Caseless()]])
    assert codec.name == "tuple(caseless,int,caseless)"
    assert codec.decode(codec.encode(("A\0B", 5, "C"))) == ("a\0b", 5, "c")
    assert codec.encode(("a", 1, "b")) < codec.encode(("B", 0, "A"))


def test_the_aliases_can_be_read_by_get_type_hints() -> None:
    class Tables:
        times: tuple[k.Timestamp, k.Uuid]

    hints = get_type_hints(Tables, include_extras=True)
    assert key_codec(hints["times"]).name == "tuple(timestamp,uuid)"


def test_widths_and_names_of_new_uint_and_bytes_types_are_checked() -> None:
    with pytest.raises(ValueError, match="1, 2, 4 or 8 bytes"):
        k.UintKey(3)
    with pytest.raises(ValueError, match="1 byte or more"):
        k.BytesKey(0)
    with pytest.raises(TypeError, match="one part or more"):
        TupleKey([])


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
def test_numpy_is_imported_only_where_a_timestamp_is_used() -> None:
    program = (
        "import sys; from zlmdb import keys as k; c = k.key_codec(tuple[k.Timestamp, k.Oid]); d = k.key_codec(k.Oid)\n"
        "d.decode(d.encode(5)); assert 'numpy' not in sys.modules; c.encode((None, 5)); assert 'numpy' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_without_numpy_a_timestamp_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numpy", None)
    codec = k.TimestampKey()
    with pytest.raises(ImportError, match=r"pip install zlmdb\[numpy\]"):
        codec.encode(TS)
    with pytest.raises(ImportError, match=r"pip install zlmdb\[numpy\]"):
        codec.decode(bytes(8))


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
def test_the_codecs_work_under_optimisation() -> None:
    program = (
        "from zlmdb import keys as k; from zlmdb.errors import EncodeError, DecodeError\n"
        "for call in (lambda: k.key_codec(k.Oid).encode(2**60), lambda: k.key_codec(k.Bytes32).encode(b'12345'),\n"
        "             lambda: k.key_codec(k.Oid).decode(b'\\xff' * 8)):\n"
        "    try: call()\n"
        "    except (EncodeError, DecodeError): continue\n"
        "    raise SystemExit('accepted')"
    )
    subprocess.run([sys.executable, "-O", "-c", program], check=True, timeout=60)


@pytest.mark.parametrize("annotation", [bytes, k.Bytes16, tuple[bytes, int], tuple[int, bytes], tuple[k.Bytes16, str]])
def test_keys_of_bytes_are_taken_from_bytearray_and_memoryview(annotation: Any) -> None:
    def keyed(data: Any) -> Any:
        types = {bytes: data, k.Bytes16: data}
        return types[annotation] if annotation in types else tuple(
            {int: 5, str: "a"}.get(part, data) for part in annotation.__args__
        )  # fmt: skip

    import zlmdb

    class Local(zlmdb.Schema):
        rows: zlmdb.Table[annotation, int]  # type: ignore[valid-type]

    plain = b"0123456789abcdef"
    with zlmdb.open(None, Local) as db, db.write() as t:
        t.rows[keyed(bytearray(plain))] = 1
        for data in (plain, bytearray(plain), memoryview(plain), memoryview(b"--" + plain)[2:]):
            assert t.rows[keyed(data)] == 1
            assert keyed(data) in t.rows
        assert list(t.rows) == [keyed(plain)]
        assert list(t.rows.select(keyed(memoryview(plain)))) == [(keyed(plain), 1)]
        del t.rows[keyed(memoryview(plain))]
        assert not t.rows


class _Still(DatetimeKey):
    """The keys of a clock that shows one time, as one that a test has stopped."""

    name = "still"

    def new_key(self, last: Optional[dt.datetime] = None) -> dt.datetime:
        now = dt.datetime(2030, 1, 1, tzinfo=dt.timezone.utc)
        return now if last is None else max(now, last + dt.timedelta(microseconds=1))


def test_two_records_that_are_added_at_one_time_have_two_keys() -> None:
    """The second one was a duplicate."""
    table: Any = zlmdb.Table[Annotated[dt.datetime, _Still()], int]  # type: ignore[type-arg,valid-type,unused-ignore]
    schema: Any = type("Store", (zlmdb.Schema,), {"__annotations__": {"log": table}})
    with zlmdb.open(None, schema) as db, db.write() as t:
        first = t.log.add(0)
        t.log[first + dt.timedelta(microseconds=2)] = 9
        assert [t.log.add(number) - first for number in (1, 2)] == [dt.timedelta(microseconds=n) for n in (1, 3)]
        assert list(t.log.values()) == [0, 1, 9, 2]

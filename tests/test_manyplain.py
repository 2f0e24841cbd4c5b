"""Documents that are checked and encoded together: the same bytes and refusals as one by one."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from typing import Any, Optional
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

import zlmdb
from zlmdb.errors import EncodeError
from zlmdb.values import Msgpack, Unchecked, manyplain, serializer
from zlmdb.values.depth import DEPTH
from zlmdb.values.manyplain import LONGEST, all_plain, encoder_of_lists, keys_are_left_out
from zlmdb.values.scalars import PlainData

pytestmark = pytest.mark.twice  # encodings do not depend on the version of Python

together = pytest.mark.skipif(
    not keys_are_left_out(),
    reason="PyPy's collector lists keys as well: documents are checked one by one there",
)
PLAIN = PlainData("msgpack")


class Text(str):
    """Comes back as a str."""

    __slots__ = ()


class Number(int):
    """Comes back as an int."""


class Document(dict[str, Any]):
    """Comes back as a dict."""


class Items(list[Any]):
    """Comes back as a list."""


class Odd(type):
    """The class of a class that is equal to others."""

    def __eq__(cls, other: object) -> bool:
        return True

    def __hash__(cls) -> int:
        return 7


class Equal(metaclass=Odd):
    """An object of a class that is equal to each class."""


KEYS = st.sampled_from(["a", "b", Text("a"), Text("c"), 1, True, 1.5, None, b"a", (1,), Number(3), UUID(int=1)])
SCALARS = st.sampled_from(
    [0, 1, True, None, 1.5, float("nan"), 2**64, b"b", "", "a", "\ud800", Text("a"), Number(1), bytearray(b"a"), (),
     (1,), {1}, frozenset({1}), UUID(int=1), datetime(2020, 1, 1), datetime(2020, 1, 1, tzinfo=timezone.utc), Equal(),
     Document(a=1), Items([1]), OrderedDict(a=1), 1j, object()]
)  # fmt: skip
ORDINARY = st.sampled_from([0, 1, True, None, 1.5, b"b", "", "a"])


def nested(scalars: Any, keys: Any) -> Any:
    return st.recursive(
        scalars, lambda inside: st.one_of(st.lists(inside, max_size=3), st.dictionaries(keys, inside, max_size=3)),
        max_leaves=8,
    )  # fmt: skip


PARTS = st.one_of(nested(ORDINARY, st.sampled_from(["a", "b", "c"])), nested(SCALARS, KEYS))
DOCUMENTS = st.one_of(PARTS, st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), PARTS, max_size=4))
ALIKE = st.lists(st.fixed_dictionaries({"a": ORDINARY, "b": st.lists(ORDINARY), "c": DOCUMENTS}), max_size=6)
LISTS = st.one_of(st.lists(DOCUMENTS, max_size=6), ALIKE)


def outcome(encode: Callable[[Any], Any], value: Any) -> Any:
    """What *encode* gives, or which exception it raises with which text."""
    try:
        return encode(value)
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("annotation", [dict, dict[str, Any], list[Any]], ids=str)
@given(values=LISTS)
def test_values_together_have_the_bytes_and_refusals_of_values_one_by_one(annotation: Any, values: list[Any]) -> None:
    codec = serializer(annotation)
    encode_list = codec._encoder_of_lists() or (lambda values: [*map(codec.raw_encode, values)])
    assert outcome(encode_list, values) == outcome(lambda values: [codec.raw_encode(value) for value in values], values)


@together
@given(values=st.lists(st.one_of(st.lists(PARTS), st.dictionaries(KEYS, PARTS, max_size=4)), max_size=6))
def test_what_is_plain_together_is_plain_one_by_one(values: list[Any]) -> None:
    """By the general form; and what is plain, with text as keys, and in few lists, is found to be so."""
    values = [value for value in values if type(value) in (list, dict)]
    plain = all([PLAIN.fits(value) and by_text(value) for value in values])
    assert all_plain(values, PLAIN.scalars) == plain


def by_text(value: Any) -> bool:
    """Whether all keys in *value* are text, and there are no datetimes, which only the general form takes."""
    if type(value) is dict:
        return all([type(key) is str and by_text(item) for key, item in value.items()])
    return all(map(by_text, value)) if type(value) is list else type(value) is not datetime


@together
@pytest.mark.parametrize("key", [Text("b"), 1, True, 1.5, None, b"b", (1,), Number(3), UUID(int=1)], ids=repr)
@pytest.mark.parametrize("first", [{}, {"a": 0}, {"a": 0, "c": 0}], ids=repr)
def test_a_key_that_is_no_text_is_seen_wherever_it_is(key: Any, first: dict[Any, Any]) -> None:
    """Values that might be taken for it stand around it: each type is that of a value of the other documents, too."""
    for document in ({**first, key: 0}, {key: key, **first}, {key: first}, {"x": {key: 0}}, {"x": [{key: key}]}):
        assert not all_plain([document], PLAIN.scalars | {type(key)})
        assert not all_plain([{"a": 0}, document, {"a": 0}], PLAIN.scalars | {type(key)})
    was = {key: 0, "a": 1}
    del was[key]  # such a dict has had it, and is looked at by itself
    assert serializer(dict)._encoder_of_lists()([was]) == [serializer(dict).raw_encode({"a": 1})]  # type: ignore[misc]


@together
def test_documents_of_one_kind_that_only_seem_so() -> None:
    """Their values have the types of the first document's at the same places, counted through all of them."""
    shifted = [{"a": "", "b": []}, {"a": ""}, {"a": [1], "b": "", "c": [(1,)]}]
    assert not all_plain(shifted, PLAIN.scalars)
    shifted[2]["c"] = [{"a": 1}]
    assert all_plain(shifted, PLAIN.scalars)
    assert not all_plain([{"a": []}, {"a": ()}], PLAIN.scalars)
    assert not all_plain([{"a": 1}, {"a": Number(1)}], PLAIN.scalars)
    assert not all_plain([{"a": [], "b": {}}, {"a": [], "b": {1: 1}}], PLAIN.scalars)


def levels(count: int, inner: Any) -> Any:
    value = inner
    for number in range(count):
        value = {"a": value} if number % 2 else [value]
    return value


@together
@pytest.mark.parametrize("inner", [[], {}, 1], ids=repr)
def test_the_depth_is_that_of_the_general_form(inner: Any) -> None:
    for count in range(DEPTH - 2, DEPTH + 2):
        value = levels(count, inner)
        assert all_plain([value], PLAIN.scalars) == PLAIN.fits(value), count


@together
def test_values_that_hold_themselves_are_refused_at_once() -> None:
    """Also one that holds itself so often that nobody can count what is inside."""
    ring, many = list[Any](), list[Any]()
    ring.append(ring)
    many.extend([many] * 1000)
    assert not all_plain([{"a": ring}], PLAIN.scalars)
    assert not all_plain([{"a": many}], PLAIN.scalars)
    with zlmdb.open(None, Tables) as db, db.write() as t:
        with pytest.raises(EncodeError):
            t.documents.put_many([("a", {"a": 1}), ("b", {"a": ring})])
        assert dict(t.documents) == {"a": {"a": 1}}


class Tables(zlmdb.Schema):
    documents: zlmdb.Table[str, dict[str, Any]]


class Indexed(zlmdb.Table[str, dict[str, Any]]):
    by_a = zlmdb.Index[int](lambda document: document["a"], version=1)


class IndexedTables(zlmdb.Schema):
    documents: Indexed


class Calls:
    """Counts how often each encoder is called."""

    def __init__(self) -> None:
        self.fast = self.slow = 0

    def encode(self, value: Any) -> bytes:
        self.fast += 1
        return b""

    def checked(self, value: Any) -> bytes:
        self.slow += 1
        return b""

    def encoder(self) -> Callable[[Sequence[Any]], list[bytes]]:
        return encoder_of_lists(dict, PLAIN.scalars, self.encode, self.checked)


@together
def test_plain_documents_are_encoded_without_the_check_of_each() -> None:
    calls = Calls()
    encode_list = calls.encoder()
    for documents in ([{"a": n, "b": [n], "c": {"d": "x"}} for n in range(9)], [{"a": 1}, {"b": [{}]}, {}], []):
        assert encode_list(documents) == [b""] * len(documents)
    assert (calls.fast, calls.slow) == (12, 0)


@together
def test_documents_that_do_not_pass_are_looked_at_together_less_and_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """And again as often as before once some have passed."""
    looks = 0

    def looked(values: Sequence[Any], scalars: frozenset[type]) -> bool:
        nonlocal looks
        looks += 1
        return all_plain(values, scalars)

    monkeypatch.setattr(manyplain, "all_plain", looked)
    calls = Calls()
    encode_list = calls.encoder()
    for _ in range(10 * LONGEST):
        encode_list([{1: 1}])
    assert looks < 20
    assert (calls.fast, calls.slow) == (0, 10 * LONGEST)
    for _ in range(3 * LONGEST):
        encode_list([{"a": 1}])
    assert calls.fast >= LONGEST
    before = looks
    for _ in range(4):
        encode_list([{1: 1}])
    assert looks == before + 2


def mutable(value: Any) -> Optional[Callable[[Sequence[Any]], list[bytes]]]:
    return serializer(value)._encoder_of_lists()


def test_other_types_are_encoded_one_by_one() -> None:
    for annotation in (Unchecked[Msgpack[dict]], dict[int, Any], dict[str, int], int, list[int], Any, str):
        assert mutable(annotation) is None, annotation


@pytest.mark.parametrize("schema", [Tables, IndexedTables])
def test_a_list_stores_what_single_writes_store(schema: Any) -> None:
    """Also when a document is changed between two lists, and where pairs are no tuples."""
    document: dict[str, Any] = {"a": 1, "b": ["x"], "c": {"d": None}}
    with zlmdb.open(None, schema) as db, db.write() as t:
        assert t.documents.put_many([(f"{n:03}", {**document, "a": n}) for n in range(300)]) == 300
        document["b"].append(b"y")
        document["d"] = datetime(2020, 1, 1, tzinfo=timezone.utc)
        assert t.documents.put_many([["x", document], ("y", {})] if schema is Tables else [["x", document]]) > 0
        assert t.documents["x"] == document
        assert t.documents["007"] == {"a": 7, "b": ["x"], "c": {"d": None}}
        document["b"].append((1,))
        with pytest.raises(EncodeError, match="'b'.*2"):
            t.documents.put_many([("z1", {"a": 1}), ("z2", document), ("z3", {"a": 1})])
        assert "z1" in t.documents
        assert "z2" not in t.documents
        assert "z3" not in t.documents


@pytest.mark.parametrize("pairs", [[("a", {}), ("b",)], [("a", {}), ("b", {}, 1)], [("a", {}), 1]], ids=str)
def test_what_is_no_pair_is_refused_behind_the_pairs_before_it(pairs: list[Any]) -> None:
    with zlmdb.open(None, Tables) as db, db.write() as t:
        with pytest.raises((TypeError, ValueError)):
            t.documents.put_many(pairs)
        assert dict(t.documents) == {"a": {}}


def test_pairs_that_can_be_read_once_only_are_stored() -> None:
    with zlmdb.open(None, Tables) as db, db.write() as t:
        assert t.documents.put_many([iter(("a", {"x": 1})), iter(("b", {"x": 2}))]) == 2  # type: ignore[list-item]
        assert dict(t.documents) == {"a": {"x": 1}, "b": {"x": 2}}

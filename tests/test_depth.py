"""Nesting: refused at one depth in every format, when it is written, and no RecursionError anywhere."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Optional

import pytest
from click.testing import CliRunner

import zlmdb
from zlmdb.cli import main
from zlmdb.errors import DecodeError, EncodeError
from zlmdb.values import Cbor, FlatBuffers, Json, Msgpack, Pickle, Unchecked, serializer
from zlmdb.values.depth import DEPTH, SHORT_PICKLE

cbor2 = pytest.importorskip("cbor2")


@dataclass
class Chain:
    number: int
    next: Optional[Chain] = None


@dataclass
class Tree:
    number: int
    children: list[Tree] = field(default_factory=list)


@dataclass
class Free:
    content: Any


class Step(NamedTuple):
    number: int
    rest: Any


def chain(levels: int) -> Chain:
    found = Chain(0)
    for number in range(1, levels):
        found = Chain(number, found)
    return found


def tree(levels: int) -> Tree:
    """A record and a list are a level each: *levels* is even."""
    found = Tree(0)
    for number in range(1, levels // 2):
        found = Tree(number, [Tree(7), found])
    return found


def lists(levels: int) -> Any:
    found: Any = []
    for _ in range(1, levels):
        found = [1, found, "[" * 200]
    return found


def dicts(levels: int) -> Any:
    found: Any = {}
    for _ in range(1, levels):
        found = {"a": found, "b]" * 30: "}]"}
    return found


def free(levels: int) -> Free:
    return Free(lists(levels - 1))


def tuples(levels: int) -> Any:
    found: Any = ({},)
    for number in range(2, levels):
        found = Step(number, found)
    return found


FORMATS: list[Any] = [Msgpack, Json, Cbor, Pickle]
CASES: list[Any] = [
    *((one[Chain], chain) for one in FORMATS), *((one[Tree], tree) for one in FORMATS),
    *((one[Free], free) for one in FORMATS), *((one[Any], lists) for one in FORMATS),
    *((one[list[Any]], lists) for one in FORMATS), *((one[dict[str, Any]], dicts) for one in FORMATS),
    (FlatBuffers[Chain], chain), (FlatBuffers[Tree], tree), (Pickle[Any], chain), (Pickle[Any], tuples),
    (zlmdb.Zlib[Json[Any]], lists), (zlmdb.Checked[Cbor[Any]], dicts), (Json, lists), (Cbor, dicts), (Pickle, chain),
]  # fmt: skip
each_case = pytest.mark.parametrize(
    ("annotation", "make"), CASES, ids=lambda one: getattr(one, "__name__", str(one))[-40:]
)


@each_case
def test_every_format_ends_at_the_same_depth(annotation: Any, make: Any) -> None:
    codec = serializer(annotation)
    value = make(DEPTH)
    assert codec.decode(codec.encode(value)) == value
    for levels in (DEPTH + 2 - (make is not tree), 1000, 20_000):
        with pytest.raises(EncodeError):
            codec.encode(make(levels))


@each_case
def test_the_refusal_says_the_depth(annotation: Any, make: Any) -> None:
    with pytest.raises(EncodeError, match="levels"):
        serializer(annotation).encode(make(DEPTH + 2))


class Chains(zlmdb.Schema):
    chains: zlmdb.Table[str, Chain]


def test_a_record_of_any_depth_in_a_wrong_place_is_named_in_the_error_and_the_transaction_goes_on() -> None:
    """The error shows the record, and its own `repr` raised RecursionError where it was 400 levels deep."""
    deep: Any = chain(700)
    with zlmdb.open(None, Chains) as db, db.write() as t:
        chains: Any = t.chains
        with pytest.raises(EncodeError, match="levels|deeply"):
            chains["a"] = deep
        for use in (chains.get, chains.pop, chains.__contains__, chains.select):
            with pytest.raises(EncodeError, match=r"^table 'chains'.*: .*Chain.* is not a key of type str"):
                use(deep)
        with pytest.raises(TypeError, match="expected a function of a record, got "):
            chains.where(deep)
        chains["a"] = chain(3)
        assert len(chains) == 1


@pytest.mark.parametrize("annotation", [one[Any] for one in FORMATS], ids=["msgpack", "json", "cbor", "pickle"])
def test_wide_values_are_as_wide_as_they_like(annotation: Any) -> None:
    codec = serializer(annotation)
    value = [{"a": [n, [n]], "b": {"c": [[]]}} for n in range(500)]
    assert codec.decode(codec.encode(value)) == value
    shared = [1]
    twice = [shared] * 500
    assert codec.decode(codec.encode(twice)) == twice


DEEP: dict[Any, list[bytes]] = {
    Msgpack: [b"\x91" * 100_000 + b"\xc0", b"\x81\xa1a" * 100_000 + b"\xc0"],
    Json: [b"[" * 100_000 + b"]" * 100_000, b'{"a":' * 100_000],
    Cbor: [
        b"\x81" * 100_000 + b"\xf6",
        b"\xa1\x61a" * 100_000 + b"\xf6",
        b"\xc6" * 100_000 + b"\xf6",
        b"\x9f" * 100_000,
    ],
}


@pytest.mark.parametrize("form", DEEP, ids=["msgpack", "json", "cbor"])
@pytest.mark.parametrize("inner", [Any, Chain, Tree, Free, list[Any], dict[str, Any]], ids=str)
def test_deeper_data_of_others_is_a_decode_error(form: Any, inner: Any) -> None:
    for codec in (serializer(form[inner]), serializer(Unchecked[form[inner]])):
        for data in DEEP[form]:
            with pytest.raises(DecodeError):
                codec.decode(data)


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
def test_the_command_line_handles_the_deepest_value(tmp_path: Path) -> None:
    class Store(zlmdb.Schema):
        docs: zlmdb.Table[int, Json[Any]]
        packed: zlmdb.Table[int, Any]
        boxed: zlmdb.Table[int, Cbor[Any]]

    with zlmdb.open(tmp_path / "db", Store) as db, db.write() as t:
        for table in (t.docs, t.packed, t.boxed):
            table[1] = lists(DEPTH)

    def run(*arguments: Any) -> Any:
        return CliRunner().invoke(main, [str(one) for one in arguments])

    for name in ("docs", "packed", "boxed"):
        result = run("get", tmp_path / "db", name, 1)
        assert result.exit_code == 0, result.output
        assert json.loads(result.output) == lists(DEPTH)
        assert run("select", tmp_path / "db", name).exit_code == 0
        assert run("put", tmp_path / "db", name, 2, json.dumps(lists(DEPTH))).exit_code == 0
        for text in (json.dumps(lists(DEPTH + 1)), "[" * 100_000, "[" * 5000 + "]" * 5000):
            result = run("put", tmp_path / "db", name, 3, text)
            assert result.exit_code in (1, 2)
            assert "Error" in result.output
            assert isinstance(result.exception, SystemExit)


def test_a_file_with_deeper_values_is_an_error_on_the_command_line(tmp_path: Path) -> None:
    class Store(zlmdb.Schema):
        docs: zlmdb.Table[int, Unchecked[Msgpack[Any]]]

    with zlmdb.open(tmp_path / "db", Store) as db, db.write() as t:
        t.docs[1] = lists(400)  # more than JSON texts may have, and less than msgpack's own limit on PyPy
    result = CliRunner().invoke(main, ["get", str(tmp_path / "db"), "docs", "1"])
    assert isinstance(result.exception, SystemExit) or result.exit_code == 0


# -- CBOR of others -------------------------------------------------------------------------------------------------


@dataclass
class Note:
    text: str
    content: Any = None


@pytest.mark.parametrize("annotation", [Cbor, Cbor[Any], Cbor[dict[str, Any]], Cbor[Note]], ids=str)
def test_cbor_refuses_bytes_after_the_end(annotation: Any) -> None:
    codec = serializer(annotation)
    good = cbor2.dumps({"text": "a", "content": None})
    codec.decode(good)
    for extra in (b"\0", good, b"\xff", bytes(5000)):
        with pytest.raises(DecodeError):
            codec.decode(good + extra)


@pytest.mark.parametrize("annotation", [Cbor, Cbor[Any], Cbor[dict[str, Any]], Cbor[Note]], ids=str)
@pytest.mark.parametrize(
    "inner",
    [b"\xd8\x23\x63a+b", b"\xd9\0\x23\x63a+b", b"\xda\0\0\0\x23\x63a+b", b"\xdb" + bytes(7) + b"\x23\x63a+b",
     b"\xd8\x24\x66A: b\n\n", b"\xd8\x1c\x81\xd8\x1d\0", b"\x9f\x41a\xd8\x23\x63a+b\xff", b"\xc1\xd8\x23\x63a+b"],
    ids=bytes.hex,
)  # fmt: skip
def test_cbor_makes_no_objects_that_nobody_declared(annotation: Any, inner: bytes) -> None:
    codec = serializer(annotation)
    with pytest.raises(DecodeError):
        codec.decode(b"\xa2\x64text\x61a\x67content" + inner)


def test_what_only_looks_like_such_a_tag_is_read() -> None:
    codec = serializer(Cbor)
    for value in ({"a": b"\xd8\x23\xd8\x1c", "b": 0xD823}, [b"\xd9\0\x23"] * 3, 0xD8230000, {"c": [0xD81C] * 40}):
        assert codec.decode(codec.encode(value)) == value
    chunks = b"\x5f\x42\xd8\x23\x41a\xff"
    assert codec.decode(chunks) == b"\xd8\x23a"


def test_what_would_be_such_a_tag_is_not_written() -> None:
    import re

    with pytest.raises(EncodeError, match="regular expression"):
        serializer(Cbor).encode({"a": re.compile("a+b")})


def nested(outer: Callable[[Any], Any], inner: Any = ()) -> Any:
    """*inner* in as many levels as are too deep by one."""
    for _ in range(DEPTH):
        inner = outer(inner)
    return inner


@pytest.mark.parametrize(
    "outer",
    [lambda one: (one,), lambda one: [one], lambda one: {None: one}, lambda one: {"": one}, lambda one: (one, None)],
)
@pytest.mark.parametrize("inner", [(), [], {}])
def test_no_pickle_is_so_short_that_its_depth_is_not_looked_at(outer: Callable[[Any], Any], inner: Any) -> None:
    value = nested(outer, inner)
    assert len(pickle.dumps(value, 5)) > SHORT_PICKLE + 8
    for annotation in (Any, type(value)):
        with pytest.raises(EncodeError, match="nested deeper"):
            serializer(Pickle[annotation]).encode(value)

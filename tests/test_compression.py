"""Compression around any serializer: whole streams as zlmdb <= 26 writes them, and records that say it themselves."""

from __future__ import annotations

import contextlib
import random
import sys
import threading
import zlib
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import zlmdb
from zlmdb import values
from zlmdb.errors import DecodeError, EncodeError
from zlmdb.values import Compression, DecompressionLimit, Unchecked, from_name, serializer

pytestmark = pytest.mark.twice  # what is in a file does not depend on the version of Python

LONG = "all work and no play makes Jack a dull boy. " * 50


def available(method: Any) -> bool:
    try:
        serializer(Annotated[str, Compression(method)])
    except ImportError:
        return False
    return True


METHODS = ["zlib", "snappy", "zstd"]
each_method = pytest.mark.parametrize(
    "method",
    [
        pytest.param(
            one,
            marks=pytest.mark.skipif(not available(one), reason=f"{one} needs a library that has no wheel for PyPy"),
        )
        for one in METHODS
    ],
)


def test_on_cpython_every_method_is_tested() -> None:
    if sys.implementation.name == "cpython":
        assert [method for method in METHODS if not available(method)] == []


@dataclass
class Note:
    title: str
    text: str = ""


# Whole streams


def test_zlib_is_the_default_level() -> None:
    assert serializer(values.Zlib[str]).encode("hello") == zlib.compress(b"hello")
    assert serializer(values.Zlib[str]).encode("hello")[:2].hex() == "789c"


def test_snappy_is_raw_blocks() -> None:
    pytest.importorskip("cramjam")
    assert serializer(values.Snappy[str]).encode("hello").hex() == "051068656c6c6f"
    assert serializer(values.Snappy[str]).decode(serializer(values.Snappy[str]).encode(LONG)) == LONG


def test_zstd_is_one_frame() -> None:
    if not available("zstd"):
        pytest.skip("zstd needs a library that has no wheel for PyPy")
    codec = serializer(values.Zstd[str])
    assert codec.encode(LONG)[:4].hex() == "28b52ffd"
    assert len(codec.encode(LONG)) < 100
    assert codec.decode(bytes.fromhex("28b52ffd200529000068656c6c6f")) == "hello"
    whole = codec.encode(LONG)
    for damaged in (whole[:-1], whole + b"x", whole + whole, b"", whole[:4] + b"\xe0" + b"\xff" * 8):
        with pytest.raises(DecodeError):
            codec.decode(damaged)


def test_the_classic_constants_wrap() -> None:
    text = serializer(str)
    assert values.compressed(text, None) is values.compressed(text, 0) is text
    assert values.compressed(text, 1).name == "zlib(string)"
    with pytest.raises(ValueError, match="compress=3"):
        values.compressed(text, 3)
    if not available("snappy"):
        pytest.skip("snappy needs a library that has no wheel for PyPy")
    assert values.compressed(text, 2).name == "snappy(string)"


def test_names_nest() -> None:
    assert serializer(values.Zlib[values.Compressed[values.Cbor]]).name == "zlib(compressed(cbor))"
    assert from_name("zlib(compressed(cbor))").name == "zlib(compressed(cbor))"


@pytest.mark.parametrize(("annotation", "install"), [(values.Snappy[str], "python-snappy"), (values.Zstd[str], "zsta")])
def test_a_missing_library_says_what_to_install(annotation: Any, install: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("cramjam", "snappy", "zstandard", "compression.zstd"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=f"pip install {install}"):
        serializer(annotation)


# Records that say how they are compressed


@each_method
def test_what_is_worth_it_is_compressed(method: Any) -> None:
    codec = serializer(Annotated[values.Json[Note], Compression(method)])
    small, large = Note("a"), Note("b", LONG)
    assert codec.encode(small) == b"\0" + serializer(values.Json[Note]).encode(small)
    assert len(codec.encode(large)) < 300
    for value in (small, large):
        data = codec.encode(value)
        assert codec.decode(data) == codec.decode(memoryview(data)) == value


def test_the_threshold_is_the_first_size_that_is_compressed() -> None:
    codec = serializer(Annotated[str, Compression(threshold=100)])
    assert codec.encode("x" * 99) == b"\0" + b"x" * 99
    assert codec.encode("x" * 100) == b"\1" + zlib.compress(b"x" * 100)
    always = serializer(Annotated[str, Compression(threshold=0)])
    assert always.encode("x" * 20)[:1] == b"\1"


def test_what_does_not_shrink_is_stored_as_it_is() -> None:
    codec = serializer(Annotated[bytes, Compression(threshold=0)])
    noise = zlib.compress(bytes(range(256)))
    for data in (b"", b"\1", b"\0abc", noise):
        assert codec.encode(data) == b"\0" + data
        assert codec.decode(codec.encode(data)) == data


def test_every_serializer_reads_the_records_of_every_method() -> None:
    methods = [method for method in METHODS if available(method)]
    codecs = [serializer(Annotated[str, Compression(one, threshold=10)]) for one in methods]  # type: ignore[arg-type]
    assert {codec.encode(LONG)[0] for codec in codecs} == {1 + METHODS.index(method) for method in methods}
    for writer in codecs:
        for reader in [*codecs, from_name("compressed(string)")]:
            assert reader.decode(writer.encode(LONG)) == LONG
            assert reader.decode(writer.encode("short")) == "short"


def test_a_table_may_change_its_method_and_threshold(tmp_path: Any) -> None:
    class Before(zlmdb.Schema):
        notes: zlmdb.Table[int, zlmdb.Compressed[zlmdb.Cbor[Note]]]

    with zlmdb.open(tmp_path, Before) as db, db.write() as t:
        t.notes[1], t.notes[2] = Note("a"), Note("b", LONG)

    class After(zlmdb.Schema):
        notes: zlmdb.Table[int, Annotated[zlmdb.Cbor[Note], Compression(threshold=4000, level=9)]]

    with zlmdb.open(tmp_path, After) as db:
        with db.write() as t:
            t.notes[3] = Note("c", LONG)
        with db.read() as t:
            assert list(t.notes.values()) == [Note("a"), Note("b", LONG), Note("c", LONG)]

    class Plain(zlmdb.Schema):
        notes: zlmdb.Table[int, zlmdb.Cbor[Note]]

    with pytest.raises(zlmdb.SchemaMismatch, match=r"compressed\(cbor\)"):
        zlmdb.open(tmp_path, Plain)


@each_method
@given(value=st.text(max_size=300))
def test_any_text_comes_back(method: Any, value: str) -> None:
    codec = serializer(Annotated[str, Compression(method, threshold=5)])
    assert codec.decode(codec.encode(value)) == value
    assert codec.decode(codec.encode(value * 20)) == value * 20


@each_method
@given(damage=st.binary(min_size=1, max_size=4), place=st.integers(0, 60))
def test_damaged_records_give_a_value_or_a_decode_error(method: Any, damage: bytes, place: int) -> None:
    codec = serializer(Annotated[values.Json[Note], Compression(method)])
    data = codec.encode(Note("a", LONG))
    for damaged in (data[:place], data[:place] + damage + data[place + len(damage) :], damage):
        with contextlib.suppress(DecodeError):
            assert isinstance(codec.decode(damaged), Note)


@each_method
def test_a_record_that_is_cut_off_or_goes_on_is_refused(method: Any) -> None:
    wrapper: Any = {"zlib": values.Zlib, "snappy": values.Snappy, "zstd": values.Zstd}[method]
    for annotation in (Annotated[values.Json[list[int]], Compression(method)], wrapper[values.Json[list[int]]]):
        codec: Any = serializer(annotation)
        data = codec.encode(list(range(100)))
        assert codec.decode(data) == codec.decode(memoryview(data)) == list(range(100))
        for wrong in (data + b"x", data + bytes(8), data + data, data[:-1], data[:-4], data[:3], data[:1]):
            with pytest.raises(DecodeError):
                codec.decode(wrong)


@each_method
def test_threads_may_share_a_serializer(method: Any) -> None:
    codec = serializer(Annotated[str, Compression(method, threshold=0)])
    failures: list[str] = []

    def work(number: int) -> None:
        for turn in range(50):
            text = f"{number} {turn} " * 200
            if codec.decode(codec.encode(text)) != text:
                failures.append(text)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_levels_are_those_of_the_method() -> None:
    best, least = (serializer(Annotated[str, Compression(level=level)]) for level in (9, 0))
    text = "".join(chr(97 + (number * number) % 26) for number in range(2000))
    assert len(best.encode(text)) < len(least.encode(text))
    if available("zstd"):
        assert serializer(Annotated[str, Compression("zstd", level=19)]).decode(best.encode(text)) == text


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"method": "gzip"}, "method='gzip': expected one of 'zlib'"),
        ({"threshold": -1}, "threshold=-1"),
        ({"method": "snappy", "level": 3}, "snappy has no levels"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Compression(**options)


def test_what_is_inside_is_configured_and_unchecked() -> None:
    codec = serializer(values.Compressed[values.Json]).configured(marshal=vars, unmarshal=lambda plain: Note(**plain))
    assert codec.decode(codec.encode(Note("a", LONG))) == Note("a", LONG)
    wrong: Any = Note(title=5)  # type: ignore[arg-type]
    with pytest.raises(EncodeError, match="title"):
        serializer(values.Compressed[values.Json[Note]]).encode(wrong)
    unchecked = serializer(values.Unchecked[values.Compressed[values.Json[Note]]])
    assert unchecked.name == "compressed(json)"
    assert unchecked.encode(wrong)


def test_a_class_in_quotes_is_resolved(tmp_path: Any) -> None:
    class Store(zlmdb.Schema):
        notes: zlmdb.Table[int, zlmdb.Compressed[Note]]

    with zlmdb.open(tmp_path, Store) as db, db.write() as t:
        t.notes[1] = Note("a", LONG)
        assert t.notes[1] == Note("a", LONG)
        assert t.notes._storage.value.name == "compressed(msgpack)"


def test_a_timestamp_needs_no_numpy_in_the_module_that_names_it(tmp_path: Any) -> None:
    pytest.importorskip("numpy")

    class Store(zlmdb.Schema):
        times: zlmdb.Table[int, zlmdb.Compressed[values.Timestamp]]
        plain: zlmdb.Table[zlmdb.keys.Timestamp, values.Timestamp]  # type: ignore[type-var]

    with zlmdb.open(tmp_path, Store) as db:
        assert db.tables()["times"].value == "compressed(timestamp)"
        assert db.tables()["plain"].value == "timestamp"


# A limit of what comes out


@each_method
def test_a_small_value_cannot_become_more_than_the_limit(method: Any) -> None:
    tracemalloc = pytest.importorskip("tracemalloc", reason="PyPy does not count memory")
    roomy = serializer(Annotated[Annotated[bytes, Compression(method)], DecompressionLimit(1 << 30)])
    bomb = roomy.encode(bytes(64 << 20))
    assert len(bomb) < 4 << 20
    small = serializer(Annotated[bytes, Compression(method, limit=1 << 20)])
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError, match="more than 1048576 bytes"):
            small.decode(bomb)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


@each_method
def test_a_value_above_the_limit_is_refused_when_it_is_written(method: Any) -> None:
    wrapper = {"zlib": values.Zlib, "snappy": values.Snappy, "zstd": values.Zstd}[method]
    for annotation in (wrapper[bytes], Annotated[bytes, Compression(method)]):
        codec = serializer(Annotated[annotation, DecompressionLimit(1000)])
        assert codec.decode(codec.encode(bytes(1000))) == bytes(1000)
        with pytest.raises(EncodeError, match="more than 1000 bytes"):
            codec.encode(bytes(1001))
        with pytest.raises(DecodeError, match="more than 1000 bytes"):
            codec.decode(serializer(annotation).encode(bytes(1001)))
        assert serializer(Unchecked[Annotated[annotation, DecompressionLimit(1000)]]).name == codec.name


@each_method
def test_large_values_come_back_below_the_default_limit(method: Any) -> None:
    codec = serializer(Annotated[bytes, Compression(method)])
    value = random.Random(1).randbytes(3 << 20) + bytes(5 << 20)
    data = codec.encode(value)
    assert codec.decode(data) == value
    for damaged in (data[:-1], data + b"x", data + bytes(1 << 17)):
        with pytest.raises(DecodeError):
            codec.decode(damaged)


def test_a_limit_around_what_is_not_compressed_is_refused() -> None:
    with pytest.raises(TypeError, match="not compressed"):
        serializer(Annotated[str, DecompressionLimit(5)])

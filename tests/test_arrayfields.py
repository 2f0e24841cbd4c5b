"""Numpy arrays as fields of models, in every binary format."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Optional

import pytest

import zlmdb
from zlmdb import values
from zlmdb.values import serializer

pytestmark = pytest.mark.twice  # encodings do not depend on the version of Python

numpy = pytest.importorskip("numpy")
FORMATS = {"msgpack": values.Msgpack, "cbor": values.Cbor, "pickle": values.Pickle, "flatbuffers": values.FlatBuffers}


@dataclass
class Part:
    weights: zlmdb.Array[numpy.float32]
    n: int = 0


@dataclass
class Sample:
    name: str
    pixels: Annotated[Any, zlmdb.ArraySerializer(numpy.uint8, shape=(2, None))]
    parts: list[Part] = field(default_factory=list)
    extra: Optional[zlmdb.Array[numpy.int64]] = None


def sample(**changes: Any) -> Sample:
    pixels = numpy.arange(6, dtype="u1").reshape(2, 3)
    return Sample(**{"name": "a", "pixels": pixels, "parts": [Part(numpy.ones(3, "f4"), 7)], **changes})


@pytest.fixture(params=list(FORMATS))
def codec(request: pytest.FixtureRequest) -> Any:
    form: Any = FORMATS[request.param]
    return serializer(form[Sample])


def test_an_array_in_a_model_comes_back_and_can_be_changed(codec: Any) -> None:
    found = codec.decode(memoryview(codec.encode(sample(extra=numpy.arange(4)))))
    assert (found.name, found.parts[0].n, type(found.parts[0])) == ("a", 7, Part)
    for array, other in ((found.pixels, sample().pixels), (found.parts[0].weights, numpy.ones(3, "f4"))):
        assert array.dtype == other.dtype
        numpy.testing.assert_array_equal(array, other)
        array += 1
    assert found.extra.tolist() == [0, 1, 2, 3]
    assert codec.decode(codec.encode(sample())).extra is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"pixels": numpy.zeros((2, 3), "u2")},
        {"pixels": numpy.zeros((3, 2), "u1")},
        {"pixels": [[1]]},
        {"parts": [Part([1.0])]},  # type: ignore[arg-type]
        {"parts": [Part(numpy.ones(3))]},
        {"extra": numpy.ma.zeros(3, "i8")},
    ],
)
def test_an_array_of_another_kind_is_refused(codec: Any, wrong: Any) -> None:
    with pytest.raises(zlmdb.EncodeError):
        codec.encode(sample(**wrong))


def test_stored_bytes_that_are_another_array_are_no_value() -> None:
    @dataclass
    class Other:
        weights: zlmdb.Array[numpy.int16]
        n: int = 0

    for form in (values.Msgpack, values.Cbor, values.FlatBuffers):
        reading: Any = form
        data = serializer(reading[Other]).encode(Other(numpy.zeros(2, "i2")))
        with pytest.raises(zlmdb.DecodeError):
            serializer(reading[Part]).decode(data)


def test_json_has_no_arrays_and_says_what_has() -> None:
    with pytest.raises(TypeError, match="JSON has no bytes.*Msgpack"):
        serializer(values.Json[Part])


def test_the_dtype_of_a_field_is_recorded(tmp_path: Path) -> None:
    class Store(zlmdb.Schema):
        parts: zlmdb.Table[int, Part]

    with zlmdb.open(tmp_path, Store) as db:
        with db.write() as t:
            t.parts[1] = Part(numpy.ones(2, "f4"))
        assert db.tables()["parts"].fields == "{weights: array(<f4), n: int = 0}"

    @dataclass
    class Wider:
        weights: zlmdb.Array[numpy.float64]
        n: int = 0

    class Changed(zlmdb.Schema):
        parts: zlmdb.Table[int, Wider]

    with pytest.raises(zlmdb.SchemaMismatch, match="weights is array"):
        zlmdb.open(tmp_path, Changed)


def test_a_comparison_of_an_array_is_an_array_in_a_query() -> None:
    class Store(zlmdb.Schema):
        parts: zlmdb.Table[int, Part]
        pickled: zlmdb.Table[int, values.Pickle[Any]]
        arrays: zlmdb.Table[int, zlmdb.Array[numpy.float32]]

    with zlmdb.open(None, Store) as db:
        with db.write() as t:
            for n in range(9):
                t.arrays[n] = t.pickled[n] = numpy.arange(n, n + 3, dtype="f4")
                t.parts[n] = Part(t.arrays[n], n)
        with db.read() as t:
            assert t.parts.where(lambda p: (p.weights > 7).any()).keys().all() == [6, 7, 8]
            assert t.parts.where(lambda p: not (p.weights > 7).any() and p.n > 4).keys().all() == [5]
            assert t.parts.where(lambda p: (p.weights == 5).sum() == 1).keys().all() == [3, 4, 5]
            assert t.parts.where(lambda p: (~(p.weights > 3)).all()).keys().all() == [0, 1]
            assert t.parts.where(lambda p: ((p.weights > 3) & (p.weights < 5)).any()).keys().all() == [2, 3, 4]
            assert t.parts.fields(lambda p: (p.weights > p.n).sum()).all() == [2] * 9
            for table in (t.arrays, t.pickled):
                assert table.where(lambda a: (a > 7).any()).keys().all() == [6, 7, 8]
                assert table.where(lambda k, a: (a > k + 1).sum() == 1).count() == 9

"""numpy arrays as values: every dtype, shape and order comes back; what does not fit is refused; what is copied."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import zlmdb
from zlmdb import values
from zlmdb.errors import DecodeError, EncodeError
from zlmdb.values import ArraySerializer, from_name, serializer

pytestmark = pytest.mark.twice  # encodings do not depend on the version of Python

numpy = pytest.importorskip("numpy")

POINT = numpy.dtype([("x", "<f4"), ("y", "<i8", (2,)), ("n\u00e4me", "<U3")])
PADDED = numpy.dtype({"names": ["a", "b"], "formats": ["u1", "<f8"]}, align=True)
GRID = numpy.arange(24.0).reshape(2, 3, 4)

ARRAYS = [
    numpy.arange(5.0),
    numpy.array([float("nan"), float("inf"), -0.0]),
    numpy.array(5),
    numpy.zeros((0, 3)),
    numpy.zeros((2, 0, 2), "i1"),
    GRID,
    numpy.asfortranarray(GRID),
    GRID[:, :, 1],
    GRID[::-1],
    numpy.broadcast_to(numpy.arange(3), (4, 3)),
    numpy.array([True, False]),
    numpy.arange(3, dtype=">i4"),
    numpy.arange(3, dtype="u2"),
    numpy.array([1 + 2j]),
    numpy.array(["a", "\u00e9\U0001f600"]),
    numpy.array([b"a", b"bc"]),
    numpy.array(["2020-01-01", "NaT"], "M8[us]"),
    numpy.array([3, -1], "m8[25s]"),
    numpy.zeros(2, "f2"),
    numpy.zeros(2, numpy.longdouble),
    numpy.zeros(2, "V7"),
    numpy.zeros(3, POINT),
    numpy.ones(3, PADDED),
    numpy.zeros(3, POINT)["y"],
    numpy.arange(100_000),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype} {array.shape}")
def test_arrays_come_back(array: Any) -> None:
    for codec in (ArraySerializer(array.dtype), ArraySerializer(), ArraySerializer(array.dtype, shape=array.shape)):
        data = codec.encode(array)
        for again in (codec.decode(data), codec.decode(memoryview(data)), from_name(codec.name).decode(data)):
            assert (again.dtype, again.shape) == (array.dtype, array.shape)
            assert repr(again.tolist()) == repr(array.tolist())


GOLDEN = [
    (numpy.array([1.5, -2.0], "<f8"), "1000 01 00 0200000000000000 3c663800 000000000000f83f 00000000000000c0"),
    (numpy.array([[1, 2]], "<i2"), "1800 02 00 0100000000000000 0200000000000000 3c693200 0100 0200"),
    (
        numpy.array([[1, 2, 3], [4, 5, 6]], "u1", order="F"),
        "1800 02 01 0200000000000000 0300000000000000 7c753100 010402050306",
    ),
    (numpy.array(7, ">u4"), "0800 00 00 3e753400 00000007"),
    (
        numpy.array([(1, 2)], [("a", "u1"), ("b", "<u2")]),
        "2800 01 00 0100000000000000 5b282761272c20277c753127292c20282762272c20273c753227295d 01 0200",
    ),
]


@pytest.mark.parametrize(("array", "data"), GOLDEN, ids=lambda part: str(part)[:20])
def test_bytes_are_pinned(array: Any, data: str) -> None:
    codec = ArraySerializer(array.dtype)
    assert codec.encode(array) == bytes.fromhex(data)
    assert codec.decode(bytes.fromhex(data)).tolist() == array.tolist()


def test_an_array_that_is_read_is_of_its_own_and_can_be_changed() -> None:
    codec = serializer(values.Array[numpy.float64])
    data = codec.encode(GRID)
    again = codec.decode(data)
    assert again.flags.owndata
    again += 1
    assert (codec.decode(data) == GRID).all()


def test_fortran_order_is_kept() -> None:
    codec = ArraySerializer("f8")
    assert codec.decode(codec.encode(numpy.asfortranarray(GRID))).flags.f_contiguous
    assert codec.decode(codec.encode(GRID)).flags.c_contiguous


@pytest.mark.skipif(
    sys.implementation.name != "cpython", reason="copies are counted by tracemalloc, which only CPython has"
)
@pytest.mark.parametrize("array", [numpy.zeros(1_000_000), numpy.zeros((1000, 1000), order="F")], ids="CF")
def test_writing_copies_the_numbers_once(array: Any) -> None:
    import tracemalloc

    codec = ArraySerializer(array.dtype)
    codec.encode(array)
    tracemalloc.start()
    data = codec.encode(array)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(data) <= peak < 1.1 * len(data)


def test_a_classic_transaction_with_buffers_copies_nothing(tmp_path: Any) -> None:
    class Grids(zlmdb.PersistentMap[values.String, values.Array[numpy.float64]]):  # type: ignore[type-var]
        """Grids by name."""

    grids = Grids(1)
    with zlmdb.Database(str(tmp_path)) as db:
        with db.begin(write=True) as txn:
            grids[txn, "a"] = GRID
        with db.begin(buffers=True) as txn:
            grid = grids[txn, "a"]
            assert (grid == GRID).all()
            assert not grid.flags.owndata
            assert not grid.flags.writeable
            kept = grid.copy()
            del grid
        with db.begin() as txn:
            assert grids[txn, "a"].flags.owndata
        assert (kept == GRID).all()


class Matrix(numpy.ndarray):  # type: ignore[misc]
    """A subclass."""


REFUSED: list[tuple[ArraySerializer, Any, str]] = [
    (ArraySerializer("f8"), [1.0], "got list"),
    (ArraySerializer("f8"), None, "expected a numpy.ndarray of dtype <f8"),
    (ArraySerializer("f8"), numpy.float64(1), "got numpy.float64"),
    (ArraySerializer("f8"), numpy.zeros(2, "f4"), "got dtype <f4"),
    (ArraySerializer("<f8"), numpy.zeros(2, ">f8"), "got dtype >f8"),
    (ArraySerializer("M8[us]"), numpy.zeros(2, "M8[s]"), r"got dtype <M8\[s\]"),
    (ArraySerializer("f8", shape=(None, 3)), numpy.zeros((3, 2)), r"got shape \(3, 2\)"),
    (ArraySerializer("f8", shape=(3,)), numpy.zeros((3, 1)), r"got shape \(3, 1\)"),
    (ArraySerializer(), numpy.array([None]), "contain Python objects"),
    (ArraySerializer(), numpy.zeros(2, [("a", "f8"), ("b", "O")]), "contain Python objects"),
    (ArraySerializer(), numpy.ma.masked_array([1.0], [True]), "MaskedArray"),
    (ArraySerializer(), numpy.zeros(2).view(Matrix), "Matrix"),
]


@pytest.mark.parametrize(("codec", "value", "text"), REFUSED, ids=lambda part: str(part)[:20])
def test_what_does_not_fit_is_refused(codec: ArraySerializer, value: Any, text: str) -> None:
    with pytest.raises(EncodeError, match=text):
        codec.encode(value)


def test_arrays_of_objects_are_refused_when_declared() -> None:
    with pytest.raises(TypeError, match="Python objects"):
        ArraySerializer(object)
    with pytest.raises(TypeError, match="Python objects"):
        serializer(values.Array[numpy.object_])


def test_stored_arrays_of_another_dtype_or_shape_are_a_decode_error() -> None:
    data = ArraySerializer("f8").encode(numpy.zeros((2, 3)))
    with pytest.raises(DecodeError, match="got dtype <f8"):
        ArraySerializer("f4").decode(data)
    with pytest.raises(DecodeError, match=r"got shape \(2, 3\)"):
        ArraySerializer("f8", shape=(None, 2)).decode(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x10",
        b"\0" * 8,
        ArraySerializer("f8").encode(numpy.zeros(3))[:-1],
        ArraySerializer("f8").encode(numpy.zeros(3)) + b"\0",
        bytes.fromhex("0f00 01 00 0000000000000000 3c6638"),
        bytes.fromhex("1000 01 02 0000000000000000 3c663800"),
        bytes.fromhex("1000 ff 00 0000000000000000 3c663800"),
        bytes.fromhex("1000 01 00 ffffffffffffffff 3c663800"),
        bytes.fromhex("1000 01 00 0000000000000000 7c4f3800"),
        bytes.fromhex("1000 01 00 0000000000000000 4f000000"),
        bytes.fromhex("1000 01 00 0000000000000000 ff000000"),
        (408).to_bytes(2, "little") + b"\0\0" + b"[" * 404,
        (60008).to_bytes(2, "little") + b"\0\0[" + b"-" * 60002 + b"1",
        (64).to_bytes(2, "little") + b"\0\0" + b"[('a', '|O')]".ljust(60, b"\0"),
        (64).to_bytes(2, "little") + b"\0\0" + b"[().__class__]".ljust(60, b"\0"),
    ],
    ids=lambda data: data[:24].hex(),
)
def test_bytes_that_are_no_array_are_a_decode_error(data: bytes) -> None:
    with pytest.raises(DecodeError):
        ArraySerializer().decode(data)


@given(
    st.sampled_from(ARRAYS[:-1]), st.integers(0, 60), st.binary(min_size=1, max_size=4), st.binary(max_size=60)
)  # fmt: skip
def test_any_bytes_give_an_array_or_a_decode_error(array: Any, place: int, damage: bytes, garbage: bytes) -> None:
    whole = ArraySerializer(array.dtype).encode(array)
    for data in (whole[:place], whole[:place] + damage + whole[place + len(damage) :], garbage):
        with contextlib.suppress(DecodeError):
            assert ArraySerializer().decode(data).nbytes <= len(data)


def test_the_ways_to_say_a_dtype() -> None:
    typing = pytest.importorskip("numpy.typing")
    for annotation, name in [
        (values.Array[numpy.float64], "array(<f8)"),
        (values.Array[Any], "array(any)"),
        (values.Array, "array(any)"),
        (Annotated[numpy.ndarray, ArraySerializer], "array(any)"),
        (Annotated[typing.NDArray[numpy.int16], ArraySerializer], "array(<i2)"),
        (Annotated[typing.NDArray[Any], ArraySerializer], "array(any)"),
        (Annotated[numpy.ndarray, ArraySerializer("M8[us]", shape=(None,))], "array(<M8[us])"),
        (values.Compressed[values.Array[numpy.float64]], "compressed(array(<f8))"),
    ]:
        codec = serializer(annotation)
        assert codec.name == name
        assert from_name(name).name == name


def test_compressed_arrays_come_back() -> None:
    codec = serializer(values.Zlib[values.Array[numpy.float64]])
    data = codec.encode(GRID)
    for again in (codec.decode(data), codec.decode(memoryview(data))):
        assert (again == GRID).all()
        assert again.flags.owndata


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
def test_numpy_is_imported_on_first_use() -> None:
    program = (
        "import sys, zlmdb; from zlmdb.values import from_name, serializer; assert zlmdb.Array;"
        "serializer(zlmdb.Array); from_name('array(<f8)'); assert 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)

"""Values that are numpy arrays: a small header with dtype and shape, then the numbers as they are in memory.

Writing copies the numbers once, into the record behind its header (the engine copies records into its file, whatever
they hold); an array that is neither in C nor in Fortran order is put into C order by another copy. Reading copies
them once, out of the record into an array of their own, which can be changed; in a transaction with ``buffers=True``
it copies nothing: the array looks into the file, cannot be changed, and must not be used after the transaction.

The header is: its own size in bytes (u16 LE, a multiple of 8), the number of dimensions (u8), the order of the numbers
(u8: 0 C, the last index varies fastest; 1 Fortran, the first), each dimension (u64 LE), and the dtype as ASCII text,
padded with NULs: ``<f8`` as `numpy.dtype.str` has it, or the fields of a structured dtype as in the ``.npy`` format.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, Callable, Optional, TypeVar, get_args, get_origin

from .base import Data, Serializer, is_a, is_free, library, typename

V = TypeVar("V")

_SIMPLE = re.compile(r"[<>|][biufcmMSUV]\d{1,9}(\[\w{1,20}(/\d{1,9})?\])?", re.ASCII)
"""The dtypes that one text of `numpy.dtype.str` names; no objects."""

_MOST_DIMENSIONS = 64


class ArraySerializer(Serializer[Any]):
    """Arrays of *dtype*, which may be any argument of `numpy.dtype`; None: each record has its own dtype.

    *shape*, if given, is the shape of every array; None in it means any length: ``shape=(None, 3)``. Arrays of another
    dtype or shape are refused, not converted. Arrays of Python objects raise TypeError. ``Array[numpy.float64]`` is
    ``Annotated[numpy.ndarray, ArraySerializer(numpy.float64)]``; type checkers see a `numpy.ndarray` with elements of
    that type. Subclasses, such as masked arrays, are refused, because they would be read back as plain arrays. numpy is
    imported on first use.
    """

    makes_arrays = True
    """Tells it from other serializers where it is not imported."""

    def __init__(self, dtype: Any = None, *, shape: Optional[Sequence[Optional[int]]] = None) -> None:
        self.dtype: Any = None if dtype is None else _storable(_numpy().dtype(dtype))
        self.shape = None if shape is None else tuple(shape)
        text = "any" if self.dtype is None else _text(self.dtype)
        self.name = f"array({text})"
        of_shape = "" if self.shape is None else f" and shape {self.shape}"
        self.expects = f"a numpy.ndarray of dtype {text}{of_shape}"
        self._headers: dict[tuple[Any, ...], bytes] = {}
        self._layouts: dict[bytes, tuple[Any, tuple[int, ...], str]] = {}

    @classmethod
    def for_type(cls, annotation: Any, *, localns: Optional[Mapping[str, Any]] = None) -> Serializer[Any]:
        """Arrays of the dtype *annotation*, or as ``numpy.ndarray`` and ``NDArray[dtype]`` say; no type: of any."""
        if is_free(annotation):
            return cls()
        ndarray = _numpy().ndarray
        annotation = _meant(annotation)
        if annotation is ndarray:
            return cls()
        if get_origin(annotation) is ndarray:
            (annotation,) = get_args(get_args(annotation)[1]) or (None,)
            return cls(None if is_free(annotation) else annotation)
        return cls(annotation)

    @classmethod
    def from_text(cls, text: str) -> Serializer[Any]:
        """The serializer whose name is ``array(text)``, which reads the records of a table that nothing declares."""
        found = cls()
        found.name = f"array({text})"
        return found

    def raw_encode(self, value: Any) -> bytes:
        """Header and numbers, in one piece."""
        if type(value) is not _numpy().ndarray:
            raise TypeError(f"got {typename(type(value))}")
        array: Any = value
        self._check(array.dtype, array.shape)
        flags = array.flags
        fortran = flags.f_contiguous and not flags.c_contiguous
        header = self._header(array.dtype, array.shape, fortran)
        if fortran:
            array = array.T
        elif not flags.c_contiguous:
            array = array.copy(order="C")
        # As plain bytes, whatever the dtype: some have no buffer of their own, such as datetimes. A view, no copy.
        return b"".join((header, array.reshape(-1).view("u1").data if array.nbytes else b""))

    def raw_decode(self, data: Data) -> Any:
        """The array of *data*: one of its own from bytes, one that looks into *data* from a memoryview."""
        size = int.from_bytes(data[:2], "little")
        if len(data) < size:
            raise ValueError("the header is cut off")
        header = bytes(data[:size])
        dtype, shape, order = self._layouts.get(header) or self._layout(header)
        numbers = data[size:] if is_a(data, memoryview) else memoryview(data)[size:]
        if len(numbers) != dtype.itemsize * prod(shape):
            raise ValueError(f"{len(numbers)} bytes of numbers for dtype {dtype} and shape {shape}")
        array = _numpy().ndarray(shape, dtype, numbers, order=order)
        if not is_a(data, memoryview):
            return array.copy(order="K")
        array.flags.writeable = False  # on PyPy the views of records claim that they can be written to, and crash
        return array

    def takes(self, value: Any) -> bool:
        """Whether *value* is an array that this serializer stores."""
        if type(value) is not _numpy().ndarray:
            return False
        try:
            self._check(value.dtype, value.shape)
            _storable(value.dtype)
        except (TypeError, ValueError):
            return False
        return True

    def _check(self, dtype: Any, shape: tuple[int, ...]) -> None:
        if self.dtype is not None and dtype != self.dtype:
            raise ValueError(f"got dtype {_text(dtype)}")
        if self.shape is not None and not (
            len(shape) == len(self.shape) and all(asked in (None, size) for asked, size in zip(self.shape, shape))
        ):
            raise ValueError(f"got shape {shape}")

    def _header(self, dtype: Any, shape: tuple[int, ...], fortran: bool) -> bytes:
        key = (dtype, shape, fortran)
        found = self._headers.get(key)
        if found is None:
            text = _text(_storable(dtype)).encode("ascii")
            sizes = b"".join([size.to_bytes(8, "little") for size in shape])
            size = -(-(4 + len(sizes) + len(text)) // 8) * 8
            begin = size.to_bytes(2, "little") + bytes((len(shape), fortran))
            found = _kept(self._headers, key, (begin + sizes + text).ljust(size, b"\0"))
        return found

    def _layout(self, header: bytes) -> tuple[Any, tuple[int, ...], str]:
        """dtype, shape and order that *header* says, if they are what this serializer reads."""
        if len(header) < 8 or len(header) % 8 or header[2] > _MOST_DIMENSIONS or header[3] > 1:
            raise ValueError("no header of an array")
        end = 4 + 8 * header[2]
        shape = tuple([int.from_bytes(header[start : start + 8], "little") for start in range(4, end, 8)])
        dtype = _dtype(header[end:].rstrip(b"\0").decode("ascii"))
        self._check(dtype, shape)
        return _kept(self._layouts, header, (dtype, shape, "F" if header[3] else "C"))


def _numpy() -> Any:
    return library("numpy", "zlmdb[numpy]")


def _meant(annotation: Any) -> Any:
    """What a type alias stands for: NumPy 2.5 writes NDArray as one, where it was an ``ndarray`` before."""
    alias = get_origin(annotation) or annotation
    value = getattr(alias, "__value__", None)
    if value is None:
        return annotation
    arguments = get_args(annotation)
    return value[arguments] if arguments else value


def _kept(cache: dict[Any, V], key: Any, value: V) -> V:
    """*value*, kept under *key* in a *cache* of a few; a table of arrays has few layouts, or endlessly many."""
    if len(cache) >= 64:
        cache.clear()
    cache[key] = value
    return value


def _storable(dtype: Any) -> Any:
    if dtype.hasobject:
        raise TypeError(
            f"arrays of dtype {dtype} contain Python objects, which cannot be stored: use Pickle[numpy.ndarray]"
        )
    return dtype


def _text(dtype: Any) -> str:
    """*dtype* in one line of ASCII; a structured one as the list of its fields."""
    if dtype.names is None and dtype.subdtype is None:
        return dtype.str
    described: Callable[[Any], Any] = library("numpy.lib.format", "zlmdb[numpy]").dtype_to_descr
    return repr(described(dtype)).encode("ascii", "backslashreplace").decode()


def _dtype(text: str) -> Any:
    """The dtype that *text* names. Raises ValueError, or what numpy raises, for any other text."""
    if _SIMPLE.fullmatch(text):
        return _storable(_numpy().dtype(text))
    import ast  # structured dtypes are rare, and this is 5 ms of every import

    if not text.startswith("["):
        raise ValueError(f"{text[:40]!r} is not a dtype")
    parsed: Callable[[Any], Any] = library("numpy.lib.format", "zlmdb[numpy]").descr_to_dtype
    try:
        fields = ast.literal_eval(text)
    except MemoryError as error:  # how the parser says that something is nested too deeply
        raise ValueError("the dtype is not a list of fields") from error
    return _storable(parsed(fields))

"""CBOR of a model class by a generated function: what cbor2 would write, in two thirds of the time on CPython.

The fields are in the order of RFC 8949, section 4.2.1, that of their names as CBOR: the shorter one first, then by
bytes. DAG-CBOR has the same, so that `cborreader` can read them. The names are constants in the function; lists of
integers and dicts of floats are written at once. Types that it has no expression for are left to cbor2, field by field.
The tests compare every byte with cbor2's.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from functools import partial
from math import isfinite
from operator import itemgetter
from struct import Struct
from typing import TYPE_CHECKING, Any, Callable, Optional
from uuid import UUID

from ..codegen import Recipe
from .base import Encode
from .depth import may_be_deep
from .models import find_msgspec
from .recurring import Known
from .scalars import Choice, Float, Leaf, Shape
from .shapes import DictOf, Field, ListOf, Record, other_than_none

if TYPE_CHECKING:
    from typing_extensions import TypeGuard

_RECORDS = Recipe("CBOR")
_FLOATS = Recipe("CBOR of floats")

_NUMBERS = tuple(bytes([n]) if n < 24 else bytes([0x18, n]) for n in range(256))
_TEXTS = tuple(bytes([0x60 + n]) if n < 24 else bytes([0x78, n]) for n in range(256))
_uint8, _uint16, _uint32, _uint64 = (Struct(f">B{size}").pack for size in "BHIQ")
_float64 = Struct(">Bd").pack
_MOST_AT_ONCE = 64
_SMALL = [[bytes([(major << 5) | size]) for size in range(24)] for major in range(8)]


def writer(shape: Shape, pack: Encode) -> Optional[Encode]:
    """The function that writes values of *shape*, which fit it; *pack* is cbor2's. None where that does as well.

    That is so for anything but a record of a fixed depth: how deep plain data may be is for cbor2 to say.
    """
    return _Writer(pack).record(shape) if is_fixed(shape) else None


def is_fixed(shape: Shape) -> TypeGuard[Record]:
    """Whether it is a record of a fixed depth, in which nothing may be of any type."""
    return type(shape) is Record and not may_be_deep(shape)


def head(major: int, size: int) -> bytes:
    """The first bytes of an item of the type *major* (0 to 7): its *size*, or the number itself."""
    if size < 24:
        return _SMALL[major][size]
    first = major << 5
    if size < 2**8:
        return _uint8(first | 24, size)
    if size < 2**16:
        return _uint16(first | 25, size)
    return _uint32(first | 26, size) if size < 2**32 else _uint64(first | 27, size)


def write_text(value: str) -> bytes:
    """A text."""
    data = value.encode()
    size = len(data)
    return (_TEXTS[size] if size < 256 else head(3, size)) + data


def write_bytes(value: bytes) -> bytes:
    """Bytes."""
    return head(2, len(value)) + value


def _write_texts(value: list[str]) -> bytes:
    try:
        return _LISTS[len(value)] + b"".join([_TEXTS[len(text)] + text for text in map(_utf8, value)])
    except IndexError:  # a list or a text that is longer than most
        return head(4, len(value)) + b"".join(list(map(write_text, value)))


_utf8 = str.encode


class _Writer:
    """Makes the functions for one type."""

    def __init__(self, pack: Encode) -> None:
        self.pack = pack

    def record(self, record: Record) -> Encode:
        names: dict[str, Any] = {"join": b"".join}
        items: list[str] = []
        written: list[tuple[bytes, Any]] = [(write_text(one.stored), one) for one in record.fields]
        if record.tag is not None:
            written.append((self.pack(record.tag[0]), record.tag[1]))
        before = head(5, len(written))
        for number, (name, field) in enumerate(sorted(written, key=itemgetter(0))):
            before += name
            if isinstance(field, Field):
                items += [repr(before), self.expression(field.shape, f"value.{field.name}", str(number), names)]
                before = b""
            else:
                before += self.pack(field)
        items.append(repr(before))
        source = f"def write(value):\n    return join(({', '.join(items)},))\n"
        return _RECORDS.functions(record.label, source, names)["write"]

    def expression(self, shape: Shape, item: str, mark: str, names: dict[str, Any]) -> str:
        """Source for the bytes of *item*, which fits *shape*, in one part or several; adds to *names* what it uses."""
        inner = other_than_none(shape)
        if inner is not None:
            x = f"x{mark}"
            return f"({_NULL!r} if ({x} := {item}) is None else {self.expression(inner, x, mark, names)})"
        if isinstance(shape, Leaf) and shape.cls is bool:
            return f"({_TRUE!r} if {item} else {_FALSE!r})"
        if isinstance(shape, Leaf) and shape.cls is str:
            names.update(texts=_TEXTS, general_head=partial(head, 3))
            size, data = f"n{mark}", f"d{mark}"
            head_of = f"texts[{size}] if ({size} := len({data} := {item}.encode())) < 256 else general_head({size})"
            return f"({head_of}), {data}" if item.startswith("value.") else f"({head_of}) + {data}"
        if isinstance(shape, Leaf) and shape.cls is int:
            names.update(numbers=_NUMBERS, pack64=_uint64, general_integer=self.integer)
            x = f"x{mark}"
            large = f"pack64(27, {x}) if {2**32} <= {x} < {2**64} else general_integer({x})"
            return f"(numbers[{x}] if 0 <= ({x} := {item}) < 256 else {large})"
        if isinstance(shape, Float):
            names.update(float64=_float64, isfinite=isfinite, general_number=self.number)
            x = f"x{mark}"
            return f"(float64(251, {x}) if type({x} := {item}) is float and isfinite({x}) else general_number({x}))"
        fixed = self.fixed_text(shape)
        if fixed is not None and item.startswith("value."):
            begin, skip, names["encode"] = fixed
            return f"{begin!r}, encode({item})[{skip}:]"
        names[f"w{mark}"] = self.function(shape)
        return f"w{mark}({item})"

    def function(self, shape: Shape) -> Encode:
        """What writes values of *shape*."""
        if type(shape) is Record:
            return self.record(shape)
        if isinstance(shape, Leaf):
            return self.leaf(shape)
        if isinstance(shape, Float):
            return self.number
        if isinstance(shape, Choice):
            stored, pack = shape.dump, self.pack
            return lambda value: pack(stored(value))
        if type(shape) is ListOf:
            return self.list_of(shape)
        if type(shape) is DictOf and isinstance(shape.key, Leaf) and shape.key.cls is str:
            return self.dict_of(shape)
        pack, dump = self.pack, shape.dump
        return lambda value: pack(dump(value))

    def leaf(self, shape: Leaf) -> Encode:
        known: dict[Any, Encode] = {str: write_text, int: self.integer, bytes: write_bytes}
        found = known.get(shape.cls)
        if found is not None:
            return found
        fixed = self.fixed_text(shape)
        if fixed is not None:
            begin, skip, encode = fixed
            return lambda value: begin + encode(value)[skip:]
        dump = shape.dump
        if shape.kind == "text":
            return lambda value: write_text(dump(value))
        pack = self.pack
        return lambda value: pack(dump(value))

    def fixed_text(self, shape: Shape) -> Optional[tuple[bytes, int, Encode]]:
        """How to write what always is a text of one length: what it begins with, and the rest of what encodes it.

        msgspec has these texts in C. Its MessagePack is one or two bytes of head, to be left out, and the text as here.
        """
        msgspec = find_msgspec()
        if msgspec is None or not isinstance(shape, Leaf) or shape.cls not in _FIXED_TEXTS:
            return None
        return (*_FIXED_TEXTS[shape.cls], msgspec.msgpack.Encoder().encode)

    def integer(self, value: int) -> bytes:
        if 0 <= value < 256:
            return _NUMBERS[value]
        if value > 0xFFFFFFFF and value < 2**64:
            return _uint64(0x1B, value)
        if 0 <= value < 2**64:
            return head(0, value)
        return head(1, ~value) if -(2**64) <= value < 0 else self.pack(value)

    def number(self, value: Any) -> bytes:
        """A float; an int in its place stays one. The infinities and NaN have a short form, which cbor2 knows."""
        if type(value) is float and isfinite(value):
            return _float64(0xFB, value)
        return self.pack(value)

    def list_of(self, shape: ListOf) -> Encode:
        write = self.function(shape.item)
        if isinstance(shape.item, Leaf) and shape.item.cls is str:
            return _write_texts

        def write_list(value: Any) -> bytes:
            return head(4, len(value)) + b"".join(list(map(write, value)))

        msgspec = find_msgspec()
        if msgspec is None or not isinstance(shape.item, Leaf) or shape.item.cls is not int:
            return write_list
        encode: Callable[[Any], bytes] = msgspec.msgpack.Encoder().encode

        # Integers of 5 to 8 bytes are one byte and the integer in MessagePack too, there with another first byte.
        def write_integers(value: Any) -> bytes:
            size = len(value)
            if not 0 < size <= _MOST_AT_ONCE:
                return write_list(value)
            try:
                data = bytearray(encode(value))
            except OverflowError:  # one of more than 64 bits
                return write_list(value)
            start = 1 if size < 16 else 3
            if len(data) != start + 9 * size or data[start::9] != _UINT64[size]:
                return write_list(value)
            data[start::9] = _NUMBERS_OF_64[size]
            data[:start] = _LISTS[size]
            return bytes(data)

        return write_integers

    def dict_of(self, shape: DictOf) -> Encode:
        write = self.function(shape.value)

        def items(value: Any) -> Iterator[bytes]:
            yield head(5, len(value))
            for key, item in value.items():
                yield write_text(key)
                yield write(item)

        def write_dict(value: Any) -> bytes:
            return b"".join(items(value))

        return _FloatDicts(write_dict).write if isinstance(shape.value, Float) else write_dict


class _FloatDicts(Known[tuple[str, ...], Callable[..., Optional[bytes]]]):
    """By the keys of a dict, the function from its values to the bytes: all between the numbers is known.

    It gives None for values that are not all finite floats.
    """

    def __init__(self, write_any: Encode) -> None:
        """*write_any* writes what is unknown."""
        super().__init__()
        self.write_any = write_any

    def write(self, value: dict[str, float]) -> bytes:
        """A dict."""
        keys = tuple(value)
        write = self.get(keys)
        if write is not None:
            data = write(*value.values())
            return self.write_any(value) if data is None else data
        self.wait[0] -= 1
        if self.wait[0] < 0 < len(keys) <= _MOST_AT_ONCE:
            self.look(keys)
        return self.write_any(value)

    def look(self, keys: tuple[str, ...]) -> None:
        """See whether *keys* come often, and make the function for them."""
        if self.often(keys):
            self.learn(keys, lambda: self._make(keys))

    def _make(self, keys: tuple[str, ...]) -> Callable[..., Optional[bytes]]:
        texts = [write_text(key) + b"\xfb" for key in keys]
        texts[0] = head(5, len(keys)) + texts[0]
        values = [f"v{at}" for at in range(len(keys))]
        items = ", ".join(f"{text!r}, {value}" for text, value in zip(texts, values))
        # The sum is not finite where one of them is not: rarely else, and then they go the long way for nothing.
        tests = " and ".join([*(f"type({value}) is float" for value in values), f"isfinite({' + '.join(values)})"])
        source = f"def write({', '.join(values)}):\n    return pack({items}) if {tests} else general_missed()\n"
        names: dict[str, Any] = {"isfinite": isfinite, "general_missed": partial(self.miss, keys)}
        names["pack"] = Struct(">" + "".join(f"{len(text)}sd" for text in texts)).pack
        return _FLOATS.functions(f"{len(keys)} keys", source, names)["write"]


_NULL, _TRUE, _FALSE = b"\xf6", b"\xf5", b"\xf4"
_LISTS = tuple(head(4, size) for size in range(_MOST_AT_ONCE + 1))
_UINT64 = tuple(bytearray(b"\xcf" * size) for size in range(_MOST_AT_ONCE + 1))  # as MessagePack says it
_NUMBERS_OF_64 = tuple(b"\x1b" * size for size in range(_MOST_AT_ONCE + 1))
_FIXED_TEXTS: dict[type, tuple[bytes, int]] = {UUID: (b"\x78\x24", 2), date: (b"\x6a", 1)}
"""Types whose texts are always of one length: what begins them in CBOR, and how long their head is in MessagePack."""

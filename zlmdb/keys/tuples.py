"""Composite keys: a tuple of parts, which sorts by its first part, then its second, and so on."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Callable, Optional

from ..errors import EncodeError
from ..locks import cached_property
from ..shown import shortened
from .base import TOP, Data, KeyCodec, after, source_of
from .generate import make_decoder, make_encoder, make_reader
from .named import StringKey, UintKey
from .parts import part_of
from .timestamp import TimestampKey

Key = KeyCodec[Any]


class TupleKey(KeyCodec[tuple[Any, ...]]):
    """A tuple of keys of the types *parts*; tuples among them are allowed, and are stored as if written out.

    Parts of fixed width are stored one after the other. A text or bytes that is not the last part is ended: a named
    string by a NUL, and it may hold none; anything else by two, with a NUL inside as ``00 01``.

    >>> from zlmdb.keys import IntKey, StrKey
    >>> TupleKey([StrKey(), IntKey()]).encode(("a", 5)).hex()
    '6100008000000000000005'
    """

    composite = True

    def __init__(self, parts: Sequence[Key]) -> None:
        if not parts:
            raise TypeError("a tuple key has one part or more")
        self.parts = tuple(parts)
        # One loop over the parts and one over the leaves: opening a file makes one of these for each index.
        names: list[str] = []
        leaves: list[Key] = []
        for part in parts:
            names.append(part.name)
            leaves += part.leaves if isinstance(part, TupleKey) else (part,)
        self.name = f"tuple({','.join(names)})"
        self.leaves: tuple[Key, ...] = tuple(leaves)
        self.width, self.sorts = 0, True
        for leaf in leaves:
            self.width = None if self.width is None or not leaf.width else self.width + leaf.width
            self.sorts = self.sorts and leaf.sorts
        self.expects = f"a tuple of {len(parts)} ({', '.join(names)})"
        self._forms = [part_of(leaf, self.leaves[i + 1 :]) for i, leaf in enumerate(self.leaves)]
        self._lookups: dict[bytes, Callable[[tuple[Any, ...]], bytes]] = {}
        self._first_encoded = False

    @property
    def examples(self) -> Sequence[tuple[Any, ...]]:
        few = 64 if len(self.parts) == 1 else 12 // len(self.parts) + 1
        return list(itertools.product(*[_spread(part.examples, few) for part in self.parts]))

    def encode(self, key: tuple[Any, ...]) -> bytes:
        return self._encode(key)

    @cached_property
    def _encode(self) -> Callable[[tuple[Any, ...]], bytes]:
        return self.lookup()

    def lookup(self, prefix: bytes = b"") -> Callable[[tuple[Any, ...]], bytes]:
        """As `KeyCodec.lookup`, and here everything is checked: it is as good for writing."""
        made = self._lookups.get(prefix)
        if made is None:
            shape, tuples = self._shape(itertools.count(), "key")
            made = make_encoder(self.name, shape, tuples, self._forms, prefix, self._encode_checked)
            self._lookups[prefix] = made
        return made

    def store_source(self, prefix: bytes = b"", x: str = "key", mark: str = "") -> tuple[str, str, dict[str, Any]]:
        return "True", f"lookup{mark}({x})", {f"lookup{mark}": self.lookup(prefix)}

    def encode_first(self, value: Any) -> bytes:
        """The bytes of the first part, *value*, with what ends it where others follow. Raises `EncodeError`."""
        if self._first_encoded:  # to compile it takes longer than to encode a few
            return self._first(value)
        self._first_encoded = True
        return self._encode_first_checked(value)

    @cached_property
    def _first(self) -> Callable[[Any], bytes]:
        """As `encode_first`, compiled."""
        first = self.parts[0]
        if not isinstance(first, TupleKey):
            return self._forms[0].encode
        shape, tuples = first._shape(itertools.count(), "key")
        forms = self._forms[: len(first.leaves)]
        return make_encoder(f"the first of {self.name}", shape, tuples, forms, b"", self._encode_first_checked)

    def _encode_first_checked(self, value: Any) -> bytes:
        first = self.parts[0]
        values = first._flatten(value) if isinstance(first, TupleKey) else [value]
        return b"".join([form.encode(leaf) for form, leaf in zip(self._forms, values)])

    @cached_property
    def first_whole(self) -> Callable[[Any], bytes]:
        """A function of a first part: the bytes with which exactly the keys with it begin. It raises `EncodeError`.

        Those of `encode_first` need not: what ends a text may be the first byte of the part behind it.
        """
        first = self.parts[0]
        if not isinstance(first, TupleKey):
            return self._forms[0].only()
        flatten, forms = first._flatten, self._forms

        def whole(value: Any) -> bytes:
            *leading, last = flatten(value)
            encoded = [form.encode(leaf) for form, leaf in zip(forms, leading)]
            return b"".join(encoded) + forms[len(leading)].encode_only(last)

        return whole

    def leading_source(self, number: int, prefix: bytes, x: str) -> tuple[str, str, dict[str, Any]]:
        """As `store_source`, of ``prefix`` and the leaf with that *number*, with what ends it where others follow."""
        return source_of(self._forms[number].inline(), self.leaves[number], prefix, x, str(number))

    def first_source(self, prefix: bytes, x: str, mark: str) -> tuple[str, str, dict[str, Any]]:
        """As `store_source`, of ``prefix + encode_first(x)``, where the first part is no tuple."""
        return source_of(self._forms[0].inline(), self.parts[0], prefix, x, mark)

    def decoder(self) -> Callable[[Data], tuple[Any, ...]]:
        shape, _ = self._shape(itertools.count(), "key")
        return make_decoder(self.name, shape, self._forms)

    def reading(self, prefix: int, wanted: Sequence[int], names: dict[str, Any]) -> tuple[list[str], list[str]]:
        """Lines that read the leaves *wanted* of ``entry``, behind *prefix* bytes, and the expression of each.

        What they use is put into *names*.
        """
        return make_reader(self._forms, prefix, wanted, names)

    def _shape(self, numbers: itertools.count[int], expression: str) -> tuple[str, list[str]]:
        """The tuple in Python with its leaves named k0, k1, ...; and the expressions of it and the tuples in it."""
        shapes: list[str] = []
        tuples = [expression]
        for i, part in enumerate(self.parts):
            if isinstance(part, TupleKey):
                shape, inner = part._shape(numbers, f"{expression}[{i}]")
                shapes.append(shape)
                tuples += inner
            else:
                shapes.append(f"k{next(numbers)}")
        return f"({', '.join(shapes)},)", tuples

    def _encode_checked(self, key: object) -> bytes:
        try:
            return self._encode_parts(self._flatten(key))
        except EncodeError as error:
            error.key = key
            raise

    def _flatten(self, key: Any, *, partly: bool = False) -> list[Any]:
        """The values of the leaves, of the leading ones if *partly*."""
        if not issubclass(type(key), tuple):
            self.refuse(key)
        given: tuple[Any, ...] = key
        if len(given) > len(self.parts) or (len(given) < len(self.parts) and not partly):
            self.refuse(given, f"it has {len(given)}")
        values: list[Any] = []
        for i, (part, value) in enumerate(zip(self.parts, given), 1):
            if isinstance(part, TupleKey):
                values += part._flatten(value, partly=partly and i == len(given))
            else:
                values.append(value)
        return values

    def bound(self, key: Any, *, through: bool = False) -> bytes:
        """As `KeyCodec.bound`; leading parts alone come before all keys that have them, as tuples do."""
        if not through and type(key) is tuple and len(key) == len(self.parts):  # pyright: ignore[reportUnknownArgumentType]
            try:
                return self._encode(key)  # pyright: ignore[reportUnknownArgumentType]
            except EncodeError:
                pass
        return self._bound(self, self._flatten(key, partly=True), through)

    def bound_of_first(self, key: Any, *, through: bool = False) -> bytes:
        """`bound` of the first part, or of the leading parts of that."""
        first, form = self.parts[0], self._forms[0]
        if isinstance(first, TupleKey):
            return self._bound(first, first._flatten(key, partly=True), through)
        try:
            return form.encode_only(key) + TOP if through else form.encode(key)
        except EncodeError as error:
            return form.beyond(key, error)

    def _bound(self, codec: TupleKey, values: list[Any], through: bool) -> bytes:
        """The bound of the values of the leading leaves, which are parts of *codec*."""
        data = b""
        leading = len(values) < len(self.leaves)
        for i, (form, value) in enumerate(zip(self._forms, values), 1):
            try:
                data += form.encode_only(value) if through and leading and i == len(values) else form.encode(value)
            except EncodeError as error:
                return data + form.beyond(value, codec._of_part(i, error, value))
        return data + (TOP if leading else b"\0") if through else data

    def _of_part(self, number: int, error: EncodeError, value: object) -> EncodeError:
        return EncodeError(f"part {number} of {self.name}: {error}", key=value)

    def span(self, prefix: Optional[tuple[Any, ...]] = None, startswith: Any = None) -> tuple[bytes, bytes]:
        return self._span(self, prefix, startswith)

    def span_of_first(self, prefix: Optional[tuple[Any, ...]] = None, startswith: Any = None) -> tuple[bytes, bytes]:
        """`span` of the first part."""
        first = self.parts[0]
        if isinstance(first, TupleKey):
            return self._span(first, prefix, startswith)
        if prefix is not None:
            first.span(prefix)  # raises
        begin = self._forms[0].beginning(startswith)
        return begin, after(begin)

    def _span(self, codec: TupleKey, prefix: Optional[tuple[Any, ...]], startswith: Any) -> tuple[bytes, bytes]:
        """The span of the leading leaves, which are parts of *codec*."""
        values = [] if prefix is None else codec._leading(prefix)
        encoded = self._encode_parts(values, ended=startswith is None)
        if startswith is not None:
            if len(values) == len(codec.leaves):
                raise EncodeError(f"startswith={startswith!r}: prefix gives all parts of {codec.name}", key=startswith)
            encoded += self._forms[len(values)].beginning(startswith)
        elif len(values) == len(self.leaves):
            return encoded, encoded + b"\0"
        return encoded, after(encoded)

    def told_of_part(self, key: Any) -> str:
        listed = type(key) is list
        given: Any = key
        first: tuple[Any, ...] = tuple(given) if listed or issubclass(type(key), tuple) else (key,)
        if not 0 < len(first) < len(self.parts) + listed:
            return ""
        try:
            self.span(first)
        except EncodeError:
            return ""
        if len(first) == len(self.parts):
            return f"; write a tuple, {shortened(first)}"
        return f"; write .select(prefix={shortened(first)}) for all keys that begin so"

    def _leading(self, prefix: object) -> list[Any]:
        """The values of the leaves that *prefix* gives."""
        if not isinstance(prefix, tuple):
            text = ", or startswith= for a text that only begins so" if isinstance(prefix, (str, bytes)) else ""
            given: Any = prefix
            meant: tuple[Any, ...] = (*given,) if type(prefix) is list else (given,)
            self.refuse_prefix(given, f"write prefix={shortened(meant)}{text}")
        return self._flatten(prefix, partly=True)

    def _encode_parts(self, values: Sequence[Any], *, ended: bool = False) -> bytes:
        """The bytes of leading parts; *ended*: with what tells the last one of them from a longer one."""
        encoded: list[bytes] = []
        last = len(values) if ended and len(values) < len(self.leaves) else 0
        for i, (form, value) in enumerate(zip(self._forms, values), 1):
            try:
                encoded.append(form.encode_only(value) if i == last else form.encode(value))
            except EncodeError as error:
                raise self._of_part(i, error, value) from error
        return b"".join(encoded)

    def classic(self) -> TupleKey:
        if self.name not in _CLASSIC:
            return self
        number, codec = _CLASSIC[self.name]
        return TupleKey([*self.parts[:number], codec, *self.parts[number + 1 :]])

    def new_key(self, last: Optional[tuple[Any, ...]] = None) -> tuple[Any, ...]:
        """A tuple of new keys of all parts."""
        return tuple(part.new_key() for part in self.parts)

    def next_key(self, last: Optional[tuple[Any, ...]]) -> tuple[Any, ...]:
        """Refused: random parts, as those of `new_key`, are hardly what a table with such keys is for."""
        self._refuse_new()


CLASSIC_PARTS: Sequence[Key] = [UintKey(2, little=True), TimestampKey(little=True), StringKey(open=True)]
"""What is only a part of classic keys: numbers that do not sort, a text without an end."""

_LITTLE_UINT16, _LITTLE_TIMESTAMP, _OPEN_STRING = CLASSIC_PARTS
_CLASSIC: dict[str, tuple[int, Key]] = {  # the types that the classic layout stores otherwise: which part, and how
    "tuple(oid,timestamp)": (1, _LITTLE_TIMESTAMP),
    "tuple(oid,timestamp,string)": (1, _LITTLE_TIMESTAMP),
    "tuple(uint16,uuid,timestamp)": (0, _LITTLE_UINT16),
    "tuple(string,timestamp)": (0, _OPEN_STRING),
}

CLASSIC_NAMES: Sequence[str] = tuple(_CLASSIC)
"""The names of the types that the classic layout stores otherwise."""


def _spread(examples: Sequence[Any], count: int) -> list[Any]:
    """About *count* of the examples, spread over all of them, the first and the last included."""
    step = max(1, (len(examples) - 1) // max(1, count - 1))
    chosen = list(examples[::step])
    return chosen if chosen[-1] is examples[-1] else [*chosen, examples[-1]]

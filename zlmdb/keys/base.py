"""The definition of a key codec: order-preserving bytes for every key of one type."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from struct import Struct
from types import FunctionType
from typing import Any, Callable, Generic, NoReturn, Optional, TypeVar, Union

from ..errors import DecodeError, EncodeError
from ..handlers import let_through
from ..locks import cached_property
from ..namedtuples import NamedTuple
from ..shown import shortened, show

T = TypeVar("T")
Data = Union[bytes, memoryview]


class Inline(NamedTuple):
    """Python expressions by which the generated functions of a `TupleKey` encode and decode one part.

    ``{x}`` is the part, ``{codec}`` its codec; module-level names come from *names*. If *check* is false or *pack*
    raises, the codec's own `encode` is called.
    """

    format: str
    """The part's format in `struct`; empty for a part without a fixed width, whose *pack* then gives bytes."""
    check: str
    """True only for a part that *pack* writes as `KeyCodec.encode` would (or that it raises for)."""
    pack: str
    unpack: str
    names: dict[str, Any] = {}  # noqa: RUF012 - never changed


class KeyCodec(ABC, Generic[T]):
    """Encodes keys such that ``a < b`` exactly when ``encode(a) < encode(b)``, and decodes them.

    A new key type is a subclass with a `name` and `examples`, written ``Annotated[T, TheCodec()]``. One of zlmdb's own
    is also listed in `registry.NAMED` or `registry.PLAIN`, over which the tests run.
    """

    name: str
    """The name of the codec in a file, such as ``"uuid"`` or ``"tuple(uuid,timestamp)"``: equal names, equal bytes."""
    width: Optional[int] = None
    """The length in bytes of every encoding; None where it varies."""
    sorts: bool = True
    """False for the little-endian codecs of the classic layout, over which there are no ranges."""
    composite: bool = False
    """True for tuples: other keys have no parts."""
    takes_none: bool = False
    """True for the named types, which take None for their zero value."""
    quick_check: Optional[str] = None
    """An expression of ``key`` in place of the check of `store_source`, where that of ``key`` takes longer."""
    exact: Optional[type] = None
    """The type for whose values `lookup` gives what `bound` does, or raises; None where that is not so."""
    counts_from: Optional[int] = None
    """For numbers: what the first key that ``table.add`` makes follows; later ones follow the last in the table."""
    by_clock: bool = False
    """Whether a new key is the present time, which may be that of a record already."""
    expects: str = "a key that fits"
    """The tail of the error messages: what should have been given."""
    made_of_text: str = ""
    """What makes a key of a text, for the error of a text that is given in its place."""
    _called: str = ""  # in error messages, if that is not the name in a file

    @property
    @abstractmethod
    def examples(self) -> Sequence[T]:
        """Some keys in ascending order, including the least and the greatest if they exist; for tests."""

    @abstractmethod
    def encode(self, key: T) -> bytes:
        """The bytes of *key*, after a full check.

        Raises `EncodeError` for anything that is not a key of this type.
        """

    @abstractmethod
    def decoder(self) -> Callable[[Data], T]:
        """A new function for `raw_decode`. Called on first use, so it can import what it needs."""

    @cached_property
    def raw_decode(self) -> Callable[[Data], T]:
        """`decode` for the fast path: may raise any exception for bytes that encode no key."""
        return self.decoder()

    def decode(self, data: Data) -> T:
        """The key whose encoding is *data*.

        Raises `DecodeError` for bytes that encode no key.
        """
        try:
            return self.raw_decode(data)
        except (DecodeError, MemoryError, ImportError):
            raise
        except Exception as error:
            let_through(error)
            shown = bytes(data[:32]).hex() + ("..." if len(data) > 32 else "")
            message = f"these {len(data)} bytes are not a key of type {self.name}: {shown or '(none)'} ({error})"
            raise DecodeError(message, size=len(data)) from error

    def lookup(self, prefix: bytes = b"") -> Callable[[T], bytes]:
        """The fastest callable that returns ``prefix + encode(key)``, for reading.

        For a key that does not fit it may raise anything, or return the bytes of an equal key (of 1 for True), but
        never those of another key. After an exception the caller calls `encode`, which accepts None and has the error
        message.
        """
        encode = self.encode
        return (lambda key: prefix + encode(key)) if prefix else encode

    def lookup_source(self, prefix: bytes = b"") -> tuple[str, dict[str, Any]]:
        """`lookup` as a Python expression of ``key``, and its names: for generated functions of the fast path."""
        return "lookup(key)", {"lookup": self.lookup(prefix)}

    def load_source(self, prefix: bytes = b"") -> Optional[tuple[str, dict[str, Any]]]:
        """`raw_decode` of what follows *prefix* in ``key``, as an expression without calls of the codec, and its names.

        None if there is no such expression.
        """
        inline = self.inline()
        if not inline.format or "{codec}" in inline.unpack:
            return None
        names = {**inline.names, "unpack_key": Struct(f">{f'{len(prefix)}x' if prefix else ''}{inline.format}").unpack}
        return f"({inline.unpack.format(x='unpack_key(key)[0]')})", names

    def store_source(self, prefix: bytes = b"", x: str = "key", mark: str = "") -> tuple[str, str, dict[str, Any]]:
        """Python expressions of the name *x* for writing: a check, ``prefix + encode(x)``, and the names in them.

        If the check is true, the second expression gives the result of `encode`, or raises; otherwise the caller calls
        `encode`. *mark* ends the names that belong to this codec alone, so that one function can contain the
        expressions of several.
        """
        return source_of(self.inline(), self, prefix, x, mark)

    def bound(self, key: Any, *, through: bool = False) -> bytes:
        """The bytes at which the keys from *key* on begin; with *through*, the keys after it.

        A bound is compared and never stored: one outside the range of the type lies before or after all keys. Raises
        `EncodeError` for a value that has no order among them.
        """
        try:
            data = self.encode(key)
        except EncodeError as error:
            return self.beyond(key, error)
        return data + b"\0" if through else data

    def beyond(self, key: Any, error: EncodeError) -> bytes:
        """Bytes before or after those of all keys, if *key* lies there. Otherwise raises *error*, from its encoding."""
        side = self.side(key)
        if side == 0:
            raise error
        return b"" if side < 0 else TOP

    def side(self, key: Any) -> int:
        """The position of a *key* that cannot be encoded: -1 before all keys, 1 after all keys, 0 neither."""
        return 0

    def span(self, prefix: Optional[tuple[Any, ...]] = None, startswith: Any = None) -> tuple[bytes, bytes]:
        """The half-open range of the keys whose leading parts are *prefix*, each of them complete.

        *startswith* is the beginning of the part after those, or of a key that is not a tuple. Raises `EncodeError`.
        """
        if prefix is not None:
            if isinstance(prefix, (str, bytes)):
                self.refuse_prefix(prefix, f"write startswith={shortened(prefix)}")
            self.refuse_prefix(prefix, "leave it out, since keys here have no parts")
        begin = self.beginning(startswith)
        return begin, after(begin)

    def refuse_prefix(self, prefix: object, advice: str) -> NoReturn:
        """Raise `EncodeError` for an invalid *prefix*."""
        shown = shortened(prefix)
        message = f"prefix={shown} gives no leading parts of keys of type {self.name}: it takes a tuple; {advice}"
        raise EncodeError(message, key=prefix)

    def beginning(self, start: Any) -> bytes:
        """The bytes with which the keys begin that begin with the text or bytes *start*, and no others.

        Raises `EncodeError` if keys are neither text nor bytes.
        """
        message = f"startswith={shortened(start)}: keys of type {self.name} do not begin with a text or with bytes"
        raise EncodeError(message, key=start)

    def classic(self) -> KeyCodec[T]:
        """The codec of these keys in the classic layout: this one, except for four of the old key types."""
        return self

    def new_key(self, last: Optional[T] = None) -> T:
        """A new key: for numbers and times one after *last*, the greatest key in use; otherwise a random one.

        Raises `TypeError` for types without a rule for new keys.
        """
        self._refuse_new()

    def next_key(self, last: Optional[T]) -> T:
        """The key for a record that is added to a table; *last* as of `new_key`. Raises as that."""
        return self.new_key(last)

    def _refuse_new(self) -> NoReturn:
        raise TypeError(
            f"new keys of type {self.name} cannot be generated: store with table[key] = value, or declare a "
            f"source of keys: class T(Table[...], key=...), a field of the value or a function"
        )

    def inline(self) -> Inline:
        """The expressions by which a tuple encodes this key as a part; by default calls of this codec."""
        return Inline(
            "" if self.width is None else f"{self.width}s", "True", "{codec}.encode({x})", "{codec}.raw_decode({x})"
        )

    def refuse(self, key: object, why: str = "") -> NoReturn:
        """Raise the `EncodeError` for a key that does not fit, with the current exception as its cause."""
        why = f" ({why})" if why else ""
        shown = show(key)
        if shown in ("True", "False") and not isinstance(key, bool):
            shown += f" ({type(key).__module__}.{type(key).__name__})"
        message = f"{shown} is not a key of type {self._called or self.name}{why}: expected {self.expects}"
        if isinstance(key, slice):
            message += (
                "; [...] looks up one key: write .select(start, stop) for a range, .select(limit=10) for the first"
            )
        elif isinstance(key, FunctionType):
            message += "; a function is a condition: write .where(lambda record: ...)"
        elif isinstance(key, str) and self.made_of_text:
            message += f"; write {self.made_of_text} for a text"
        elif any(
            [hasattr(type(key), name) for name in ("__dataclass_fields__", "__struct_fields__", "__attrs_attrs__")]
        ):
            message += "; this is a record: give its key, which add() and .key(...) of a unique index return"
        else:
            message += self.told_of_part(key)
        raise EncodeError(message, key=key)

    def told_of_part(self, key: object) -> str:
        """What to write if *key*, which is none, is the beginning of keys of several parts; else an empty text."""
        return ""

    def __eq__(self, other: object) -> bool:
        return self.name == other.name if isinstance(other, KeyCodec) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"<key codec {self.name}>"


def source_of(
    inline: Inline, codec: KeyCodec[Any], prefix: bytes, x: str, mark: str
) -> tuple[str, str, dict[str, Any]]:  # fmt: skip
    """The result of `KeyCodec.store_source` for the expressions *inline* of *codec*."""
    names: dict[str, Any] = {**inline.names, f"codec{mark}": codec}
    value = inline.pack.format(x=x, codec=f"codec{mark}")
    if inline.format and not value.startswith(f"codec{mark}.encode("):
        names[f"pack{mark}"] = Struct(f">{f'{len(prefix)}s' if prefix else ''}{inline.format}").pack
        value = f"pack{mark}({f'{prefix!r}, ' if prefix else ''}{value})"
    elif prefix:
        value = f"{prefix!r} + {value}"
    return inline.check.format(x=x, codec=f"codec{mark}"), value, names


TOP = b"\xff" * 2048
"""Greater than every key that any engine can hold: the upper bound of what has none."""


def after(prefix: bytes) -> bytes:
    """The least bytes greater than everything that begins with *prefix*.

    >>> after(b"ab"), after(b"a" + bytes([255])), after(b"") == TOP
    (b'ac', b'b', True)
    """
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else TOP


def escape(data: bytes) -> bytes:
    r"""*data* with each NUL as ``00 01``: followed by ``00 00`` it sorts as the text or bytes does, and ends there.

    >>> escape(b"a\x00b")
    b'a\x00\x01b'
    """
    return data.replace(b"\0", b"\0\1")


def unescape(data: bytes, start: int) -> tuple[bytes, int]:
    r"""The bytes escaped in *data* from *start* on, and where the next part begins.

    >>> unescape(b"a\x00\x01b\x00\x00tail", 0)
    (b'a\x00b', 6)

    Raises `ValueError` if they have no end, or a NUL in them is not escaped.
    """
    end = data.index(b"\0\0", start)
    part = data[start:end]
    if b"\0" in part:
        if part.count(b"\0") != part.count(b"\0\1"):
            raise ValueError("a NUL is not escaped")
        part = part.replace(b"\0\1", b"\0")
    return part, end + 2

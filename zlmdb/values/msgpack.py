"""Values as MessagePack: the default for model classes, and the fastest format for them.

A record is a map of its fields by name, in the order of the class. Points in time are MessagePack timestamps, sets are
lists sorted by their items' bytes, and types that MessagePack does not have are text (see `scalars`).
https://github.com/msgpack/msgpack/blob/master/spec.md
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Callable, Optional, TypeVar

from .base import Decode, Encode, FunctionSerializer, Serializer, is_free, library, typename
from .models import Model, find_msgspec

if TYPE_CHECKING:
    from types import ModuleType

    from .paths import Path

T = TypeVar("T")


class MsgpackSerializer(FunctionSerializer[T]):
    """Values of *annotation* as MessagePack; without one, plain data (no tuples or sets, which would become lists).

    Writing refuses values that would not be read back: a text in an int field, a list for a tuple. With *checked* False
    it does not check, for programs whose values are known to be right; a wrong value may then be stored, and raises
    `DecodeError` when it is read.
    """

    def __init__(
        self, annotation: Any = Any, *, checked: bool = True, localns: Optional[Mapping[str, Any]] = None
    ) -> None:
        """*localns*: names, not in its module, that the annotations of a model class use.

        Raises TypeError for a type that cannot be stored and read back.
        """
        self._given = (annotation, localns)
        msgspec = find_msgspec()
        model = Model(annotation, "msgpack", _packer(msgspec), localns)
        self._narrows = msgspec is not None and not model.foreign
        encode, decode = _with_msgspec(model, msgspec) if msgspec is not None else _with_msgpack(model)
        self._model = model if msgspec is not None and checked else None
        super().__init__(
            "msgpack",
            model.checked(encode, decode) if checked else encode,
            decode,
            model=None if is_free(annotation) else model.name,
            examples=_EXAMPLES if is_free(annotation) else (),
        )

    @classmethod
    def for_type(cls, annotation: Any, *, localns: Optional[Mapping[str, Any]] = None) -> Serializer[Any]:
        """MessagePack of values of type *annotation*."""
        return cls(Any if is_free(annotation) else annotation, localns=localns)

    def narrow(self, paths: Collection[Path]) -> Optional[Decode]:
        msgspec = find_msgspec() if self._narrows else None
        if msgspec is None:
            return None
        from .narrow import narrowed  # late: few programs ask for it

        made = narrowed(self._given[0], paths, msgspec)
        if made is None:
            return None
        return msgspec.msgpack.Decoder(made).decode

    def rewriter(self, fields: Collection[str], read: Collection[str]) -> Optional[tuple[Decode, Encode]]:
        msgspec = find_msgspec()
        if msgspec is None or self._model is None or type(self) is not MsgpackSerializer:
            return None
        from .narrow import rewriting  # late, as above

        return rewriting(self._model, fields, msgspec.msgpack)

    def parts(self) -> Any:
        msgspec = find_msgspec() if self._narrows else None
        if msgspec is None:
            return None
        from .narrow import Parts, parted  # late, as above

        made = parted(self._given[0], msgspec)
        return None if made is None else Parts(msgspec.msgpack.Decoder(made[0]).decode, self._given[0], made[1])

    def _encoder_of_lists(self) -> Optional[Callable[[Sequence[T]], list[bytes]]]:
        msgspec = find_msgspec()
        if msgspec is None or self._model is None:
            return None
        from .manyplain import encoder_of_lists, keys_are_left_out  # late: many programs store no lists of documents
        from .shapes import documents_of

        found = documents_of(self._model.shape)
        if found is None or not keys_are_left_out():
            return None
        return encoder_of_lists(*found, msgspec.msgpack.Encoder().encode, self.raw_encode)

    def unchecked(self) -> Serializer[T]:
        """The same without checks on writing; the encoder is then msgspec's own, if msgspec is installed."""
        annotation, localns = self._given
        return MsgpackSerializer(annotation, checked=False, localns=localns)


def _packer(msgspec: Optional[ModuleType]) -> Encode:
    if msgspec is not None:
        return msgspec.msgpack.Encoder().encode
    msgpack = library("msgpack", "msgpack")

    # Its own conversion of datetimes goes through float, and is off by up to a second.
    def timestamp(value: Any) -> Any:
        if isinstance(value, int):  # else there was no need to ask; the words are those of msgspec
            raise OverflowError("can't serialize ints < -2**63 or > 2**64 - 1")
        if not isinstance(value, datetime):
            raise TypeError(f"MessagePack has no type for {typename(type(value))}")
        since = value - _EPOCH
        return msgpack.Timestamp(since.days * 86400 + since.seconds, since.microseconds * 1000)

    return lambda plain: msgpack.packb(plain, default=timestamp)


def _with_msgspec(model: Model, msgspec: ModuleType) -> tuple[Encode, Decode]:
    pack: Encode = msgspec.msgpack.Encoder().encode
    # The bound methods themselves: nothing of ours runs in reading, nor in unchecked writing.
    decode: Decode = msgspec.msgpack.Decoder(Any if model.foreign else model.annotation).decode
    if model.native:
        return pack, decode
    dump = model.shape.dump
    if model.foreign:
        plain, load = msgspec.msgpack.Decoder().decode, model.shape.load
        return lambda value: pack(dump(value)), lambda data: load(plain(data))
    return lambda value: pack(dump(value)), decode


def _with_msgpack(model: Model) -> tuple[Encode, Decode]:
    from .msgpackreader import unpack

    pack, dump, load = _packer(None), model.shape.dump, model.shape.load
    return lambda value: pack(dump(value)), lambda data: load(unpack(data))


_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

_EXAMPLES: list[Any] = [
    None, False, 0, -1, 2**64 - 1, -(2**63), 1.5, "", "na\u00efve", b"\0",
    [], [1, [2]], {}, {"a": {"b": [1, None]}}, {1: 2},
]  # fmt: skip

"""The common part of JSON and CBOR as formats of values: plain data, `marshal` callables, or a model class."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Callable, ClassVar, Optional, TypeVar

from ..errors import EncodeError
from .base import (
    KEEP,
    Data,
    Decode,
    Encode,
    FunctionSerializer,
    Serializer,
    is_a,
    is_free,
    refuse_callables,
    show,
    typename,
)
from .models import Model, find_msgspec
from .paths import AS_TEXT

if TYPE_CHECKING:
    from .paths import Path
    from .scalars import Form

T = TypeVar("T")


class DocumentSerializer(FunctionSerializer[T]):
    """Values of *annotation* in one format; without one, or with callables, the plain data of the format's library.

    *marshal* converts a value to plain data before it is written, *unmarshal* converts plain data to a value.
    """

    form: ClassVar[Form]

    def __init__(
        self,
        annotation: Any = Any,
        *,
        marshal: Optional[Callable[[Any], Any]] = None,
        unmarshal: Optional[Callable[[Any], Any]] = None,
        checked: bool = True,
        localns: Optional[Mapping[str, Any]] = None,
    ) -> None:
        """*checked* and *localns* as of `MsgpackSerializer`: plain data that would come back as something else, such as
        a tuple, are refused, too.

        Raises TypeError for a type that cannot be stored and read back.
        """
        self._given: dict[str, Any] = {
            "annotation": annotation,
            "marshal": marshal,
            "unmarshal": unmarshal,
            "localns": localns,
        }
        self._typed = not is_free(annotation) and marshal is None and unmarshal is None
        """Whether the type says how values are converted."""
        name = None if is_free(annotation) else typename(annotation)
        examples: list[Any] = []
        if marshal is not None or unmarshal is not None:
            encode, decode = self._marshalled(marshal, unmarshal)
        elif self._typed:
            encode, decode = self._of_type(annotation, checked, localns)
        else:
            encode, decode = self.codec()
            encode = self.faithful() if checked else encode
            examples = _EXAMPLES
        super().__init__(self.form, encode, decode, model=name, examples=examples)

    @classmethod
    def for_type(cls, annotation: Any, *, localns: Optional[Mapping[str, Any]] = None) -> Serializer[Any]:
        """This format, of values of type *annotation*."""
        return cls(Any if is_free(annotation) else annotation, localns=localns)

    @classmethod
    @abstractmethod
    def codec(cls) -> tuple[Encode, Decode]:
        """Encoder and decoder of plain data."""

    @classmethod
    def faithful(cls) -> Encode:
        """The encoder of plain data that refuses values that would be read back as another type."""
        pack, unpack = cls.codec()
        is_plain = plain_data_of(cls.form)

        def encode(value: Any) -> bytes:
            data = pack(value)
            if not is_plain(value):
                _refuse_changed(value, unpack(data), cls.form)
            return data

        return encode

    def typed_codec(self, model: Model) -> tuple[Encode, Decode]:
        """Encoder (unchecked) and decoder of the values of *model*."""
        pack, unpack = self.codec()
        to_plain, from_plain = model.to_plain(), model.from_plain()
        return lambda value: pack(to_plain(value)), lambda data: from_plain(unpack(data))

    def typed_decoder(self, model: Model) -> Decode:
        """The decoder of `typed_codec`, without its encoder being made."""
        return self.typed_codec(model)[1]

    def narrow(self, paths: Collection[Path]) -> Optional[Decode]:
        msgspec = find_msgspec()
        if msgspec is None or not self._typed:
            return None
        if self.form != "json" and any([path[-1] == AS_TEXT for path in paths]):  # there may be UUIDs by a tag, too
            return None
        from .narrow import narrowed  # late: few programs ask for it

        made = narrowed(self._given["annotation"], paths, msgspec)
        if made is None:
            return None
        model = Model(made, self.form, self.codec()[0])
        return None if model.foreign else self.typed_decoder(model)

    def _of_type(self, annotation: Any, checked: bool, localns: Optional[Mapping[str, Any]]) -> tuple[Encode, Decode]:
        pack, unpack = self.codec()
        model = Model(annotation, self.form, pack, localns)
        if model.shape.loose:  # Json[dict]: nothing to convert, and the format's library is the judge of what is inside
            return _of_class(getattr(model.shape, "cls", object), self.faithful() if checked else pack, unpack)
        encode, decode = self.typed_codec(model)
        return (model.checked(encode, decode) if checked else encode), decode

    def _marshalled(
        self, marshal: Optional[Callable[[Any], Any]], unmarshal: Optional[Callable[[Any], Any]]
    ) -> tuple[Encode, Decode]:
        pack, unpack = self.codec()
        encode: Encode = pack if marshal is None else lambda value: pack(marshal(value))
        decode: Decode = unpack if unmarshal is None else lambda data: unmarshal(unpack(data))
        return encode, decode

    def configured(self, **callables: Optional[Callable[..., Any]]) -> Serializer[Any]:
        """A copy that calls ``marshal`` before writing and ``unmarshal`` after reading; each may be left out."""
        refuse_callables(self.name, callables, ("marshal", "unmarshal"))
        if all(one is None for one in callables.values()):
            return self
        given: dict[str, Any] = {**self._given, "marshal": None, "unmarshal": None, **callables}
        return type(self)(**{name: given[name] for name in self._given})

    def _refusal(self, verb: str, what: str, error: Exception) -> str:
        said = super()._refusal(verb, what, error)
        foreign = isinstance(error, TypeError) or "naive" in str(error)
        return f"{said}: {KEEP}" if verb == "store" and foreign else said

    def unchecked(self) -> Serializer[T]:
        """The same without checks on writing."""
        return type(self)(**self._given, checked=False)


def plain_data_of(form: Form) -> Callable[[Any], bool]:
    """The test whether a value is plain data that *form* gives back as it was."""
    from .scalars import PlainData  # late: it loads what programs without models and documents need not

    return PlainData(form).fits


def _refuse_changed(value: Any, back: Any, form: str) -> None:
    """Raise `EncodeError` unless *back*, what is read of the bytes of *value*, is the same, types included."""
    found = _difference(value, back, "the value")
    if found is not None:
        path, given, read = found
        raise EncodeError(
            f"{path} is {show(given)} ({typename(type(given))}), and {form} would return it as {show(read)} "
            f"({typename(type(read))}): store that, {KEEP}; Unchecked stores it nevertheless"
        )


def _difference(value: Any, back: Any, path: str) -> Optional[tuple[str, Any, Any]]:
    """Where *value* and *back* differ, and what is there in each."""
    if type(value) is not type(back):
        return path, value, back
    if is_a(value, dict):
        return _of_dicts(value, back, path)
    if is_a(value, (list, tuple)):
        if len(value) == len(back):
            for position, (one, other) in enumerate(zip(value, back)):
                found = _difference(one, other, f"{path}[{position}]")
                if found is not None:
                    return found
            return None
    elif value == back or value != value:
        return None
    return path, value, back


def _of_dicts(value: Any, back: Any, path: str) -> Optional[tuple[str, Any, Any]]:
    if len(value) != len(back):
        return path, value, back
    for (key, one), (read, other) in zip(value.items(), back.items()):
        found = _difference(key, read, f"a key of {path}") or _difference(one, other, f"{path}[{show(key)}]")
        if found is not None:
            return found
    return None


def _of_class(cls: type[Any], pack: Encode, unpack: Decode) -> tuple[Encode, Decode]:
    """*pack* and *unpack*, for values of *cls* only."""

    def encode(value: Any) -> bytes:
        if not isinstance(value, cls):
            raise TypeError(f"expected {typename(cls)}")
        return pack(value)

    def decode(data: Data) -> Any:
        value = unpack(data)
        if not isinstance(value, cls):
            raise ValueError(f"expected {typename(cls)}, got {typename(type(value))}")
        return value

    return encode, decode


_EXAMPLES: list[Any] = [
    None, False, True, 0, -1, 2**40, 1.5, "", "na\u00efve", [], [1, [2]], {}, {"a": {"b": [1, None]}},
]  # fmt: skip

"""Values by the fields that a file records, for programs that do not have their class."""

from __future__ import annotations

from typing import Any, Optional

from .base import FunctionSerializer, Serializer, is_a
from .description import Description, format_of, spelled
from .json import JsonSerializer
from .makemodel import make_model
from .resolve import from_name


class Recorded(FunctionSerializer[Any]):
    """Reads and writes what the codec *name* does, as objects of a class made of *fields*, and checks them.

    A default that only the program can make is not known: such a record is read, and is refused when it is written.
    """

    def __init__(self, name: str, fields: Description) -> None:
        """Raises TypeError where the class cannot be made, or the values are pickles, which nothing here loads."""
        form = format_of(name)
        if form is None or form == "pickle":
            raise TypeError(f"values of type {name} are read and written by programs only")
        if any("tag" in model for model in fields["models"]):
            raise TypeError("records with a tag are read and written by programs only")
        self._model = make_model(fields, lenient=True)
        self.shown = spelled(fields["type"], fields["models"])
        inner = _typed(form, self._model)
        outer = from_name(name.replace(form, "pickle"))  # what is around it, with bytes inside
        super().__init__(
            name,
            lambda value: outer.encode(inner.encode(value)),
            lambda data: inner.decode(outer.decode(data)),
            model="recorded",
        )

    def from_json(self, text: str) -> Any:
        """The value that a JSON *text* is.

        Raises `DecodeError` for one that does not fit, `EncodeError` where a value is missing that only the program can
        make, ValueError for a field that the file does not record.
        """
        by_json: Serializer[Any] = JsonSerializer(self._model)
        given = text.encode()
        value = by_json.decode(given)
        _refuse_others(_PLAIN.decode(given), _PLAIN.decode(by_json.encode(value)), "")
        return value


_PLAIN: Serializer[Any] = JsonSerializer()


def recorded(name: str, fields: Optional[Description]) -> Optional[Recorded]:
    """What reads and writes values by their recorded *fields*; None where these do not say enough."""
    if fields is None:
        return None
    try:
        return Recorded(name, fields)
    except TypeError:
        return None


def _typed(form: str, model: Any) -> Serializer[Any]:
    if form == "msgpack":
        from .msgpack import MsgpackSerializer

        return MsgpackSerializer(model)
    if form == "json":
        return JsonSerializer(model)
    if form == "cbor":
        from .cbor import CborSerializer

        return CborSerializer(model)
    from .flatbuffers import FlatBuffersSerializer

    return FlatBuffersSerializer(model)


def _refuse_others(given: Any, read: Any, where: str) -> None:
    """Raise ValueError for a field of *given* that is not in what was *read* of it."""
    if is_a(given, dict) and is_a(read, dict):
        for name, value in given.items():
            if name not in read:
                raise ValueError(f"there is no field {where}{name}; there are {', '.join(read)}")
            _refuse_others(value, read[name], f"{where}{name}.")
    elif is_a(given, list) and is_a(read, list):
        for one, other in zip(given, read):
            _refuse_others(one, other, where)

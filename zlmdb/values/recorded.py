"""Values by the fields or the type that a file records, for programs that do not have their class."""

from __future__ import annotations

from typing import Any, Optional

from .base import FunctionSerializer, Serializer, is_a
from .description import Description, format_of, spelled
from .json import JsonSerializer
from .makemodel import make_model
from .resolve import from_name, inside, of_format
from .spelledtypes import plain_type


class Recorded(FunctionSerializer[Any]):
    """Writes what the codec *name* does, as values of the type *model*, and checks them; *shown* is it in words.

    It reads them by that type too, unless they are *plain* data. A class was made of the recorded fields: a default
    that only the program can make is not known, and such a record is read, and refused when it is written.
    """

    def __init__(self, name: str, model: Any, shown: str, *, plain: bool = False) -> None:
        """Raises TypeError where the values are pickles, which nothing here loads."""
        form = format_of(name)
        if form is None or form == "pickle":
            raise TypeError(f"values of type {name} are read and written by programs only")
        self._model = model
        self.shown = shown
        encode, decode = inside(name, of_format(form, model))
        super().__init__(name, encode, from_name(name).decode if plain else decode, model="recorded")

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


def recorded(name: str, fields: Optional[Description], spelling: Optional[str] = None) -> Optional[Recorded]:
    """What reads and writes values by their recorded *fields*; None where these do not say enough.

    *spelling* is the recorded text of the type, for values without fields.
    """
    try:
        if fields is None:
            plain = plain_type(spelling)
            shown = f"the type that the file records, {spelling}"
            return None if plain is None else Recorded(name, plain, shown, plain=True)
        if any("tag" in model for model in fields["models"]):
            raise TypeError("records with a tag are read and written by programs only")
        shown = f"the fields that the file records, {spelled(fields['type'], fields['models'])}"
        return Recorded(name, make_model(fields, lenient=True), shown)
    except (TypeError, ValueError):  # the latter of a number that a field cannot have
        return None


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

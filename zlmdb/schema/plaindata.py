"""The records of a table as plain data, while the shape of the table changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

from .. import errors
from ..namedtuples import NamedTuple
from ..store.slots import Slot
from ..values.base import Serializer, is_a
from ..values.description import Description, format_of
from ..values.msgpack import MsgpackSerializer
from ..values.resolve import from_name, inside, of_format
from .declaration import Declaration

_BY_OBJECT = ("pickle", "flatbuffers")
"""Formats that are first decoded to an object: their bytes alone do not name the fields."""


class Plain(NamedTuple):
    """How values are read and stored as plain data. *name* is the codec of the bytes that *encode* writes."""

    decode: Callable[[Any], Any]
    encode: Callable[[Any], bytes]
    name: str


def plain_of(slot: Slot, declared: Optional[Declaration], *, unpickle: bool = False) -> Plain:
    """How the values of the table *slot* are read and stored as plain data.

    Plain data are what the format stores; for pickles and FlatBuffers, what MessagePack would store. Pickles of no
    declared class are read as the objects that they contain, and stored as plain data. Pickles are loaded only if the
    program declares a type with Pickle for the table, or if *unpickle* is true. Raises `SchemaMismatch` if the file
    does not describe the values.
    """
    name = str(slot.value)
    form = format_of(name)
    if form not in _BY_OBJECT:
        codec = from_name(name).unchecked()
        return Plain(_with_defaults(codec.decode, form, slot.fields), codec.encode, name)
    if slot.fields is None and form != "pickle":
        raise errors.SchemaMismatch(
            f"table {slot.name!r} has values of type {name}, and the file does not record their fields: declare the "
            f"table in the schema, so that the class reads them",
            table=slot.name,
        )
    if form == "pickle" and not unpickle and not _declares_pickles(declared):
        raise errors.SchemaMismatch(
            f"table {slot.name!r} contains pickles, which the schema does not declare, and loading them can run code: "
            f"if you trust the file, call old.unpickled({slot.name!r}) first",
            table=slot.name,
        )
    from ..values.makemodel import make_model, plain_fields  # late: few files need it

    plain: Serializer[Any] = MsgpackSerializer()
    model = None if slot.fields is None else make_model(slot.fields, lenient=True, pickled=form == "pickle")
    _, loaded = inside(name, _of_model(str(form), model))
    if model is None:
        return Plain(loaded, plain.unchecked().encode, "msgpack")

    def decode(data: Any) -> Any:
        return plain_fields(loaded(data))

    return Plain(decode, plain.unchecked().encode, "msgpack")


def _declares_pickles(declared: Optional[Declaration]) -> bool:
    return declared is not None and format_of(declared.value.name) == "pickle"


def _of_model(form: str, model: Any) -> Serializer[Any]:
    if form != "pickle":
        return of_format(form, model)
    from ..values.pickle import PickleSerializer

    return PickleSerializer(model)


def _with_defaults(
    decode: Callable[[Any], Any], form: Optional[str], fields: Optional[Description]
) -> Callable[[Any], Any]:  # fmt: skip
    """A decoder as *decode* that gives a record the recorded default of each field that it lacks."""
    defaults = _defaults(fields)
    if not defaults or fields is None:
        return decode
    if form == "json":  # which stores bytes as text
        from ..values.makemodel import make_model  # late, as above

        for field in fields["models"][0]["fields"]:
            if field["name"] in defaults:
                kind: Serializer[Any] = of_format(form, make_model({**fields, "type": field["type"]}))
                defaults[field["name"]] = of_format(form).decode(kind.encode(defaults[field["name"]]))

    def decoded(data: Any) -> Any:
        value = decode(data)
        return {**defaults, **value} if is_a(value, dict) else value

    return decoded


def _defaults(fields: Optional[Description]) -> dict[str, Any]:
    if fields is None or fields["type"] != ["model", 0] or fields["models"][0]["kind"] != "map":
        return {}
    listed = fields["models"][0]["fields"]
    return {field["name"]: field["default"] for field in listed if "default" in field and "absent" in field}


def reader_of(name: str, declared: Declaration) -> Callable[[Any], Any]:
    """A function that reads plain data, stored by the codec *name*, as values of the class of *declared*.

    A NamedTuple may be a list or a dict: FlatBuffers have its fields by name.
    """
    form: Any = format_of(name)
    if form is None or declared.fields is None or form in _BY_OBJECT:
        return declared.value.decode
    from ..values.annotations import shape_of
    from ..values.byposition import by_position  # late, as above

    model: Serializer[Any] = of_format(form, declared.model, declared.names)
    plain: Serializer[Any] = of_format(form).unchecked()
    listed = by_position(shape_of(declared.model, form, plain.encode, declared.names))
    if listed is None:
        return declared.value.decode if name == declared.value.name else inside(name, model)[1]
    loaded = inside(name, plain)[1]
    return lambda data: model.decode(plain.encode(listed(loaded(data))))


def other_fields(name: str, declared: Declaration, data: Any) -> str:
    """For an error: the fields of plain *data*, of the codec *name*, that the class lacks, and those that it needs."""
    try:
        given: Any = None if format_of(name) in _BY_OBJECT else from_name(name).unchecked().decode(data)
    except errors.DecodeError:
        return ""
    fields = declared.described
    if not is_a(given, dict) or fields is None or fields["type"] != ["model", 0]:
        return ""
    listed = fields["models"][0]["fields"]
    names = [field["name"] for field in listed]
    more = [str(name) for name in given if name not in names]
    lacking = [
        field["name"] for field in listed if field["name"] not in given and {"default", "made"}.isdisjoint(field)
    ]
    said = [f"it has {', '.join(more)}, which the class lacks"] if more else []
    said += [f"it lacks {', '.join(lacking)}"] if lacking else []
    return f" ({'; '.join(said)})" if said else ""

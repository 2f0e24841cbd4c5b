"""Pickled objects of Pydantic models, which Pydantic validates after they were unpickled."""

from __future__ import annotations

import operator
from typing import Any, Optional

from .base import is_a, library
from .pickleshapes import PydanticObject, Recurring
from .scalars import Shape
from .shapes import DictOf, ListOf, Record, SetOf, TupleOf, TypedDictRecord, UnionOf, walk

_put = object.__setattr__
Seen = dict[int, tuple[Any, Any]]
"""Objects that were visited, by id, and what took their place: one that occurs twice is validated once."""


def holds_pydantic(shape: Shape) -> bool:
    """Whether there is a Pydantic model anywhere in *shape*. Kept with the shape."""
    known: Optional[bool] = shape.__dict__.get("holds_pydantic")
    if known is None:
        inside = list(walk(shape))
        for one in inside:
            if isinstance(one, Recurring):
                inside += [part for part in walk(one.record) if part not in inside]
        known = shape.__dict__["holds_pydantic"] = any(isinstance(one, PydanticObject) for one in inside)
    return known


def validated(value: Any, shape: Shape, seen: Optional[Seen] = None) -> Any:
    """*value*, which was just unpickled and is to fit *shape*, with each Pydantic model in it validated.

    What a model holds is validated before it. Objects stay the same as far as they can be changed.
    """
    while isinstance(shape, (UnionOf, Recurring)):
        members = [shape.record] if isinstance(shape, Recurring) else shape.members
        member = next((one for one in members if one.fits(value)), None)
        if member is None:
            return value
        shape = member
    if not holds_pydantic(shape):
        return value
    seen = {} if seen is None else seen
    if id(value) not in seen:
        seen[id(value)] = value, value  # in an object that holds itself
        seen[id(value)] = value, _validated(value, shape, seen)
    return seen[id(value)][1]


def rename_fields(value: Any, record: PydanticObject) -> None:
    """Give the fields of *value* the names that they have now."""
    own, given = value.__dict__, value.__pydantic_fields_set__
    for field in record.fields:
        name = next((name for name in field.former if name in own), None)
        if name is not None and field.name not in own:
            own[field.name] = own.pop(name)
            if name in given:
                given.add(field.name)


def _pydantic(value: Any, record: PydanticObject, seen: Seen) -> Any:
    """*value*, an object of exactly the class of *record*, with what Pydantic makes of its fields."""
    cls: Any = record.cls
    rename_fields(value, record)
    own: dict[str, Any] = value.__dict__
    fields = {field.name: validated(own[field.name], field.shape, seen) for field in record.fields if field.name in own}
    given: Any = {record.arguments[name]: item for name, item in fields.items()}
    if record.is_root:
        given = fields.get("root")
    elif cls.model_config.get("extra") == "allow":
        extra: dict[str, Any] = value.__pydantic_extra__ or {}
        given = {**extra, **given}
    made = cls.model_validate(given, **record.options)
    if type(made) is not cls:
        return made
    # The object stays the same: others in the pickle may refer to it, and it holds what is private.
    known = value.__pydantic_fields_set__ | made.__pydantic_fields_set__ - fields.keys()
    _put(value, "__dict__", made.__dict__)
    _put(value, "__pydantic_extra__", made.__pydantic_extra__)
    _put(value, "__pydantic_fields_set__", known & cls.__pydantic_fields__.keys())
    if made.__pydantic_private__ is not None:  # with what the class has got since
        _put(value, "__pydantic_private__", {**made.__pydantic_private__, **(value.__pydantic_private__ or {})})
    return value


def _validated(value: Any, shape: Shape, seen: Seen) -> Any:
    if isinstance(shape, PydanticObject):
        return _pydantic(value, shape.of_class(type(value)), seen) if is_a(value, shape.cls) else value
    if isinstance(shape, Record):
        return _record(value, shape, seen) if is_a(value, shape.cls) else value
    if isinstance(shape, DictOf) and is_a(value, dict):
        items = [(validated(key, shape.key, seen), validated(item, shape.value, seen)) for key, item in value.items()]
        if holds_pydantic(shape.key):  # its hash may be another one now
            value.clear()
        value.update(items)
        return value
    if isinstance(shape, SetOf) and is_a(value, (set, frozenset)):
        return _filled(value, [validated(item, shape.item, seen) for item in value])
    if isinstance(shape, ListOf) and is_a(value, (list, tuple)):
        return _filled(value, [validated(item, shape.item, seen) for item in value])
    if isinstance(shape, TupleOf) and is_a(value, tuple):
        return _filled(value, [validated(item, part, seen) for item, part in zip(value, shape.parts)])
    return value


def _filled(value: Any, items: list[Any]) -> Any:
    """The collection *value* with *items* in place of its own."""
    if is_a(value, list):
        value[:] = items
    elif is_a(value, set):
        value.clear()
        value.update(items)
    elif is_a(value, tuple) and all(map(operator.is_, value, items)):
        pass
    else:
        value = type(value)(items)
    return value


def _record(value: Any, record: Record, seen: Seen) -> Any:
    """An object of another model class with what it holds validated."""
    held = [field for field in record.fields if holds_pydantic(field.shape)]
    if isinstance(record, TypedDictRecord):
        value.update({one.name: validated(value[one.name], one.shape, seen) for one in held if one.name in value})
        return value
    changed: dict[str, Any] = {}
    for field in held:
        item = getattr(value, field.name)
        found = validated(item, field.shape, seen)
        if found is not item:
            changed[field.name] = found
    if is_a(value, tuple):
        return value._replace(**changed) if changed else value
    put = library("msgspec.structs", "msgspec").force_setattr if hasattr(value, "__struct_fields__") else _put
    for name, found in changed.items():
        put(value, name, found)
    return value

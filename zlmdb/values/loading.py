"""Creates objects of model classes from plain data where there is no msgspec (PyPy).

cattrs creates objects of all classes. For dataclasses a generated function does the same in half of the time: fields
that are stored unchanged need no call. Uncommon cases (a missing field, a field of another type) are left to cattrs, or
to ``load`` of the field's shape.
"""

from __future__ import annotations

import importlib.util
from typing import Any, Callable, Optional
from uuid import UUID

from ..codegen import Recipe, Source
from ..keys.uuids import uuid_from_bytes
from .base import library
from .scalars import Float, Leaf, PlainData, Shape
from .shapes import DictOf, ListOf, Load, Record, expect, other_than_none

_LOADING = Recipe("loading")


def loader(record: Record) -> Load:
    """The function from plain data to an object of the class of *record*."""
    return generated(record, _when_needed(record)) if _is_common(record) else by_cattrs(record)


def _when_needed(record: Record) -> Load:
    """`by_cattrs`, made on first use: it takes milliseconds, and is seldom called."""
    made: list[Load] = []

    def load(data: Any) -> Any:
        if not made:
            made.append(by_cattrs(record))
        return made[0](data)

    return load


def by_cattrs(record: Record) -> Load:
    """The function by which cattrs creates a dataclass or attrs class from a map, with zlmdb's field types."""
    if hasattr(record.cls, "__struct_config__") or importlib.util.find_spec("cattrs") is None:
        return by_name(record)  # cattrs knows no Struct, which comes here where it is beside what msgspec does not know
    gen = library("cattrs.gen", "cattrs")
    converter = library("cattrs", "cattrs").Converter(detailed_validation=False)

    def hook(shape: Shape) -> Callable[[Any, Any], Any]:
        return lambda data, _: shape.load(data)

    overrides: dict[str, Any] = {
        field.name: gen.override(omit=False, rename=field.stored, struct_hook=hook(field.shape))
        for field in record.fields
    }
    make = gen.make_dict_structure_fn(
        record.annotation, converter, _cattrs_detailed_validation=False, _cattrs_include_init_false=True, **overrides
    )

    def load(data: Any) -> Any:
        try:
            return make(expect(dict, data, record.label), record.cls)
        except KeyError as missing:
            raise ValueError(f"{record.label} without {missing}") from missing

    return load


def by_name(record: Record) -> Load:
    """How an object is made of a map by a call of its class with the fields by name.

    That is where there is no cattrs: CPython has msgspec, but for models with what that does not know. A Struct is made
    like this in any case.
    """

    def load(data: Any) -> Any:
        stored = expect(dict, data, record.label)
        held = [
            (field.member, field.shape.load(stored[field.stored])) for field in record.fields if field.stored in stored
        ]
        try:
            made = record.cls(**{member.argument: value for member, value in held if not member.late})
        except TypeError as error:
            raise ValueError(f"{record.label}: {error}") from error
        for member, value in held:
            if member.late:
                object.__setattr__(made, member.name, value)
        return made

    return load


def _is_common(record: Record) -> bool:
    """Whether objects are created by calling the class with each field: a dataclass that sets none itself."""
    late = any(field.member.late for field in record.fields)
    return hasattr(record.cls, "__dataclass_fields__") and bool(record.fields) and not late


def generated(record: Record, general: Load) -> Load:
    """*general* as one flat function for a map that has all fields, in their types."""
    source = Source()
    names: dict[str, Any] = {"cls": record.cls, "general": general}
    variables = [f"field{number}" for number in range(len(record.fields))]
    with source.block("def load(data):"):
        with source.block("if type(data) is not dict:"):
            source.add("return general(data)")
        with source.block("try:"):
            source.add(*(f"{x} = data[{field.stored!r}]" for x, field in zip(variables, record.fields)), "pass")
        with source.block("except KeyError:"):
            source.add("return general(data)")
        for x, field in zip(variables, record.fields):
            _convert(source, names, x, field.shape, field.shape.load)
        # By position as cattrs gives them.
        items = [
            x if field.required and field.member.build == "$" else f"{field.name}={x}"
            for x, field in zip(variables, record.fields)
        ]
        source.add(f"return cls({', '.join(items)})")
    return _LOADING.functions(record.label, str(source), names)["load"]


def _convert(source: Source, names: dict[str, Any], x: str, shape: Shape, load: Load) -> None:
    """Add lines that make of the variable *x* the value of *shape*; *load* does so for all that there may be."""
    inner = other_than_none(shape)
    if inner is not None:
        with source.block(f"if {x} is not None:"):
            _convert(source, names, x, inner, load)
            source.add("pass")
        return
    if isinstance(shape, PlainData):
        return
    name = f"general_{x}"
    names[name] = load
    cls = _as_it_is(shape)
    if cls is not None:
        names[f"cls_{x}"] = cls
        source.add(f"if type({x}) is not cls_{x}: {x} = {name}({x})")
    elif isinstance(shape, Leaf) and shape.cls is UUID:
        names["uuid_of_text"] = uuid_of_text
        source.add(f"{x} = uuid_of_text({x}) if type({x}) is str else {name}({x})")
    elif not _convert_items(source, names, x, shape):
        names[f"load_{x}"] = names.pop(name)
        source.add(f"{x} = load_{x}({x})")


def _convert_items(source: Source, names: dict[str, Any], x: str, shape: Shape) -> bool:
    """The same for a list or dict of what is stored as it is; false for any other shape."""
    if isinstance(shape, ListOf) and type(shape) is ListOf and shape.cls is list:
        outer, items, parts = "list", x, [("item", shape.item)]
    elif isinstance(shape, DictOf) and shape.cls is dict:
        outer, items, parts = "dict", f"{x}.items()", [("key", shape.key), ("item", shape.value)]
    else:
        return False
    classes = [(part, _as_it_is(inner)) for part, inner in parts]
    if any(cls is None for _, cls in classes):
        return False
    names.update((f"{part}_{x}", cls) for part, cls in classes)
    tests = " or ".join(f"type({part}) is not {part}_{x}" for part, _ in classes)
    source.add(
        f"if type({x}) is {outer}:",
        f"    for {', '.join(part for part, _ in classes)} in {items}:",
        f"        if {tests}:",
        f"            {x} = general_{x}({x})",
        "            break",
        "else:",
        f"    {x} = general_{x}({x})",
    )
    return True


def _as_it_is(shape: Shape) -> Optional[type]:
    """The class of which every value of *shape* is stored as it is, if there is one."""
    if isinstance(shape, Float):
        return float
    return shape.cls if isinstance(shape, Leaf) and shape.stored_as_it_is else None


def uuid_of_text(text: str) -> UUID:
    """The UUID of *text*, as ``UUID(text)``, in a third of its time on PyPy: there ``int(text, 16)`` takes long."""
    try:
        data = bytes.fromhex(text.replace("-", ""))
    except ValueError:
        return UUID(text)
    return uuid_from_bytes(data) if len(data) == 16 else UUID(text)

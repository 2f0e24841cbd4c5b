"""Model classes as pickles of a tuple of their fields: half the time of a pickle of the object.

The first item of the tuple describes the others: ``1f3a5c77:name,email,age`` is a checksum of their types and the names
of the fields in order; a name may be followed by the mark of a type that is `packed`. If the description equals that of
the current class, nothing is checked. Otherwise (the class has changed since, or the value was written without a check,
and then there is no checksum) fields are found by name, missing ones get their defaults, unknown ones are ignored, and
the result is checked.

Only objects that the program cannot distinguish from the original are pickled so: `fields_suffice` decides which
classes.
"""

from __future__ import annotations

import copyreg
import zlib
from collections.abc import Iterable
from pickle import dumps
from typing import Any, Optional

from ..codegen import Recipe
from .base import Decode, Encode, is_a, show, typename
from .checks import Check
from .packed import packing_of, unpacked
from .pickleshapes import PydanticObject, structure
from .scalars import Shape
from .shapes import DictOf, Field, ListOf, NamedTupleRecord, Record, TupleOf, TypedDictRecord, UnionOf, walk
from .validated import holds_pydantic, rename_fields, validated

_PICKLING = Recipe("pickling")
_UNPICKLING = Recipe("unpickling")
_put = object.__setattr__
_new_tuple: Any = getattr(tuple, "__new__")  # noqa: B009 - Any, for checkers
_HOOKS = ("__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__getnewargs__", "__getnewargs_ex__")
_MAKERS = ("dataclasses", "typing", "collections", "msgspec", "abc", "builtins")


def fields_suffice(cls: type[Any]) -> bool:
    """Whether an object of the model class *cls* is made of its fields and nothing else.

    Not so where the class says itself how it is pickled, computes something when it is made, or has a base that is no
    model and has an ``__init__`` or slots of its own, or the layout of a built-in type.
    """
    if cls in copyreg.dispatch_table or any(_says_itself(cls, hook) for hook in _HOOKS):
        return False
    if any(hasattr(cls, hook) for hook in ("__post_init__", "__attrs_post_init__", "__attrs_init__")):
        return False
    if issubclass(cls, tuple) or hasattr(cls, "__struct_config__"):
        return True
    try:
        object.__new__(cls)
    except TypeError:  # abstract, or derived from a built-in type
        return False
    parameters: Any = getattr(cls, "__dataclass_params__", None)
    return (parameters is None or parameters.init) and all(map(_adds_nothing, cls.__mro__))


def _says_itself(cls: type[Any], hook: str) -> bool:
    owner = next((base for base in cls.__mro__ if hook in vars(base)), object)
    if owner is object or owner.__module__.partition(".")[0] in _MAKERS:
        return False
    function: Any = vars(owner)[hook]
    if getattr(function, "__module__", None) in ("dataclasses", "collections"):
        return False
    code: Any = getattr(function, "__code__", None)
    generated = ("slots_getstate", "slots_setstate", "__getnewargs__" if issubclass(owner, tuple) else "")
    return code is None or code.co_name not in generated


def _adds_nothing(base: type[Any]) -> bool:
    own = vars(base)
    if base is object or "__dataclass_fields__" in own or "__attrs_attrs__" in own:
        return True
    if base.__module__ in _MAKERS:
        return True
    return "__init__" not in own and not own.get("__slots__")


class FieldTuples:
    """How objects of one model class are pickled and made again."""

    def __init__(self, record: Record, loads: Decode, *, checked: bool, trusting: bool) -> None:
        """*trusting*: what says that it was checked is believed; what does not is checked in any case."""
        self.record = record
        self.loads = loads
        self.packings = [packing_of(field.shape) for field in record.fields]
        names = ",".join(
            field.name if packing is None else f"{field.name}={packing.mark}"
            for field, packing in zip(record.fields, self.packings)
        )
        checksum = zlib.crc32(structure(record).encode("utf-8", "surrogatepass"))
        self.trusted = f"{checksum:08x}:{names}"
        self.fingerprint = self.trusted if checked else f":{names}"
        self.encode = self._encoder(checked)
        self.decode = self._decoder(trusting)

    def _encoder(self, checked: bool) -> Encode:
        check = Check(
            "general(value)", {"dumps": dumps, "fingerprint": self.fingerprint, "general": self._other(checked)}
        )
        if checked:
            self.record.test_value(check)
        else:
            check.names["cls"] = self.record.cls
            check.refuse_if("type(value) is not cls")
            for number, field in enumerate(self.record.fields):
                check.add(f"field{number} = value.{field.name}")
        items = ["fingerprint"]
        for number, packing in enumerate(self.packings):
            item = f"field{number}"
            items.append(item if packing is None else f"{check.constant(packing.pack)}({item})")
        return check.made(f"dumps(({', '.join(items)},), 5)", self.record.label, _PICKLING)

    def _other(self, checked: bool) -> Encode:
        """How values are pickled that are not exactly of the class: a subclass as the object it is."""
        fits, misfit, cls, label = self.record.fits, self.record.misfit, self.record.cls, self.record.label

        def other(value: Any) -> bytes:
            if not (fits(value) if checked else isinstance(value, cls)):
                raise ValueError(misfit(value, label))
            return dumps(value, 5)

        return other

    def _decoder(self, trusting: bool) -> Decode:
        names: dict[str, Any] = {
            "loads": self.loads,
            "fingerprint": self.trusted,
            "general": self.careful,
            "checked": self._checked,
        }
        size = len(self.record.fields)
        items = [f"i{number}" for number in range(size)]
        lines = [
            "def decode(data):",
            "    value = loads(data)",
            f"    if type(value) is not tuple or len(value) != {size + 1} or value[0] != fingerprint:",
            "        return general(value)",
            f"    {''.join(f'{item}, ' for item in ['_', *items])}= value",
        ]
        for item, packing, field in zip(items, self.packings, self.record.fields):
            if packing is not None:
                names.update({f"packed_{item}": packing.packed, f"unpack_{item}": packing.unpack})
                lines.append(f"    if type({item}) is packed_{item}: {item} = unpack_{item}({item})")
            if holds_pydantic(field.shape):
                names.update({"validated": validated, f"shape_{item}": field.shape})
                lines.append(f"    {item} = validated({item}, shape_{item})")
        lines += [f"    {line}" for line in self._making(items, names)]
        lines.append("    return made" if trusting else "    return checked(made)")
        source = "\n".join(lines) + "\n"
        return _UNPICKLING.functions(self.record.label, source, names)["decode"]

    def _making(self, items: list[str], names: dict[str, Any]) -> list[str]:
        """Lines that make the object ``made`` of the variables *items*; adds to *names* what they use."""
        record, cls = self.record, self.record.cls
        names.update(cls=cls, put=_put)
        names["new"] = _new_tuple if isinstance(record, NamedTupleRecord) else object.__new__
        fields = [field.name for field in record.fields]
        if issubclass(cls, tuple):
            return [f"made = new(cls, ({''.join(f'{item}, ' for item in items)}))"]
        if hasattr(cls, "__struct_config__"):
            return [f"made = cls({', '.join(f'{name}={item}' for name, item in zip(fields, items))})"]
        plain: Any = vars(object)["__setattr__"] is getattr(cls, "__setattr__")  # noqa: B009 - Any, for checkers
        put = "made.{name} = {item}" if plain else "put(made, {name!r}, {item})"
        return ["made = new(cls)", *(put.format(name=name, item=item) for name, item in zip(fields, items))]

    def _checked(self, value: Any) -> Any:
        if not self.record.fits(value):
            raise ValueError(self.record.misfit(value, self.record.label))
        return value

    def careful(self, value: Any) -> Any:
        """The object of what was unpickled: a tuple of any fingerprint, or the object itself. Raises ValueError."""
        record = self.record
        if value.__class__ is tuple:
            value = made_of(record, self._by_name(value))
        elif not isinstance(value, record.cls):
            raise ValueError(f"expected {record.label}, got {show(value)} ({typename(type(value))})")
        completed(value, record)
        return self._checked(validated(value, record))

    def _by_name(self, items: tuple[Any, ...]) -> dict[str, Any]:
        text = items[0] if items else None
        if type(text) is not str or ":" not in text:
            raise ValueError(f"expected {self.record.label}, got a tuple without the names of its items")
        names = [name for name in text.partition(":")[2].split(",") if name]
        if len(names) != len(items) - 1:
            raise ValueError(f"{len(names)} names of fields for {len(items) - 1} fields")
        return dict(map(unpacked, names, items[1:]))


def made_of(record: Record, given: dict[str, Any]) -> Any:
    """An object of the class of *record* with the fields *given* by name; defaults for others, unknown ones ignored."""
    cls: Any = record.cls
    names = ((field.name, (field.name, *field.former)) for field in record.fields)
    known = {name: next(given[one] for one in every if one in given) for name, every in names if given.keys() & every}
    if tuple in cls.__mro__ or hasattr(cls, "__struct_config__"):
        return cls(**known)
    value = object.__new__(cls)
    for name, item in known.items():
        _put(value, name, item)
    return value


def completed(value: Any, shape: Shape, alone: bool = True) -> None:
    """Give objects in *value*, which is to fit *shape*, the fields that their classes have got since, by default.

    TypedDicts lose the keys that their class lacks, as in the other formats, if *alone*: nothing else of a Union is
    a dict. Raises ValueError for a field without a default.
    """
    if not holds_records(shape):
        return
    if isinstance(shape, Record) and is_a(value, dict):
        _rename_keys(value, shape)
        if isinstance(shape, TypedDictRecord) and alone:
            for key in value.keys() - shape.keys.keys():
                del value[key]
    elif isinstance(shape, PydanticObject):
        if is_a(value, shape.cls):
            rename_fields(value, shape)  # Pydantic knows the defaults itself
    elif isinstance(shape, Record) and not is_a(value, tuple) and is_a(value, shape.cls):
        for field in shape.fields:
            if not hasattr(value, field.name) or _is_shadow(value, field.name):
                _put(value, field.name, _former(value, field, shape))
    alone = not isinstance(shape, UnionOf) or sum(map(_may_be_dict, shape.members)) < 2
    for item, inner in _inside(value, shape):
        completed(item, inner, alone)


def _may_be_dict(shape: Shape) -> bool:
    return shape.anything or isinstance(shape, UnionOf) or isinstance({}, getattr(shape, "cls", ()))


def _rename_keys(value: dict[Any, Any], record: Record) -> None:
    """Give the keys of a TypedDict the names that they have now."""
    for field in record.fields:
        for name in field.former:
            if name in value and field.name not in value:
                value[field.name] = value.pop(name)


def _former(value: Any, field: Field, record: Record) -> Any:
    """What the object has under a former name of *field*, and not any more; the default without one."""
    own: dict[str, Any] = getattr(value, "__dict__", {})
    name = next((name for name in field.former if name in own), None)
    return _default(value, field, record) if name is None else own.pop(name)


def holds_records(shape: Shape) -> bool:
    """Whether there is a model class anywhere in *shape*, where alone fields can be missing. Kept with the shape."""
    known = shape.holds_records
    if known is None:
        known = shape.holds_records = any(isinstance(one, Record) for one in walk(shape))
    return known


def _is_shadow(value: Any, name: str) -> bool:
    """Whether the attribute is only the default that a dataclass leaves on the class, not the object's own."""
    own: Any = getattr(value, "__dict__", None)
    return own is not None and name not in own and not hasattr(getattr(value.__class__, name, None), "__set__")


def _default(value: Any, field: Field, record: Record) -> Any:
    member = field.member
    if member.has_default:
        return member.default
    if member.factory is not None:
        return member.factory()
    if member.factory_of_object is not None:
        return member.factory_of_object(value)
    raise ValueError(f"{record.label} without {field.name!r}")


def _inside(value: Any, shape: Shape) -> Iterable[tuple[Any, Shape]]:
    """What *value* holds, each with the shape that it is to fit."""
    if isinstance(shape, Record) and is_a(value, shape.cls):
        fields = [field for field in shape.fields if holds_records(field.shape)]
        if is_a(value, dict):
            return [(value[field.name], field.shape) for field in fields if field.name in value]
        return [(getattr(value, field.name), field.shape) for field in fields if hasattr(value, field.name)]
    if isinstance(shape, DictOf) and is_a(value, shape.cls):
        return [(item, shape.value) for item in value.values()]
    if isinstance(shape, ListOf) and is_a(value, shape.cls) and not is_a(value, str):
        return [(item, shape.item) for item in value]
    if isinstance(shape, TupleOf) and is_a(value, tuple):
        return list(zip(value, shape.parts))
    if isinstance(shape, UnionOf):
        member: Optional[Shape] = next((one for one in shape.members if is_a(value, getattr(one, "cls", ()))), None)
        return [] if member is None else [(value, member)]
    return []

"""Model classes as pickles of a tuple of their fields: half the time of a pickle of the object.

The first item of the tuple says what the others are: ``1f3a5c77:name,email,age``, the names of the fields in order, led
by a checksum of their types. Where it is the same as the class has today, nothing needs to be looked at. Where it is
not (the class has changed since, or nobody checked the value when it was written, and then there is no checksum) fields
are found by name, missing ones get their defaults, others are ignored, and what comes out is checked.

Only what would be the same to the program is pickled so: `fields_suffice` says which classes.
"""

from __future__ import annotations

import copyreg
import dataclasses
import zlib
from collections.abc import Iterable
from pickle import dumps
from typing import Any, Optional

from .base import Decode, Encode, is_a, show, typename
from .leaves import Shape
from .pickleshapes import structure
from .shapes import DictOf, ListOf, NamedTupleRecord, Record, TupleOf, UnionOf, walk

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
        """*trusting*: what says that it was checked is believed."""
        self.record = record
        self.loads = loads
        names = ",".join(field.name for field in record.fields)
        checksum = zlib.crc32(structure(record).encode("utf-8", "surrogatepass"))
        self.trusted = f"{checksum:08x}:{names}"
        self.fingerprint = self.trusted if checked else f":{names}"
        self.encode = self._encoder(checked)
        self.decode: Decode = self._decoder() if trusting else lambda data: self.careful(loads(data))

    def _encoder(self, checked: bool) -> Encode:
        items = ", ".join(f"value.{field.name}" for field in self.record.fields)
        names: dict[str, Any] = {"dumps": dumps, "fingerprint": self.fingerprint, "other": self._other(checked)}
        packed = f"dumps((fingerprint,{items}), 5)"
        if checked:
            return self.record.checker(packed, "other(value)", names)
        names["cls"] = self.record.cls
        source = f"lambda value: {packed} if type(value) is cls else other(value)"
        encode: Encode = eval(compile(source, f"<pickle of {self.record.label}>", "eval"), names)
        return encode

    def _other(self, checked: bool) -> Encode:
        """How values are pickled that are not exactly of the class: a subclass as the object it is."""
        fits, misfit, cls, label = self.record.fits, self.record.misfit, self.record.cls, self.record.label

        def other(value: Any) -> bytes:
            if not (fits(value) if checked else isinstance(value, cls)):
                raise ValueError(misfit(value, label))
            return dumps(value, 5)

        return other

    def _decoder(self) -> Decode:
        record, cls = self.record, self.record.cls
        names: dict[str, Any] = {
            "cls": cls,
            "new": _new_tuple if isinstance(record, NamedTupleRecord) else object.__new__,
            "put": _put,
            "loads": self.loads,
            "fingerprint": self.trusted,
            "careful": self.careful,
        }
        fields = [field.name for field in record.fields]
        items = [f"i{number}" for number in range(len(fields))]
        if issubclass(cls, tuple):
            made = [f"return new(cls, ({''.join(f'{item}, ' for item in items)}))"]
        elif hasattr(cls, "__struct_config__"):
            made = [f"return cls({', '.join(f'{name}={item}' for name, item in zip(fields, items))})"]
        else:
            plain: Any = vars(object)["__setattr__"] is getattr(cls, "__setattr__")  # noqa: B009 - Any, for checkers
            put = "self.{name} = {item}" if plain else "put(self, {name!r}, {item})"
            made = ["self = new(cls)", *(put.format(name=name, item=item) for name, item in zip(fields, items))]
            made.append("return self")
        lines = [
            "def decode(data):",
            "    value = loads(data)",
            f"    if type(value) is tuple and len(value) == {len(fields) + 1} and value[0] == fingerprint:",
            f"        {''.join(f'{item}, ' for item in ['_', *items])}= value",
            *(f"        {line}" for line in made),
            "    return careful(value)",
        ]
        exec(compile("\n".join(lines), f"<unpickling of {record.label}>", "exec"), names)
        decode: Decode = names["decode"]
        return decode

    def careful(self, value: Any) -> Any:
        """The object of what was unpickled: a tuple of any fingerprint, or the object itself. Raises ValueError."""
        record = self.record
        if value.__class__ is tuple:
            value = made_of(record, self._by_name(value))
        elif not isinstance(value, record.cls):
            raise ValueError(f"expected {record.label}, got {show(value)} ({typename(type(value))})")
        completed(value, record)
        if not record.fits(value):
            raise ValueError(record.misfit(value, record.label))
        return value

    def _by_name(self, items: tuple[Any, ...]) -> dict[str, Any]:
        text = items[0] if items else None
        if type(text) is not str or ":" not in text:
            raise ValueError(f"expected {self.record.label}, got a tuple that does not say what its items are")
        names = [name for name in text.partition(":")[2].split(",") if name]
        if len(names) != len(items) - 1:
            raise ValueError(f"{len(names)} names of fields for {len(items) - 1} fields")
        return dict(zip(names, items[1:]))


def made_of(record: Record, given: dict[str, Any]) -> Any:
    """An object of the class of *record* with the fields *given* by name; defaults for others, unknown ones ignored."""
    cls: Any = record.cls
    known = {field.name: given[field.name] for field in record.fields if field.name in given}
    if tuple in cls.__mro__ or hasattr(cls, "__struct_config__"):
        return cls(**known)
    value = object.__new__(cls)
    for name, item in known.items():
        _put(value, name, item)
    return value


def completed(value: Any, shape: Shape) -> None:
    """Give objects in *value*, which is to fit *shape*, the fields that their classes have got since, by default.

    Raises ValueError for a field without a default.
    """
    if not _holds_records(shape):
        return
    if isinstance(shape, Record) and not is_a(value, (tuple, dict)) and is_a(value, shape.cls):
        for field in shape.fields:
            if not hasattr(value, field.name) or _is_shadow(value, field.name):
                _put(value, field.name, _default(value, field.name, shape))
    for item, inner in _inside(value, shape):
        completed(item, inner)


def _holds_records(shape: Shape) -> bool:
    """Whether there is a model class anywhere in *shape*, where alone fields can be missing. Kept with the shape."""
    known = shape.holds_records
    if known is None:
        known = shape.holds_records = any(isinstance(one, Record) for one in walk(shape))
    return known


def _is_shadow(value: Any, name: str) -> bool:
    """Whether the attribute is only the default that a dataclass leaves on the class, not the object's own."""
    own: Any = getattr(value, "__dict__", None)
    return own is not None and name not in own and not hasattr(getattr(value.__class__, name, None), "__set__")


def _default(value: Any, name: str, record: Record) -> Any:
    field: Any = getattr(record.cls, "__dataclass_fields__", {}).get(name)
    if field is not None:
        if field.default_factory is not dataclasses.MISSING:
            return field.default_factory()
        if field.default is not dataclasses.MISSING:
            return field.default
    attribute: Any = next((one for one in getattr(record.cls, "__attrs_attrs__", ()) if one.name == name), None)
    default: Any = getattr(attribute, "default", None)
    if hasattr(default, "factory"):
        return default.factory(value) if default.takes_self else default.factory()
    if attribute is None or repr(default) == "NOTHING":
        raise ValueError(f"{record.label} without {name!r}")
    return default


def _inside(value: Any, shape: Shape) -> Iterable[tuple[Any, Shape]]:
    """What *value* holds, each with the shape that it is to fit."""
    if isinstance(shape, Record) and is_a(value, shape.cls):
        fields = [field for field in shape.fields if _holds_records(field.shape)]
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

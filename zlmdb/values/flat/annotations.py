"""From annotations to the nodes of a schema; see `schema` for what is stored as what."""

from __future__ import annotations

import enum
import keyword
import operator
import re
import typing
from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional, Union

from ...typeargs import UNIONS, nested_types, type_hints
from ..annotations import (
    DICTS,
    LISTS,
    SETS,
    arrays_of,
    bound_types,
    given_id,
    no_initvars,
    qualifier,
    renamed,
    unresolved,
)
from ..base import is_a, is_free, typename
from ..description import number_where_absent
from ..modelclasses import Member, ModelClass, is_bare, model_class
from ..pydantics import hints_of, is_pydantic
from . import runtime
from .leaves import LEAVES, date_struct
from .markers import BOOL, F64, FLOATS, I32, I64, INTEGERS, InStruct, Width
from .nodes import Blob, Field, InPlace, Node, Scalar, Struct, Table, Text, UnionOf, Vector, as_table, fill, run

if TYPE_CHECKING:
    from .schema import Schema


class AnnotationReader:
    """Reads the annotations of one schema. Each class is read once, so that a class may hold itself."""

    def __init__(self, schema: Schema, localns: Optional[Mapping[str, Any]]) -> None:
        self.schema = schema
        self.localns = localns
        self.seen: dict[Any, Node] = {}
        self.taken: set[str] = set(_FLATC_TYPES)

    def name(self, value: Any, hint: str) -> str:
        """A name for *value* in templates."""
        for known, other in self.schema.names.items():
            if other is value:
                return known
        base = name = "_" + re.sub(r"\W", "_", hint)
        while name in self.schema.names:
            name = f"{base}_{len(self.schema.names)}"
        self.schema.names[name] = value
        return name

    def type_name(self, hint: str) -> str:
        """A name for a type of the schema."""
        base = name = re.sub(r"[^0-9A-Za-z_]", "_", hint)
        number = 2
        while name in self.taken:
            name, number = f"{base}{number}", number + 1
        self.taken.add(name)
        return name

    # Annotations

    def node(self, annotation: Any, where: str, width: Optional[Width] = None, in_struct: bool = False) -> Node:
        """What *annotation* means; *where* it stands, for errors."""
        if is_free(annotation) or annotation is type(None):
            raise TypeError(f"{where}: FlatBuffers cannot store {typename(annotation)}: declare its type")
        same: Any = renamed(annotation)
        if same is not None:
            return self.node(same, where, width, in_struct)
        origin, args = typing.get_origin(annotation), typing.get_args(annotation)
        if origin is Annotated:
            made = arrays_of(args)
            if made is not None:
                arrays = self.name(made, "arrays")
                return Blob("array", f"{arrays}.takes($)", f"{arrays}.raw_encode($)", f"{arrays}.raw_decode(bytes($))")
            widths = [extra for extra in args[1:] if is_a(extra, Width)]
            return self.node(args[0], where, widths[0] if widths else width, in_struct or InStruct in args[1:])
        if _is_qualified(annotation):
            return self.node(args[0], where, width, in_struct)
        found = self.leaf(annotation, where, width)
        if found is not None:
            return found
        if width is not None and not _is_enum(annotation) and origin is not Literal:
            raise TypeError(f"{where}: {typename(annotation)} has no width: {width.fbs} is for numbers and enums")
        if origin in UNIONS:
            return self.union(annotation, args, where)
        if origin is Literal:
            return self.literal(annotation, args, where, width)
        found = self.container(annotation, origin or annotation, args, where)
        if found is not None:
            return found
        if _is_enum(annotation):
            return self.enum(annotation, where, width)
        if in_struct:
            return self.struct(annotation, where)
        return self.model(annotation, origin or annotation, args, where)

    def leaf(self, annotation: Any, where: str, width: Optional[Width]) -> Optional[Node]:
        """The node of a type that contains no others; None if *annotation* is another one."""
        if annotation is int:
            return _sure(Scalar("int", _one_of(width or I64, INTEGERS, "int", where), "type($) is int"), int)
        if annotation is float:
            chosen = _one_of(width or F64, FLOATS, "float", where)
            return _sure(Scalar("float", chosen, "(type($) is float or exact($))", zero=0.0), float)
        if annotation is bool:
            return _sure(
                Scalar("bool", _one_of(width or BOOL, [BOOL], "bool", where), "type($) is bool", zero=False), bool
            )
        if annotation is date and width is None:
            if "Date" not in self.schema.structs:
                self.schema.structs["Date"] = date_struct()
                self.taken.add("Date")
            return self.schema.structs["Date"]
        make = LEAVES.get(annotation) if isinstance(annotation, type) else None
        return make() if make is not None and width is None else None

    def container(self, annotation: Any, origin: Any, args: tuple[Any, ...], where: str) -> Optional[Node]:
        """The node of a list, set, dict or tuple; None if *annotation* is none of them."""
        label = typename(annotation)
        if origin in LISTS:
            return self.vector(label, self.node(_first(args), f"{where}[]"), "type($) is list", "list", args)
        if origin is tuple and args and (args[-1] is not Ellipsis):
            return self.fixed(label, args, where)
        if origin is tuple:
            return self.vector(label, self.node(_first(args), f"{where}[]"), "type($) is tuple", "tuple", args)
        if origin in SETS:
            cls = "frozenset" if origin is frozenset else "set"
            return self.vector(label, self.node(_first(args), f"{where}[]"), f"type($) is {cls}", cls, args)
        if origin in DICTS:
            return self.dict_of(label, args, where)
        return None

    def vector(self, label: str, item: Node, test: str, cls: str, args: tuple[Any, ...]) -> Vector:
        """The node of a list or set of *item*, whose class is *cls*."""
        items = "$"
        optional = self.strip_optional(_first(args))[1]
        if cls in ("set", "frozenset"):
            items = self.ascending(item, optional)
        if not optional and isinstance(item, (Scalar, Text, Struct, Table)):
            return Vector(label, item, test, items, "$" if cls == "list" else f"{cls}($)")
        unbox = {"list": "[x for x, in $]", "set": "{x for x, in $}"}.get(cls, f"{cls}(x for x, in $)")
        return Vector(label, self.box(item, optional), test, f"list(zip({items}))", unbox)

    def ascending(self, item: Node, optional: bool) -> str:
        """The items of a set in the order of what is stored, None first; as they come where that has no order."""
        if isinstance(item, Vector):
            return "sorted($)" if not optional and _sorts(item) else "list($)"
        if isinstance(item, (Table, UnionOf)):
            return "list($)"
        key = "x"
        if item in [node for cls, node in self.seen.items() if _is_enum(cls)]:
            if not optional:
                return f"sorted($, key={self.name(operator.attrgetter('_value_'), 'value_of')})"
            key = "x._value_"
        elif isinstance(item, Struct) and not _sorts(item):
            key = f"({', '.join(fill(get, 'x') for get in item.gets)},)"
        if optional:
            key = f"(x is not None, x is not None and {key})"
        return "sorted($)" if key == "x" else f"sorted($, key=lambda x: {key})"

    def dict_of(self, label: str, args: tuple[Any, ...], where: str) -> Vector:
        """The node of a dict: a vector of tables with ``key`` and ``value``."""
        key, value = args or (None, None)
        entry = self.tuple_table(label, f"{_short(where)}Entry", [("key", key), ("value", value)], where)
        entry.trusted = True
        return Vector(label, entry, "type($) is dict", "list($.items())", "dict($)")

    def fixed(self, label: str, args: tuple[Any, ...], where: str) -> Table:
        """The node of a tuple with a fixed number of items."""
        parts = [(f"item{number}", part) for number, part in enumerate(args) if part != ()]
        return self.tuple_table(label, f"{_short(where)}Tuple", parts, where)

    def tuple_table(self, label: str, hint: str, parts: Sequence[tuple[str, Any]], where: str) -> Table:
        """A table of the *parts* of a tuple: their names and annotations."""
        table = self.table(label, hint, f"type($) is tuple and len($) == {len(parts)}")
        table.path = ""
        for number, (name, annotation) in enumerate(parts):
            self.add(table, Member(name, f"$[{number}]", "$"), f"{where}.{name}", annotation)
        table.call = "($,)" if parts else "()"
        return self.numbered(table)

    def box(self, item: Node, optional: bool) -> Table:
        """The table with the one field ``value``; its objects are tuples of one."""
        table = self.table(item.label, "Box", "type($) is tuple")
        table.path = ""
        table.trusted = True
        table.fields.append(Field("value", "$[0]", item, optional))
        table.fields[0].default = "None" if optional else None
        if isinstance(item, Scalar) and not optional:
            table.fields[0].default_value = item.zero
            table.fields[0].default = fill_constant(item, item.zero)
        table.call = "($,)"
        return self.numbered(table)

    # Numbers and texts

    def literal(self, annotation: Any, args: tuple[Any, ...], where: str, width: Optional[Width]) -> Node:
        """The node of a Literal of texts or of integers."""
        label = typename(annotation)
        if all(type(arg) is str for arg in args):
            known = self.name(frozenset(args), "literals")
            check = self.name({arg: arg for arg in args}, "literal")
            return Text(label, f"type($) is str and $ in {known}", "$.encode()", f"{check}[$]")
        if all(type(arg) is int for arg in args):
            known = self.name({arg: arg for arg in args}, "literal")
            chosen = width or I64
            return Scalar(label, chosen, f"type($) is int and $ in {known}", "$", f"{known}[$]", zero=args[0])
        raise TypeError(f"{where}: {label}: only all texts or all integers, and None")

    def enum(self, cls: Any, where: str, width: Optional[Width]) -> Node:
        """The node of the Enum *cls*."""
        found = self.seen.get(cls)
        if found is not None:
            if width is not None and not (isinstance(found, Scalar) and found.width == width):
                raise TypeError(f"{where}: {typename(cls)} is stored in two widths; FlatBuffers has one for an enum")
            return found
        label, name = typename(cls), self.name(cls, cls.__name__)
        values = [member.value for member in cls]
        known = self.name({member.value: member for member in cls}, f"by_{cls.__name__}")
        if values and all(type(value) is str for value in values):
            self.seen[cls] = Text(label, f"type($) is {name}", "$._value_.encode()", f"{known}[$]")
        elif values and all(type(value) is int for value in values):
            fits = all(-(2**31) <= value < 2**31 for value in values)
            chosen = width or (I32 if fits else I64)
            load = f"{name}($)" if issubclass(cls, enum.Flag) else f"{known}[$]"
            zero = number_where_absent(values, issubclass(cls, enum.Flag))
            node = Scalar(label, chosen, f"type($) is {name}", "$._value_", load, zero=zero)
            if not issubclass(cls, enum.Flag):  # a combination of flags is no member
                node.fbs = self.type_name(cls.__name__)
                self.schema.enums[node.fbs] = (cls, chosen)
            self.seen[cls] = node
        else:
            raise TypeError(f"{where}: {label}: the values of an Enum must be all text or all integers")
        return self.seen[cls]

    # Unions

    def strip_optional(self, annotation: Any) -> tuple[Any, bool]:
        """*annotation* without None, and whether that was there."""
        same: Any = renamed(annotation)
        if same is not None:
            inner, optional = self.strip_optional(same)
            return (inner if optional else annotation), optional
        args = typing.get_args(annotation)
        origin: Any = typing.get_origin(annotation)
        if _is_qualified(annotation):
            return self.strip_optional(args[0])
        special: Any = Annotated
        if origin is special:
            inner, optional = self.strip_optional(args[0])
            return (special[tuple([inner, *args[1:]])] if optional else annotation), optional
        if origin is Literal and None in args:
            literal: Any = Literal
            return literal[tuple(arg for arg in args if arg is not None)], True
        if origin not in UNIONS or type(None) not in args:
            return annotation, False
        rest = tuple(arg for arg in args if arg is not type(None))
        union: Any = Union
        return union[rest], True

    def union(self, annotation: Any, args: tuple[Any, ...], where: str) -> Node:
        """The node of a Union; one with a single member besides None is that member."""
        args = tuple(arg for arg in args if arg is not type(None))
        if len(args) == 1:
            return self.node(args[0], where)
        union = UnionOf(typename(annotation), self.type_name(f"{_short(where)}Union"))
        for arg in args:
            node = self.node(arg, where)
            cls = _class_of(arg)
            if cls is None or any(cls is other for other, _, _ in union.members):
                raise TypeError(f"{where}: {union.label}: {typename(arg)} cannot be told from the others by its class")
            boxed = not isinstance(node, Table) or node.path != "."
            union.members.append((cls, self.box(node, False) if boxed else as_table(node), boxed))
        if len(union.members) > 255:
            raise TypeError(f"{where}: a union has at most 255 members")
        self.schema.unions[union.fbs] = union
        return union

    # Model classes

    def model(self, annotation: Any, cls: Any, args: tuple[Any, ...], where: str) -> Table:
        """The table of the model class *cls*, of which *annotation* may be an alias with arguments."""
        if annotation in self.seen:
            return as_table(self.seen[annotation])
        found = self.model_class(cls, where)
        name = self.name(cls, cls.__name__)
        test = "type($) is dict" if found.kind == "TypedDict" else f"type($) is {name}"
        table = self.table(typename(annotation), cls.__name__, test)
        self.seen[annotation] = table
        table.call = found.call.replace("cls", name, 1)
        table.cls, table.bare = name, is_bare(cls)
        hints = bound_types(cls, args, self.hints(cls, where))
        for member in found.members:
            self.add(table, member, f"{where}.{member.name}", hints.get(member.name, Any))
        return self.numbered(table)

    def model_class(self, cls: Any, where: str) -> ModelClass:
        """What is known of the model class *cls*. Raises TypeError for one that is not stored as FlatBuffers."""
        found = model_class(cls, where)
        if found is None:
            raise TypeError(
                f"{where}: {typename(cls)} cannot be stored as FlatBuffers: use a dataclass, an attrs class, a "
                "NamedTuple, a TypedDict or a msgspec.Struct, or give build= and cast="
            )
        if any(member.absent for member in found.members):
            raise TypeError(f"{where}: {typename(cls)}: FlatBuffers needs all keys of a TypedDict; use Optional")
        wrong = [] if found.kind == "TypedDict" else [one.name for one in found.members if keyword.iskeyword(one.name)]
        if wrong:  # which `msgspec.defstruct` takes
            raise TypeError(
                f"{typename(cls)}.{wrong[0]}: a field in FlatBuffers cannot have the name of a Python keyword"
            )
        self.schema.recheck = self.schema.recheck or found.is_custom()
        return found

    def hints(self, cls: Any, where: str) -> dict[str, Any]:
        """The annotations of the members of *cls*, resolved."""
        if is_pydantic(cls):
            return hints_of(cls)
        localns = {**(self.localns or {}), **nested_types(cls)}
        try:
            hints = type_hints(cls, localns)
        except (NameError, TypeError) as error:
            raise unresolved(cls, error) from error
        no_initvars(cls, hints, where)
        return hints

    def table(self, label: str, hint: str, test: str) -> Table:
        """A new table of the schema."""
        table = Table(label, self.type_name(hint), test)
        self.schema.tables.append(table)
        return table

    def add(self, table: Table, member: Member, where: str, annotation: Any) -> None:
        """Give *table* the field *member*, of type *annotation*."""
        inner, optional = self.strip_optional(annotation)
        field = Field(member.name, member.get, self.node(inner, where), optional)
        field.build, field.late = member.build, member.late
        given = given_id(member, annotation)
        field.id = -1 if given is None else given
        if optional:
            field.default = "None"  # what is stored for None is nothing
        elif member.factory is not None:
            field.default = f"{self.name(member.factory, 'factory')}()"
        elif member.has_default:
            field.default = self.name(member.default, f"default_{member.name}")
        if isinstance(field.node, Scalar):
            self.scalar_default(field, member)
        table.fields.append(field)

    def scalar_default(self, field: Field, member: Member) -> None:
        """Set the default of *field* where it is a number that is always there."""
        node = field.node
        if field.optional or not isinstance(node, Scalar):
            return
        field.default_value = node.zero
        if member.has_default and node.misfit(member.default, "", self.schema.names) is None:
            field.default_value = _dumped(node, member.default, self.schema.names)
        elif field.default is not None:
            return
        field.default = fill_constant(node, field.default_value)

    def numbered(self, table: Table) -> Table:
        """*table* with the ids of its fields fixed, and the fields in their order."""
        given = [field.id for field in table.fields if field.id >= 0]
        if given and len(given) < len(table.fields):
            missing = [field.name for field in table.fields if field.id < 0]
            raise TypeError(f"{table.label}: some fields have an id, and {', '.join(missing)} not: all or none")
        free = 0
        used: dict[int, str] = {}
        for field in table.fields:
            union = isinstance(field.node, UnionOf)
            if not given:
                field.id = free + union
                free = field.id + 1
            for number in range(field.id - union, field.id + 1):
                if number < 0 or number > 32000 or number in used:
                    why = f"is that of {used[number]}, too" if number in used else "is out of range"
                    raise TypeError(f"{table.label}.{field.name}: the id {number} {why} (a union takes two)")
                used[number] = field.name
        table.declared = list(table.fields)
        table.fields.sort(key=lambda field: field.id)
        return table

    def struct(self, cls: Any, where: str) -> Struct:
        """The struct of the model class *cls*."""
        key = (InStruct, cls)
        known = self.seen.get(key)
        if isinstance(known, Struct):
            return known
        found = self.model_class(cls, where)
        hints = self.hints(cls, where)
        name = self.name(cls, cls.__name__)
        parts: list[tuple[str, str, InPlace]] = []
        for member in found.members:
            node = self.node(hints.get(member.name, Any), f"{where}.{member.name}", None, True)
            if not isinstance(node, InPlace) or member.late:
                raise TypeError(f"{where}.{member.name}: a struct holds numbers, bools, enums and structs")
            parts.append((member.name, member.get, node))
        if not parts:
            raise TypeError(f"{where}: {typename(cls)} has no fields, so it cannot be a struct")
        arguments = ", ".join(member.build.replace("$", f"${number}") for number, member in enumerate(found.members))
        load = found.call.replace("cls", name, 1).replace("$", arguments)
        struct = Struct(typename(cls), self.type_name(cls.__name__), f"type($) is {name}", parts, load)
        self.seen[key] = struct
        self.schema.structs[struct.fbs] = struct
        return struct


def _sorts(node: Node) -> bool:
    """Whether values of *node* have an order of their own."""
    if isinstance(node, Vector):
        return node.make == "tuple($)" and _sorts(node.item)
    if isinstance(node, (Scalar, Text)):
        return "_value_" not in node.dump  # members of an Enum have none
    return isinstance(node, Blob) or node.label == "date"


def fill_constant(node: Scalar, stored: Any) -> str:
    """The expression of the value that *stored* means."""
    text = repr(stored)
    if text in ("nan", "inf", "-inf"):
        text = f"float({text!r})"
    return node.load.replace("$", f"({text})" if text.startswith("-") else text)


def _dumped(node: Scalar, value: Any, names: Mapping[str, Any]) -> Any:
    return runtime.unpacked(node.code, run(node.dump, names, value))


def _sure(node: Scalar, cls: type[Any]) -> Scalar:
    node.sure = cls
    return node


def _one_of(width: Width, allowed: Sequence[Width], label: str, where: str) -> Width:
    if width not in allowed:
        raise TypeError(f"{where}: {label} is not stored as {width.fbs}")
    return width


def _first(args: tuple[Any, ...]) -> Any:
    return args[0] if args else Any


def _is_qualified(annotation: Any) -> bool:
    return qualifier(annotation) not in (None, "NotRequired")  # in FlatBuffers a TypedDict needs all keys


def _is_enum(annotation: Any) -> bool:
    return is_a(annotation, type) and issubclass(annotation, enum.Enum)


def _short(where: str) -> str:
    """``UserRatings`` for ``models.User.ratings``."""
    # Without underscores: flatc 23 spells a union with one in two ways in the Python that it writes.
    words = re.findall(r"[^\W_]+", ".".join(re.findall(r"\w+", where.split("[")[0])[-2:]))
    return "".join(word[:1].upper() + word[1:] for word in words) or "Value"


def _class_of(annotation: Any) -> Optional[type[Any]]:
    """The one class of all values of *annotation*, if there is one."""
    same: Any = renamed(annotation)
    if same is not None:
        return _class_of(same)
    origin: Any = typing.get_origin(annotation)
    if origin is Annotated:
        return _class_of(typing.get_args(annotation)[0])
    cls: Any = origin or annotation
    for plain, abstract in ((list, LISTS), (dict, DICTS), (set, SETS - {frozenset})):
        if cls in abstract:
            return plain
    typed = is_a(cls, type) and hasattr(cls, "__total__")  # the values of a TypedDict are of class dict
    return cls if is_a(cls, type) and not typed else None


# What a table cannot be called: flatc would take its name for one of these.
_FLATC_TYPES = (
    *("bool", "byte", "ubyte", "short", "ushort", "int", "uint", "long", "ulong", "float", "double", "string"),
    *("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64"),
)

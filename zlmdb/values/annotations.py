"""Reading annotations: from a type to its `Shape`, with the rules for what a model may hold.

Raises TypeError for what cannot be stored and read back, when the type is described and not when a value comes.
"""

from __future__ import annotations

import collections.abc as abc
import dataclasses
import enum
import sys
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Callable, Literal, Optional, TypeVar

from ..typeargs import UNIONS, filled, nested_types, own_names, type_hints
from .base import is_a, is_free, show, typename
from .flat.markers import Id
from .modelclasses import Member, model_class
from .pydantics import PydanticRecord, hints_of, is_pydantic
from .scalars import Choice, Float, Form, Leaf, PlainData, Shape, enum_choice, literal_choice, scalars
from .shapes import (
    DictOf,
    Field,
    KeyText,
    ListOf,
    NamedTupleRecord,
    Record,
    SetOf,
    TupleOf,
    TypedDictRecord,
    UnionOf,
    walk,
)
from .was import Was

if TYPE_CHECKING:
    from .array import ArraySerializer

LISTS: set[Any] = {list, abc.Sequence, abc.MutableSequence, abc.Collection, abc.Iterable}
SETS: set[Any] = {set, frozenset, abc.Set, abc.MutableSet}
DICTS: set[Any] = {dict, abc.Mapping, abc.MutableMapping}
_QUALIFIERS = {"Required", "NotRequired", "ReadOnly", "Final"}


def shape_of(
    annotation: Any, form: Form, pack: Callable[[Any], bytes], localns: Optional[Mapping[str, Any]] = None
) -> Shape:
    """The shape of *annotation* in *form*; *pack* gives the bytes of plain data, by which sets are ordered.

    *localns*: names that the annotations of model classes use and that are not in their modules, such as classes
    defined inside a function.
    """
    return Reader(form, pack, localns).shape(annotation, typename(annotation))


class Reader:
    """Reads the annotations of one type. Each class is read once, so that a class may hold itself."""

    def __init__(self, form: Form, pack: Callable[[Any], bytes], localns: Optional[Mapping[str, Any]]) -> None:
        self.form: Form = form
        self.pack = pack
        self.localns = localns
        self.scalars = scalars(form)
        self.records: dict[Any, Record] = {}

    def shape(self, annotation: Any, where: str) -> Shape:
        """The shape of *annotation*; *where* it stands, for errors."""
        if is_free(annotation) and annotation is not None:
            return self.free(annotation)
        if annotation is None:
            annotation = type(None)
        found = self.scalars.get(annotation) if isinstance(annotation, type) else None
        if found is not None:
            return found
        same: Any = renamed(annotation)
        if same is not None:
            return self.shape(same, where)
        origin, args = typing.get_origin(annotation), typing.get_args(annotation)
        if origin is Annotated:
            return self.annotated(args, where)
        if origin in UNIONS:
            return self.union(annotation, args, where)
        if origin is Literal:
            return self.literal(typename(annotation), args)
        if qualifier(annotation) is not None:
            return self.shape(args[0], where)
        return self.container(annotation, origin or annotation, args, where) or self.model(
            annotation, origin or annotation, args, where
        )

    def free(self, annotation: Any) -> Shape:
        """What an annotation that says nothing, such as Any, asks for."""
        data = PlainData(self.form)
        # A type variable that only msgspec can resolve: let it read back what is written.
        data.recheck = isinstance(annotation, TypeVar)
        return data

    def annotated(self, args: tuple[Any, ...], where: str) -> Shape:
        """The shape of an Annotated."""
        arrays = arrays_of(args)
        if arrays is not None:
            from .arrayfields import ArrayField  # late: few models have arrays

            return ArrayField(arrays, self.form)
        shape = self.shape(args[0], where)
        if any(type(extra).__module__.startswith("msgspec") for extra in args[1:]):
            return Constrained(shape)
        return shape

    def container(self, annotation: Any, origin: Any, args: tuple[Any, ...], where: str) -> Optional[Shape]:
        """The shape of a list, set, tuple or dict; None for any other class."""
        if not is_a(origin, abc.Hashable):
            return None
        label = typename(annotation)
        items = [*args, Any, Any]
        if origin in LISTS:
            return ListOf(label, self.shape(items[0], f"{where}[]"))
        if origin in SETS:
            cls: type[Any] = frozenset if origin is frozenset else set
            return SetOf(label, self.shape(items[0], f"{where}[]"), cls, self.pack)
        if origin is tuple:
            if annotation not in (tuple, typing.Tuple) and (not args or args[-1] is not Ellipsis):  # noqa: UP006
                return TupleOf(label, [self.shape(part, f"{where}[]") for part in args if part != ()])
            return ListOf(label, self.shape(items[0], f"{where}[]"), tuple)
        if origin in DICTS:
            return DictOf(label, self.key(items[0], f"a key of {where}"), self.shape(items[1], f"{where}[]"))
        return None

    def key(self, annotation: Any, where: str) -> Shape:
        """The shape of the keys of a dict."""
        shape = self.shape(annotation, where)
        if self.form == "json" and shape.loose and not shape.recheck:
            return self.scalars[str]  # what all keys come back as
        if self.form == "json" and not shape.loose:
            if shape.kind not in ("text", "int"):
                raise TypeError(f"{where}: JSON has text keys; {shape.label} cannot be one")
            return shape if isinstance(shape, Leaf) and shape.cls is str else KeyText(shape)
        if any(part.kind in ("list", "map") for part in walk(shape)):
            raise TypeError(f"{where}: {shape.label} cannot be a key: keys are single values, such as str or int")
        return shape

    def literal(self, label: str, args: tuple[Any, ...]) -> Shape:
        """The shape of a Literal."""
        return literal_choice(label, args)

    def union(self, annotation: Any, args: Sequence[Any], where: str) -> Shape:
        """The shape of a Union."""
        members: list[Shape] = []
        for member in args:
            shape = self.shape(member, where)
            # A Union with a name, or in an Annotated, is a member of its own: typing does not look inside.
            members += shape.members if isinstance(shape, UnionOf) else [shape]
        check_union(typename(annotation), members, where)
        if any(isinstance(member, Choice) or member.kind == "int" for member in members):
            members = [Float(one.form, whole=False) if isinstance(one, Float) else one for one in members]
        return UnionOf(typename(annotation), members)

    # Model classes

    def model(self, annotation: Any, cls: Any, args: tuple[Any, ...], where: str) -> Shape:
        """The shape of any other class: an Enum, or a model class."""
        if is_a(cls, str):
            raise TypeError(
                f"{where}: Python before 3.11 does not look up a name inside of list[...] and the like: "
                f"write the whole annotation in quotes, or {typename(cls)} without them"
            )
        if not is_a(cls, type):
            advice = ": write the name of the class" if typename(annotation).endswith("Self") else ""
            raise TypeError(f"{where}: {typename(annotation)} is not a type that can be stored{advice}")
        if annotation in self.records:
            return self.records[annotation]
        if issubclass(cls, enum.Enum):
            return enum_choice(cls)
        record, listed = model_record(cls, where)
        record.annotation = annotation
        self.records[annotation] = record
        hints = self.hints(cls)
        no_initvars(cls, hints, where)
        self.define(record, listed, hints, args, where)
        return record

    def define(
        self, record: Record, listed: Sequence[Member], hints: Mapping[str, Any], args: tuple[Any, ...], where: str
    ) -> None:
        """Give *record* the fields *listed*, of the types *hints*, with *args* for the type variables of its class."""
        cls = typing.get_origin(record.annotation) or record.annotation
        hints = bound_types(cls, args, hints)
        record.define(
            Field(
                one.name,
                one.stored,
                self.shape(hints.get(one.name, Any), f"{where}.{one.name}"),
                _is_required(one, qualifier(hints.get(one.name))),
                former_names(hints.get(one.name)),
                one,
            )
            for one in listed
        )

    def hints(self, cls: Any) -> dict[str, Any]:
        """The annotations of *cls*, resolved."""
        if is_pydantic(cls):
            return hints_of(cls)
        try:
            return type_hints(cls)
        except (NameError, TypeError) as error:
            if isinstance(error, TypeError):
                raise unresolved(cls, error) from error
        localns = {**(self.localns or {}), **nested_types(cls)}
        try:
            # msgspec resolves annotations itself, without these names: leave it nothing to resolve.
            for base in reversed(cls.__mro__):
                own = _own_annotations(base)
                if own:  # texts, ForwardRefs of NamedTuples and TypedDicts, and these inside of list[...]
                    hints = type_hints(base, localns)
                    own.update({name: hints[name] for name in own})
            return type_hints(cls, localns)
        except (NameError, TypeError) as error:
            raise unresolved(cls, error) from error


class Constrained(Shape):
    """A type with constraints that msgspec knows (``Annotated[int, msgspec.Meta(ge=0)]``) and checks in reading."""

    recheck = True

    def __init__(self, inner: Shape) -> None:
        self.inner = inner
        self.label = inner.label
        self.kind = inner.kind
        self.sure = inner.sure
        self.__dict__.update(fits=inner.fits, dump=inner.dump, load=inner.load, misfit=inner.misfit)

    def children(self) -> Iterable[Shape]:
        return (self.inner,)


def check_union(label: str, members: Sequence[Shape], where: str) -> None:
    """Raise TypeError, naming them, if two members look the same when stored.

    Text-like are str, bytes, UUID, Decimal, dates, times, text enums; list-like are lists, sets, tuples; map-like are
    dicts and model classes, several of which are fine if they carry different tags. Beside plain data, all of them are
    read as what they are stored as.
    """
    if any(isinstance(member, PlainData) for member in members):
        changed = [member.label for member in members if not _is_plain(member)]
        if changed:
            raise TypeError(
                f"{where}: {label}: a value of {' or '.join(changed)} could not be told apart from plain data when it "
                "is read back; declare the types without Any or object, or Any alone"
            )
        return
    for kind in ("text", "int", "list", "map"):
        alike = [member for member in members if member.kind == kind or (kind == "int" and _has_ints(member))]
        tags = {getattr(member, "tag", None) for member in alike}
        if len(alike) > 1 and (None in tags or len(tags) < len(alike)):
            names = " and ".join(member.label for member in alike)
            raise TypeError(
                f"{where}: {label}: {names} cannot be told apart when they are read back (all are stored as {kind}); "
                "keep one of them, or make them msgspec.Struct classes with different tags"
            )


def _has_ints(shape: Shape) -> bool:
    """Whether *shape* is a Literal of which some values are ints."""
    return isinstance(shape, Choice) and shape.has_ints


def _is_plain(shape: Shape) -> bool:
    """Whether plain data has the values of *shape* as they are."""
    if isinstance(shape, Leaf):
        return shape.stored_as_it_is
    if isinstance(shape, UnionOf) or (type(shape) in (ListOf, DictOf) and shape.classes() != (tuple,)):
        return all(map(_is_plain, shape.children()))
    return isinstance(shape, (PlainData, Float))


_INSTEAD = {
    "numpy.ndarray": "write zlmdb.Array[numpy.float64], with the type of its elements",
    "pandas.DataFrame": "write zlmdb.Pickle[pandas.DataFrame], or store its rows as records of a dataclass",
}


def model_record(cls: Any, where: str) -> tuple[Record, list[Member]]:
    """The record of the model class *cls*, and its fields."""
    found = model_class(cls, where)
    if found is None:
        from ..frozentime import FROZEN, is_of_freezegun  # late: for this error only

        if is_of_freezegun(cls):
            raise TypeError(f"{where}: {typename(cls)} cannot be stored: {FROZEN}")
        if typename(cls) in _INSTEAD:
            raise TypeError(f"{where}: {typename(cls)} cannot be stored: {_INSTEAD[typename(cls)]}")
        if cls.__module__ == "pydantic.networks":
            raise TypeError(
                f"{where}: {typename(cls)} cannot be stored: write str, or, with the check of Pydantic, "
                f"Annotated[str, AfterValidator(lambda url: str({cls.__name__}(url)))]"
            )
        raise TypeError(
            f"{where}: {typename(cls)} cannot be stored: use a dataclass, an attrs class, a Pydantic model, a "
            "NamedTuple, a TypedDict or a msgspec.Struct; of a class that is not yours, a text or a number that makes "
            "it; or the Pickle serializer"
        )
    if found.kind == "Struct":
        record = _struct(cls, found.hooked)
    elif found.kind in _RECORDS:
        record = _RECORDS[found.kind](cls)
    else:
        record = Record(cls, recheck=found.hooked)
    if found.kind == "dataclass" and not cls.__dataclass_fields__:  # those with ClassVar are in it
        _check_annotated(cls, where)
    elif found.kind == "attrs":
        # msgspec leaves the private attributes of attrs classes out when it writes, and misses them when it reads.
        record.native = not any(member.name.startswith("_") for member in found.members)
    elif found.kind == "TypedDict":
        record.foreign = bool(getattr(cls, "__readonly_keys__", ()))  # msgspec knows no ReadOnly
        record.native = not record.foreign
    return record, found.members


_RECORDS: dict[str, Callable[[Any], Record]] = {
    "Pydantic": PydanticRecord, "NamedTuple": NamedTupleRecord, "TypedDict": TypedDictRecord,
}  # fmt: skip


_INITVAR = (
    ", whose value is lost before the object is stored: make it a field, or take the value in a classmethod that makes "
    "the object"
)


def no_initvars(cls: Any, hints: Mapping[str, Any], where: str) -> None:
    """Raise TypeError where one of the *hints* of *cls* is an InitVar."""
    if any(isinstance(hint, dataclasses.InitVar) for hint in hints.values()):
        raise TypeError(f"{where}: {typename(cls)} has an InitVar{_INITVAR}")


def _check_annotated(cls: Any, where: str) -> None:
    """Raise TypeError if the dataclass *cls* has no field, and has values whose annotations were forgotten."""
    body: Mapping[str, Any] = cls.__dict__
    for name, value in body.items():
        if not name.startswith("_") and not hasattr(value, "__get__") and not isinstance(value, type):
            raise TypeError(
                f"{where}: {typename(cls)} has no fields, and would store nothing: give {name} a type, such as "
                f"`{name}: {typename(type(value))} = {show(value)}`"
            )


def _struct(cls: Any, hooked: bool) -> Record:
    config = cls.__struct_config__
    tag = None if config.tag is None else (config.tag_field, config.tag)
    shape = NamedTupleRecord if config.array_like else Record
    record = shape(cls, tag=tag, recheck=hooked)
    # What msgspec leaves out would be another value as soon as the class has another default.
    record.native = not config.omit_defaults
    return record


def _is_required(member: Member, given: Optional[str]) -> bool:
    """Whether *member* must be given, with what Required and NotRequired say about it."""
    return given == "Required" or (member.required and given != "NotRequired")


def qualifier(annotation: Any) -> Optional[str]:
    """Which of Required, NotRequired, ReadOnly and Final *annotation* is, if it is one."""
    name: Optional[str] = getattr(typing.get_origin(annotation), "_name", None)
    return name if name in _QUALIFIERS else None


def extras(hint: Any) -> tuple[Any, ...]:
    """What an Annotated says beside the type, also inside of Required and the like."""
    if qualifier(hint) is not None:
        return extras(typing.get_args(hint)[0])
    return typing.get_args(hint)[1:] if typing.get_origin(hint) is Annotated else ()


def arrays_of(args: tuple[Any, ...]) -> Optional[ArraySerializer]:
    """The serializer of arrays that an Annotated of *args* asks for, if it does."""
    for extra in args[1:]:
        if getattr(extra, "makes_arrays", False):
            return extra.for_type(args[0]) if is_a(extra, type) else extra
    return None


def former_names(hint: Any) -> tuple[str, ...]:
    """The names that a field annotated with *hint* had before."""
    return tuple([extra.name for extra in extras(hint) if isinstance(extra, Was)])


def given_id(member: Member, hint: Any) -> Optional[int]:
    """The id that a class gives its field *member* of the type *hint*: by metadata, or by an `Id`."""
    if member.id is not None:
        return member.id
    return next((extra.number for extra in extras(hint) if isinstance(extra, Id)), None)


def _own_annotations(cls: Any) -> dict[str, Any]:
    """The annotations that *cls* itself makes, in the dict that it keeps."""
    kept: Any = cls.__dict__
    for name in ("__annotations__", "__annotations_cache__"):  # the latter since Python 3.14
        if name in kept:
            return kept[name] or {}
    return {}


def renamed(annotation: Any) -> Any:
    """What a NewType stands for, or a ``type X = ...``, or one of those with parameters, such as ``Maybe[str]``.

    Raises `TypeError` for an alias that contains itself.
    """
    alias: Any = typing.get_origin(annotation) or annotation
    if type(alias).__name__ != "TypeAliasType":
        return getattr(annotation, "__supertype__", None)
    value = alias.__value__
    if _contains(value, alias, set()):
        raise TypeError(f"the alias {alias} contains itself: use Any, or a model class with fields of its own type")
    if alias is annotation:
        return value
    # What msgspec does; where the order of the parameters is another one it would take one for the other.
    same = alias.__type_params__ == getattr(value, "__parameters__", ())
    return value[typing.get_args(annotation)] if same else None


def _contains(annotation: Any, alias: Any, seen: set[int]) -> bool:
    """Whether the type *annotation* is made of *alias*."""
    if annotation is alias:
        return True
    parts = [typing.get_origin(annotation), *typing.get_args(annotation)]
    if type(annotation).__name__ == "TypeAliasType" and id(annotation) not in seen:
        seen.add(id(annotation))
        parts.append(annotation.__value__)
    return any(_contains(part, alias, seen) for part in parts if part is not None)


def bound_types(cls: Any, args: tuple[Any, ...], hints: Mapping[str, Any]) -> dict[str, Any]:
    """The annotations *hints* of the class *cls*, with its type variables filled in: its own are *args*.

    Those of a base are what *cls* was derived with: ``class Ticket(Box[UUID])``.
    """
    found = dict(hints)
    for base, given in _given(cls, dict(zip(getattr(cls, "__parameters__", ()), args))):
        found.update((name, filled(hints[name], given)) for name in own_names(base) if name in hints)
    return found


def _given(cls: Any, given: dict[Any, Any]) -> Iterator[tuple[Any, dict[Any, Any]]]:
    """The bases of *cls*, and last itself, each with what its type variables stand for."""
    own: Mapping[str, Any] = cls.__dict__
    for base in reversed(own.get("__orig_bases__", cls.__bases__)):
        origin: Any = typing.get_origin(base) or base
        if is_a(origin, type) and origin not in (object, typing.Generic):
            args = tuple([filled(arg, given) for arg in typing.get_args(base)])
            yield from _given(origin, dict(zip(getattr(origin, "__parameters__", ()), args)))
    yield cls, given


_WHY_NOT = (
    "On Python 3.9, `X | None` is written Optional[X]"
    if sys.version_info < (3, 10)
    else "An attribute or a method of the class hides a type of the same name: then rename one of them"
)


def unresolved(cls: type[Any], error: Exception) -> TypeError:
    """The error that says why an annotation of *cls* means nothing, and what to do."""
    if isinstance(error, NameError):
        return TypeError(
            f"an annotation of {typename(cls)} cannot be resolved: {error}. "
            "Define or import that name in the module, not for type checkers only; a serializer takes it in localns="
        )
    if "dataclasses.InitVar" in str(error):  # before Python 3.11, of an annotation that is a text
        return TypeError(f"{typename(cls)} has an InitVar{_INITVAR}")
    return TypeError(f"an annotation of {typename(cls)} cannot be evaluated: {error}. {_WHY_NOT}")

"""The type arguments of a class: ``class Users(Table[UUID, User])`` has the keys UUID and the values User."""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Annotated, Any, ForwardRef, Optional, TypeVar, Union, get_args, get_origin, get_type_hints


def type_arguments(declared: Any, base: type, localns: Optional[Mapping[str, Any]] = None) -> tuple[Any, ...]:
    """The arguments of *base* in *declared*: an alias such as ``Table[str, int]``, or a class derived from one.

    Generic classes between are seen through; what is left open is a TypeVar. Names given as strings are looked up
    where *declared* was defined, then in *localns*.

    >>> from typing import Dict, Generic
    >>> K = TypeVar("K")
    >>> class Texts(Dict[K, str]): ...
    >>> class Names(Texts[int]): ...
    >>> type_arguments(Names, dict)
    (<class 'int'>, <class 'str'>)
    """
    origin: Any = get_origin(declared) or declared
    module = vars(sys.modules.get(getattr(origin, "__module__", ""), SimpleNamespace()))
    found = _arguments(declared, base)
    return tuple(resolved(argument, module, localns) for argument in found)


def _arguments(declared: Any, base: type) -> tuple[Any, ...]:
    origin: Any = get_origin(declared) or declared
    arguments = get_args(declared)
    if origin is base:
        return arguments or tuple(getattr(base, "__parameters__", ()))
    given = dict(zip(getattr(origin, "__parameters__", ()), arguments))
    # Not getattr: a class without arguments of its own would answer with those of its parent.
    generic: type = origin
    for parent in vars(generic).get("__orig_bases__", generic.__bases__):
        parent_class: Any = get_origin(parent) or parent
        if isinstance(parent_class, type) and issubclass(parent_class, base):
            return tuple(filled(argument, given) for argument in _arguments(parent, base))
    return ()


def filled(annotation: Any, given: Mapping[Any, Any]) -> Any:
    """*annotation* with its type variables filled in, as far as they are *given*."""
    if isinstance(annotation, TypeVar):
        return given.get(annotation, annotation)
    # Before Python 3.11 ``list[K]`` passes for a class.
    parameters = getattr(annotation, "__parameters__", ()) if given and get_origin(annotation) is not None else ()
    return annotation[tuple(given.get(one, one) for one in parameters)] if parameters else annotation


def resolved(argument: Any, globalns: Mapping[str, Any], localns: Optional[Mapping[str, Any]]) -> Any:
    """*argument* with a name given as a string looked up. Raises `TypeError` when the name is not defined."""
    target = get_args(argument)[0] if hasattr(argument, "__metadata__") else argument
    if not isinstance(target, (str, ForwardRef)):
        return argument
    if hasattr(argument, "__metadata__") and not _is_open(argument):
        return argument
    holder: Any = SimpleNamespace(__annotations__={"it": argument})
    try:
        return get_type_hints(holder, dict(globalns), dict(localns or {}), include_extras=True)["it"]
    except NameError as error:
        raise TypeError(f"the type {target!r} is not defined where the class that uses it is: {error}") from error


def _is_open(annotated: Any) -> bool:
    """Whether the type in an Annotated must be known: no codec in it is made already."""
    return not any(_is_made(part) for part in annotated.__metadata__)


def _is_made(part: object) -> bool:
    """Whether *part* is a codec that needs to be told no type."""
    # The class is asked: there are codecs that make their methods when they are first touched.
    return hasattr(type(part), "raw_decode") and not getattr(part, "takes_type", False)


def field_types(model: Any, localns: Optional[Mapping[str, Any]] = None) -> dict[str, Any]:
    """The types of the fields of a model class by name, without their None; empty for what is no model.

    >>> from typing import NamedTuple
    >>> class Point(NamedTuple):
    ...     x: float
    ...     label: Optional[str]
    >>> field_types(Point)
    {'x': <class 'float'>, 'label': <class 'str'>}
    """
    return {name: present_type(hint) for name, hint in field_hints(model, localns).items()}


def field_hints(model: Any, localns: Optional[Mapping[str, Any]] = None) -> dict[str, Any]:
    """As `field_types`, with what each may be: a type, None, or something that is Annotated."""
    cls = get_origin(model) or model
    if not isinstance(cls, type) or not hasattr(cls, "__annotations__"):
        return {}
    return type_hints(cls, {**(localns or {}), **nested_types(cls)})


def type_hints(cls: Any, localns: Optional[dict[str, Any]] = None) -> dict[str, Any]:
    """As `typing.get_type_hints`, with what is Annotated; also for a class whose module is no longer there.

    `runpy.run_path` and consoles leave such classes, for which Python 3.9 raises KeyError.
    """
    if "freezegun" in sys.modules:
        from .frozentime import resolve_truly, true_times  # late: for tests only

        true = true_times(cls)
        if true:
            localns = {**true, **nested_types(cls), **(localns or {})}
            resolve_truly(cls)
    try:
        return get_type_hints(cls, localns=localns, include_extras=True)
    except KeyError:
        names: dict[str, Any] = {}
        for base in reversed(cls.__mro__):
            names.update(vars(sys.modules.get(base.__module__, SimpleNamespace())))
        return get_type_hints(cls, names, localns, include_extras=True)


def nested_types(cls: type) -> dict[str, Any]:
    """The classes and aliases defined in the bodies of *cls* and its bases, which annotations there may name.

    `typing.get_type_hints` knows them only as long as it is given no other names.
    """
    bodies = [vars(base) for base in reversed(cls.__mro__) if base is not object]
    return {name: one for body in bodies for name, one in body.items() if isinstance(one, type) or get_origin(one)}


def annotated_names(cls: type) -> list[str]:
    """The names annotated in *cls* and its bases, also where what they are annotated with is not defined.

    >>> class Node:
    ...     next: "Nothing"
    >>> annotated_names(Node)
    ['next']
    """
    return [name for base in reversed(cls.__mro__) for name in own_names(base)]


def own_names(cls: type) -> list[str]:
    """The names annotated in *cls* itself."""
    return list(own_annotations(cls))


def own_annotations(cls: type) -> dict[str, Any]:
    """The annotations of *cls* itself by name, as they are written: some may be texts, or not defined yet."""
    if sys.version_info >= (3, 14):  # which evaluates annotations when somebody asks
        from annotationlib import Format, get_annotations

        return dict(get_annotations(cls, format=Format.FORWARDREF))
    return dict(vars(cls).get("__annotations__") or ())


def is_mentioned(name: str, value: Any, annotation: Any) -> bool:
    """Whether *annotation* is *value*, or a text in which its *name* is a word."""
    return annotation is value or (isinstance(annotation, str) and name in words_of([annotation]))


def words_of(annotations: Iterable[Any]) -> set[str]:
    """The words of the annotations that are texts, and of texts inside of others."""
    return {word for one in annotations for word in re.findall(r"\w+", one if isinstance(one, str) else repr(one))}


def present_type(hint: Any) -> Any:
    """The type *hint* without None: of what is there."""
    if get_origin(hint) is Annotated:  # such as a renamed field, ``Annotated[Optional[int], Was("old")]``
        return annotated_as(hint, present_type(hint.__origin__))
    if get_origin(hint) in UNIONS:
        others = tuple(part for part in get_args(hint) if part is not type(None))
        return others[0] if len(others) == 1 else Union[others]
    return hint


def annotated_as(hint: Any, kind: Any) -> Any:
    """The type *kind* with what the Annotated *hint* says of its own."""
    if kind is hint.__origin__:
        return hint
    annotated: Any = Annotated
    parts = (kind, *hint.__metadata__)
    return annotated[parts]


UNIONS = (Union, getattr(types, "UnionType", Union))
"""The origins of ``Union[A, B]`` and of ``A | B``."""


def is_uuid(kind: Any) -> bool:
    """Whether *kind* is `uuid.UUID`. It is not imported for the question, since that takes a millisecond."""
    module = sys.modules.get("uuid")
    return module is not None and kind is getattr(module, "UUID", module)

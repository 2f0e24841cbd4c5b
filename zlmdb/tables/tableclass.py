"""Table classes: the arguments of their declaration, and the details computed from it."""

from __future__ import annotations

import sys
from abc import ABCMeta
from collections.abc import Iterable, Mapping
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Optional, TypeVar, get_args, get_origin

from .. import reserved
from ..missingattributes import present
from ..shown import nearest, shortened
from ..typeargs import own_annotations, type_arguments, words_of
from ..values.base import is_a
from .declares import Declares

if TYPE_CHECKING:
    from .index import DeclaredIndex

    TableType = ABCMeta
else:

    class TableType(ABCMeta):
        """Lets a table class take ``name=``: before Python 3.11 `ABCMeta` has a parameter of that name."""

        def __new__(mcls, class_name, bases, namespace, /, **kwargs):
            if "name" in kwargs:
                namespace["_table_name"] = kwargs.pop("name")
            return super().__new__(mcls, class_name, bases, namespace, **kwargs)

        def __init__(cls, class_name, bases, namespace, /, **kwargs):
            super().__init__(class_name, bases, namespace)

        def __dir__(cls):
            return present(cls, super().__dir__())


def declared_indexes(cls: type) -> dict[str, DeclaredIndex[Any]]:
    """The indexes that a table class declares or inherits, by name, in the order of declaration."""
    found: dict[str, DeclaredIndex[Any]] = {}
    for base in reversed(cls.__mro__):
        for name, value in vars(base).items():
            if is_a(value, Declares):
                found[name] = value
    return found


def check_names(cls: type) -> None:
    """Raise `TypeError` for an index in *cls* with a reserved name."""
    for name, value in vars(cls).items():
        why = reserved.refused(name, reserved.INDEXES) if isinstance(value, Declares) else ""
        if why:
            raise TypeError(f"an index cannot be called {name!r}, {why}: rename it (see Reserved names in the API)")


def check_body(cls: Any) -> None:
    """Raise `TypeError`, with the line to write, for what looks like an index, or a field, in *cls* and is none."""
    body: Mapping[str, Any] = cls.__dict__
    for name, value in body.items():
        if _is_index_class(value):
            raise TypeError(_no_index(cls, f"{name} = {_written(value)}", name, value))
    for name, annotation in own_annotations(cls).items():
        if isinstance(annotation, Declares):
            raise TypeError(
                f"{cls.__name__}: {name}: {annotation!r} declares no index: write = for the colon, "
                f"{name} = {annotation!r}"
            )
        given = _looked_up(annotation, cls) if isinstance(annotation, str) else annotation
        if _is_index_class(given) and not isinstance(body.get(name), Declares):
            raise TypeError(_no_index(cls, f"{name}: {_written(given)}", name, given))
        if not (name in body or name.startswith("_") or "ClassVar" in str(annotation)):  # as an ORM declares a column
            shown = annotation if isinstance(annotation, str) else _written(annotation)
            raise TypeError(
                f"{cls.__name__}: {name}: {shown} declares no field, as a table has none: its records are of a class "
                f"of their own, such as a dataclass with this line, and the table of that, "
                f"class {cls.__name__}(zlmdb.Table[KeyType, ThatClass])"
            )


def _looked_up(annotation: str, cls: Any) -> Any:
    """What the text *annotation* names before its first bracket; None if that is not known."""
    head, *rest = annotation.partition("[")[0].strip().split(".")
    known: dict[str, Any] = {**vars(sys.modules[cls.__module__]), **(cls._locals_seen or {})}
    found = known.get(head)
    for name in rest:
        found = getattr(found, name, None)
    return found


def _is_index_class(given: Any) -> bool:
    """Whether *given* is a class of indexes, with a type or without, and not an index."""
    found = get_origin(given) or given
    return isinstance(found, type) and issubclass(found, Declares)


def _written(given: Any) -> str:
    """A type, or a class of indexes with its type, as it is written."""
    if not _is_index_class(given):
        from .modelfields import shown_type  # late, as below

        return shown_type(given)
    arguments = ", ".join([_written(one) for one in get_args(given)])
    return f"zlmdb.{(get_origin(given) or given).__name__}" + (f"[{arguments}]" if arguments else "")


def _no_index(cls: type, written: str, name: str, given: Any) -> str:
    return (
        f"{cls.__name__}: {written} declares no index: call it with the name of a field, "
        f'{name} = {_written(given)}("field")'
    )


def former_names(was: object) -> tuple[str, ...]:
    """The former names that a class gives as *was*: a text, or a tuple of texts. Raises `TypeError`."""
    given: Any = (was,) if is_a(was, str) else was
    if not is_a(given, tuple) or not all([is_a(name, str) and name for name in given]):
        raise TypeError(f"was={was!r}: expected the former name of the table, or a tuple of names")
    return given


def unknown_options(cls: type, given: Iterable[str]) -> TypeError:
    """The error for options of a class statement that no base class of *cls* takes."""
    known: dict[str, Any] = {}
    for base in cls.__mro__:
        takes: Any = vars(base).get("__init_subclass__")
        known.update(getattr(getattr(takes, "__func__", None), "__kwdefaults__", None) or {})
    name = next((name for name in given if name not in known), "")
    return TypeError(f"class {cls.__name__}(..., {name}=...): there is no such option; {nearest(name, known)}")


def check_types(cls: Any, table: type) -> None:
    """Raise `TypeError` for an index of *cls*, derived from *table*, whose key type is not that of its field.

    So it is for the field that ``key=`` names. Nothing is said where the types are not known yet.
    """
    _check_options(cls)
    body: Mapping[str, Any] = cls.__dict__
    indexes: list[DeclaredIndex[Any]] = [one for one in body.values() if is_a(one, Declares)]
    for name, one in body.items() if indexes else ():
        if is_a(one, Declares) and ("\0" in name or any(["\ud800" <= letter <= "\udfff" for letter in name])):
            raise TypeError(
                f"{cls.__name__}: the name of an index has neither a NUL character nor half a surrogate pair, as "
                f"{name!r} has: choose another one"
            )
    if not indexes and not isinstance(cls._key_source, str):
        return
    try:
        arguments = type_arguments(cls, table, cls._locals_seen)
    except TypeError:
        return
    if len(arguments) == 2:
        key, value = arguments
        model = get_args(value)[0] if hasattr(value, "__metadata__") else value
        if isinstance(cls._key_source, str):
            _check_key_field(cls, cls._key_source, key, model)
        for index in indexes:
            index._check_types(model)


def _check_options(cls: Any) -> None:
    """Raise `TypeError` for what *cls* gives as ``name=`` or ``key=``, and is none."""
    name: Any = cls._table_name
    source: Any = cls._key_source
    if name is not None and not (is_a(name, str) and name):
        raise TypeError(f"{cls.__name__}: name={name!r}: expected a text, the name of the table in the file")
    if is_a(source, tuple) or is_a(source, list):
        raise TypeError(
            f"{cls.__name__}: key={shortened(source)}: one field has the key; leave out key= for a key of several "
            f"parts, and write table[first, second] = record"
        )
    if source is not None and not is_a(source, str) and not callable(source):
        raise TypeError(
            f"{cls.__name__}: key={shortened(source)}: expected the name of a field of the record, or a function "
            f"without arguments, such as uuid.uuid4"
        )


def _check_key_field(cls: type, path: str, key: Any, model: Any) -> None:
    """Raise `TypeError` if values of the type *model* do not have the field *path*, or have no *key* in it."""
    from .modelfields import known_type, listed_fields, may_be  # late: the keys of many tables are no fields

    of = get_origin(model) or model
    listed = listed_fields(of)
    name = path.partition(".")[0]
    if listed and name not in listed and not hasattr(of, name):
        raise TypeError(
            f"{cls.__name__}: key={path!r}, and {of.__name__} has no field {name!r} (it has {', '.join(listed)}): name "
            f"the field with the key of a record"
        )
    known = known_type(model, path, getattr(cls, "_locals_seen", None))
    if not may_be(known, key):
        raise TypeError(
            f"{cls.__name__}: the field {path!r} that key= names is {_written(known)}, and the keys of the table are "
            f"{_written(key)}: name the field with the key of a record, or give the table the type of the field"
        )


def calling_locals(mentioned: Iterable[Any] = ()) -> Optional[dict[str, Any]]:
    """The local names where a class is being created, for annotations that use them; None at module level.

    Only types, modules, and the names that the annotations *mentioned* use: anything else would live as long as the
    class.
    """
    frame: Any = sys._getframe(1)  # documented, and on PyPy too
    while frame is not None and frame.f_code.co_name in ("__init_subclass__", "calling_locals", "__new__"):
        frame = frame.f_back
    if frame is None or frame.f_locals is frame.f_globals:
        return None
    words = words_of(mentioned)
    return {name: value for name, value in frame.f_locals.items() if name in words or _is_type(value)}


def _is_type(value: Any) -> bool:
    """Whether *value* can be part of an annotation: a class, an alias, a TypeVar or NewType, or a module of them."""
    cls: Any = value.__class__
    return (
        isinstance(value, (type, ModuleType, TypeVar))
        or cls.__module__ in ("typing", "types", "typing_extensions", "_typing")
        or (cls is FunctionType and hasattr(value, "__supertype__"))  # a NewType before Python 3.10
    )

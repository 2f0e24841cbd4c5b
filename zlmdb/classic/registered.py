"""Map classes with a UUID, by which ``db.attach_table`` finds their tables in a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Optional, TypeVar, Union
from uuid import UUID

if TYPE_CHECKING:
    from .pmap import PersistentMap

C = TypeVar("C", bound=type)

TABLES_BY_UUID: dict[UUID, type[PersistentMap[Any, Any]]] = {}
"""The classes that `table` decorated, by their UUID."""


def table(
    oid: Union[UUID, str],
    marshal: Optional[Callable[[Any], Any]] = None,
    parse: Optional[Callable[[Any], Any]] = None,
    build: Optional[Callable[[Any, Any], Any]] = None,
    cast: Optional[Callable[[Any], Any]] = None,
    compress: Optional[int] = None,
) -> Callable[[C], C]:
    """Class decorator: gives a map class the UUID by which ``db.attach_table`` finds its table, and its callables.

    *marshal* converts an object to plain data and *parse* plain data to an object, for JSON and CBOR maps; *build* and
    *cast* do this for FlatBuffers maps. Decorating again with the same UUID, as a reloaded module does, replaces the
    class.

    Raises `ValueError` for a text that is not a UUID, `TypeError` for a class that is not a map.
    """
    if not isinstance(oid, (UUID, str)):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers are not all checked
        raise TypeError(f"@table takes the UUID of the table, got {oid!r}")
    uuid = oid if isinstance(oid, UUID) else UUID(oid)

    def decorate(cls: C) -> C:
        from .pmap import PersistentMap  # late: who decorates a map has it

        given: Any = cls
        if not (isinstance(given, type) and issubclass(given, PersistentMap)):
            raise TypeError(f"@table takes a subclass of PersistentMap, not {cls!r}")
        callables: dict[str, Any] = {"marshal": marshal, "parse": parse, "build": build, "cast": cast}
        attributes = {
            name: None if function is None else staticmethod(function) for name, function in callables.items()
        }
        for name, attribute in {"oid": uuid, "compress": compress, **attributes}.items():
            setattr(cls, f"_zlmdb_{name}", attribute)
        TABLES_BY_UUID[uuid] = cls
        return cls

    return decorate

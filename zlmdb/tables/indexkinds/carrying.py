"""Covering indexes: with ``carries=``, the entries of an index have the values of more fields of the record.

The value of an entry is, for each of these fields, its length as u32 BE and the stored form of its type; ``ffffffff``
stands for None. This needs primary keys of fixed width: all others are stored in that place. Models cannot be carried,
because their shape may change, and only records are converted then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from operator import attrgetter, itemgetter
from typing import Annotated, Any, Optional, get_args, get_origin
from uuid import UUID

from ... import errors
from ...query.fieldtypes import without_none
from ...values.base import Serializer
from ...values.flat.markers import Id
from ...values.resolve import serializer
from ...values.was import Was
from ..indexstorage import IndexStorage
from ..modelfields import has_attributes, is_typed_dict, known_type, listed_fields, may_lack, shown_type
from .elements import CONTAINERS

_SCALARS = (str, bytes, int, float, bool, UUID, datetime, date, time, timedelta, Decimal)
_NONE = b"\xff\xff\xff\xff"


def carried_types(
    index: str, fields: Sequence[str], model: Any, names: Optional[Mapping[str, Any]]
) -> dict[str, Serializer[Any]]:  # fmt: skip
    """The types of the *fields* of *model* that entries carry. Raises `TypeError` for what they cannot carry."""
    found: dict[str, Serializer[Any]] = {}
    has_fields = has_attributes(model) or is_typed_dict(model)
    for field in fields:
        known = known_type(model, field, names) if field.isidentifier() and has_fields else None
        if known is None:
            listed = ", ".join(listed_fields(get_origin(model) or model))
            raise TypeError(
                f"index {index!r}: carries={field!r} is no field of a model class with a type"
                + (f" (it has {listed}): name one of its fields" if listed else "")
            )
        if may_lack(model, field):
            raise TypeError(
                f"index {index!r}: carries={field!r} is an item that records need not have, and entries do not tell "
                f"that from None: declare it without NotRequired and total=False, as Optional"
            )
        if not _is_carried(known):
            raise TypeError(
                f"index {index!r}: carries={field!r} is of type {shown_type(known)}; expected numbers, texts, times "
                f"and the like, or lists, sets, tuples and dicts of these"
            )
        found[field] = serializer(_unmarked(known), localns=names)
    return found


def _unmarked(annotation: Any) -> Any:
    """The type *annotation* without a former name and a number, which a release may add and take away."""
    if get_origin(annotation) is not Annotated:
        return annotation
    kept = tuple([extra for extra in annotation.__metadata__ if not isinstance(extra, (Was, Id))])
    parts = annotation.__origin__, *kept
    annotated: Any = Annotated
    return annotated[parts] if kept else annotation.__origin__


def _is_carried(annotation: Any) -> bool:
    """Whether values of the type *annotation* have one form for ever: scalars, and containers of them."""
    annotation = without_none(annotation)
    origin, args = get_origin(annotation), get_args(annotation)
    if isinstance(annotation, type) and origin is None:
        return annotation in _SCALARS or issubclass(annotation, Enum)
    return origin in (*CONTAINERS, dict) and all([one is Ellipsis or _is_carried(one) for one in args])


class CarryingStorage(IndexStorage):
    """An index whose entries carry values of fields."""

    absent = _NONE

    def __init__(
        self, *args: Any, carrying: Mapping[str, Serializer[Any]], of_dicts: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.of_dicts = of_dicts
        if not self.tail:
            raise TypeError(
                f"index {self.full_name!r}: carries= needs primary keys of fixed width, such as int or UUID"
            )
        self.carries = tuple(carrying)
        self.serializers = tuple(carrying.values())
        take: Callable[[Any], Any] = itemgetter(*carrying) if self.of_dicts else attrgetter(*carrying)
        self._take: Callable[[Any], Any] = take if len(carrying) > 1 else lambda value: (take(value),)

    def entry_value(self, value: Any, key: Any, primary: bytes) -> bytes:
        parts: list[bytes] = []
        for name, codec, one in zip(self.carries, self.serializers, self._take(value)):
            if one is None:
                parts.append(_NONE)
                continue
            try:
                data = codec.encode(one)
            except errors.EncodeError as error:
                raise errors.EncodeError(
                    f"index {self.full_name!r}: it cannot carry the field {name!r}: {error}",
                    index=self.name,
                    table=self.table,
                    key=key,
                ) from error
            parts += len(data).to_bytes(4, "big"), data
        return b"".join(parts)

    def belongs(self, data: Any, key: Any, primary: bytes) -> bool:
        return True  # the key of the entry ends with the primary key

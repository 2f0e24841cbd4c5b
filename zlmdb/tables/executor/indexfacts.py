"""What the planner has to know of the indexes of a table: `query.plan` knows no tables."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from enum import Enum
from typing import Any, Optional
from uuid import UUID

from ...keys import TupleKey
from ...keys.choices import ChoiceKey
from ...keys.descending import DescendingKey
from ...keys.registry import DECIMAL, PLAIN
from ...query.accesses import IndexFacts, Part
from ...query.fieldtypes import vouches as vouches
from ...query.following import Following
from ...query.following.known import Known, is_bare_enum
from ...query.terms import ELEMENT, KEY, Asking, conjuncts, is_present
from ..indexstorage import IndexStorage
from ..modelfields import may_lack
from ..storage import Storage

_CONTAINERS = (list, set, frozenset, tuple)
"""The classes whose ``in`` compares with each element."""


_SORTED_KEYS = (int, str, bytes, UUID, date)
"""Types of primary keys of which any two compare."""


def key_facts(storage: Storage[Any, Any]) -> Optional[IndexFacts]:
    """The primary key as an index; None if the planner must not use it."""
    kinds = _kinds(storage.key)
    if kinds is None or not storage.key.sorts:
        return None
    if not isinstance(storage.key, TupleKey):
        return IndexFacts(KEY, (Part((KEY,), kinds[0], present=True),), unique=True)
    parts = [Part((KEY, number), kind, present=True) for number, kind in enumerate(kinds)]
    return IndexFacts(KEY, tuple(parts), unique=True)


def key_field_facts(storage: Storage[Any, Any], following: Following) -> Optional[IndexFacts]:
    """The primary key as an index of the field that it is in; None if the planner must not use it."""
    kinds = _kinds(storage.key)
    if not storage.keyed or storage.key_field is None or kinds is None or len(kinds) != 1 or not storage.key.sorts:
        return None
    part = None if isinstance(storage.key, TupleKey) else _part(following, storage.key_field.path, (), kinds[0])
    return None if part is None or not part.present else IndexFacts(KEY, (part,), unique=True)


def index_facts(index: IndexStorage, storage: Storage[Any, Any], following: Following) -> Optional[IndexFacts]:
    """An index of the table of *storage*; None if the planner must not use it."""
    codec, definition = index.storage.key, index.definition
    fields: Sequence[str] = definition.get("fields", ())
    kinds = _kinds(codec)
    if not fields or kinds is None or len(kinds) != len(fields) or not codec.sorts:
        return None
    if not index.sole or index.adopted or index.not_null or isinstance(codec, TupleKey) != (len(kinds) > 1):
        return None
    find = _element_part if index.several else _part
    texts: Sequence[Sequence[str]] = definition.get("texts") or [()] * len(fields)
    parts = [find(following, *one) for one in zip(fields, texts, kinds)]
    down = [isinstance(part, DescendingKey) for part in (codec.parts if isinstance(codec, TupleKey) else (codec,))]
    found = [
        part._replace(descending=one, sorts=not issubclass(part.kind, Enum))
        for part, one in zip(parts, down)
        if part is not None
    ]
    if len(found) != len(parts):
        return None
    if not vouches(storage.value.name):  # there may be None where the class says there is not
        found = [part._replace(present=False) for part in found]
    then_by_key = storage.key.sorts and _kinds(storage.key) in [(kind,) for kind in _SORTED_KEYS]
    return IndexFacts(index.name, tuple(found), index.unique, index.several, _where(index), then_by_key)


def _where(index: IndexStorage) -> tuple[Asking, ...]:
    """What is true of all records in a partial index."""
    where = index.where
    if where is None:
        return ()
    return tuple([Asking(node, where.parameters, keyed=False) for node in conjuncts(where.node)])


def _part(following: Following, path: str, texts: Sequence[str], kind: Any) -> Optional[Part]:
    known, present = _known(following, path)
    if known is None or known.required.cls is not kind:
        return None
    return Part((*path.split("."), *texts), kind, present)


def _element_part(following: Following, path: str, texts: Sequence[str], kind: Any) -> Optional[Part]:
    known, _ = _known(following, path)
    if known is None or known.required.cls not in _CONTAINERS or known.required.element().required.cls is not kind:
        return None
    return Part((*path.split("."), ELEMENT, *texts), kind, present=False)


def _known(following: Following, path: str) -> tuple[Optional[Known], bool]:
    """What is known of the field at *path* of the values, and whether there is certainly something."""
    known: Optional[Known] = following.value_type
    present = True
    for name in path.split("."):
        if known is not None:
            holder = known.required
            known = holder.fields().get(name)
            present = present and known is not None and is_present(known) and not may_lack(holder.cls, name)
    return known, present


def _kinds(codec: Any) -> Optional[tuple[Any, ...]]:
    """The classes of the parts of a key, if the codec keeps all that Python compares."""
    parts = codec.parts if isinstance(codec, TupleKey) else (codec,)
    kinds = [_kind(part) for part in parts]
    return None if None in kinds else tuple(kinds)


def _kind(codec: Any) -> Any:
    if isinstance(codec, DescendingKey):
        codec = codec.inner
    if isinstance(codec, ChoiceKey):
        kind = codec.kind
        return kind if kind is str or kind is int or (kind is not None and _is_bare(kind)) else None
    if codec is DECIMAL:
        from decimal import Decimal

        return Decimal
    return next((cls for cls, plain in PLAIN.items() if plain is codec), None)


def _is_bare(kind: Any) -> bool:
    """Whether members of the class *kind* are equal to themselves alone."""
    return issubclass(kind, Enum) and is_bare_enum(kind)

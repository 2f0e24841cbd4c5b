"""Indexes of tables that the program does not declare, from what the file says of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ..errors import EncodeError
from ..keys import KeyCodec, TupleKey
from ..keys import from_name as key_from_name
from ..keys.descending import DescendingKey
from ..schema.storages import entries_storage
from ..store.slots import Keyspace
from ..store.store import Store
from ..tables.indexkinds.elements import ElementStorage
from ..tables.indexkinds.fieldtexts import composed
from ..tables.indexstorage import IndexStorage
from ..tables.storage import Storage
from ..values.base import is_a
from .keytext import from_plain

PARTS = frozenset(
    {"unique", "key", "fields", "version", "table", "link", "expires", "each", "texts", "where", "carries", "slot"}
)
"""What the definition of an index of this version may contain: anything else is of a kind that a newer one has."""

_BLIND = ", so that only the owners of its entries were looked up"


class NotComputable(Exception):
    """The index key of a record cannot be told from its plain data: only the class that declares the index knows it."""


def index_storage(
    store: Store, keyspace: Keyspace, name: str, definition: Mapping[str, Any], table: Storage[Any, Any]
) -> IndexStorage:
    """Where the entries of an index are, and how they are made of the plain data of a record.

    Raises ValueError for a key type, a transform or a kind of index that this version does not know, and for entries
    that carry values.
    Asked for the entry of a record, it raises `NotComputable` where the plain data do not say.
    """
    if "carries" in definition:
        raise ValueError("its entries carry values of fields, whose types only the class that declares it knows")
    unknown = definition.keys() - PARTS
    if unknown:
        raise ValueError(
            f"this version does not know what {', '.join(map(repr, sorted(unknown)))} in its definition means: "
            f"written by a newer one?"
        )
    unique, adopted = bool(definition.get("unique")), definition.get("table") is not None
    key = key_from_name(str(definition.get("key")))
    entries = entries_storage(table, name, store, keyspace, key, unique=unique, adopted=adopted)
    cls = ElementStorage if definition.get("each") else IndexStorage
    return cls(
        name,
        entries,
        unique=unique,
        get_key=_getter(entries.key, definition),
        primary=None if unique else table.key,
        adopted=adopted,
    )


def entries(index: IndexStorage, primary: KeyCodec[Any], rows: Iterable[tuple[bytes, bytes]]) -> Iterator[Any]:
    """The index key and the *primary* key of each entry of *rows*, which are without prefix. Raises `DecodeError`."""
    for entry, data in rows:
        if index.joined is not None:
            yield index.joined.decode(entry)
        else:
            yield index.storage.key.decode(entry), primary.decode(data)


def _getter(codec: KeyCodec[Any], definition: Mapping[str, Any]) -> Callable[[Any], Any]:
    """The function that takes the index key from plain data, or all of them if there is one for each element."""
    names: list[str] = list(definition.get("fields") or [])
    each = bool(definition.get("each"))
    texts = [composed(applied) for applied in definition.get("texts") or ()]

    def get(value: Any) -> Any:
        if not names or "where" in definition or not isinstance(value, Mapping):
            raise NotComputable(f"its keys are made by the program{_BLIND}")
        taken: list[Any] = []
        for name in names:
            if name not in value:
                raise NotComputable(f"a record has no field {name!r}{_BLIND}")
            taken.append(value[name])
        if texts:
            taken = [transform(one) for transform, one in zip(texts, taken)]
        if each:
            return _elements(codec, taken[0])
        if len(names) == 1:
            return None if taken[0] is None else _key(codec, taken[0])
        if None in taken or not isinstance(codec, TupleKey):
            return None
        return tuple(_key(part, one) for part, one in zip(codec.parts, taken))

    return get


def _elements(codec: KeyCodec[Any], plain: Any) -> Any:
    if plain is None:
        return None
    if not is_a(plain, (list, tuple, set, frozenset)):
        raise NotComputable(f"a record has something else than a list of index keys{_BLIND}")
    return [None if one is None else _key(codec, one) for one in plain]


def _key(codec: KeyCodec[Any], plain: Any) -> Any:
    """The key that *plain* data mean: as it is where it fits, else what its text says (a UUID, a date)."""
    if isinstance(codec, DescendingKey):
        codec = codec.inner
    try:
        codec.encode(plain)
    except EncodeError:
        pass
    else:
        return plain
    if isinstance(plain, str) and codec.name.startswith("bytes"):  # JSON has them as text, which may look hexadecimal
        raise NotComputable(f"its keys are bytes, its records have texts{_BLIND}")
    try:
        return from_plain(codec, plain)
    except EncodeError as error:
        raise NotComputable(f"{error}{_BLIND}") from error

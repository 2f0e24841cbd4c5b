"""How the records of a classic map are stored: its codecs, its slot, and its keyspace in each open file."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Optional, TypeVar
from uuid import UUID

from .. import errors
from ..keys import KeyCodec
from ..schema.attach import attach
from ..schema.declaration import Declaration
from ..store.catalogue import catalogue_of
from ..store.slots import slot_prefix
from ..store.store import Store
from ..tables.storage import Storage
from ..tables.tableclass import calling_locals
from ..values.base import FunctionSerializer, Serializer
from ..values.compression import compressed
from .attached import Records
from .codecs import OwnKeys, callable_names, map_codecs, map_types, value_type

if TYPE_CHECKING:
    from typing_extensions import Self

K = TypeVar("K")
V = TypeVar("V")


class StoredMap(Generic[K, V]):
    """The part of a `PersistentMap` that knows how its records are stored."""

    COMPRESS_ZLIB = 1
    COMPRESS_SNAPPY = 2

    _zlmdb_oid: ClassVar[Optional[UUID]] = None
    _zlmdb_marshal: ClassVar[Optional[Callable[[Any], Any]]] = None
    _zlmdb_parse: ClassVar[Optional[Callable[[Any], Any]]] = None
    _zlmdb_build: ClassVar[Optional[Callable[[Any, Any], Any]]] = None
    _zlmdb_cast: ClassVar[Optional[Callable[[Any], Any]]] = None
    _zlmdb_compress: ClassVar[Optional[int]] = None
    _locals_seen: ClassVar[Optional[dict[str, Any]]] = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._locals_seen = calling_locals(mentioned=vars(cls).get("__orig_bases__", ()))

    def __init__(
        self,
        slot: Optional[int] = None,
        compress: Optional[int] = None,
        *callables: Optional[Callable[..., Any]],
        marshal: Optional[Callable[[Any], Any]] = None,
        unmarshal: Optional[Callable[[Any], Any]] = None,
        build: Optional[Callable[[Any, Any], Any]] = None,
        cast: Optional[Callable[[Any], Any]] = None,
    ) -> None:
        if compress not in (None, 0, self.COMPRESS_ZLIB, self.COMPRESS_SNAPPY):
            raise ValueError(f"compress={compress!r}: expected COMPRESS_ZLIB (1), COMPRESS_SNAPPY (2) or None")
        self._slot: Optional[int] = None
        self._compress: Optional[int] = None
        self._callables = callables
        self._named_callables: dict[str, Callable[..., Any]] = {}
        self._codecs: Optional[tuple[KeyCodec[K], Serializer[V]]] = None
        self._typed: Optional[tuple[KeyCodec[K], Serializer[V]]] = None
        self._is_attached = False
        self._wiring = object()  # another one whenever an index is attached or detached
        self._configure(slot, compress, marshal=marshal, unmarshal=unmarshal, build=build, cast=cast)

    def _both_codecs(self) -> tuple[KeyCodec[K], Serializer[V]]:
        """The key codec and the value serializer, from the type arguments and the constructor."""
        if self._codecs is None:
            cls = type(self)
            own_keys = cls._has_own("_serialize_key", "_deserialize_key")
            own_values = cls._has_own("_serialize_value", "_deserialize_value")
            key = OwnKeys(self._serialize_key, self._deserialize_key) if own_keys else self._by_types()[0]
            value: Serializer[V]
            if own_values:
                value = FunctionSerializer("custom", self._serialize_value, self._deserialize_value)
            else:
                value = self._by_types()[1]
            self._codecs = key, compressed(value, self._compress)
        return self._codecs

    def _by_types(self) -> tuple[KeyCodec[K], Serializer[V]]:
        if self._typed is None:
            # Not in __init__: ``MapUuidCbor[User](1)`` sets __orig_class__ after it.
            declared = self.__dict__.get("__orig_class__", type(self))
            self._typed = map_codecs(
                declared, StoredMap, type(self)._locals_seen, self._callables, self._named_callables
            )
        return self._typed

    # In zlmdb <= 26 a class of maps has these methods, or inherits them, and programs override them. Whoever does so
    # decides about the bytes; all other maps never get here.

    @classmethod
    def _has_own(cls, *names: str) -> bool:
        return any(getattr(cls, name) is not getattr(StoredMap, name) for name in names)

    def _serialize_key(self, key: Any) -> bytes:
        return self._by_types()[0].encode(key)

    def _deserialize_key(self, data: Any) -> Any:
        return self._by_types()[0].decode(data)

    def _serialize_value(self, value: Any) -> bytes:
        return self._by_types()[1].encode(value)

    def _deserialize_value(self, data: Any) -> Any:
        return self._by_types()[1].decode(data)

    def _configure(
        self, slot: Optional[int], compress: Optional[int] = None, **callables: Optional[Callable[..., Any]]
    ) -> None:
        """Set the slot and the constructor's arguments. None leaves a value unchanged."""
        if slot is not None:
            slot_prefix(slot)  # raises for numbers that are none
            self._slot = slot
        self._compress = compress or self._compress
        self._named_callables.update((name, one) for name, one in callables.items() if one is not None)
        self._codecs = self._typed = None

    @classmethod
    def _in_slot(cls, slot: int) -> Self:
        """A map in *slot* with the callables and the compression that the class was decorated with."""
        given: dict[str, Any] = {
            "marshal": cls._zlmdb_marshal,
            "unmarshal": cls._zlmdb_parse,
            "build": cls._zlmdb_build,
            "cast": cls._zlmdb_cast,
        }
        # What was not given is not named, since a constructor of the user's own may not have it.
        given = {name: one for name, one in given.items() if one is not None}
        if given:
            names = callable_names(map_types(cls, StoredMap, cls._locals_seen)[1])
            given = {name: given[name] for name in names if name in given}
        return cls(slot, compress=cls._zlmdb_compress, **given)

    def _storage_in(self, store: Store) -> Storage[K, V]:
        """Where and how the records are kept in *store*."""
        return self._records_in(store).storage

    def _records_in(self, store: Store) -> Records:
        """The records in *store*, and the state of their indexes."""
        found: Optional[Records] = store.maps.get(self)
        if found is None:
            found = store.maps[self] = Records(self._slot_storage(store))
        return found

    def _slot_storage(self, store: Store) -> Storage[K, V]:
        """The storage in a store that does not know this map yet."""
        class_name = type(self).__name__
        if self._is_attached:
            return self._same_table(store)
        if self._slot is None:
            raise TypeError(
                f"{class_name} has no slot: create it with a number, {class_name}(1), or with "
                f"db.attach_table({class_name})"
            )
        key, value = self._both_codecs()
        key, value = store.traits.codec(key), store.traits.codec(value)
        keyspace = catalogue_of(store).slot_keyspace(self._slot)
        storage = Storage(
            f"{class_name}({self._slot})", keyspace.space, keyspace.prefix, key, value, store.environment.max_key_size()
        )
        storage.number = self._slot
        store.by_hand.add(self._slot)
        return storage

    def _same_table(self, store: Store) -> Storage[K, V]:
        """The table with the UUID of this attached map in another store, whichever slot it has there."""
        declared = self._declaration()
        [storage] = attach(store, [declared], create=False)
        if storage.number == 0:
            raise errors.SchemaMismatch(
                f"{declared.class_name} was attached to another database: attach it to {store.engine.path!r} too",
                table=declared.class_name,
            )
        return storage

    def _declaration(self) -> Declaration:
        """The declaration of this map, whose class has a UUID. Raises `TypeError` without one."""
        cls = type(self)
        oid = cls._zlmdb_oid
        if oid is None:
            raise TypeError(f"{cls!r} is not decorated as a table: put @zlmdb.table('<uuid>') before the class")
        key, value = self._both_codecs()
        description = (vars(cls).get("__doc__") or "").strip() or None
        vouched = any(self._callables) or bool(self._named_callables) or value.name == "custom"
        shape = None if vouched else value_type(self.__dict__.get("__orig_class__", cls), StoredMap, cls._locals_seen)
        return Declaration(
            str(oid), oid, cls.__name__, description, key, value, model=None, indexes={}, names=cls._locals_seen,
            shape=shape, vouched=vouched, classic=True,
        )  # fmt: skip

    def _adopt(self, store: Store, storage: Storage[K, V]) -> None:
        """This is the map of *storage* in *store*."""
        self._is_attached = True
        store.maps[self] = Records(storage)

    def _name_in(self, store: Store) -> str:
        """The name of this map in the catalogue: its UUID, or its slot."""
        oid = type(self)._zlmdb_oid
        return str(oid) if self._is_attached and oid is not None else f"slot {self._storage_in(store).number}"

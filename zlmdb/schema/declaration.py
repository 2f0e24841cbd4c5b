"""The declaration of a table by a program: its types and its indexes, with the details of their model.

A declaration does not depend on a file. It is computed once for a schema class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Optional, TypeVar, get_args, get_origin

from .. import errors
from ..keys import KeyCodec, key_codec
from ..locks import cached_property
from ..namedtuples import NamedTuple
from ..shown import shortened
from ..tables.indexstorage import IndexStorage
from ..tables.table import Table
from ..tables.tableclass import declared_indexes
from ..typeargs import type_arguments
from ..values.base import Serializer
from ..values.resolve import serializer

if TYPE_CHECKING:
    from uuid import UUID

    from ..feed.policy import Feed
    from ..query.following import Followed
    from ..tables.expiry import Expiry
    from ..tables.index import DeclaredIndex
    from ..tables.keyfield import KeyField
    from ..values.description import Description
    from ..values.fields import Fields


class IndexForm(NamedTuple):
    """An index of a declared table: the result of `DeclaredIndex` for the model of the values.

    *definition* is what the catalogue records. *field* is the attribute that *get_key* takes, if it takes one;
    *as_stored*: the key must be taken from the record as it is read. *storage* makes the entries.
    *where* is the condition on the records in it, as it was read.
    """

    unique: bool
    adopts: Optional[UUID]
    key: KeyCodec[Any]
    definition: Mapping[str, Any]
    get_key: Callable[[Any], Any]
    field: Optional[str]
    as_stored: bool
    storage: Callable[..., IndexStorage] = IndexStorage
    where: Optional[Followed] = None


class Declaration:
    """The declaration of one table.

    *strict*: its class determines the indexes. *shape* is the type of its values if *model* does not determine it.
    *vouched*: functions of the program create its values from the stored ones, so fields cannot be compared.
    *key_field* is the field of the values that is their key; a *classic* map can name none. *was* are former names.
    *feed*: how long the changes of the table are kept, if they are recorded.
    """

    def __init__(
        self,
        name: str,
        uuid: Optional[UUID],
        class_name: str,
        description: Optional[str],
        key: KeyCodec[Any],
        value: Serializer[Any],
        model: Any,
        indexes: Mapping[str, DeclaredIndex[Any]],
        strict: bool = False,
        names: Optional[Mapping[str, Any]] = None,
        shape: Any = None,
        vouched: bool = False,
        key_field: Optional[KeyField] = None,
        key_type: Any = Any,
        was: tuple[str, ...] = (),
        expiry: Optional[Expiry] = None,
        feed: Optional[Feed] = None,
        classic: bool = False,
    ) -> None:
        self.name = name
        self.uuid = uuid
        self.class_name = class_name
        self.description = description
        self.key = key
        self.value = value
        self.model = model
        self.strict = strict
        self.names = names
        self.shape = model if shape is None else shape
        self.vouched = vouched
        self.key_field = key_field
        self.key_type = key_type
        self.was = was
        self.expiry = expiry
        self.referred: set[tuple[str, str]] = set()  # the links to its records: their tables and names
        self.linked = False  # whether some of the indexes are links
        self.feed = feed
        self.classic = classic
        self._declared = indexes

    @cached_property
    def indexes(self) -> dict[str, IndexForm]:
        """The indexes by name. Raises `TypeError` for an index whose key the model does not have."""
        return {name: _form(index, self.model) for name, index in self._declared.items()}

    @cached_property
    def definitions(self) -> dict[str, Mapping[str, Any]]:
        """The definitions of the indexes, as the catalogue records them."""
        return {name: form.definition for name, form in self.indexes.items()}

    @cached_property
    def fields(self) -> Optional[Fields]:
        """The fields of the model classes in its values; None if there are none."""
        if self.value.model is None or self.shape is None or self.vouched:
            return None
        from ..values.fields import fields_of  # late: programs without models need not load it

        return fields_of(self.shape, self.value, self.names)

    @cached_property
    def described(self) -> Optional[Description]:
        """The description of these fields."""
        return None if self.fields is None else self.fields.description

    @cached_property
    def fingerprint(self) -> str:
        """A name for everything that determines the shape of records and indexes, except defaults."""
        import hashlib  # late: it takes a while

        said: list[Any] = [self.key.name, self.value.name, _without_defaults(self.fields)]
        said.append(sorted(self.definitions.items()))
        if self.feed is not None:
            said.append("feed")
        return hashlib.blake2b(repr(said).encode(), digest_size=8).hexdigest()


def _without_defaults(fields: Optional[Fields]) -> Any:
    if fields is None:
        return None
    kept = ("name", "type", "id")
    models = [
        (model["kind"], [[field.get(name) for name in kept] for field in model["fields"]])
        for model in fields.description["models"]
    ]
    return fields.description["type"], models


def _form(index: DeclaredIndex[Any], model: Any) -> IndexForm:
    definition = index._definition(model)
    if index._adopts is not None:
        definition["table"] = str(index._adopts)
    return IndexForm(
        unique=index._unique,
        adopts=index._adopts,
        key=index._declared_key(model),
        definition=definition,
        get_key=index._getter(model),
        field=index._attribute(model),
        as_stored=not index._comes_back(model),
        storage=index._storage_maker(model),
        where=None if index._where is None else getattr(index._condition(model), "followed", None),
    )


_PACKAGE = __name__.partition(".")[0]
_OURS = frozenset({Table.__module__, f"{_PACKAGE}.queue", f"{_PACKAGE}.schema.multi"})


def description_of(cls: type[Any]) -> Optional[str]:
    """What the docstring of a table class says of its records, as those of zlmdb itself do not."""
    return None if cls.__module__ in _OURS else (vars(cls).get("__doc__") or "").strip() or None


def declaration(declared: Any, attribute: str, localns: Optional[Mapping[str, Any]] = None) -> Declaration:
    """The declaration of *declared*, a subclass of Table or an alias ``Table[K, V]``; *attribute* names it."""
    cls: type[Table[Any, Any]] = get_origin(declared) or declared
    names = {**(localns or {}), **(cls._locals_seen or {})}
    uuid = cls._table_uuid
    try:
        arguments = type_arguments(declared, Table, names)
        if len(arguments) != 2 or isinstance(arguments[0], TypeVar):
            raise TypeError(
                f"{cls.__name__} declares no types: derive it from Table[KeyType, ValueType]; a "
                f"table made at run time is db.table(name, KeyType, ValueType)"
            )
        key_type, value_type = arguments
        parameters: Any = getattr(value_type, "__parameters__", None)
        if parameters and get_origin(value_type) not in (None, Annotated):
            raise TypeError(f"{cls.__name__} leaves the type {parameters[0]} open: write {cls.__name__}[Type]")
        key, value = key_codec(key_type), serializer(value_type, localns=names)
    except TypeError as error:
        raise TypeError(f"table {attribute!r}: {error}") from error
    return Declaration(
        name=str(uuid) if uuid is not None else _checked(cls._table_name or attribute),
        uuid=uuid,
        class_name=cls.__name__ if cls is not Table else attribute,
        description=description_of(cls),
        key=key,
        value=value,
        model=get_args(value_type)[0] if hasattr(value_type, "__metadata__") else value_type,
        indexes=declared_indexes(cls),
        strict=cls is not Table,
        names=names,
        key_field=_key_field(cls._key_source) if isinstance(cls._key_source, str) else None,
        key_type=key_type,
        was=cls._table_was,
        expiry=cls._expiry,
        feed=None if cls._feed is None else _policy(cls),
    )


def _checked(name: str) -> str:
    """*name*, unless no file can have a table with that name. Raises `EncodeError`."""
    try:
        if b"\0" not in name.encode():  # LMDB would take what stands before it for the name
            return name
    except UnicodeEncodeError:
        pass
    raise errors.EncodeError(
        f"table {shortened(name)}: the name of a table has neither a NUL character nor half a surrogate pair: choose "
        f"another one",
        table=name,
    )


def _key_field(name: str) -> KeyField:
    from ..tables.keyfield import KeyField  # late: the key of few tables is a field

    return KeyField(name)


def _policy(cls: type[Table[Any, Any]]) -> Optional[Feed]:
    from ..feed.policy import policy  # late: few tables have a feed

    return policy(cls._feed, cls.__name__)

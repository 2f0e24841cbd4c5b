"""Indexes as a table class declares them: their kinds, their key types, and how a key is taken from a value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from keyword import iskeyword
from operator import attrgetter
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Generic, Optional, TypeVar, Union, get_args, get_origin, overload

from ..keys import KeyCodec, key_codec
from ..missingattributes import has_no, public_names, tell
from ..query import Descending
from ..query.nolists import refuse_equal
from ..shown import refuse_options, shortened
from ..typeargs import UNIONS, field_types
from ..values.base import Serializer
from .declares import Declares
from .indexstorage import IndexStorage
from .indexview import IndexView, UniqueIndexView
from .modelfields import (
    attribute_at,
    changes_fields,
    comes_back,
    has_attributes,
    has_elements,
    is_typed_dict,
    known_type,
    listed_fields,
    may_be,
    member_at,
    nested_type,
    shown_type,
)

if TYPE_CHECKING:
    from uuid import UUID

    from typing_extensions import Self

    from .indexkinds.partial import Where
    from .table import Table

I = TypeVar("I")  # noqa: E741 - the index key, as in IndexView[I, K, V]
K = TypeVar("K")
V = TypeVar("V")


_INSTEAD = {
    **dict.fromkeys(
        ("back_populates", "backref", "related_name"), "the link selects the records: t.books.by_author[key]"
    ),
    **dict.fromkeys(
        ("blank", "default", "null", "nullable", "required", "sparse"),
        "declare the field as Optional[...]: a record with None in it has no entry in the index",
    ),
    **dict.fromkeys(("db_index", "index"), "a declared index is all that it takes"),
    **dict.fromkeys(("name", "db_column"), "an index has the name of its attribute, by_name = Index[...](...)"),
    **dict.fromkeys(
        ("pk", "primary_key"), "the key is the first type of the table, Table[int, User]; key='id' names it"
    ),
    "desc": "write desc('field') for the field",
    "type": "write the type of its keys in brackets, Index[str]('field')",
    "unique": "write UniqueIndex",
}


class DeclaredIndex(Declares, Generic[I]):
    """The common part of `Index` and `UniqueIndex`: the declaration of an index on a table class."""

    _unique = False
    _links = False  # whether it is a link to another table
    _each = False
    _carries: tuple[str, ...] = ()  # the fields whose values are stored with the entries
    _down: tuple[bool, ...] = ()  # of each field, whether the greatest comes first
    _texts: tuple[tuple[str, ...], ...] = ()  # the named transforms of each field; empty where there are none

    if not TYPE_CHECKING:  # checkers report an option that there is not

        def __new__(cls, *given, **options):
            if options and cls.__module__ in (DeclaredIndex.__module__, f"{__package__}.foreignkey"):  # not of programs
                refuse_options(cls.__name__, options, cls.__init__.__kwdefaults__, _INSTEAD)
            return super().__new__(cls)

    def __init__(
        self,
        field_or_fn: Union[str, Descending, Callable[[Any], Optional[I]]],
        /,
        *fields: Union[str, Descending],
        version: Optional[int] = None,
        table: Union[UUID, str, None] = None,
        key: Any = None,
        where: Optional[Callable[[Any], Any]] = None,
    ) -> None:
        if where is not None and table is not None:
            raise TypeError("an index that uses a table of zlmdb 26 has all records, and takes no where=")
        self._where = where
        self._read_where: Optional[tuple[Any, Where]] = None
        if callable(field_or_fn):
            if version is None or fields:
                raise TypeError(
                    "an index of a function takes version=1 (increase it when the function changes) and no fields"
                )
            self._function: Optional[Callable[[Any], Any]] = field_or_fn
            self._fields: tuple[str, ...] = ()
        else:
            self._function = None
            self._fields = tuple([self._direction(field) for field in (field_or_fn, *fields)])
            if "(" in "".join(self._fields):
                self._read_texts()
        self._version = version
        self._adopts: Optional[UUID] = None
        if table is not None:
            from uuid import UUID  # late: it takes a millisecond to import

            self._adopts = UUID(str(table))
        self._key_type = key
        self._name = ""
        self._owner: Optional[type] = None

    def __repr__(self) -> str:
        fields = ", ".join(map(repr, self._fields)) or shortened(self._function)
        given = "" if self._given is None else f"[{shown_type(self._given)}]"
        return f"{type(self).__name__}{given}({fields})"

    if not TYPE_CHECKING:  # checkers report these

        def _refuse_reading(self, *_):
            raise TypeError(self._read_where_it_is())

        def __eq__(self, other):
            refuse_equal(f"{getattr(self._owner, '__name__', 'the class')}.{self._name}", other)
            return NotImplemented

        __hash__ = object.__hash__
        __getitem__ = __iter__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse_reading

    def _read_where_it_is(self) -> str:
        where = f"{getattr(self._owner, '__name__', 'the class')}.{self._name}"
        return (
            f"{where} only declares the index: read it in a transaction, `with db.read() as t:`, as "
            f"t.table.{self._name}[key] or t.table.{self._name}.select(start, stop)"
        )

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name
        self._owner = owner

    def _direction(self, field: Union[str, Descending]) -> str:
        """The name of *field*, after its direction was noted."""
        given: Any = field
        if not isinstance(given, (str, Descending)):
            raise TypeError(
                f"an index takes its fields one by one, got {shortened(field)}: Index[tuple[str, int]]('city', 'age')"
            )
        self._down = (*self._down, isinstance(field, Descending))
        return str(field.value) if isinstance(field, Descending) else field

    def _read_texts(self) -> None:
        """Take the named transforms of texts from the fields."""
        from .indexkinds.fieldtexts import field_text  # late: few programs have such an index

        found = [field_text(spelled) for spelled in self._fields]
        self._fields = tuple([one.path for one in found])
        self._texts = tuple([one.texts for one in found]) if any([one.texts for one in found]) else ()

    def _declared_key(self, model: Any) -> KeyCodec[Any]:
        """The codec of the index key: of ``key=``, of the type argument, or of the fields in *model*."""
        codec = self._codec(self._declared(model))
        return self._turned(codec) if True in self._down else codec

    def _codec(self, declared: Any) -> KeyCodec[Any]:
        try:
            return key_codec(declared)
        except TypeError as error:
            raise TypeError(f"index {self._name!r}: {error}") from error

    def _turned(self, codec: KeyCodec[Any]) -> KeyCodec[Any]:
        """*codec* with the parts of descending fields the other way round."""
        from ..keys.descending import DescendingKey  # late: most indexes ascend
        from ..keys.tuples import TupleKey

        if len(self._down) == 1:
            return DescendingKey(codec)
        if not isinstance(codec, TupleKey) or len(codec.parts) != len(self._down):
            raise TypeError(f"index {self._name!r}: its key type {codec.name} lacks a part for some of its fields")
        return TupleKey([DescendingKey(part) if down else part for part, down in zip(codec.parts, self._down)])

    def _declared(self, model: Any) -> Any:
        """The type of the index key."""
        self._check_fields(model)
        given = self._given
        if given is not None:
            return given
        if not self._fields:
            raise TypeError(
                f"the index {self._name!r} of a function needs its key type: {type(self).__name__}[str](...)"
            )
        parts = tuple(self._part_type(model, field) for field in self._fields)
        return parts[0] if len(parts) == 1 else GenericAlias(tuple, parts)

    def _part_type(self, model: Any, field: str) -> Any:
        """The type of what the index takes from *field*."""
        annotation = self._field_type(model, field)
        if self._texts and self._texts[self._fields.index(field)] and not _is_text(annotation):
            raise TypeError(f"index {self._name!r}: the field {field!r} is {shown_type(annotation)}, and no text")
        if not self._each:
            if has_elements(annotation):
                raise TypeError(
                    f"index {self._name!r}: the field {field!r} is {shown_type(annotation)}, which is no key: "
                    f"{self._mended(annotation)}"
                )
            return annotation
        found = self._element_type(field, annotation)
        if found is None:
            raise TypeError(f"index {self._name!r}: give the type of its elements, Index[str]({field!r}, each=True)")
        return found

    def _element_type(self, field: str, annotation: Any) -> Any:
        from .indexkinds.elements import element_type  # late: few programs have such an index

        try:
            return element_type(annotation)
        except TypeError as error:
            raise TypeError(f"index {self._name!r}, field {field!r}: {error}") from error

    @property
    def _given(self) -> Any:
        """The type of the index key if the program gives it, otherwise None."""
        if self._key_type is not None:
            return self._key_type
        alias = getattr(self, "__orig_class__", None)
        return None if alias is None or isinstance(alias.__args__[0], TypeVar) else alias.__args__[0]

    def _check_types(self, model: Any) -> None:
        """Raise `TypeError` if *model* lacks a field, or its fields cannot have the given key type."""
        self._check_listed(model)
        given = self._given
        if any([get_origin(part) in UNIONS for part in (given, *get_args(given))]):
            self._codec(given)  # no key is None
        if given is None or not self._fields:
            return
        parts = (given,) if len(self._fields) == 1 else get_args(given)
        if len(parts) != len(self._fields) and (parts or isinstance(given, type)) and ... not in parts:
            raise TypeError(
                f"index {self._name!r} of the fields {', '.join(map(repr, self._fields))} is declared with the key "
                f"type {shown_type(given)}: give it a tuple[...] with a type for each field, or leave the type out"
            )
        if len(parts) == len(self._fields):
            for field, part in zip(self._fields, parts):
                known = self._known_type(model, field)
                if self._each and known is not None:
                    known = self._element_type(field, known)
                if not may_be(known, part):
                    has = "has elements of the type" if self._each else "is"
                    raise TypeError(
                        f"index {self._name!r}: the field {field!r} {has} {shown_type(known)}, and the index is "
                        f"declared with the key type {shown_type(part)}: {self._mended(known)}"
                    )

    def _mended(self, known: Any) -> str:
        """What to do if a field of the type *known* is no key."""
        if has_elements(known) and not self._each:
            return "add each=True, for an entry for each element"
        return "give it the type of the field, or leave it out"

    @property
    def _called(self) -> str:
        """What errors call it."""
        return f"index {self._name!r}"

    def _check_listed(self, model: Any) -> None:
        """Raise `TypeError` for a field that *model* does not list: the first record would fail."""
        cls = get_origin(model) or model
        listed = listed_fields(cls)
        for name in [field.partition(".")[0] for field in self._fields] if listed else ():
            if name not in listed and not hasattr(cls, name):
                raise TypeError(
                    f"{self._called}: {cls.__name__} has no field {name!r} (it has {', '.join(listed)}): name "
                    f"one of its fields or properties{f', or desc({name[1:]!r})' if name[1:] in listed else ''}"
                )

    def _check_fields(self, model: Any) -> None:
        """As `_check_listed`, of fields of nested models, too, all of which are known when the database is opened."""
        self._check_listed(model)
        listed = listed_fields(get_origin(model) or model)
        for field in self._fields:
            if listed and "." in field:
                try:
                    nested_type(model, field, self._locals)
                except TypeError as error:
                    called = field.rpartition(".")[2] in ("casefold", "lower", "strip", "upper")
                    advice = f", or write {field + '()'!r} for the text in that form" if called else ""
                    raise TypeError(f"index {self._name!r}: {error}{advice}") from error

    @property
    def _locals(self) -> Any:
        """The names that annotations may use beside those of their modules."""
        return getattr(self._owner, "_locals_seen", None)

    def _known_type(self, model: Any, field: str) -> Any:
        return known_type(model, field, self._locals)

    def _field_type(self, model: Any, field: str) -> Any:
        try:
            types = field_types(model, self._locals)
        except NameError as error:
            raise TypeError(f"index {self._name!r}: give the key type, Index[str]({field!r}), as {error}") from error
        found = types.get(field) or self._known_type(model, field)
        if found is None:
            raise TypeError(
                f"index {self._name!r}: {getattr(model, '__name__', model)} has no field {field!r} with a type (it has "
                f"{', '.join(types) or 'none'}): name one of its fields, or give the key type: Index[str]({field!r})"
            )
        return found

    def _getter(self, model: Any) -> Callable[[Any], Any]:
        """The function that takes the index key from a value."""
        take = self._taker(model) if self._function is None else self._function
        if self._texts:
            from .indexkinds.fieldtexts import with_texts  # late, as above

            take = with_texts(take, self._texts)
        where = self._condition(model)
        return take if where is None else where.limited(take)

    def _condition(self, model: Any) -> Optional[Where]:
        """The condition on records of *model* that are in the index. Raises `TypeError` if it cannot be used."""
        if self._where is None:
            return None
        if self._read_where is None or self._read_where[0] is not model:
            from .indexkinds.partial import Where  # late: few programs have such an index

            self._read_where = model, Where(self._name, self._where, model, self._locals, self._version)
        return self._read_where[1]

    def _taker(self, model: Any) -> Callable[[Any], Any]:
        """The function that takes the fields from a value."""
        if has_attributes(model) and not any("." in field for field in self._fields):
            return attrgetter(*self._fields)
        take: Callable[[Any, str], Any] = attribute_at if has_attributes(model) else member_at
        if len(self._fields) == 1:
            field = self._fields[0]
            return lambda value: take(value, field)
        return lambda value: tuple([take(value, field) for field in self._fields])

    def _attribute(self, model: Any) -> Optional[str]:
        """The attribute that `getter` takes; None where it does something else."""
        if len(self._fields) != 1 or self._texts or self._where is not None or not has_attributes(model):
            return None
        name = self._fields[0]
        return name if name.isidentifier() and not iskeyword(name) else None

    def _comes_back(self, model: Any) -> bool:
        """Whether a record that is read certainly has the index key of the object that was stored."""
        if self._function is not None or not all([self._field_comes_back(model, field) for field in self._fields]):
            return False
        where = self._condition(model)
        asked = [] if where is None else where.fields()
        if asked is None:
            return False
        return all([self._field_comes_back(model, field, each=False) for field in (*asked, *self._carries)])

    def _field_comes_back(self, model: Any, field: str, *, each: Optional[bool] = None) -> bool:
        if not has_attributes(model) or changes_fields(get_origin(model) or model):
            return False
        name, _, rest = field.partition(".")
        try:
            found = field_types(model, self._locals).get(name)
        except (NameError, TypeError):
            return False
        if rest:
            return found is not None and self._field_comes_back(found, rest, each=each)
        if (self._each if each is None else each) and found is not None:
            found = self._element_type(field, found)
        return comes_back(found)

    def _definition(self, model: Any) -> dict[str, Any]:
        """The definition that the catalogue records; if it changes, the index is rebuilt."""
        source: dict[str, Any] = (
            {"fields": list(self._fields)} if self._function is None else {"version": self._version}
        )
        kind: dict[str, Any] = {"each": True} if self._each else {}
        if self._texts:
            kind["texts"] = [list(names) for names in self._texts]
        where = self._condition(model)
        if where is not None:
            kind.update(where.definition)
        if self._carries:
            kind["carries"] = [[field, one.name] for field, one in self._carrying(model).items()]
        return {"unique": self._unique, "key": self._declared_key(model).name, **source, **kind}

    def _storage_maker(self, model: Any) -> Callable[..., IndexStorage]:
        """What makes the storage of the entries."""
        if self._each:
            from .indexkinds.elements import ElementStorage  # late, as above

            return ElementStorage
        if self._carries:
            from .indexkinds.carrying import CarryingStorage  # late, as above

            return partial(CarryingStorage, carrying=self._carrying(model), of_dicts=is_typed_dict(model))
        return IndexStorage

    def _carrying(self, model: Any) -> dict[str, Serializer[Any]]:
        """The types of the fields that the entries carry."""
        from .indexkinds.carrying import carried_types  # late, as above

        return carried_types(self._name, self._carries, model, self._locals)


def _of_declaration(index: DeclaredIndex[Any], name: str) -> str:
    """What to write for *name*, which *index* does not have; empty if one in a transaction has not got it, either."""
    read = not name.startswith("_") and any([hasattr(view, name) for view in (IndexView, UniqueIndexView)])
    return has_no(index, name, index._read_where_it_is()) if read else ""


tell(DeclaredIndex, [*public_names(IndexView), *public_names(UniqueIndexView)], _of_declaration)


class Index(DeclaredIndex[I]):
    """An index declared on a table class: several records may have one index key.

    ``by_age = Index[int]("age")`` takes the key from a field; several fields make a tuple. A function of the value
    needs a *version*: change the version when you change the function, which rebuilds the index at the next opening.
    The function is called with the record as it will be read, and so is a field that may be read back as another value.
    *table* is the UUID of an index table of zlmdb 26, which this index then uses. A record whose index key is None, or
    a tuple with a None, is not in the index. The key type is the type argument, or *key*, or else follows from the
    model's annotations.

    With *each*, the field is a list, set or tuple, or the function returns one, and each of its elements leads to the
    record: ``by_tag = Index[str]("tags", each=True)``. The key type is that of the elements.

    ``desc("year")`` in place of a field has the greatest first: ``Index[tuple[str, int]]("country", desc("year"))``
    serves ``order_by(lambda b: (b.country, desc(b.year)))``.

    With *where*, a function of the record as in a query, only the records for which it is true are in the index:
    ``by_due = Index[date]("due", where=lambda task: task.state == "open")``. A function that zlmdb cannot analyse
    completely needs a *version*.

    With *carries*, the entries have the values of these fields, too: ``carries=("price",)``. A query that needs nothing
    else is answered without reading records.

    On a table the attribute is an `IndexView`.
    """

    def __init__(
        self,
        field_or_fn: Union[str, Descending, Callable[[Any], Any]],
        /,
        *fields: Union[str, Descending],
        version: Optional[int] = None,
        table: Union[UUID, str, None] = None,
        key: Any = None,
        where: Optional[Callable[[Any], Any]] = None,
        each: bool = False,
        carries: Sequence[str] = (),
    ) -> None:
        super().__init__(field_or_fn, *fields, version=version, table=table, key=key, where=where)
        self._each = bool(each)
        if each and (fields or self._texts or table is not None):
            raise TypeError("each=True takes one field as it is, or a function, and no table of zlmdb 26")
        self._carries = (carries,) if isinstance(carries, str) else tuple(carries)
        if carries and (each or table is not None):
            raise TypeError("carries= does not go with each=True, nor with a table of zlmdb 26")

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: Table[K, V], owner: type) -> IndexView[I, K, V]: ...
    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else instance._view(self._name, IndexView)


class UniqueIndex(DeclaredIndex[I]):
    """An index declared on a table class: only one record may have an index key, a second raises `DuplicateKey`.

    Arguments as for `Index`. On a table the attribute is a `UniqueIndexView`.
    """

    _unique = True

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: Table[K, V], owner: type) -> UniqueIndexView[I, K, V]: ...
    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else instance._view(self._name, UniqueIndexView)


def _is_text(annotation: Any) -> bool:
    """Whether fields of this type have texts, that are keys as they are: a renamed one is Annotated."""
    annotated = getattr(annotation, "__origin__", None) is str
    return annotation is str or (annotated and key_codec(annotation).name == key_codec(str).name)

"""The declaration of a link: fields of a record that contain the key of a record of another table."""

from __future__ import annotations

import copy
from typing import (
    TYPE_CHECKING,
    Any,
    ForwardRef,
    Generic,
    Literal,
    Optional,
    TypeVar,
    get_args,
    get_origin,
    overload,
)

from ..keys import KeyCodec, TupleKey, key_codec
from ..namedtuples import NamedTuple
from ..typeargs import field_hints, present_type
from .index import DeclaredIndex
from .indexview import IndexView
from .modelfields import has_elements, shown_type

if TYPE_CHECKING:
    from typing_extensions import Self

    from .table import Table

I = TypeVar("I")  # noqa: E741 - the key of the table that is referred to
K = TypeVar("K")
V = TypeVar("V")
T_co = TypeVar("T_co", covariant=True)

OnDelete = Literal["restrict", "cascade", "set_none"]
_ON_DELETE = get_args(OnDelete)


class Target(NamedTuple):
    """The table that a link leads to: its name in the file, the name of its class, and the codec of its keys."""

    name: str
    class_name: str
    key: KeyCodec[Any]


class ForeignKey(DeclaredIndex[Any], Generic[T_co]):
    """A link declared on a table class: *fields* of its records contain the key of a record of another table.

    ``by_author = ForeignKey["Authors"]("author")`` says that each ``author`` is the key of a record of the table with
    the class ``Authors``. Several fields make a tuple. A record whose field is None has no link. The table with that
    class must be exactly one of the same schema, and its keys must have the type of the fields.

    *on_delete* says what the deletion of the record that is referred to does: ``"restrict"`` refuses it with
    `StillLinked`, ``"cascade"`` deletes the records that refer to it, ``"set_none"`` sets their fields to None. To
    store a record whose link leads nowhere raises `DanglingLink`, at once or, if *deferred*, when the transaction
    commits. With *each*, the field is a list, set or tuple of such keys, and ``"set_none"`` takes the key of a deleted
    record out of it.

    It is also an index: on a table the attribute is an `IndexView`, ``t.books.by_author[ann]``.
    """

    _links = True
    _of_several = "a link has one type, the class of the other table: {cls}['Authors'](...)"

    def __init__(
        self, *fields: str, on_delete: OnDelete = "restrict", each: bool = False, deferred: bool = False
    ) -> None:  # fmt: skip
        if not fields or not all([type(field) is str for field in fields]):
            raise TypeError(
                f"ForeignKey{fields!r}: name the fields that contain the key of the other table's record, "
                f"ForeignKey['Authors']('author')"
            )
        if on_delete not in _ON_DELETE:
            raise ValueError(f"on_delete={on_delete!r}: expected one of {', '.join(map(repr, _ON_DELETE))}")
        if each and len(fields) > 1:
            raise TypeError("each=True takes one field, a list of keys")
        super().__init__(*fields)
        self._each = each
        self._on_delete: OnDelete = on_delete
        self._deferred = deferred
        self._target: Optional[Target] = None

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self: ForeignKey[Table[I, Any]], instance: Table[K, V], owner: type) -> IndexView[I, K, V]: ...
    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else instance._view(self._name, IndexView)

    @property
    def _given(self) -> Any:
        """None: the key type is that of the table that is referred to."""
        return None

    @property
    def _referred(self) -> Any:
        """The class that the declaration names, or its name; None without one."""
        alias = getattr(self, "__orig_class__", None)
        found = None if alias is None else alias.__args__[0]
        if isinstance(found, (ForwardRef, str)):
            text = found if isinstance(found, str) else found.__forward_arg__
            return text.partition("[")[0].rpartition(".")[2].strip()
        return None if isinstance(found, TypeVar) else get_origin(found) or found

    def _toward(self, target: Target, model: Any) -> ForeignKey[Any]:
        """This declaration with its *target* found. Raises TypeError if the fields of *model* cannot hold its keys."""
        found = copy.copy(self)
        found._target = target
        self._check_fields(get_origin(model) or model)
        parts = target.key.parts if isinstance(target.key, TupleKey) and len(self._fields) > 1 else (target.key,)
        if len(parts) != len(self._fields):
            raise TypeError(
                f"link {self._name!r}: the keys of {target.class_name} are {target.key.name}, and the link has the "
                f"fields {', '.join(self._fields)}: name a field for each part of the key"
            )
        try:
            hints = field_hints(model, self._locals)
        except (NameError, TypeError):  # they are not known
            hints = {}
        for field, part in zip(self._fields, parts):
            if field in hints:
                self._check_field(field, hints[field], part, target)
        return found

    def _check_field(self, field: str, hint: Any, part: KeyCodec[Any], target: Target) -> None:
        bare = present_type(hint)
        optional = hint is Any or bare != hint
        if self._each and bare is not Any:
            bare = self._element_type(field, bare)
        if bare is Any or bare is None:
            return
        if self._on_delete == "set_none" and not optional and not self._each:
            raise TypeError(
                f"link {self._name!r}: on_delete='set_none' sets the field {field!r} to None, and its type is "
                f"{shown_type(hint)}: make it Optional[{shown_type(bare)}]"
            )
        try:
            found = key_codec(bare).name
        except TypeError:
            found = ""
        if found != part.name:
            has = "has elements of the type" if self._each else "is"
            mended = self._mended(bare) if has_elements(bare) else "give the field the type of the key"
            raise TypeError(
                f"link {self._name!r}: the field {field!r} {has} {shown_type(bare)}, and the keys of "
                f"{target.class_name} are {target.key.name}: {mended}"
            )

    def _declared_key(self, model: Any) -> KeyCodec[Any]:
        return self._found.key

    def _definition(self, model: Any) -> dict[str, Any]:
        link: dict[str, Any] = {"to": self._found.name, "on_delete": self._on_delete}
        if self._deferred:
            link["deferred"] = True
        return {**super()._definition(model), "link": link}

    @property
    def _found(self) -> Target:
        if self._target is None:
            raise TypeError(
                f"link {self._name!r}: a ForeignKey belongs to a table of a schema that also has the table that it "
                f"leads to: declare both in one zlmdb.Schema"
            )
        return self._target

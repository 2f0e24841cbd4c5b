"""Lazy read-only views of stored objects: only the attributes that a program accesses are read."""

from __future__ import annotations

from typing import Any, Callable, ClassVar, Optional

from ...codegen import Recipe
from ...errors import DecodeError
from ...handlers import let_through
from ..base import Decode, show
from . import runtime
from .layout import Layout
from .nodes import Field, Node, Table, Text, Vector, as_table
from .reader import Reader
from .schema import Schema


class View:
    """The common part of the views of all classes. The attributes are the fields of the model class."""

    __slots__ = ("_data", "_fields", "_table")

    _sizes: ClassVar[tuple[int, ...]] = ()
    _known: ClassVar[dict[bytes, tuple[int, ...]]] = {}
    _names: ClassVar[tuple[str, ...]] = ()
    _modelled: ClassVar[Any] = None
    _eager: ClassVar[Optional[Callable[[Any, int, list[int]], Any]]] = None

    def __init__(self, data: Any, table: int, fields: Optional[tuple[int, ...]] = None) -> None:
        """The table at *table* of *data*. *fields*: where its fields are, if that is known."""
        self._data = data
        self._table = table
        self._fields = runtime.fields_of(data, table, self._sizes, self._known) if fields is None else fields

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={show(getattr(self, name))}" for name in self._names)
        return f"{type(self).__name__}({fields})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, View):
            return NotImplemented
        return type(self) is type(other) and bool(load(self) == load(other))

    def __hash__(self) -> int:
        return hash(load(self))


_VIEWS = Recipe("FlatBuffers views", general=("any__",), self=View)


def load(view: Any) -> Any:
    """The whole object of *view*."""
    if not isinstance(view, View):
        raise TypeError(f"expected a view, got {show(view)}")
    try:
        # Of the class, not of the view: there it would be a method.
        eager: Any = vars(type(view))["_eager"]
        return eager(bytes(view._data), view._table, runtime.room_of(view._data))
    except (DecodeError, MemoryError):
        raise
    except Exception as error:
        let_through(error)
        raise DecodeError(f"{type(view).__name__}: {error}") from error


def _item(view: Any, key: Any) -> Any:
    if key not in view._names:
        raise KeyError(key)
    return getattr(view, key)


def _has(view: Any, key: Any) -> bool:
    return key in view._names


def _got(view: Any, key: Any, default: Any = None) -> Any:
    return getattr(view, key) if key in view._names else default


_ITEMS: dict[str, Any] = {"__getitem__": _item, "__contains__": _has, "get": _got}
"""What queries and indexes ask of a TypedDict. A key ``get`` is the field."""


def record_of(view: View, model: Any) -> Optional[bytes]:
    """The bytes of the record that *view* is of; None for a view of a part, or of another class than *model*."""
    data, table = view._data, view._table
    whole = view._modelled == model and table == runtime.follow(data, 0)
    return bytes(data) if whole else None


def make_viewer(schema: Schema, layouts: dict[str, Layout]) -> Decode:
    """The function from bytes to a view. Without a model class as the whole: an eager decoder of the one value."""
    reader = Reader(schema, layouts, views=True)
    reader.functions()
    models = [table for table in schema.tables if table.path == "."]
    for table in models:
        for field in table.declared:
            if field.name in dir(View):  # not `hasattr`, to which ``mro`` is one
                raise TypeError(
                    f"{table.label}.{field.name}: views reserve that name: rename the field, or use FlatBuffers"
                )
    writer = _Views(reader)
    for table in models:
        writer.getters(table)
    names = {
        **reader.names,
        "View": View,
        "broken": _broken,
        "let_through": let_through,
        **{f"View__{table.fbs}": None for table in models},
    }
    space = _VIEWS.functions(schema.label, str(reader.source), names)
    for table in models:
        layout = layouts[table.fbs]
        # Made by a call: in the body of a class a field called ``property`` would hide that, and names be mangled.
        getters = {name: property(space[getter]) for name, getter in writer.names(table).items()}
        items = _ITEMS if hasattr(modelled(schema, table)[0], "__required_keys__") else {}
        members = {"__module__": space["__name__"], "__slots__": (), **items, **getters}
        cls: Any = type(f"{table.fbs}View", (View,), members)
        space[f"View__{table.fbs}"] = cls
        cls._sizes, cls._known = layout.sizes, {}
        cls._names = tuple(field.name for field in table.declared)
        cls._modelled = modelled(schema, table)
        cls._eager = space[f"read__{table.fbs}"]
    if schema.boxed:
        decode = space["decode"]
        return lambda data: decode(data)[0]
    return _root_viewer(space[f"View__{schema.root.fbs}"], layouts[schema.root.fbs])


def modelled(schema: Schema, table: Table) -> tuple[Any, str]:
    """What *table* of *schema* is of: the class, and with its type arguments how one writes it."""
    return schema.names.get(table.cls), table.label


def _root_viewer(cls: type[View], layout: Layout) -> Decode:
    head = layout.head(layout.full)
    size = len(head)
    table = size - 4
    least = table + layout.inline
    fields = [0] * layout.count
    for entry in layout.entries:
        fields[entry.id] = entry.offset
    known = tuple(fields)
    follow = runtime.follow
    new = object.__new__

    def view(data: Any) -> View:
        # Compared, not looked up: PyPy is slow at hashing slices.
        if data[:size] == head and len(data) >= least:
            one = new(cls)  # not by calling the class: that takes twice as long
            one._data, one._table, one._fields = data, table, known
            return one
        return cls(data, follow(data, 0))

    return view


def _broken(view: View, name: str, error: Exception) -> DecodeError:
    return DecodeError(f"{type(view).__name__}.{name}: {error}")


class _Views:
    """Writes the functions behind the properties, with the lines that read fields of any layout."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.add, self.block = reader.source.add, reader.source.block

    def names(self, table: Table) -> dict[str, str]:
        """What the function of each field is called."""
        return {field.name: f"get__{table.fbs}_{number}" for number, field in enumerate(table.fields)}

    def getters(self, table: Table) -> None:
        for number, (field, name) in enumerate(zip(table.fields, self.names(table).values())):
            with self.block(f"def {name}(self):"):
                with self.block("try:"):
                    self.body(field, number)
                with self.block("except MemoryError:"):
                    self.add("raise")
                with self.block("except Exception as error:"):
                    self.add("let_through(error)")
                    self.add(f"raise broken(self, {field.name!r}, error) from error")
            self.add("")

    def body(self, field: Field, number: int) -> None:
        node, lazy = field.node, self.lazy(field.node)
        self.add("data, t, fields = self._data, self._table, self._fields")
        if not lazy and not isinstance(node, Text):
            if not field.in_place:
                self.add("room = room_of(data)")
            self.add(f"return {self.reader.any_field(field, number)}")
            return
        self.add(f"p = fields[{field.id}]")
        with self.block("if not p:"):
            self.add(self.reader.absent(field, "return"))
        if lazy:
            self.add("p = follow(data, p + t)", f"return {lazy}")
            return
        self.add("p += t", "offset, = get_u32(data, p)")  # `follow`, without the call
        with self.block("if not offset:"):
            self.add("raise Corrupt('a reference to itself')")
        self.add("p += offset")
        self.reader.text_at(node, number, "")
        self.add(f"return x{number}")

    def lazy(self, node: Node) -> str:
        """The expression of the views at ``p``, where it is a model or a list of them."""
        if not is_lazy(node):
            return ""
        if isinstance(node, Table):
            return f"View__{node.fbs}(data, p)"
        if isinstance(node, Vector):
            item = f"View__{as_table(node.item).fbs}(data, p + 4 * at + offset)"
            listed = f"[{item} for at, offset in enumerate(get_offsets(data, p, room_of(data)), 1)]"
            return node.make.replace("$", listed)
        return ""


KEPT = ("$", "tuple($)")
"""How containers are made that have every item of the vector."""


def is_model(node: Node) -> bool:
    """Whether values of *node* are objects of a model class."""
    return isinstance(node, Table) and node.path == "."


def is_lazy(node: Node) -> bool:
    """Whether it is read as views: a model, or a list of them."""
    return is_model(node) or (isinstance(node, Vector) and is_model(node.item) and node.make in KEPT)

"""What attributes, items and elements of a recorder are, as far as the types of the model tell."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Optional, Union, cast
from uuid import UUID

from ...values.base import typename
from ...values.pydantics import is_pydantic
from .captured import MISSING, read_static
from .formatted import text_of
from .known import BOOL, CONTAINERS, SOMETHING, STR, UNKNOWN, Known, kind_of
from .methods import ALL_METHODS, ATTRIBUTES, CHANGING, ENUM, METHODS, NEVER_RAISING, base, is_enum_class, result_of
from .nodeof import is_constant, node_of, of_the_record
from .nodes import Argument, Constant, Node
from .operations import Attribute, Item, Joined, Method

if TYPE_CHECKING:
    from .linked import Values
    from .recorder import Recorder
    from .trace import Trace


def attribute(recorder: Recorder, name: str) -> Any:
    """What ``recorder.name`` is."""
    trace, node, known = recorder.zlmdb_trace, recorder.zlmdb_node, recorder.zlmdb_known
    trace.current()
    if name.startswith("__") and name.endswith("__"):
        trace.block(f"{name} of {node!r}")
    cls = known.cls
    if cls is None:
        return _unknown(recorder, name)
    plain = base(cls)
    if plain in METHODS:
        return _of_plain(recorder, plain, name)
    found = known.fields().get(name)
    member = read_static(cls, name)
    if found is not None and not _computes(cls, name, member):
        field = trace.memory[node, name] = trace.nodes.make(Attribute, node, name, False, found)
        return trace.recorded(field)
    if is_enum_class(cls) and name in ENUM:
        return trace.recorded(trace.nodes.make(Attribute, node, name, False, ENUM[name]))
    if member is not MISSING:
        if not hasattr(kind_of(member), "__get__") and _has_more(cls, name):
            trace.block(f"{node!r}.{name}, which each {typename(cls)} may have for itself")
        return trace.member(recorder, cls, name, member)
    return _missing(recorder, cls, name)


def _computes(cls: type[Any], name: str, member: object) -> bool:
    """Whether *member* is a property of the program's own. On PyPy a namedtuple has one for each of its fields."""
    return not is_field_of_tuple(cls, name, member) and isinstance(member, (property, cached_property))


def is_field_of_tuple(cls: type[Any], name: str, member: object) -> bool:
    """Whether *member* of *cls* is what reads the field *name* of a namedtuple."""
    if tuple not in cls.__mro__ or not hasattr(kind_of(member), "__get__"):
        return False
    owner = next(one for one in cls.__mro__ if name in vars(one))
    return tuple in owner.__mro__ and name in vars(owner).get("_fields", ())


_KEY = frozenset(("id", "_id", "key", "pk", "rowid"))
"""What other stores call the key of a record."""


def _missing(recorder: Recorder, cls: type[Any], name: str) -> Any:
    trace, node, known = recorder.zlmdb_trace, recorder.zlmdb_node, recorder.zlmdb_known
    names = known.fields()
    if not names or _has_more(cls, name):
        trace.block(f"{node!r}.{name}, which {typename(cls)} does not declare")
    keyed = " (the key is the first parameter of `lambda key, record: ...`)" if name in _KEY else ""
    return trace.refuse(
        f"{node!r}.{name}: {typename(cls)} has no field {name!r}, it has {', '.join(names)}; name one of its "
        f"fields{keyed}"
    )


def _has_more(cls: type[Any], name: str) -> bool:
    """Whether objects of *cls* may have an attribute *name* that it does not declare."""
    hooks = [
        read_static(cls, one) for one in ("__post_init__", "__attrs_post_init__", "__getattr__", "model_post_init")
    ]
    if not is_pydantic(cls):
        return any([hook is not MISSING for hook in hooks[:-1]])
    # Pydantic's own find what its models hold besides their fields.
    if any([hook is not MISSING and not _is_pydantics(hook) for hook in hooks]):
        return True
    model: Any = cls
    return model.model_config.get("extra") == "allow" or name in model.__private_attributes__


def _is_pydantics(hook: Any) -> bool:
    return str(getattr(hook, "__module__", "")).partition(".")[0] == "pydantic"


def _of_plain(recorder: Recorder, cls: Any, name: str) -> Any:
    """An attribute or method of a plain value, of which the class is known for sure."""
    trace, node = recorder.zlmdb_trace, recorder.zlmdb_node
    if name in METHODS[cls]:
        return Bound(recorder, name)
    result = ATTRIBUTES.get(cls, {}).get(name)
    if isinstance(result, Known):
        return trace.recorded(trace.nodes.make(Attribute, node, name, False, result))
    if name in CHANGING and hasattr(cls, name):
        changed(recorder, f".{name}()")
    if hasattr(cls, name):
        trace.block(f"{cls.__name__}.{name}, which is not listed as pure")
    advice = f"write {node!r}[{name!r}]" if cls is dict else _OF_OTHERS.get(name, "use one that it has")
    if cls in (UUID, int, str) and name not in _OF_OTHERS:
        advice += f", or look up the record of which it is the key: t.others[{node!r}].{name}"
    return trace.refuse(f"{node!r}.{name}: {typename(cls)} has no attribute {name!r}; {advice}")


_OF_OTHERS = {
    "contains": "write `x in ...`",
    "equals": "write `... == x`",
    "starts_with": "write .startswith(x)",
    "ends_with": "write .endswith(x)",
    "icontains": "write `x in ....casefold()`",
    "in_": "write `... in (x, y)`",
    "isin": "write `... in (x, y)`",
    "is_": "write `... is x`",
    "like": "write `x in ...`, .startswith(x) or re.search(x, ...)",
    "between": "write `x <= ... <= y`",
    "desc": "write desc(...) in order_by",
    "asc": "leave it out, which is ascending",
    "ilike": "write `x in ....casefold()`",
    "isnull": "write `... is None`",
    "isna": "write `... is None`",
    "notna": "write `... is not None`",
    "is_not": "write `... is not x`",
    "not_in": "write `... not in (x, y)`",
    "str": "leave it out, and write the method",
    "dt": "leave it out, and write the attribute",
}
"""What queries of other stores call, where ours are Python."""


def _unknown(recorder: Recorder, name: str) -> Any:
    """An attribute of a value of which nothing is known: perhaps it is a method, then it is called next."""
    trace, node = recorder.zlmdb_trace, recorder.zlmdb_node
    if name in ALL_METHODS:
        return Bound(recorder, name)
    if name in CHANGING:
        trace.block(f"{node!r}.{name}, which changes it")
    return trace.recorded(trace.nodes.make(Attribute, node, name, True, UNKNOWN))


class Bound:
    """A pure method of something recorded, to be called."""

    __slots__ = ("_name", "_recorder")

    def __init__(self, recorder: Recorder, name: str) -> None:
        self._recorder, self._name = recorder, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        recorder, name = self._recorder, self._name
        trace, holder, known = recorder.zlmdb_trace, recorder.zlmdb_node, recorder.zlmdb_known
        frame = sys._getframe(1)  # documented, and there is no other way
        arguments = tuple([text_of(trace, one, frame) for one in (*args, *kwargs.values())])
        sure = base(known.cls) in METHODS and known.cls is not None
        result = result_of(known, name) if sure else UNKNOWN
        if name == "startswith" and known.cls is str and [is_texts(one) for one in arguments] == [True]:
            return trace.recorded(begins_with_one(trace, holder, arguments[0]))
        if name == "get" and len(args) > 1:
            result = with_default(known, arguments[1].known)
        raises = not (sure and name in NEVER_RAISING and _are_taken(base(known.cls), arguments))
        return trace.recorded(trace.nodes.make(Method, holder, name, arguments, tuple(kwargs), raises, result))

    def sure_name(self) -> str:
        """The name of the method, if it is surely one, and not a field of that name."""
        cls = self._recorder.zlmdb_known.cls
        return self._name if cls is not None and base(cls) in METHODS else ""

    def __getattr__(self, name: str) -> Any:
        return self._blocked()

    def __eq__(self, other: object) -> Any:
        name, trace = self.sure_name(), self._recorder.zlmdb_trace
        if name and not callable(other):
            asked = f"{self._recorder.zlmdb_node!r}.{name}"
            return trace.refuse(f"{asked} is a method, which is equal to no value: call it, {asked}()")
        return self._blocked()

    def __hash__(self) -> int:
        return cast("int", self._blocked())

    def __bool__(self) -> bool:
        return bool(self._blocked())

    def _blocked(self) -> Any:
        """Perhaps it is a field of this name: of values of which nothing is known nobody can tell."""
        trace, node = self._recorder.zlmdb_trace, self._recorder.zlmdb_node
        return trace.block(f"{node!r}.{self._name}, which is a field or a method")


_FEW_TEXTS = 16
"""Beginnings up to which they are asked for one by one, each perhaps by an index."""


def is_texts(node: Node) -> bool:
    """Whether *node* is a constant tuple of some texts."""
    value: Any = node.value if isinstance(node, Constant) else None
    return kind_of(value) is tuple and 0 < len(value) <= _FEW_TEXTS and all([type(one) is str for one in value])


def begins_with_one(trace: Trace, holder: Node, texts: Any) -> Node:
    """Whether the text *holder* begins with one of *texts*: ``or`` of what asks for each."""
    ways = [
        trace.nodes.make(Method, holder, "startswith", (trace.nodes.constant(one),), (), False, BOOL)
        for one in dict.fromkeys(texts.value)
    ]
    return ways[0] if len(ways) == 1 else trace.nodes.make(Joined, "or", tuple(ways), BOOL)


def _are_taken(cls: Any, arguments: Sequence[Node]) -> bool:
    """Whether a method of *cls* that raises nothing by itself takes *arguments*, as far as their types are told."""
    if not arguments:
        return True
    first, *more = arguments
    if cls is dict:
        return first.known.plain or isinstance(first, Constant)
    several = isinstance(first, Constant) and type(first.value) is tuple  # of startswith
    return (several or (first.known.plain and first.known.cls is cls)) and all(
        [one.known.plain and one.known.cls is int for one in more]
    )


def with_default(known: Known, default: Known) -> Known:
    """What ``d.get(key, default)`` gives."""
    value = known.item()
    return value if value.cls is not None and value.cls is default.cls and not value.optional else UNKNOWN


def item(recorder: Recorder, key: Any) -> Any:
    """What ``recorder[key]`` is."""
    trace, node, known = recorder.zlmdb_trace, recorder.zlmdb_node, recorder.zlmdb_known
    if node.settled and is_constant(key) and not _is_of_texts(known, key):
        return trace.element(node, key)
    position = node_of(trace, key)
    result, raises = _item_known(recorder, known, key)
    return trace.recorded(trace.nodes.make(Item, node, position, raises, result))


def _is_of_texts(known: Known, key: Any) -> bool:
    """Whether an element of it is a text, whatever it holds."""
    return type(key) is int and not known.optional and known.cls in (str, list) and known.item() is STR


def _item_known(recorder: Recorder, known: Known, key: Any) -> tuple[Known, bool]:
    bounds: Any = key
    if isinstance(key, slice):
        step: Any = bounds.step
        raises = not (step is None or (type(step) is int and step != 0))
        return (known, raises) if known.cls in (str, bytes, list) else (SOMETHING, True)
    positions = known.positions()
    if positions is not None and type(key) is int:
        if not -len(positions) <= key < len(positions):
            recorder.zlmdb_trace.refuse(f"{recorder.zlmdb_node!r}[{key}]: it has {len(positions)} elements")
        return positions[key], False
    if base(known.cls) is dict and known.cls is not dict:
        return _typed_dict(recorder, known, key), True
    if type(key) is str and not hasattr(known.cls, "__getitem__") and key in known.fields():
        asked = repr(recorder.zlmdb_node)
        recorder.zlmdb_trace.refuse(f"{asked}[{key!r}]: {typename(known.cls)} has no items; write {asked}.{key}")
    if type(key) is int and isinstance(recorder.zlmdb_node, Argument) and known.fields() and not _has_items(known.cls):
        asked = repr(recorder.zlmdb_node)
        recorder.zlmdb_trace.refuse(
            f"{asked}[{key}]: {asked} is the record, of {typename(known.cls)}, which has no items: its key is what a "
            f"function of two arguments gets first, lambda key, record: key[{key}]"
        )
    return known.item(), True


def _has_items(cls: Any) -> bool:
    return hasattr(cls, "__getitem__")


def _typed_dict(recorder: Recorder, known: Known, key: Any) -> Known:
    found: Optional[Known] = known.fields().get(key) if type(key) is str else UNKNOWN
    if found is None:
        return recorder.zlmdb_trace.refuse(
            f"{recorder.zlmdb_node!r}[{key!r}]: {typename(known.cls)} has no item {key!r}, it has "
            f"{', '.join(known.fields())}; name one of its items"
        )
    return found


class Elements:
    """An iterator over something of the record. A generator expression may hold it; nobody may go on."""

    __slots__ = ("recorder",)

    def __init__(self, recorder: Union[Recorder, Values]) -> None:
        self.recorder = recorder

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        self.recorder.zlmdb_trace.block(f"a loop over {self.recorder.zlmdb_node!r}")


def iterated(recorder: Recorder) -> Iterator[Any]:
    """What a loop over *recorder* runs through."""
    trace, node, known = recorder.zlmdb_trace, recorder.zlmdb_node, recorder.zlmdb_known
    if node.settled:
        return trace.elements(node)
    positions = known.positions()
    if positions is not None:
        return iter([item(recorder, number) for number in range(len(positions))])
    if known.cls is not None and known.cls not in (*CONTAINERS, str, bytes) and not hasattr(known.cls, "__iter__"):
        trace.block(f"iterating over {node!r}, which is a {typename(known.cls)}")
    return Elements(recorder)


def changed(recorder: Recorder, how: str) -> Any:
    """Refuse a change of the record; of anything else it is a reason to call the function."""
    trace, node = recorder.zlmdb_trace, recorder.zlmdb_node
    if of_the_record(node) and recorder.zlmdb_known.cls is not None:
        trace.refuse(f"{node!r}{how}: a query changes nothing; use edit() or change() for records")
    return trace.block(f"{node!r}{how}, which changes it")

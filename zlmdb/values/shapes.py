"""The conditions on containers, records and unions, down to their `scalars`.

One description serves the check of every write (msgspec, which is fast, trusts the values that it encodes), the texts
of errors with the path inside the object, and the conversion where msgspec cannot do it: sets, in an order of their
own, and everything on PyPy.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Callable, Optional

from ..namedtuples import NamedTuple
from .base import is_a, show, typename
from .checks import DEEPEST, Check
from .depth import too_deep
from .scalars import DecimalLeaf, Float, Kind, Leaf, PlainData, Shape

if TYPE_CHECKING:
    from .modelclasses import Member

Load = Callable[[Any], Any]


def each_of(check: Check, shape: Shape, items: str) -> None:
    """Add lines to *check* that refuse *items*, an expression, unless each of them fits *shape*."""
    if shape.anything:
        return
    item = check.variable()
    with check.loop(f"for {item} in {items}:"):
        shape.test(check, item)


def _not_deep(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """*fits*, and is not nested too deeply."""
    return lambda value: fits(value) and not too_deep(value)


class Container(Shape):
    """A list, set, tuple or dict. One of a subclass does not fit: it would come back as its base."""

    cls: type[Any]
    subclasses: bool = False
    """Whether those fit: in pickles, which keep their class."""

    def is_of_class(self, value: Any) -> bool:
        """Whether *value* is of the class."""
        return isinstance(value, self.cls) if self.subclasses else type(value) is self.cls


class ListOf(Container):
    """A list, or with *cls* tuple a tuple of any length."""

    kind: Kind = "list"

    def __init__(self, label: str, item: Shape, cls: type[Any] = list) -> None:
        self.label = label
        self.item = item
        self.cls = cls
        self.loose = cls is list and item.loose

    def fits(self, value: Any) -> bool:
        # issuperset(map(type)) runs in C, and settles it for a list of scalars.
        return self.is_of_class(value) and (
            self.item.sure.issuperset(map(type, value)) or all(map(self.item.fits, value))
        )

    def test(self, check: Check, x: str) -> None:
        if self.cls.__module__ != "builtins" or check.loops >= DEEPEST:
            super().test(check, x)
            return
        with check.block(f"if type({x}) is {check.constant(self.cls)}:"):
            each_of(check, self.item, x)
        check.otherwise(_not_deep(self.fits) if is_plain_container(self) else self.fits, x)

    def dump(self, value: Any) -> Any:
        return list(map(self.item.dump, value))

    def load(self, data: Any) -> Any:
        return self.cls(map(self.item.load, expect(list, data, self.label)))

    def children(self) -> Iterable[Shape]:
        return (self.item,)

    def misfit(self, value: Any, path: str) -> str:
        if isinstance(value, self.cls):
            for position, item in enumerate(value):
                if not self.item.fits(item):
                    return self.item.misfit(item, f"{path}[{position}]")
        return super().misfit(value, path)


class SetOf(ListOf):
    """A set or frozenset: stored as a list in the order of its items' bytes, so that equal sets are equal bytes."""

    native = False

    def __init__(self, label: str, item: Shape, cls: type[Any], pack: Callable[[Any], bytes]) -> None:
        """*pack* gives the bytes of a dumped item."""
        super().__init__(label, item, cls)
        self._pack = pack

    def dump(self, value: Any) -> Any:
        return sorted(map(self.item.dump, value), key=self._pack)


class TupleOf(Container):
    """A tuple with a type for each part."""

    kind: Kind = "list"
    cls: type[Any] = tuple

    def __init__(self, label: str, parts: Sequence[Shape]) -> None:
        self.label = label
        self.parts = tuple(parts)

    def fits(self, value: Any) -> bool:
        return (
            self.is_of_class(value)
            and len(value) == len(self.parts)
            and all([part.fits(item) for part, item in zip(self.parts, value)])
        )

    def test(self, check: Check, x: str) -> None:
        items = [check.variable() for _ in self.parts]
        with check.block(f"if type({x}) is {check.constant(tuple)} and len({x}) == {len(items)}:"):
            check.add(f"({''.join(f'{item}, ' for item in items)}) = {x}")
            for part, item in zip(self.parts, items):
                part.test(check, item)
        check.otherwise(self.fits, x)

    def dump(self, value: Any) -> Any:
        return [part.dump(item) for part, item in zip(self.parts, value)]

    def load(self, data: Any) -> Any:
        if len(expect(list, data, self.label)) != len(self.parts):
            raise ValueError(f"expected {self.label}, got {len(data)} parts")
        return tuple([part.load(item) for part, item in zip(self.parts, data)])

    def children(self) -> Iterable[Shape]:
        return self.parts

    def misfit(self, value: Any, path: str) -> str:
        if isinstance(value, self.cls):
            for position, (part, item) in enumerate(zip(self.parts, value)):
                if not part.fits(item):
                    return part.misfit(item, f"{path}[{position}]")
        return super().misfit(value, path)


class KeyText(Shape):
    """A key of a JSON object: always text, so numbers are written as such."""

    kind: Kind = "text"

    def __init__(self, inner: Shape) -> None:
        self.inner = inner
        self.label = inner.label
        self.sure = inner.sure
        self.native = isinstance(inner, Leaf)  # msgspec 0.20 writes no enums as keys

    def fits(self, value: Any) -> bool:
        return self.inner.fits(value)

    def test(self, check: Check, x: str) -> None:
        self.inner.test(check, x)

    def dump(self, value: Any) -> Any:
        return str(self.inner.dump(value))

    def load(self, data: Any) -> Any:
        return self.inner.load(int(data) if self.inner.kind == "int" else data)

    def children(self) -> Iterable[Shape]:
        return (self.inner,)


class DictOf(Container):
    """A dict. Its order is kept."""

    kind: Kind = "map"
    cls: type[Any] = dict

    def __init__(self, label: str, key: Shape, value: Shape) -> None:
        self.label = label
        self.key = key
        self.value = value
        self.loose = value.loose and (key.loose or (isinstance(key, Leaf) and key.cls is str))

    def fits(self, value: Any) -> bool:
        return (
            self.is_of_class(value)
            and (self.key.sure.issuperset(map(type, value)) or all(map(self.key.fits, value)))
            and (self.value.sure.issuperset(map(type, value.values())) or all(map(self.value.fits, value.values())))
        )

    def test(self, check: Check, x: str) -> None:
        if self.cls is not dict or check.loops >= DEEPEST:
            super().test(check, x)
            return
        with check.block(f"if type({x}) is {check.constant(dict)}:"):
            if self.key.anything:
                each_of(check, self.value, f"{x}.values()")
            elif self.value.anything:
                each_of(check, self.key, x)
            else:
                key, item = check.variable(), check.variable()
                with check.loop(f"for {key}, {item} in {x}.items():"):
                    self.key.test_key(check, key)
                    self.value.test(check, item)
        check.otherwise(_not_deep(self.fits) if is_plain_container(self) else self.fits, x)

    def dump(self, value: Any) -> Any:
        return {self.key.dump(key): self.value.dump(item) for key, item in value.items()}

    def load(self, data: Any) -> Any:
        return {
            self.key.load(key): self.value.load(item) for key, item in expect(dict, data, self.label).items()
        }  # fmt: skip

    def children(self) -> Iterable[Shape]:
        return (self.key, self.value)

    def misfit(self, value: Any, path: str) -> str:
        if isinstance(value, self.cls):
            for key, item in value.items():
                if not self.key.fits(key):
                    return self.key.misfit(key, f"a key of {path}")
                if not self.value.fits(item):
                    return self.value.misfit(item, f"{path}[{show(key)}]")
        return super().misfit(value, path)


_NONE = frozenset({type(None)})


class UnionOf(Shape):
    """One of several types, no two of which look the same when stored (see `annotations.check_union`)."""

    def __init__(self, label: str, members: Sequence[Shape]) -> None:
        self.label = label
        self.sure = frozenset[type]().union(*[member.sure for member in members])
        # A float also reads ints, so it comes after them; a Decimal reads both.
        self.members = sorted(members, key=lambda member: (isinstance(member, DecimalLeaf), member.kind == "float"))
        self.loose = any(member.kind == "any" for member in members)

    def fits(self, value: Any) -> bool:
        return type(value) in self.sure or any([member.fits(value) for member in self.members])

    def test(self, check: Check, x: str) -> None:
        others = [member for member in self.members if member.sure != _NONE]
        if type(None) not in self.sure or len(others) != 1 or others[0].sure:
            super().test(check, x)
            return
        with check.block(f"if {x} is not None:"):  # Optional[list[int]]: spelled out as well
            others[0].test(check, x)

    def dump(self, value: Any) -> Any:
        return self._member(value).dump(value)

    def _member(self, value: Any) -> Shape:
        for member in self.members:
            if member.fits(value):
                return member
        raise ValueError(self.misfit(value, "value"))

    def load(self, data: Any) -> Any:
        reasons: list[str] = []
        for member in self.members:
            try:
                return member.load(data)
            except (TypeError, ValueError) as error:
                reasons.append(str(error))
        raise ValueError(f"expected {self.label}: {'; '.join(reasons)}")

    def children(self) -> Iterable[Shape]:
        return self.members

    def classes(self) -> Collection[type[Any]]:
        return [cls for member in self.members for cls in member.classes()]

    def misfit(self, value: Any, path: str) -> str:
        # A value of the right class with something wrong inside: say what is wrong.
        for member in self.members:
            if isinstance(value, getattr(member, "cls", ())):
                return member.misfit(value, path)
        return super().misfit(value, path)


def is_sure(shape: Shape) -> bool:
    """Whether all values of *shape* are of its types that need no look inside, or are None."""
    if isinstance(shape, UnionOf):
        return all([is_sure(member) for member in shape.members])
    return type(shape) in (Leaf, Float) and bool(shape.sure)


def is_plain_container(shape: Shape) -> bool:
    """Whether *shape* is a list or dict of plain data, whose check counts the levels of what is inside."""
    if type(shape) is DictOf and shape.cls is dict:
        return isinstance(shape.value, PlainData)
    return type(shape) is ListOf and shape.cls is list and isinstance(shape.item, PlainData)


def documents_of(shape: Shape) -> Optional[tuple[type, frozenset[type]]]:
    """The class of the values of *shape*, and the scalars in them, if these are plain data, and may have text as keys.

    None for all else.
    """
    if not isinstance(shape, (ListOf, DictOf)) or not is_plain_container(shape):
        return None
    *keys, item = shape.children()
    by_text = all([key.loose or str in key.sure for key in keys])
    return (shape.cls, item.scalars) if isinstance(item, PlainData) and not item.recheck and by_text else None


def other_than_none(shape: Shape) -> Optional[Shape]:
    """What an Optional is of."""
    if not isinstance(shape, UnionOf) or len(shape.members) != 2:
        return None
    others = [member for member in shape.members if member.kind != "null"]
    return others[0] if len(others) == 1 else None


class Field(NamedTuple):
    """A field of a record."""

    name: str
    stored: str
    """Its name in the stored map."""

    shape: Shape
    required: bool
    former: tuple[str, ...]
    """The names that it had before (`Was`)."""

    member: Member


class Record(Shape):
    """An object with named fields: a dataclass, an attrs class or a msgspec.Struct, stored as a map."""

    kind: Kind = "map"
    is_one = "type(value) is cls"
    """A test whether ``value`` is of the class: as nothing else, or (for pickles) as a subclass as well."""

    def __init__(self, cls: type[Any], *, tag: Optional[tuple[str, Any]] = None, recheck: bool = False) -> None:
        """*tag*: field and value that tell this class from others in a Union."""
        self.annotation: Any = cls
        self.label = typename(cls)
        self.cls = cls
        self.tag = tag
        self.recheck = recheck
        self.fields: list[Field] = []
        self._loader: Optional[Load] = None

    def define(self, fields: Iterable[Field]) -> None:
        """Give it its fields. They come after the record because one may be of the record's own type."""
        self.fields = list(fields)
        check = Check("False", {})
        self.test_value(check, self.is_one)
        self.__dict__["fits"] = check.made("True", self.label)

    def fits(self, value: Any) -> bool:
        # Reached only by what was built before `define`: another record of a cycle.
        return bool(self.__dict__["fits"](value))

    def test_value(self, check: Check, is_one: str = "type(value) is cls") -> None:
        """Tests of ``value``. What is returned may use its fields as ``field0``, ``field1`` and so on."""
        check.names["cls"] = self.cls
        check.refuse_if(f"not {is_one}")
        for number, field in enumerate(self.fields):
            check.add(f"field{number} = value.{field.name}")
            field.shape.test(check, f"field{number}")

    def dump(self, value: Any) -> Any:
        plain = {field.stored: field.shape.dump(getattr(value, field.name)) for field in self.fields}
        return plain if self.tag is None else {self.tag[0]: self.tag[1], **plain}

    def load(self, data: Any) -> Any:
        if self._loader is None:
            from .loading import loader  # where there is no msgspec

            self._loader = loader(self)
        return self._loader(data)

    def children(self) -> Iterable[Shape]:
        return [field.shape for field in self.fields]

    def misfit(self, value: Any, path: str) -> str:
        if isinstance(value, self.cls):
            for field in self.fields:
                if not hasattr(value, field.name):
                    return f"{path}.{field.name} is not set"
                item = getattr(value, field.name)
                if not field.shape.fits(item):
                    return field.shape.misfit(item, f"{path}.{field.name}")
        return super().misfit(value, path)


class NamedTupleRecord(Record):
    """A NamedTuple, or a Struct that asks for it: stored as a list."""

    kind: Kind = "list"

    def dump(self, value: Any) -> Any:
        plain = [field.shape.dump(getattr(value, field.name)) for field in self.fields]
        return plain if self.tag is None else [self.tag[1], *plain]

    def load(self, data: Any) -> Any:
        given = expect(list, data, self.label)
        required = sum(field.required for field in self.fields)
        if not required <= len(given) <= len(self.fields):
            raise ValueError(f"expected {self.label}, got {len(given)} fields")
        return self.cls(*[field.shape.load(item) for field, item in zip(self.fields, given)])


class TypedDictRecord(Record):
    """A TypedDict: a dict with certain keys."""

    subclasses = False  # as of a `Container`

    def __init__(self, cls: type[Any]) -> None:
        super().__init__(cls)
        self.cls = dict  # of a TypedDict nothing is an instance

    def define(self, fields: Iterable[Field]) -> None:
        """Give it its keys."""
        given = list(fields)
        self.keys: dict[Any, Shape] = {field.name: field.shape for field in given}
        self.required = {field.name for field in given if field.required}
        super().define(given)

    def test_value(self, check: Check, is_one: str = "") -> None:
        if not self.keys or len(self.required) < len(self.keys):
            check.refuse_if(f"not {check.constant(self._holds)}(value)")
            return
        with check.block(f"if type(value) is dict and value.keys() == {check.constant(self.required)}:"):
            for number, (key, shape) in enumerate(self.keys.items()):
                check.add(f"field{number} = value[{key!r}]")
                shape.test(check, f"field{number}")
        check.otherwise(self._holds, "value")

    def _holds(self, value: Any) -> bool:
        if not (is_a(value, dict) if self.subclasses else type(value) is dict):
            return False
        if not self.required <= value.keys() <= self.keys.keys():
            return False
        return all([self.keys[key].fits(item) for key, item in value.items()])

    def dump(self, value: Any) -> Any:
        return {key: self.keys[key].dump(item) for key, item in value.items()}

    def load(self, data: Any) -> Any:
        given = expect(dict, data, self.label)
        if not self.required <= given.keys():
            raise ValueError(f"{self.label} without {sorted(self.required - given.keys())}")
        return {key: self.keys[key].load(item) for key, item in given.items() if key in self.keys}

    def classes(self) -> Collection[type[Any]]:
        return (dict,)

    def misfit(self, value: Any, path: str) -> str:
        if is_a(value, dict):
            wrong = [f"no {show(key)}" for key in self.required - value.keys()]
            wrong += [f"{show(key)}, which it does not have" for key in value.keys() - self.keys.keys()]
            if wrong:
                return f"{path}: {self.label} with {', '.join(wrong)}"
            for key, item in value.items():
                if not self.keys[key].fits(item):
                    return self.keys[key].misfit(item, f"{path}[{show(key)}]")
        return Shape.misfit(self, value, path)


def expect(cls: type, data: Any, label: str) -> Any:
    """*data*, which must be of type *cls* to make a *label*."""
    if type(data) is not cls:
        raise ValueError(f"expected {label}, got {show(data)}")
    return data


def walk(shape: Shape) -> Iterator[Shape]:
    """*shape* and all that it is made of, each once."""
    seen: set[int] = set()
    left = [shape]
    while left:
        one = left.pop()
        if id(one) not in seen:
            seen.add(id(one))
            yield one
            left.extend(one.children())

"""Pickled objects of Pydantic models are validated when they are read, wherever they are in a value."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, NamedTuple, Optional, TypedDict, TypeVar, Union

import pytest

import zlmdb
from zlmdb.values import Pickle, serializer
from zlmdb.values.pydantics import pydantic_version

pydantic = pytest.importorskip("pydantic", reason="not installed on PyPy")
msgspec = pytest.importorskip("msgspec", reason="not installed on PyPy")
BaseModel, Config, Field = pydantic.BaseModel, pydantic.ConfigDict, pydantic.Field
Positive = Annotated[int, Field(gt=0)]
T = TypeVar("T")


class Part(BaseModel):  # type: ignore[misc, valid-type]
    number: Positive


class Whole(Part):
    part: Part
    parts: list[Part] = Field(default_factory=list)


class Frozen(BaseModel):  # type: ignore[misc, valid-type]
    model_config = Config(frozen=True)
    number: Positive


class Box(BaseModel, Generic[T]):  # type: ignore[misc, valid-type]
    item: T


Boxed = Box[Part]


class Node(BaseModel):  # type: ignore[misc, valid-type]
    number: Positive
    nodes: list[Node] = Field(default_factory=list)


class Foreign:
    pass


class Holder(BaseModel):  # type: ignore[misc, valid-type]
    model_config = Config(arbitrary_types_allowed=True)
    foreign: Foreign


_BY_NAME = pytest.mark.skipif(
    pydantic_version() < (2, 11), reason="Pydantic before 2.11 cannot make this model by names, so zlmdb refuses it"
)


class ByPath(BaseModel):  # type: ignore[misc, valid-type]
    number: int = Field(validation_alias=pydantic.AliasPath("numbers", 0))


class Open(BaseModel):  # type: ignore[misc, valid-type]
    model_config = Config(extra="allow")
    number: Positive = 1
    _secret: int = pydantic.PrivateAttr(default=1)


@dataclass
class Row:
    part: Part
    pair: Optional[tuple[Part, int]] = None
    parts: list[Part] = field(default_factory=list)
    next: Optional[Row] = None


class Cell(NamedTuple):
    part: Part


class Fields(TypedDict):
    part: Part


class Struct(msgspec.Struct, frozen=True):  # type: ignore[misc, name-defined]
    part: Part


GOOD, BAD = Part(number=1), Part.model_construct(number=0)
ROOTS = pydantic.RootModel[list[Part]]
CASES: list[Any] = [
    (Part, GOOD, BAD),
    (Part, Whole(number=1, part=GOOD), Whole.model_construct(number=1, part=GOOD, parts=[BAD])),
    (Part, Whole(number=1, part=GOOD), Whole.model_construct(number=1, part=BAD, parts=[])),
    (Frozen, Frozen(number=1), Frozen.model_construct(number=0)),
    (Boxed, Boxed(item=GOOD), Boxed.model_construct(item=BAD)),
    (Node, Node(number=1, nodes=[Node(number=2)]), Node(number=1, nodes=[Node.model_construct(number=0)])),
    (Holder, None, Holder.model_construct(foreign=3)),
    pytest.param(ByPath, ByPath(numbers=[3]), ByPath.model_construct(number="x"), marks=_BY_NAME),
    (ROOTS, ROOTS([GOOD]), ROOTS.model_construct([BAD])),
    (Row, Row(GOOD), Row(BAD)),
    (Row, Row(GOOD, (GOOD, 1)), Row(GOOD, (BAD, 1))),
    (Row, Row(GOOD, None, [GOOD]), Row(GOOD, None, [BAD])),
    (Row, Row(GOOD, next=Row(GOOD)), Row(GOOD, next=Row(BAD))),
    (Cell, Cell(GOOD), Cell(BAD)),
    (Fields, {"part": GOOD}, {"part": BAD}),
    (Struct, Struct(GOOD), Struct(BAD)),
    (list[Part], [GOOD, GOOD], [GOOD, BAD]),
    (dict[str, Part], {"a": GOOD}, {"a": BAD}),
    (dict[Frozen, int], {Frozen(number=1): 1}, {Frozen.model_construct(number=0): 1}),
    (frozenset[Frozen], frozenset({Frozen(number=1)}), frozenset({Frozen.model_construct(number=0)})),
    (Optional[Part], GOOD, BAD),
    (Union[Part, Frozen], Frozen(number=1), Frozen.model_construct(number=0)),
]  # fmt: skip


@pytest.mark.parametrize(("of", "good", "bad"), CASES)
def test_an_invalid_object_is_neither_written_nor_read(of: Any, good: Any, bad: Any) -> None:
    codec = serializer(Pickle[of])
    if good is not None:
        found = codec.decode(codec.encode(good))
        assert found == good
        assert type(found) is type(good)
    with pytest.raises(zlmdb.EncodeError):
        codec.encode(bad)
    for data in (codec.unchecked().encode(bad), pickle.dumps(bad, 2)):
        with pytest.raises(zlmdb.DecodeError):
            codec.decode(data)


def test_what_is_private_extra_and_unset_is_kept() -> None:
    value = Open(more=[1])
    value._secret = 7
    codec = serializer(Pickle[Open])
    found = codec.decode(codec.encode(value))
    assert (found, found._secret, found.more) == (value, 7, [1])
    assert found.model_dump(exclude_unset=True) == value.model_dump(exclude_unset=True) == {"more": [1]}


def test_an_object_that_occurs_twice_or_holds_itself_stays_one() -> None:
    codec = serializer(Pickle[list[Part]])
    one, other = codec.decode(codec.encode([GOOD, GOOD]))
    assert one is other
    ring = Node(number=1)
    ring.nodes.append(ring)
    codec = serializer(Pickle[Node])
    found = codec.decode(codec.encode(ring))
    assert found.nodes[0] is found


def test_the_classes_of_allow_are_validated_too() -> None:
    codec = serializer(Annotated[Part, zlmdb.PickleSerializer(allow=[])])
    assert codec.decode(codec.encode(GOOD)) == GOOD
    with pytest.raises(zlmdb.DecodeError):
        codec.decode(codec.unchecked().encode(BAD))


def test_a_set_is_filled_anew_where_a_validator_changes_what_is_in_it() -> None:
    codec = serializer(Pickle[set[Lower]])
    (found,) = found_all = codec.decode(pickle.dumps({Lower.model_construct(text="Ann")}, 5))
    assert found == Lower(text="ann")
    assert found in found_all


class Lower(BaseModel):  # type: ignore[misc, valid-type]
    model_config = Config(frozen=True)
    text: Annotated[str, pydantic.AfterValidator(str.lower)]

"""Named tuples of the package are what those of `typing` are, but for the look at their annotations."""

from __future__ import annotations

import pickle
import typing
from typing import Optional, get_type_hints

from zlmdb.namedtuples import NamedTuple


class Point(NamedTuple):
    """A place."""

    x: int
    y: Optional[float] = None

    @property
    def far(self) -> bool:
        """Whether it is far."""
        return self.x > 9


class Original(typing.NamedTuple):
    """A place."""

    x: int
    y: Optional[float] = None

    @property
    def far(self) -> bool:
        """Whether it is far."""
        return self.x > 9


def test_they_have_what_those_of_typing_have() -> None:
    for name in ("_fields", "_field_defaults", "__doc__", "__module__", "__bases__", "__slots__"):
        assert getattr(Point, name) == getattr(Original, name)
    assert Point.__qualname__ == "Point"
    # The function is what evaluates annotations when somebody asks, since CPython 3.14.
    assert set(vars(Original)) - set(vars(Point)) <= {"__orig_bases__", "__annotate_func__"}
    assert get_type_hints(Point) == get_type_hints(Original) == {"x": int, "y": Optional[float]}


def test_they_behave_as_tuples_with_names() -> None:
    point = Point(10)
    assert point == (10, None) == Original(10)
    assert (point.x, point.y, point.far) == (10, None, True)
    assert repr(point._replace(y=1.5)) == "Point(x=10, y=1.5)"
    assert pickle.loads(pickle.dumps(point)) == point
    assert type(pickle.loads(pickle.dumps(point))) is Point


def test_a_class_derived_from_one_is_an_ordinary_class() -> None:
    class Named(Point):
        name = "here"

    assert (Named(1).name, Named(1).x) == ("here", 1)

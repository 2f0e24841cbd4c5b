"""What is read lazily and looks like a list, but is none: what programs try then says what to write instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

_LISTS = (list, tuple, dict, set, frozenset)

SOME = "write .first() or .last() for one, select(..., limit=10) or itertools.islice for some, list(...) for all"
"""How positions are asked for."""


def no_length(given: object) -> int:
    """Raise `TypeError`: counting may read every record, which `len` does not say."""
    raise TypeError("len(...): counting may read every record: write .count()")


class NoList:
    """Positions, `reversed` and comparisons with lists, of rows that are read when they are asked for."""

    __slots__ = ()

    if not TYPE_CHECKING:  # checkers report it by themselves

        def __getitem__(self, position: Any) -> NoReturn:
            raise TypeError(f"[{shown_position(position)}]: what is read lazily has no positions: {SOME}")

        def __reversed__(self) -> NoReturn:
            raise TypeError(
                "reversed(...): the order is chosen when reading begins: write select(..., reverse=True), "
                "or order_by(..., reverse=True)"
            )

        def __eq__(self, other: object) -> bool:
            if isinstance(other, _LISTS):
                raise TypeError(
                    f"what is read lazily is never equal to a {type(other).__name__}: "
                    f"compare {type(other).__name__}(...)"
                )
            return NotImplemented

        __hash__ = object.__hash__


def shown_position(position: Any) -> str:
    """A position or a slice as it is written in brackets."""
    if position.__class__ is not slice:
        return repr(position)
    parts = ["" if part is None else repr(part) for part in (position.start, position.stop)]
    return ":".join(parts if position.step is None else [*parts, repr(position.step)])

"""How long the changes of a table are kept."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Optional

from ..numeric import is_whole
from ..shown import shortened


@dataclass(frozen=True)
class Feed:
    """A change feed that removes its oldest changes: ``class Users(Table[int, User], feed=Feed(max_count=1_000_000))``.

    *max_count*: so many changes are kept. *max_age*: changes that are older are removed. *acknowledged*: changes are
    removed that every named consumer has acknowledged, if there is one. With several of these, a change is removed as
    soon as one of them says so. Writers of the table remove a few with each change, and `Changes.trim` all at once.
    ``feed=True`` keeps all changes.
    """

    max_count: Optional[int] = None
    max_age: Optional[timedelta] = None
    acknowledged: bool = False

    def __post_init__(self) -> None:
        count = self.max_count
        if count is not None:
            if not is_whole(count):
                raise TypeError(f"Feed(max_count={shortened(count)}): expected a number of changes")
            if count < 0:
                raise ValueError(f"Feed(max_count={shortened(count)}): expected 0 or more")
        age: Any = self.max_age
        if age is not None:
            if not isinstance(age, timedelta):
                raise TypeError(f"Feed(max_age={shortened(age)}): expected a timedelta, such as timedelta(days=7)")
            if age < timedelta(0):
                raise ValueError(f"Feed(max_age={shortened(age)}): expected a positive time")
        given: Any = self.acknowledged
        if not isinstance(given, bool):
            raise TypeError(f"Feed(acknowledged={shortened(given)}): expected True or False")

    @property
    def keeps_all(self) -> bool:
        """Whether no change is removed."""
        return self.max_count is None and self.max_age is None and not self.acknowledged


def policy(declared: object, cls: str) -> Optional[Feed]:
    """The policy that the class *cls* declares with ``feed=``; None without a feed. Raises TypeError."""
    if declared is None or declared is False:
        return None
    if declared is True:
        return Feed()
    if not isinstance(declared, Feed):
        raise TypeError(f"{cls}: feed={shortened(declared)}: expected True, or zlmdb.Feed(...)")
    return declared

"""What can be read of a damaged file, as Protocols."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Optional

from ..namedtuples import NamedTuple
from ..protocols import Protocol


class Record(NamedTuple):
    """A record of a damaged file. *value*: None if it cannot be read. *tree*: the keyspace that it names, if any."""

    key: bytes
    value: Optional[bytes]
    tree: Optional[Any]


class Tree(Protocol):
    """A keyspace of a damaged file."""

    @property
    def entries(self) -> int:
        """The number of records that it should have."""
        ...


class State(Protocol):
    """A committed state of a damaged file, as far as it can be read."""

    newest: bool
    """No later state can be read."""
    problems: list[str]
    """The problems found so far, in words."""

    def afresh(self) -> State:
        """The same state, unread: if a page is met twice, that is a problem."""
        ...

    def main(self) -> Iterable[Record]:
        """The records of the main keyspace, in order."""
        ...

    def records(self, name: str, tree: Any) -> Iterable[Record]:
        """The records of another keyspace, in order; *name* is for the texts of `problems`."""
        ...


class Remains(Protocol):
    """A damaged file, read without the engine, which may crash on it. *size* is in bytes, *faults* are in words.

    *format* is its `Engine.file_version`. *roots* are the bytes that lead to its states: each commit changes them.
    """

    path: str
    size: int
    format: str
    roots: bytes
    faults: list[str]

    @property
    def states(self) -> Sequence[State]:
        """The committed states, the newest first."""
        ...

"""The records of keyspaces in memory, and the view of a transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any, NoReturn, Optional

# The library is untyped; `_SortedKeys` below is the part of it that we use.
from sortedcontainers import SortedList  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]

from ... import errors
from ...protocols import Protocol

PAGE = 4096
stamps = count(1)


class _SortedKeys(Protocol):
    def add(self, value: bytes) -> None: ...
    def remove(self, value: bytes) -> None: ...
    def irange(
        self,
        minimum: Optional[bytes] = None,
        maximum: Optional[bytes] = None,
        inclusive: tuple[bool, bool] = (True, True),
        reverse: bool = False,
    ) -> Iterator[bytes]: ...
    def __getitem__(self, index: int, /) -> bytes: ...
    def __len__(self) -> int: ...


class KeyspaceHandle:
    """A database handle: the name of a keyspace, for as long as the environment lives."""

    __slots__ = ("name",)

    def __init__(self, name: Optional[bytes]) -> None:
        self.name = name

    def __repr__(self) -> str:
        return "main keyspace" if self.name is None else f"keyspace {self.name!r}"


class Records:
    """The records of one keyspace: a dict to find one, the sorted keys to walk them."""

    __slots__ = ("born", "keys", "owner", "size", "stamp", "values")

    def __init__(self, values: dict[bytes, bytes], keys: Iterable[bytes], *, size: int, stamp: int, born: int) -> None:
        self.values = values
        self.keys: _SortedKeys = SortedList(keys)
        self.size = size  # bytes of keys and values
        self.stamp = stamp  # another one after each change of the keys, unique among all records
        self.born = born  # the first transaction whose readers may hold these records
        self.owner = 0  # the stamp of the write transaction that may change them in place

    def set(self, key: bytes, value: Optional[bytes]) -> None:
        """Store *value*, or delete the record when it is None."""
        try:
            old = self.values.get(key)
            if old is not None:
                self.size -= len(key) + len(old)
            if value is not None:
                self.size += len(key) + len(value)
                self.values[key] = value
                if old is None:
                    self.keys.add(key)
                    self.stamp = next(stamps)
            elif old is not None:
                del self.values[key]
                self.keys.remove(key)
                self.stamp = next(stamps)
        except BaseException:  # a KeyboardInterrupt may leave the parts out of step
            self.mend()
            raise

    def mend(self) -> None:
        """Make keys and size fit the values again, after a change that stopped half-way."""
        self.keys = SortedList(self.values)
        self.size = sum(len(key) + len(value) for key, value in self.values.items())
        self.stamp = next(stamps)

    def copy(self, born: int) -> Records:
        """The same records again; walks of the original go on in the copy."""
        keys: Any = self.keys
        return Records(self.values.copy(), keys, size=self.size, stamp=self.stamp, born=born)

    def walk(self, key: bytes, reverse: bool) -> Iterator[bytes]:
        """The keys past *key*; good until `stamp` changes."""
        if reverse:
            return self.keys.irange(maximum=key, inclusive=(True, False), reverse=True)
        return self.keys.irange(minimum=key, inclusive=(False, True))

    def stat(self) -> dict[str, int]:
        """The statistics that LMDB would give, as if the records filled their pages."""
        pages = -(-self.size // PAGE)
        return {
            "psize": PAGE, "depth": int(pages > 0), "branch_pages": 0, "leaf_pages": pages, "overflow_pages": 0,
            "entries": len(self.values),
        }  # fmt: skip


class Spaces(dict[KeyspaceHandle, Records]):
    """The keyspaces that a transaction sees. Only a failed look-up takes the time to explain itself."""

    def __missing__(self, db: KeyspaceHandle) -> NoReturn:
        self.refuse(db)

    def refuse(self, db: Optional[KeyspaceHandle] = None) -> NoReturn:
        """Raise the error that says why *db* is not visible."""
        raise errors.TransactionStale(
            f"the transaction has no {db!r}: it was created after the transaction began, or dropped; begin again"
        )


class _Ended(Spaces):
    def refuse(self, db: Optional[KeyspaceHandle] = None) -> NoReturn:
        raise errors.TransactionClosed("the transaction or cursor has ended; begin another one")


class _Forked(Spaces):
    def refuse(self, db: Optional[KeyspaceHandle] = None) -> NoReturn:
        raise errors.ForkedTransaction("the transaction was begun in the parent process, before fork; begin another")


class _InChild(Spaces):
    def refuse(self, db: Optional[KeyspaceHandle] = None) -> NoReturn:
        raise errors.NestedTransaction("the transaction has an open child transaction: use that one, or end it first")


ENDED = _Ended()
"""What an ended transaction sees."""

BEGINNING = _Ended()
"""What a transaction sees that has not begun yet."""

FORKED = _Forked()
"""What a transaction of the parent process sees in a forked one."""

IN_CHILD = _InChild()
"""What a transaction sees while a child of it is open."""


def as_bytes(data: Any) -> bytes:
    """Any buffer as bytes; `TypeError` for anything else."""
    return data if type(data) is bytes else bytes(memoryview(data))

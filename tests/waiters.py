"""Threads that write at the same time: they wait until the test lets them, and keep what came of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Callable, Optional, TypeVar

import pytest

import zlmdb

C = TypeVar("C", bound="Caller")

unseen: dict[Caller, BaseException] = {}
"""What was raised in threads, and no test has looked at."""


class Caller(threading.Thread):
    """Calls *fn* with the tables of a write transaction, as `call` says; *got* or *raised* has what came of it."""

    def __init__(self, db: Any, fn: Callable[[Any], Any]) -> None:
        super().__init__(daemon=True)
        self.db, self.fn = db, fn
        self.got: Any = None
        self._raised: Optional[BaseException] = None
        self.start()

    @property
    def raised(self) -> Optional[BaseException]:
        """What `call` raised. A test that does not ask for it fails."""
        unseen.pop(self, None)
        return self._raised

    def call(self) -> Any:
        """The result of *fn*."""
        return self.db.run(self.fn)

    def run(self) -> None:
        try:
            self.got = self.call()
        except BaseException as error:
            self._raised = unseen[self] = error

    def ended(self: C) -> C:
        self.join(20)
        assert not self.is_alive()
        return self


def wait_until(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.001)


@contextmanager
def in_another_thread(begin: Callable[[], AbstractContextManager[Any]]) -> Iterator[None]:
    """While this block lasts, another thread is in the one that *begin* gives there."""
    began, ends = threading.Event(), threading.Event()

    def stays() -> None:
        with begin():
            began.set()
            ends.wait(60)

    other = threading.Thread(target=stays)
    other.start()
    try:
        assert began.wait(20)
        yield
    finally:
        ends.set()
        other.join(20)


@contextmanager
def waiting_together(
    db: Any, kind: type[C], functions: Sequence[Callable[[Any], Any]], waiting: Callable[[Any], int]
) -> Iterator[list[C]]:
    """The callers of *functions*, who wait while the block has the writer; after it all of them have ended.

    *waiting* says how many of them wait.
    """
    callers: list[C] = []
    with db.write():
        for n, fn in enumerate(functions):
            callers.append(kind(db, fn))
            wait_until(lambda n=n: waiting(db) == n + 1)  # type: ignore[misc]
        yield callers
    for caller in callers:
        caller.ended()


def last(db: Any) -> int:
    """The number of the last commit."""
    with db.read() as t:
        number: int = t.txn.id()
        return number


def put(key: int) -> Callable[[Any], int]:
    """A function that counts in the record *key*, and returns it."""

    def fn(t: Any) -> int:
        t.numbers[key] = t.numbers.get(key, 0) + 1
        return key

    return fn


def first_group_fails(monkeypatch: pytest.MonkeyPatch) -> list[zlmdb.Transaction]:
    """The first commit of a group, which is in the list then, finds the disk broken."""
    commit = zlmdb.Transaction.commit
    failed: list[zlmdb.Transaction] = []

    def fails_once(self: Any) -> None:
        if self._told is not None and not failed:
            failed.append(self)
            self.abort()
            raise zlmdb.DiskError("the disk is broken")
        commit(self)

    monkeypatch.setattr(zlmdb.Transaction, "commit", fails_once)
    return failed

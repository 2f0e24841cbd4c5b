"""What replaces the engine's transaction where there is none any more: every use raises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from .. import errors


def closed(*args: Any, **kwargs: Any) -> NoReturn:
    """Replaces the engine's functions after the end of a transaction."""
    raise errors.TransactionClosed("the transaction has ended, or has not begun: use its tables inside its with block")


def forked(*args: Any, **kwargs: Any) -> NoReturn:
    """Replaces the engine's functions in a forked child."""
    raise errors.ForkedTransaction("this transaction was begun before fork(): begin one in the child process")


class Ended:
    """Replaces the engine's transaction in a table after the end: every use raises."""

    def __init__(self, refuse: Callable[..., NoReturn]) -> None:
        self.get = self.put = self.delete = self.drop = self.cursor = self.stat = refuse
        self.reader = refuse, None


CLOSED, FORKED = Ended(closed), Ended(forked)
NO_READER = CLOSED.reader
"""What a bound table has after the end: see `TableState._reader`."""

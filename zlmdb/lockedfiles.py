"""Files that are open to be locked, which the child of a fork closes at once.

Such a lock is that of the open file, which parent and child share: in the child it would outlive the parent, or the
moment at which the parent closes the file.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol
from weakref import WeakSet

from .handlers import close_files


class _Closed(Protocol):
    def close(self) -> None: ...


_open: WeakSet[_Closed] = WeakSet()


def close_in_child(file: _Closed) -> None:
    """Where this process is forked, the child closes *file*, which is open or about to be opened."""
    _open.add(file)


def _leave() -> None:
    for file in list(_open):
        with suppress(OSError):  # the program has closed it
            file.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave)


class LockedFile:
    """The file or directory *path*, open to be locked, until `close`, or an interrupt drops what refers to it.

    What else is *opened* for the same purpose is closed with it. *process* is the one that has opened it.
    """

    __slots__ = ("__weakref__", "descriptor", "opened", "process")

    def __init__(self, path: str, flags: int = os.O_RDONLY) -> None:
        self.opened: list[int] = []
        _open.add(self)  # as `close_in_child`
        self.opened.extend(map(os.open, (path,), (flags,)))  # in one step, as it is closed
        self.descriptor = self.opened[0]
        self.process = os.getpid()

    def close(self, close: Callable[[list[int]], None] = close_files) -> None:  # there are no names at the very end
        """End the locks of this process."""
        try:  # noqa: SIM105 - nor `suppress`
            close(self.opened)
        except OSError:  # the program has closed all that is open, as daemons do
            pass

    def __del__(self) -> None:
        self.close()

    def __enter__(self) -> LockedFile:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

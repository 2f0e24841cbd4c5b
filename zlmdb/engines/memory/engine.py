"""How a store opens and understands a memory environment."""

from __future__ import annotations

from typing import Any, Optional

from .environment import MemoryEnvironment


class MemoryEngine:
    """An environment in memory, of at most *maxsize* bytes of keys and values. Its errors are ours already."""

    path = None
    file = None
    lock_file = None
    persistent = False
    can_grow = False
    moves = False

    def __init__(self, maxsize: Optional[int] = None) -> None:
        self._maxsize = maxsize
        self._env: Optional[MemoryEnvironment] = None

    def open(self, *, readonly: bool = False) -> MemoryEnvironment:
        """A new environment; in a forked child the one of the parent process as it was, since it shares nothing."""
        if self._env is None:
            self._env = MemoryEnvironment(self._maxsize)
        return self._env

    def open_existing(self, env: MemoryEnvironment, name: bytes) -> Any:
        """The handle of the space *name*, or None where there is none."""
        try:
            return env.open_db(name, create=False)
        except KeyError:
            return None

    def closed(self) -> None:
        """The environment was closed, and its records are gone."""
        self._env = None

    def grow(self, env: MemoryEnvironment) -> None:
        """Nothing to do: memory grows by itself."""

    adopt_size = grow

    def fatal(self, error: Exception) -> bool:
        """False: no error breaks it."""
        return False

    def resized(self, error: Exception) -> bool:
        """False: there is no other process."""
        return False

    def translate(self, error: Exception, **facts: Any) -> Exception:
        """*error* as it is."""
        return error

    def before_fork(self, env: MemoryEnvironment) -> list[Any]:
        """Nothing to hold."""
        return []

    def in_child(self) -> None:
        """Keep the records, in the child's own copy, and refuse the transactions that the parent process began."""
        if self._env is not None:
            self._env.in_child()

"""The settings of a database: what it was opened with, and what can be set while it is open."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Optional

from ..numeric import checked_seconds
from .state import DatabaseState

if TYPE_CHECKING:
    # Not at run time: Jedi, which completes names in Jupyter, fails on a property that gives a Literal.
    from ..store.layout import Layout


class Settings(DatabaseState):
    """The part of `Database` that has its settings."""

    @property
    def dbpath(self) -> Optional[str]:
        """The path as given; of a temporary database its directory; None in memory."""
        return self._opening.path

    @property
    def maxsize(self) -> int:
        """The size in bytes to which the database may grow; while it is closed, the given or the default size."""
        given = self._opening.options.maxsize
        if given is not None:
            return given
        if self._store is None:
            return self._opening.engine.capacity(None)
        return self._open_store.engine.capacity(self._open_store.environment)

    @property
    def context(self) -> Any:
        """The object that the caller gave as *context*."""
        return self._context

    @property
    def log(self) -> Any:
        """The given logger, or that of zlmdb. It is stored for the caller, who may set another one."""
        import logging  # late, as in `log`

        return logging.getLogger("zlmdb") if self._log is None else self._log

    @log.setter
    def log(self, log: Any) -> None:
        self._log = log

    @property
    def is_open(self) -> bool:
        """Whether the database is open."""
        return self._store is not None

    @property
    def is_sync(self) -> bool:
        """Whether a commit is flushed to the disk."""
        return self._opening.options.durability != "none"

    @property
    def is_readonly(self) -> bool:
        """Whether the database was opened read-only."""
        return self._opening.options.readonly

    @property
    def is_writemap(self) -> bool:
        """Whether the database writes through the memory map."""
        return bool(self._option("writemap", False))

    @property
    def lib_version(self) -> Optional[str]:
        """The LMDB format of the open file, "0.9" or "1.0"; None in memory; while closed, the requested format."""
        if self._store is None:
            return self._option("lib_version", None)
        return self._open_store.engine.file_version(self._open_store.environment)

    @property
    def layout(self) -> Layout:
        """The layout of the open file: "tables", "classic", or "raw" for a file of another program."""
        return self._open_store.layout

    @property
    def long_read(self) -> float:
        """Seconds after which an open read transaction is logged as a warning, once: 60.

        The warning names the line that began it. It is logged when the next transaction begins in this process, at most
        a quarter of the time late, or else when the long transaction ends. ``math.inf`` turns it off.
        """
        return self._open_store.ages.limit

    @long_read.setter
    def long_read(self, seconds: float) -> None:
        store = self._open_store
        store.ages.warn_after(checked_seconds("long_read", seconds, ", or math.inf for no warning"))
        store.disturb()

    @property
    def clock(self) -> Callable[[], float]:
        """The function that tells the time to tables whose records expire, in seconds since 1970: ``time.time``.

        Tests can set another one. It belongs to the open file: all databases of this process that have it open use it.
        """
        return self._open_store.clock

    @clock.setter
    def clock(self, clock: Callable[[], float]) -> None:
        if not callable(clock):
            raise TypeError(f"clock={clock!r}: expected a function that returns the time in seconds since 1970")
        self._open_store.clock = clock

    def config(self) -> dict[str, Any]:
        """The options that the database was opened with, *context* as text: plain data, for a log or a page."""
        options = self._opening.options
        return {
            "is_temp": self._temporary is not None,
            "dbpath": self.dbpath,
            "maxsize": self.maxsize,
            "readonly": options.readonly,
            "lock": self._option("lock", True),
            "sync": self.is_sync,
            "create": self._opening.create,
            "open_now": self._open_now,
            "writemap": self.is_writemap,
            "context": None if self._context is None else str(self._context),
        }

    def _option(self, name: str, default: Any) -> Any:
        """What was given of an option that not every engine has."""
        return getattr(self._opening.options, name, default)

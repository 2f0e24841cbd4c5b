"""A third engine, to see that nothing above the engines knows those that zlmdb has.

It plays a server of this process: ``toy://name`` is a store that outlives its handles. Its records are those of the
memory engine, behind proxies that count the calls, may take their time over each, and raise conflicts of their own.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Hashable
from typing import Any, Optional

from zlmdb import errors
from zlmdb.engines import PlainOptions, registry
from zlmdb.engines.memory import MemoryEnvironment
from zlmdb.engines.memory.engine import MemoryEngine

SERVERS: dict[str, Server] = {}

registry.register("toy", "tests.toy_engine:ToyEngine")


class ToyConflict(Exception):
    """What the server says to a client that came second."""


class Server:
    """The store behind a URL. *delay*: seconds that a call takes; *conflicts*: the names of calls to fail, in order."""

    def __init__(self, maxsize: Optional[int] = None) -> None:
        self.records = MemoryEnvironment(maxsize)
        self.calls: Counter[str] = Counter()
        self.retries = 0
        self.delay = 0.0
        self.conflicts: list[str] = []

    def called(self, name: str) -> None:
        """Count, wait, and fail if it is time to."""
        self.calls[name] += 1
        if self.delay:
            time.sleep(self.delay)
        if self.conflicts and self.conflicts[0] == name:
            self.conflicts.pop(0)
            raise ToyConflict(f"{name}: somebody else was first")


class Proxy:
    """Passes every call on to *inner*, with the arguments that are proxies unpacked."""

    def __init__(self, inner: Any, server: Server) -> None:
        self._inner = inner
        self._server = server

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not callable(found):
            return found

        def call(*args: Any, **given: Any) -> Any:
            try:
                self._server.called(name)
            except ToyConflict:
                if name == "commit":
                    self._inner.abort()
                raise
            result = found(*map(_unpacked, args), **{key: _unpacked(value) for key, value in given.items()})
            return Proxy(result, self._server) if name in ("begin", "cursor") else result

        return call

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *exc: object) -> None:
        self._inner.__exit__(*exc)


class Connection(Proxy):
    """The environment. The server goes on when it is closed."""

    def close(self) -> None:
        pass


def _unpacked(value: Any) -> Any:
    return value._inner if isinstance(value, Proxy) else value


class ToyEngine(MemoryEngine):
    """A connection to the server of *path*."""

    path: Any = None

    def __init__(self, path: str, options: PlainOptions, *, create: bool = True) -> None:
        super().__init__(None, options, create=create)
        self.path = path
        self._create = create

    @property
    def server(self) -> Server:
        """What is behind the URL."""
        return SERVERS[self.path]

    def identity(self) -> Optional[Hashable]:  # type: ignore[override]  # a store in memory has none
        return self.path if self.exists() else None

    def exists(self) -> bool:
        return self.path in SERVERS

    def open(self, *, readonly: bool = False) -> Any:
        if not self.exists():
            if self.options.readonly or not self._create:
                raise FileNotFoundError(f"no server at {self.path!r}")
            SERVERS[self.path] = Server(self.options.maxsize)
        self._env = self.server.records
        return Connection(self.server.records, self.server)

    def translate(self, error: Exception, **details: Any) -> Exception:
        return errors.Conflict(**details) if isinstance(error, ToyConflict) else error

    def retry(self, error: Exception) -> bool:
        self.server.retries += 1
        return isinstance(error, errors.Conflict)

"""The choice of an engine: for None, for a path, or for a URL by its scheme."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any, Optional, cast

from .engine import Engine, EngineClass, Options

if TYPE_CHECKING:  # that each is an engine is checked here; programs that pack others find here what to pack
    from .lmdb.engine import LmdbEngine
    from .memory.engine import MemoryEngine

    _checked: list[EngineClass] = [LmdbEngine, MemoryEngine]

_MEMORY, _PATH = None, ""

# Where each engine is, by the scheme of its URLs. None of them is imported before it is used.
_ENGINES: dict[Optional[str], str] = {
    _MEMORY: "zlmdb.engines.memory.engine:MemoryEngine",
    _PATH: "zlmdb.engines.lmdb.engine:LmdbEngine",
}


def register(scheme: str, engine_class: str) -> None:
    """Use the engine class *engine_class*, given as ``module:Class``, for URLs of *scheme*."""
    _ENGINES[scheme] = engine_class


def engine_class(path: Optional[str]) -> EngineClass:
    """The engine class for *path*. Raises ValueError for URLs of unknown schemes or files, ``:memory:`` and ``~``."""
    if path == ":memory:":  # as for sqlite3; a directory of that name would keep what is meant to go
        raise ValueError("':memory:': the path None opens a database in memory, as in zlmdb.open(None, Schema)")
    if path is not None and path[:1] == "~" and not os.path.exists(path.replace(os.sep, "/").partition("/")[0]):
        raise ValueError(f"{path!r}: the home directory is not filled in for ~: write os.path.expanduser({path!r})")
    if path is not None and path[:5] == "file:" and not os.path.exists(path):
        plain = path[5:].partition("?")[0]
        raise ValueError(f"{path!r} is a URL: give the path itself, {plain[2:] if plain[:2] == '//' else plain!r}")
    scheme = _scheme(path)
    if scheme not in _ENGINES:
        known = ", ".join(f"{one}://" for one in _ENGINES if one) or "none"
        raise ValueError(
            f"{path!r} has a scheme without an engine (known: {known}): check the scheme, or, if it is a path, "
            f"write ./{path}"
        )
    module, _, name = _ENGINES[scheme].partition(":")
    return cast(EngineClass, getattr(import_module(module), name))


def engine(path: Optional[str], options: Optional[Options] = None, *, create: bool = False) -> Engine:
    """The engine for *path*, which is not opened; *create*: opening it creates a missing store."""
    cls = engine_class(path)
    return cls(path, cls.make_options() if options is None else options, create=create)


def options(path: Optional[str], **given: Any) -> Options:
    """The options of the engine for *path*. Raises TypeError for one that it does not have."""
    return engine_class(path).make_options(**given)


def lasting(path: Optional[str]) -> Optional[str]:
    """*path*, written so that it leads to the same file from any working directory."""
    if path is None or os.path.isabs(path) or _scheme(path) != _PATH:
        return path
    return os.path.join(os.getcwd(), path)


def _scheme(path: Optional[str]) -> Optional[str]:
    """The scheme of a URL; of a path, which may begin with a letter and a colon on Windows, none."""
    if path is None:
        return _MEMORY
    scheme, found, _ = path.partition("://")
    return scheme if found and len(scheme) > 1 and scheme.isalnum() else _PATH

"""Describes an LMDB file that zlmdb did not write: its format, its sizes, its sub-databases."""

from __future__ import annotations

from typing import Any, Optional

from .. import errors
from ..engines import Engine, Environment, registry


def foreign(path: str) -> Optional[dict[str, Any]]:
    """Details of the LMDB file at *path*; None if it is not one, or has a catalogue of zlmdb."""
    engine = registry.engine(path, registry.options(path, readonly=True))
    try:
        env = engine.open()
    except errors.Error:
        return None
    try:
        return None if engine.open_existing(env, b"__zlmdb__") is not None else _facts(engine, env, path)
    finally:
        env.close()
        engine.closed()


def _facts(engine: Engine, env: Environment, path: str) -> dict[str, Any]:
    txn = env.begin()
    try:
        main = env.stat()
        names = [*engine.space_names(env, txn)] if engine.holds_spaces(env, txn) else []
    finally:
        txn.abort()
    handles = {name: engine.open_existing(env, name) for name in names}
    txn = env.begin()
    try:
        entries = {_shown(name): txn.stat(one)["entries"] for name, one in handles.items() if one is not None}
    finally:
        txn.abort()
    info = env.info()
    return {
        "path": path,
        "layout": "not of zlmdb",
        "lmdb_format": engine.file_version(env),
        "lmdb_library": engine.library_version(env),
        "records": main["entries"] - len(entries),
        "sub_databases": entries,
        "file_bytes": (info["last_pgno"] + 1) * main["psize"],
        "page_bytes": main["psize"],
        "map_bytes": info["map_size"],
        "last_transaction": info["last_txnid"],
    }


def _shown(name: bytes) -> str:
    return name.rstrip(b"\0").decode(errors="backslashreplace")

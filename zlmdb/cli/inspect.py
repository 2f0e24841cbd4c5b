"""The content of a file: `info`, `tables` and `readers`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Optional

import click

import zlmdb

from ..operations.foreignfile import foreign
from ..systems import WINDOWS
from . import output
from .contents import for_reading
from .group import command, path_argument


@command
@path_argument("path")
@click.option(
    "--lib-version",
    "required",
    type=click.Choice(["0.9", "1.0"]),
    help="The LMDB format that the file must have: if it has the other one, the exit status is 1.",
)
def info(path: Path, required: Optional[str], as_json: bool) -> None:
    """Show the layout, the LMDB format, the sizes and the version of the database at PATH.

    For an LMDB file that zlmdb did not write, show the format, the sizes and the sub-databases.
    """
    try:
        opened = zlmdb.open(path, readonly=True)
    except zlmdb.InvalidDatabase:
        found = foreign(str(path))
        if found is None:
            raise
        _require(required, found["lmdb_format"])
        output.fields(found, as_json)
        return
    with opened as db:
        _require(required, db.lib_version)
        stats, tables = db.stats(), db.tables()
        output.fields(
            {
                "path": str(path),
                "layout": db.layout,
                "lmdb_format": db.lib_version,
                "lmdb_library": stats["lmdb_version"],
                "zlmdb": zlmdb.__version__,
                "schema_version": db.schema_version,
                "tables": len(tables),
                "records": sum(table.count for table in tables.values()),
                "indexes": sum(len(table.indexes) for table in tables.values()),
                "file_bytes": stats["current_size"],
                "page_bytes": stats["page_size"],
                "last_transaction": stats["last_txnid"],
                "readers": sum(1 for reader in db.readers() if reader.pid != os.getpid()),
                "reader_slots": stats["max_readers"],
                **_namespace(),
            },
            as_json,
        )


def _require(required: Optional[str], found: Optional[str]) -> None:
    """Refuse a file whose LMDB format is not the one *required*, if one is."""
    if required not in (None, found):
        raise ValueError(f"the file has the LMDB {found} format, --lib-version requires {required}")


def _namespace() -> dict[str, str]:
    """The namespace of the readers' process ids: containers that share a file must share it, too. Linux only."""
    try:
        return {"pid_namespace": os.readlink("/proc/self/ns/pid")}
    except OSError:
        return {}


@command
@path_argument("path")
def tables(path: Path, as_json: bool) -> None:
    """List the tables of the database at PATH: types, records, bytes, indexes, and the fields of model classes.

    Tables that zlmdb 26 created have no types, because it does not store them. Of an LMDB file that zlmdb did not
    write, list the sub-databases, as tables of bytes; get and select read them.
    """
    with for_reading(path) as db:
        rows = [
            {
                "table": one.name, "key": one.key, "value": one.value, "records": one.count, "bytes": one.bytes,
                "indexes": [*one.indexes, *(f"{index} (being built)" for index in one.building)], "fields": one.fields,
            }
            for one in db.tables().values()
        ]  # fmt: skip
    output.table(rows, as_json)


@command
@path_argument("path")
@click.option("--clear", is_flag=True, help="Free the slots of processes that have died.")
def readers(path: Path, clear: bool, as_json: bool) -> None:
    """List the read transactions on the database at PATH, of all processes.

    A long read transaction keeps the pages of its snapshot from being reused, so the file grows.
    """
    with zlmdb.open(path, readonly=True) as db:
        cleared = db.clear_readers() if clear else 0
        rows = [
            {"process": reader.pid, "transaction": reader.snapshot, "alive": _alive(reader.pid)}
            for reader in db.readers()
            if reader.pid != os.getpid()
        ]
    if clear and not as_json:
        output.say(f"{cleared} slots of dead processes freed")
    if not (rows or as_json):
        output.say("no other process reads")
    output.table(rows, as_json)


def _alive(process: int) -> str:
    if WINDOWS:  # signal 0 is Ctrl-C there
        return "unknown"
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return "no"
    except OSError:  # of another user
        return "yes"
    return "yes"

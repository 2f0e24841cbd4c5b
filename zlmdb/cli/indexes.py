"""Indexes of a database: `build-indexes` and `drop-index`."""

from __future__ import annotations

from pathlib import Path

import click

import zlmdb

from . import output
from .group import command, path_argument
from .programs import schema_of


@command
@path_argument("path")
@click.argument("schema", metavar="MODULE:SCHEMA")
def build_indexes(path: Path, schema: str, as_json: bool) -> None:
    """Build the indexes of a schema that the database at PATH lacks, or that were not finished.

    Others may read and write meanwhile, if their schema declares the indexes. If the command is stopped, the next one
    goes on where it was. MODULE may be a file in the current directory.
    """
    cls = schema_of(schema)
    with zlmdb.open(path, cls, create=False) as db:
        before = _indexes(db)
    with zlmdb.open(path, cls, build_indexes=False) as db, output.progress(as_json) as told:
        db.build_indexes(progress=told)
        built = sorted(_indexes(db) - before)
    if as_json:
        output.line({"built": built})
    else:
        output.say(f"built: {', '.join(built) or 'nothing, all indexes are there'}")


def _indexes(db: zlmdb.Database[zlmdb.Schema]) -> set[str]:
    return {f"{name}.{index}" for name, table in db.tables().items() for index in table.indexes}


@command
@path_argument("path")
@click.argument("table")
@click.argument("index")
def drop_index(path: Path, table: str, index: str, as_json: bool) -> None:
    """Drop the INDEX of a TABLE in the database at PATH permanently.

    Programs that declare the index build it again when they next open the database to write.
    """
    with zlmdb.open(path, zlmdb.Schema, create=False) as db:
        db.drop_index(table, index)
    if as_json:
        output.line({"table": table, "dropped": index})
    else:
        output.say(f"{table}.{index} dropped")

"""A database as a portable stream: `dump` and `load`."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Optional

import click

import zlmdb

from ..engines.lmdb import data_file, lock_file, writer_lock
from ..operations.backup import replacing
from ..operations.filling import new_file
from ..operations.stream import load as load_stream
from . import output
from .group import command


@command
@click.argument("path", type=click.Path(path_type=Path))
@click.argument("file", type=click.Path(dir_okay=False), default="-")
@click.option("--table", "tables", multiple=True, metavar="TABLE", help="Only this table; may be given several times.")
def dump(path: Path, file: str, tables: tuple[str, ...], as_json: bool) -> None:
    """Write the database at PATH to FILE, or standard output, as a portable stream of JSON lines.

    It holds the schema, typed keys, values and checksums, and can be loaded into another layout, LMDB version or
    engine, on another machine. Nothing is unpickled. An existing FILE is replaced when all is written.
    """
    _refuse_itself(str(path), file)
    with zlmdb.open(path, readonly=True) as db, _written(file) as target, output.progress(as_json) as told:
        streamed = db.dump(target, tables=tables or None, progress=told)
    text = f"{streamed.tables} tables, {streamed.records} records"
    click.echo(text if not as_json else f'{{"tables": {streamed.tables}, "records": {streamed.records}}}', err=True)


def _refuse_itself(path: str, file: str) -> None:
    """Raise `DatabaseInUse` where *file* is one of those of the database at *path*, which the dump would replace."""
    for own in (data_file(path), lock_file(path), writer_lock(path)):
        if file != "-" and os.path.exists(file) and os.path.exists(own) and os.path.samefile(file, own):
            raise zlmdb.DatabaseInUse(f"{file!r} is a file of the database itself: dump it to another one", path=path)


@contextmanager
def _written(file: str) -> Generator[IO[bytes], None, None]:
    """A block that writes *file*, which has what it had unless all was written; - is standard output."""
    if file == "-":
        yield sys.stdout.buffer
    elif os.path.exists(file) and not os.path.isfile(file):  # a device or a pipe
        with open(file, "wb") as stream:
            yield stream
    else:
        final = os.path.realpath(file)
        with replacing(final, True, 0) as temporary, open(temporary, "xb") as stream:
            if os.path.exists(final):
                shutil.copymode(final, temporary)
            yield stream


@command
@click.argument("file", type=click.File("rb"))
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--layout", type=click.Choice(["tables", "classic"]), default="tables", help="Layout of the new file.")
@click.option("--lmdb", type=click.Choice(["0.9", "1.0"]), help="The LMDB format of the new file.")
def load(file: IO[bytes], path: Path, layout: Any, lmdb: Optional[str], as_json: bool) -> None:
    """Make a new database at PATH of the stream FILE that dump wrote; - is standard input.

    The whole stream is checked first. Indexes are built when a program that declares them opens the database.
    """
    with output.progress(as_json) as told, new_file(path, layout, lmdb) as store:
        streamed = load_stream(store, file, told, new=True)
    output.facts({"tables": streamed.tables, "records": streamed.records}, as_json)

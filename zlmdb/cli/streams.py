"""A database as a portable stream: `dump` and `load`."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Optional

import click

import zlmdb

from ..engines import registry
from ..operations.backup import as_private_as, disk_errors, file_of, replacing
from ..operations.filling import Like, new_file
from ..operations.loading import load as load_stream
from ..operations.stream import MAX_LINE
from . import output
from .group import NamedPath, command, path_argument


class _Target(NamedPath):
    """A file to write, or standard output."""

    def convert(self, value: Any, param: Optional[click.Parameter], ctx: Optional[click.Context]) -> Any:
        if os.path.isdir(value):
            self.fail(f"{value!r} is a directory: write zlmdb dump PATH FILE, the database and then the file to write")
        return super().convert(value, param, ctx)


@command
@path_argument("path")
@click.argument("file", type=_Target(dir_okay=False), default="-")
@click.option("--table", "tables", multiple=True, metavar="TABLE", help="Only this table; may be given several times.")
@click.option("--overwrite", is_flag=True, help="Replace an existing FILE.")
def dump(path: Path, file: str, tables: tuple[str, ...], overwrite: bool, as_json: bool) -> None:
    """Write the database at PATH to FILE, or standard output, as a portable stream of JSON lines.

    The stream contains the schema, typed keys, values and checksums, and can be loaded into another layout, LMDB
    version or engine, on another machine. Nothing is unpickled. An existing FILE is kept unless --overwrite is given;
    then it is replaced after everything is written. Users who may read the database may read FILE. The command does not
    write through links.
    """
    _refuse_itself(str(path), file)
    source = file_of(registry.engine(str(path)))
    with zlmdb.open(path, readonly=True) as db:
        _refuse_table(db, file)
        with _written(file, source, overwrite) as target, output.progress(as_json) as told:
            streamed = db.dump(target, tables=tables or None, progress=told)
    text = f"{streamed.tables} tables, {streamed.records} records"
    output.say(text if not as_json else f'{{"tables": {streamed.tables}, "records": {streamed.records}}}', err=True)


def _refuse_itself(path: str, file: str) -> None:
    """Raise `DatabaseInUse` where *file* is one of those of the database at *path*, which the dump would replace."""
    for own in registry.engine(path).files():
        if file != "-" and os.path.exists(file) and os.path.exists(own) and os.path.samefile(file, own):
            raise zlmdb.DatabaseInUse(f"{file!r} is a file of the database itself: dump it to another one", path=path)


def _refuse_table(db: zlmdb.Database[Any], file: str) -> None:
    """Raise `click.UsageError` where *file* is the name of a table, which somebody wants to be dumped alone."""
    if file in db.tables():
        raise click.UsageError(
            f"{file!r} is a table of the database: write --table {file} to dump it, ./{file} for a file of that name"
        )


@contextmanager
def _written(file: str, source: str, overwrite: bool) -> Generator[IO[bytes], None, None]:
    """A block that writes *file*, which has what it had unless all was written; - is standard output.

    Those may read it who may read the database file *source*, and who could read the file that it replaces.
    """
    final = os.path.abspath(file)
    if file == "-":
        with output.raw() as stream:
            yield stream
    elif _is_stream(final):
        with disk_errors(file), open(file, "wb") as stream:
            yield stream
    else:
        present = os.stat(final) if os.path.isfile(final) and not os.path.islink(final) else None
        with replacing(final, overwrite, 0) as temporary, open(temporary, "wb") as stream:
            as_private_as(os.stat(source), temporary)
            allowed = 0o666 if present is None else stat.S_IMODE(present.st_mode) | 0o600
            os.chmod(temporary, stat.S_IMODE(os.stat(temporary).st_mode) & allowed & 0o666)
            yield stream


def _is_stream(file: str) -> bool:
    """Whether *file* is a device or a pipe. Raises FileExistsError if another user may have put it there."""
    if not os.path.exists(file) or os.path.isfile(file):
        return False
    if os.path.dirname(file) in ("/dev", "/dev/fd", "/proc/self/fd") or not hasattr(os, "geteuid"):
        return True
    if os.path.islink(file) or os.stat(file).st_uid not in (0, os.geteuid()):
        raise FileExistsError(f"{file!r} is a link to a device or pipe, or one of another user: name it directly")
    return True


class _Stream(click.File):
    """A file of bytes, or standard input, which may be closed."""

    def convert(self, value: Any, param: Optional[click.Parameter], ctx: Optional[click.Context]) -> Any:
        if value == "-" and sys.stdin is None:
            self.fail("standard input is closed", param, ctx)
        if os.path.isdir(value):
            self.fail(f"{value!r} is a directory: write zlmdb load FILE PATH, what dump wrote and then the database")
        return super().convert(value, param, ctx)


@command
@click.argument("file", type=_Stream("rb"))
@path_argument("path")
@click.option("--layout", type=click.Choice(["tables", "classic"]), default="tables", help="Layout of the new file.")
@click.option("--lmdb", type=click.Choice(["0.9", "1.0"]), help="The LMDB format of the new file.")
@click.option(
    "--max-line", type=click.IntRange(min=1), default=MAX_LINE, metavar="BYTES", show_default=True,
    help="The longest line to read. A value of 1 GiB needs a line of 1.5 GiB.",
)  # fmt: skip
@click.option("--no-check", is_flag=True, help="Do not read the values: faster, and stores damaged values.")
def load(
    file: IO[bytes], path: Path, layout: Any, lmdb: Optional[str], max_line: int, no_check: bool, as_json: bool
) -> None:
    """Create a database at PATH from the stream FILE that dump wrote; - is standard input.

    The whole stream is checked first, and each value is read by its type and its recorded fields. The stream contains
    the indexes. Users who may read FILE may read the database.
    """
    with output.progress(as_json) as told, new_file(path, layout, lmdb, like=_like(file)) as store:
        streamed = load_stream(store, file, told, new=True, max_line=max_line, check=not no_check)
    output.fields({"tables": streamed.tables, "records": streamed.records}, as_json)


def _like(file: IO[bytes]) -> Optional[Like]:
    """The permissions for a file made from *file*; None if *file* is not a file of the file system."""
    try:
        found = os.fstat(file.fileno())
    except OSError:
        return None
    return Like(found) if stat.S_ISREG(found.st_mode) else None

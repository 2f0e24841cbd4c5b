"""Records of a table: `get`, `put`, `delete` and `select`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Optional

import click

import zlmdb

from ..operations.keytext import to_plain
from . import output
from .contents import Contents, opened
from .group import ABSENT, command, path_argument, record_command

_PATH = path_argument("path")
_TABLE = click.argument("table")
_UNPICKLE = click.option(
    "--unpickle", is_flag=True, help="Load pickles, which can run any code; otherwise show their bytes."
)
_MAP = click.option("--map", "as_map", metavar="MAP", help="The map of a table without types, such as MapUuidCbor.")


@record_command
@_PATH
@_TABLE
@click.argument("key")
@click.option("--raw", is_flag=True, help="Write a text or bytes unchanged, control characters included.")
@_UNPICKLE
@_MAP
def get(path: Path, table: str, key: str, raw: bool, unpickle: bool, as_map: Optional[str], as_json: bool) -> None:
    """Show the value of KEY in TABLE of the database at PATH, as JSON.

    A KEY is a text, a UUID, a date, hexadecimal bytes or a number; a tuple is a JSON list of its parts. TABLE is the
    name of a table, its UUID, or slot:N for a table with a slot given by hand, which needs --map. Exit code 4: the
    record does not exist. If a KEY begins with a dash and is not a number, write -- before it. FlatBuffers are shown by
    the fields that the file records, with --raw as their bytes.
    """
    with opened(path, table, as_map=as_map, unpickle=unpickle, raw=raw) as contents:
        found = contents.key(key)
        if found not in contents.table:
            _absent(table, key, as_json)
        value = contents.table[found]
        if raw:
            _write_raw(value, contents.value)
        else:
            output.line(contents.shown(value))


def _write_raw(value: Any, kind: str) -> None:
    """Write a text or bytes, and nothing else."""
    if not isinstance(value, (str, bytes)):
        raise click.UsageError(f"--raw writes texts and bytes, and values here are of type {kind}: leave it out")
    data = value.encode() if isinstance(value, str) else bytes(value)
    with output.raw() as stream:
        stream.write(data)


def _check_write(contents: Contents, path: Path, written: str) -> None:
    """Raise unless a command may write the table of the database at *path*; *written* is what Python writes for it."""
    table = contents.table
    name = table._name if table._name.isidentifier() else "table"
    try:
        table._check_write()
    except zlmdb.IndexNotAttached as error:
        raise zlmdb.IndexNotAttached(
            f"table {table._name!r} has the indexes {', '.join(table._index_state.missing)}, and a command does not "
            "know how to make their keys: change the record in Python, with the schema that declares them: with "
            f"zlmdb.open({str(path)!r}, Store) as db: {written.format(name)}",
            table=error.table,
            index=error.index,
        ) from error


@record_command
@_PATH
@_TABLE
@click.argument("key")
@click.argument("value")
@_MAP
def put(path: Path, table: str, key: str, value: str, as_map: Optional[str], as_json: bool) -> None:
    """Store VALUE under KEY in TABLE of the database at PATH; replace an existing record.

    VALUE is JSON for documents and numbers, the text itself for texts, hexadecimal for bytes; only programs can write
    pickles and arrays. VALUE must have the type that the file records, and for a model class the recorded fields, with
    their types. The command does not know further checks of the class. A table with indexes is refused, because only
    your program knows how to make their keys: store the record in Python, with the schema that declares them. If a KEY
    or VALUE begins with a dash and is not a number, write -- before it.
    """
    with opened(path, table, write=True, as_map=as_map) as contents:
        _check_write(contents, path, "db.auto.{}[key] = value")  # before the value is looked at
        contents.table[contents.key(key)] = contents.parsed(value)
    if as_json:
        output.line({"stored": 1})


@record_command
@_PATH
@_TABLE
@click.argument("key")
@_MAP
def delete(path: Path, table: str, key: str, as_map: Optional[str], as_json: bool) -> None:
    """Delete the record of KEY in TABLE of the database at PATH.

    A table with indexes is refused: delete the record in Python, with the schema that declares them. Exit code 4: the
    record does not exist.
    """
    with opened(path, table, write=True, as_map=as_map) as contents:
        _check_write(contents, path, "del db.auto.{}[key]")
        found = contents.key(key)
        if found not in contents.table:
            _absent(table, key, as_json)
        del contents.table[found]
    if as_json:
        output.line({"deleted": 1})


@command
@_PATH
@_TABLE
@click.option("--from", "start", metavar="KEY", help="The first key.")
@click.option("--to", "stop", metavar="KEY", help="The end of the range; it is not included.")
@click.option("--through", metavar="KEY", help="The last key, which is included.")
@click.option("--prefix", metavar="PARTS", help="Leading parts of tuples, each complete, as a JSON list.")
@click.option("--startswith", metavar="TEXT", help="The beginning of the keys, or of the parts after --prefix.")
@click.option("--reverse", is_flag=True, help="From the last key backwards.")
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="At most N records.")
@click.option("--keys", "only_keys", is_flag=True, help="Keys only; values are not read.")
@click.option("--count", "only_count", is_flag=True, help="The number of records only.")
@_UNPICKLE
@_MAP
def select(
    path: Path, table: str, start: Optional[str], stop: Optional[str], through: Optional[str], prefix: Optional[str],
    startswith: Optional[str], reverse: bool, limit: Optional[int], only_keys: bool, only_count: bool, unpickle: bool,
    as_map: Optional[str], as_json: bool,
) -> None:  # fmt: skip
    """Show records of TABLE of the database at PATH in key order, one line of JSON each.

    Each line is {"key": ..., "value": ...}. The range includes --from and excludes --to. For tuples, these may be
    leading parts. '["s1"]' as a --prefix does not select ["s10", 5]; --startswith s1 does.
    """
    with opened(path, table, as_map=as_map, unpickle=unpickle) as contents:
        first, end, last = [None if text is None else contents.bound(text) for text in (start, stop, through)]
        parts = None if prefix is None else contents.prefix(prefix)
        begin = None if startswith is None else contents.startswith(startswith, parts or ())
        rows: Any = contents.table.select(
            first, end, through=last, prefix=parts, startswith=begin, reverse=reverse, limit=limit
        )
        codec = contents.table._storage.key
        if only_count:
            output.line({"count": rows.count()} if as_json else rows.count())
        elif only_keys:
            keys: Any = rows.keys()
            for key in keys:
                output.line({"key": to_plain(codec, key)})
        else:
            for key, value in rows:
                output.line({"key": to_plain(codec, key), "value": contents.shown(value)})


def _absent(table: str, key: str, as_json: bool) -> None:
    if as_json:
        output.line(None)
    else:
        output.say(f"table {table} has no record {key}", err=True)
    click.get_current_context().exit(ABSENT)

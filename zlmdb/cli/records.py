"""Records of a table: `get`, `put`, `delete` and `select`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Optional

import click

from ..operations.keytext import to_plain
from . import output
from .contents import opened
from .group import ABSENT, command, record_command

_PATH = click.argument("path", type=click.Path(path_type=Path))
_TABLE = click.argument("table")
_UNPICKLE = click.option(
    "--unpickle", is_flag=True, help="Load pickles, which can run any code; else show their bytes."
)
_MAP = click.option("--map", "as_map", metavar="MAP", help="The map of a table without types, such as MapUuidCbor.")


@record_command
@_PATH
@_TABLE
@click.argument("key")
@_UNPICKLE
@_MAP
def get(path: Path, table: str, key: str, unpickle: bool, as_map: Optional[str], as_json: bool) -> None:
    """Show the value of KEY in TABLE of the database at PATH, as JSON.

    A KEY is a text, a UUID, a date, hexadecimal bytes or a number; of a tuple it is a JSON list of its parts. TABLE
    is the name of a table, its UUID, or slot:N for one with a slot given by hand, which needs --map. Exit code 4: no
    such record. A KEY that begins with a dash and is no number comes after --.
    """
    with opened(path, table, as_map=as_map, unpickle=unpickle) as contents:
        found = contents.key(key)
        if found not in contents.table:
            _absent(table, key, as_json)
        output.line(contents.shown(contents.table[found]))


@record_command
@_PATH
@_TABLE
@click.argument("key")
@click.argument("value")
@_MAP
def put(path: Path, table: str, key: str, value: str, as_map: Optional[str], as_json: bool) -> None:
    """Store VALUE under KEY in TABLE of the database at PATH, in place of what is there.

    VALUE is JSON for documents and numbers, the text itself for texts, hexadecimal for bytes; pickles, FlatBuffers and
    arrays are written by programs. The file does not hold your model class: a document that does not fit it is an error
    when your program reads it. A table with indexes is refused, because only your program knows all of them.
    A KEY or VALUE that begins with a dash and is no number comes after --.
    """
    with opened(path, table, write=True, as_map=as_map) as contents:
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

    A table with indexes is refused. Exit code 4: there is no such record.
    """
    with opened(path, table, write=True, as_map=as_map) as contents:
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
@click.option("--to", "stop", metavar="KEY", help="The key before which the range ends.")
@click.option("--prefix", metavar="KEY", help="What the keys begin with: a text, or a JSON list of leading parts.")
@click.option("--reverse", is_flag=True, help="From the last key backwards.")
@click.option("--limit", type=click.IntRange(min=0), metavar="N", help="At most N records.")
@click.option("--keys", "only_keys", is_flag=True, help="Keys only; values are not read.")
@click.option("--count", "only_count", is_flag=True, help="The number of records only.")
@_UNPICKLE
@_MAP
def select(
    path: Path, table: str, start: Optional[str], stop: Optional[str], prefix: Optional[str], reverse: bool,
    limit: Optional[int], only_keys: bool, only_count: bool, unpickle: bool, as_map: Optional[str], as_json: bool,
) -> None:  # fmt: skip
    """Show records of TABLE of the database at PATH in key order, one line of JSON each.

    Each line is {"key": ..., "value": ...}. The range is half-open: --from is in it, --to is not.
    """
    with opened(path, table, as_map=as_map, unpickle=unpickle) as contents:
        bounds = [None if text is None else contents.key(text) for text in (start, stop)]
        begin = None if prefix is None else contents.prefix(prefix)
        rows: Any = contents.table.select(*bounds, prefix=begin, reverse=reverse, limit=limit)
        codec = contents.table.storage.key
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
        click.echo(f"table {table} has no record {key}", err=True)
    click.get_current_context().exit(ABSENT)

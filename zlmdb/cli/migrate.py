"""Conversion and migration: `migrate` from the classic layout, `upgrade` by the migrations of a schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Optional
from uuid import UUID

import click

import zlmdb

from . import output
from .contents import map_class, registered
from .group import command, path_argument
from .programs import imported, imports, schema_of


@command
@path_argument("source")
@path_argument("target")
@click.option("--import", "modules", multiple=True, metavar="MODULE", help="A module whose classes have @zlmdb.table.")
@click.option("--map", "maps", multiple=True, metavar="UUID=MAP", help="The map of a table, such as MapUuidCbor:zlib.")
@click.option("--slot", "slots", multiple=True, metavar="N=MAP", help="The map of a slot given by hand.")
@click.option("--lmdb", type=click.Choice(["0.9", "1.0"]), help="The LMDB format of the new file.")
@click.option("--skip", is_flag=True, help="Leave out records that cannot be converted; otherwise they are an error.")
@click.option("--dry-run", is_flag=True, help="Convert every record, and write nothing.")
def migrate(
    source: Path, target: Path, modules: tuple[str, ...], maps: tuple[str, ...], slots: tuple[str, ...],
    lmdb: Optional[str], skip: bool, dry_run: bool, as_json: bool,
) -> None:  # fmt: skip
    """Convert the classic database SOURCE, of zlmdb 26 and older, to a new database of the tables layout at TARGET.

    In the new database all keys sort and sets are complete, and every record is compared with its original. zlmdb 26
    stores no types: name the modules of your program, or the map of each table. Nothing is unpickled, and SOURCE is not
    changed.
    """
    with imports():
        for module in modules:
            imported(module)
    classes = list(zlmdb.TABLES_BY_UUID.values()) if modules else []
    classes += [registered(name, _uuid(text)) for text, name in map(_pair, maps)]
    by_hand = {_number(text): _by_hand(name, _number(text)) for text, name in map(_pair, slots)}
    with output.progress(as_json) as told:
        report = zlmdb.Database.convert(
            source, None if dry_run else target, maps=classes, slots=by_hand, skip=skip, lib_version=lmdb, progress=told
        )
    if as_json:
        output.line(report.as_dict())
        return
    rows = [
        {"table": name, "records": count, "keys changed": report.keys[name], "values changed": report.values[name]}
        for name, count in report.records.items()
    ]
    output.table(rows, False)
    for skipped in report.skipped:
        output.say(f"skipped: {skipped.table} {skipped.key}: {skipped.reason}")
    output.say("dry run, nothing was written" if dry_run else f"{report.verified} records compared, all equal")


@command
@path_argument("path")
@click.argument("schema", metavar="MODULE:SCHEMA")
@click.option("--dry-run", is_flag=True, help="Show what would be done, and do nothing.")
def upgrade(path: Path, schema: str, dry_run: bool, as_json: bool) -> None:
    """Apply the migrations of a schema that the database at PATH lacks, in order.

    Each migration is one transaction, recorded in the file. MODULE may be a file in the current directory.
    """
    with zlmdb.open(path, schema_of(schema), create=False) as db, output.progress(as_json) as told:
        steps = db.migrate(dry_run=dry_run, progress=told)
        version = db.schema_version
    if as_json:
        output.line({"dry_run": dry_run, "version": version, "steps": [step._asdict() for step in steps]})
        return
    output.table([step._asdict() for step in steps], False)
    output.say(f"{'dry run, ' * dry_run}version {version}")


def _pair(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    if not (name and value):
        raise click.UsageError(f"{text!r}: expected NAME=MAP")
    return name, value


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError as error:
        raise click.UsageError(f"{text!r} is no UUID") from error


def _number(text: str) -> int:
    if not text.isdigit():
        raise click.UsageError(f"{text!r} is no slot: expected a number")
    return int(text)


def _by_hand(name: str, number: int) -> Any:
    cls, compress = map_class(name)
    return cls(number, compress)

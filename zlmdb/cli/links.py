"""Links that lead nowhere: `mend-links`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

import zlmdb

from . import output
from .group import FOUND, command, path_argument
from .programs import schema_of


@command
@path_argument("path")
@click.argument("schema", metavar="MODULE:SCHEMA")
@click.option("--declared", is_flag=True, help="Do what each link declares for a deletion.")
@click.option("--delete", is_flag=True, help="Delete the records with such links.")
@click.option("--clear", is_flag=True, help="Set the fields to None, and take the keys out of lists.")
def mend_links(path: Path, schema: str, declared: bool, delete: bool, clear: bool, as_json: bool) -> None:
    """List the links of a schema that lead to no record in the database at PATH, as after a salvage, or mend them.

    Without an option, nothing is changed; exit code 3: there are such links. With an option, all of them are mended in
    one transaction. MODULE may be a file in the current directory.
    """
    ways: dict[Any, bool] = {"declared": declared, "delete": delete, "clear": clear}
    chosen = [way for way, given in ways.items() if given]
    if len(chosen) > 1:
        raise click.UsageError("--declared, --delete and --clear are different ways to mend: give one of them")
    how = chosen[0] if chosen else None
    cls = schema_of(schema)
    with zlmdb.open(path, cls, create=False, readonly=how is None) as db, output.progress(as_json) as told:
        report = db.mend_links(how, progress=told)
    if as_json:
        output.line(report.as_dict())
    else:
        for one in report.links:
            output.say(f"{one.table}: {one.text}")
        output.say(f"{report.found} links lead nowhere, {report.deleted} records deleted, {report.cleared} cleared")
    if how is None and not report.ok:
        click.get_current_context().exit(FOUND)

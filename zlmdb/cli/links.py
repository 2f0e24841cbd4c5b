"""Links that lead nowhere: `mend-links`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Optional

import click

import zlmdb

from . import output
from .group import FOUND, command, path_argument
from .programs import schema_of


@command
@path_argument("path")
@click.argument("schema", metavar="MODULE:SCHEMA")
@click.option("--declared", "how", flag_value="declared", help="Do what each link declares for a deletion.")
@click.option("--delete", "how", flag_value="delete", help="Delete the records with such links.")
@click.option("--clear", "how", flag_value="clear", help="Set the fields to None, and take the keys out of lists.")
def mend_links(path: Path, schema: str, how: Optional[str], as_json: bool) -> None:
    """List the links of a schema that lead to no record in the database at PATH, as after a salvage, or mend them.

    Without an option, nothing is changed; exit code 3: there are such links. With an option, all of them are mended in
    one transaction. MODULE may be a file in the current directory.
    """
    given: Any = how
    cls = schema_of(schema)
    with zlmdb.open(path, cls, create=False, readonly=how is None) as db, output.progress(as_json) as told:
        report = db.mend_links(given, progress=told)
    if as_json:
        output.line(report.as_dict())
    else:
        for one in report.links:
            output.say(f"{one.table}: {one.text}")
        output.say(f"{report.found} links lead nowhere, {report.deleted} records deleted, {report.cleared} cleared")
    if how is None and not report.ok:
        click.get_current_context().exit(FOUND)

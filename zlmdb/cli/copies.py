"""Copies of a database: `backup`, `restore` and `compact`."""

from __future__ import annotations

from pathlib import Path

import click

import zlmdb

from . import output
from .group import command, path_argument

_OVERWRITE = click.option("--overwrite", is_flag=True, help="Replace an existing file.")


@command
@path_argument("path")
@path_argument("target")
@click.option("--no-compact", is_flag=True, help="Also copy unused pages: faster, but the file is larger.")
@_OVERWRITE
def backup(path: Path, target: Path, no_compact: bool, overwrite: bool, as_json: bool) -> None:
    """Copy the database at PATH to the file TARGET, while others write.

    The copy is checked, flushed to the disk and then renamed. It is a database in one file.
    """
    with zlmdb.open(path, readonly=True) as db, output.progress(as_json) as told:
        made = db.backup(target, compact=not no_compact, overwrite=overwrite, progress=told)
    output.fields({"path": made.path, "bytes": made.bytes}, as_json)


@command
@path_argument("copy")
@path_argument("path")
@_OVERWRITE
def restore(copy: Path, path: Path, overwrite: bool, as_json: bool) -> None:
    """Put the backup COPY at PATH, as a database. No program may have that database open."""
    with output.progress(as_json) as told:
        made = zlmdb.Database.restore(copy, path, overwrite=overwrite, progress=told)
    output.fields({"path": made.path, "bytes": made.bytes}, as_json)


@command
@path_argument("path")
def compact(path: Path, as_json: bool) -> None:
    """Make the file of the database at PATH smaller, without unused pages. No other program may have it open."""
    with zlmdb.open(path) as db, output.progress(as_json) as told:
        done = db.compact(progress=told)
    output.fields({"bytes_before": done.before, "bytes_after": done.after}, as_json)

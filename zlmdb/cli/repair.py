"""Checks and repairs: `check` and `salvage`."""

from __future__ import annotations

from pathlib import Path

import click

import zlmdb

from ..engines import registry
from ..operations.backup import alone, in_use
from ..operations.progress import Told
from ..operations.report import CheckReport, Problem
from . import output
from .group import FOUND, command, path_argument


@command
@path_argument("path")
def check(path: Path, as_json: bool) -> None:
    """Check the database at PATH: pages, records, indexes, catalogue and counts.

    The pages are checked first, without LMDB, so this is safe for a file from elsewhere. Records are read by the types
    recorded in the file; nothing is unpickled. Other programs may write meanwhile. Exit code 3: there are problems.
    """
    with output.progress(as_json) as told:
        # While somebody has it open its pages may change, and LMDB has trusted them already.
        file = str(path)
        wrong = [] if in_use(file) else _wrong(path, told)
        if wrong and not in_use(file):
            try:
                with alone(file):  # again, with nobody else there
                    wrong = _wrong(path, told)
            except zlmdb.DatabaseInUse:
                wrong = []
            except OSError:  # its locks cannot be had: what a writer does may look like damage
                registry.engine(file).require_reader()
        if wrong:
            report = CheckReport(str(path))
            for text in wrong:
                report._add(Problem("structure", text))
            report._note("the file was not opened: salvage it, or restore a backup")
        else:
            with zlmdb.open(path, readonly=True) as db:
                report = db.check(progress=told)
    if as_json:
        output.line(report.as_dict())
    else:
        _show(report)
    if not report.ok:
        click.get_current_context().exit(FOUND)


def _wrong(path: Path, told: Told) -> list[str]:
    try:
        return zlmdb.Database.verify(path, progress=told)
    except zlmdb.CorruptDatabase as error:
        return [str(error)]


def _show(report: CheckReport) -> None:
    rows = [
        {"table": one.name, "records": one.records, "types": one.codecs, "index entries": sum(one.indexes.values())}
        for one in report.tables.values()
    ]
    output.table(rows, False)
    for note in report.notes:
        output.say(f"note: {note}")
    for problem in report.problems:
        where = ".".join(part for part in (problem.table, problem.index) if part is not None)
        key = "" if problem.key is None else f" {problem.key}"
        output.say(f"{problem.kind}: {where}{key}{': ' * bool(where or key)}{problem.text}")
    output.say(str(report))


@command
@path_argument("source")
@path_argument("target")
def salvage(source: Path, target: Path, as_json: bool) -> None:
    """Copy all that can be decoded from the damaged database SOURCE into a new database at TARGET.

    The command lists what it could not copy. It reads SOURCE without LMDB, and does not change it. Indexes are built
    again when a program that declares them opens TARGET. Exit code 3: something could not be copied.
    """
    with output.progress(as_json) as told:
        report = zlmdb.Database.salvage(source, target, progress=told)
    if as_json:
        output.line(report.as_dict())
    else:
        rows = [
            {"table": name, "copied": count, "expected": report.expected.get(name)}
            for name, count in report.copied.items()
        ]
        output.table(rows, False)
        for text in (*report.damage, *(f"note: {note}" for note in report.notes)):
            output.say(text)
        for lost in report.lost:
            output.say(f"lost: {lost.table} {lost.key}: {lost.reason}")
    if not report.complete:
        click.get_current_context().exit(FOUND)

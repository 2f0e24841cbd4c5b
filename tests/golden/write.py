"""Wrote the golden files, run by the version of 22 November 2026 (commit 2fae60f): ``python write.py``.

The files are not to be written again: they are what programs of that version have on their disks.
"""

from __future__ import annotations

import gzip
import sys
import tempfile
from pathlib import Path
from typing import Any

import contents

import zlmdb

HERE = Path(__file__).parent


def write(path: str, layout: Any, version: str) -> None:
    """Write all records to a new database."""
    zlmdb.Database(path, layout=layout, lib_version=version).__enter__().__exit__(None, None, None)
    with zlmdb.open(path, contents.Store, layout=layout) as db:
        with db.write() as t:
            for name in contents.Store.__annotations__:
                t[name].put_many(contents.RECORDS[name])
        people, _, _, documents = contents.attached(db)
        with db.begin(write=True) as txn:
            for key, person in contents.CLASSIC_PEOPLE.items():
                people[txn, key] = person
            for uuid, document in contents.CLASSIC_DOCUMENTS.items():
                documents[txn, uuid] = document
            for name in contents.SLOTS:
                table, rows = contents.named(name)
                for key, value in rows:
                    table[txn, key] = value
        assert db.check().ok
        db.compact()


def write_packed(path: str) -> None:
    """Write the tables that need optional libraries, which a check of the file needs then, too."""
    with zlmdb.open(path, contents.Packed) as db:
        with db.write() as t:
            for name in contents.Packed.__annotations__:
                t[name].put_many(contents.RECORDS[name])
        db.compact()


def pack(path: str, name: str) -> None:
    """Keep the file of the database at *path* as the golden file *name*."""
    data = (Path(path) / "data.mdb").read_bytes()
    target = HERE / f"{name}.mdb.gz"
    target.write_bytes(gzip.compress(data, 9, mtime=0))
    sys.stdout.write(f"{target.name}: {len(data)} bytes, {target.stat().st_size} packed\n")


def main() -> None:
    for layout in ("tables", "classic"):
        for version in ("0.9", "1.0"):
            with tempfile.TemporaryDirectory() as directory:
                write(directory, layout, version)
                pack(directory, f"{layout}-{version}")
    with tempfile.TemporaryDirectory() as directory:
        write_packed(directory)
        pack(directory, "packed")


if __name__ == "__main__":
    main()

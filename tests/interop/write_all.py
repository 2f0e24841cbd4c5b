"""Run by the predecessor: ``write_all.py PATH VERSION`` writes the samples of every map.

VERSION is the LMDB format, "0.9" or "default", which is 1.0. Prints the format of the file.
"""

from __future__ import annotations

import sys

import zlmdb

import catalogue

path, version = sys.argv[1:]
options = {} if version == "default" else {"lib_version": version}
with zlmdb.Database(path, maxsize=2**26, **options) as db, db.begin(write=True) as txn:
    for name, slot in catalogue.SLOTS.items():
        table = catalogue.make(zlmdb, name, slot)
        for key, value in catalogue.records(name):
            try:
                table[txn, catalogue.python_key(key)] = catalogue.python_value(value)
            except Exception as error:
                raise SystemExit(f"{name} refuses {key!r}, {value!r}: {error!r}") from error
print(db.lib_version)

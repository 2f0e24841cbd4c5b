"""Run by the predecessor: ``compressed.py PATH write|read SLOT``, a zlib-compressed map in a hand-given slot."""

from __future__ import annotations

import json
import sys

import zlmdb

path, mode, slot = sys.argv[1:]
table = zlmdb.MapOidString(int(slot), compress=zlmdb.PersistentMap.COMPRESS_ZLIB)
with zlmdb.Database(path) as db:
    if mode == "write":
        with db.begin(write=True) as txn:
            for n in range(5):
                table[txn, n] = f"record {n} " * 100
            table[txn, 99] = ""
    else:
        with db.begin() as txn:
            print(json.dumps([[key, table[txn, key] or ""] for key in table.select(txn, return_values=False)]))

"""Opening, closing and asking a database, as the predecessor's programs do."""

from __future__ import annotations

import os
import tempfile
from typing import Any

import zlmdb

COUNTERS = (
    "psize depth branch_pages leaf_pages overflow_pages entries map_size last_pgno last_txnid max_readers num_readers"
)


def refused(call: Any) -> bool:
    try:
        call()
    except Exception:
        return True
    return False


def main(directory: str) -> None:
    dbpath = os.path.join(directory, "data")
    db = zlmdb.Database(dbpath=dbpath, maxsize=2**22, lib_version="0.9", context="me")
    print(db.dbpath == dbpath, db.maxsize, db.context, db.is_open, db.is_sync, db.is_readonly, db.is_writemap)
    print(db.lib_version, isinstance(zlmdb.lmdb.version(), tuple), sorted(os.listdir(dbpath))[0])
    print([(key, value) for key, value in db.config().items() if key != "dbpath"])

    table = zlmdb.MapStringOid(1)
    with db.begin(write=True) as txn:
        for n in range(100):
            table[txn, f"key {n}"] = n
        writer = txn.id()
    with db.begin() as txn:
        print(txn.id() == writer, table[txn, "key 7"])
    with db.begin() as txn:
        first = txn.id()
    with txn:  # a transaction can be entered again
        print(txn.id() == first, table[txn, "key 8"])

    stats = db.stats()
    told = "num_slots max_size page_size read_only sync_enabled lib_version"
    print([stats[name] for name in told.split()])
    print([name for name in COUNTERS.split() if not isinstance(stats[name], int)], 0 < stats["free"] < 1)
    print(stats["used"] == stats["pages"] * stats["page_size"], stats["current_size"] >= stats["used"])
    db.sync()
    db.sync(force=True)

    # One instance a path and process.
    try:
        zlmdb.Database(dbpath)
    except RuntimeError:
        print("already open")

    with db as same:
        print(same is db, db.is_open)
    print(db.is_open, refused(lambda: db.begin().__enter__()))
    with db, db.begin() as txn:
        print("open again", table.count(txn))

    with zlmdb.Database(dbpath, maxsize=2**22, readonly=True) as reader:
        print(reader.is_readonly, reader.lib_version)
        with reader.begin() as txn:
            print(table[txn, "key 9"])
        print(refused(lambda: reader.begin(write=True).__enter__()))

    waiting = zlmdb.Database(os.path.join(directory, "later"), open_now=False)
    print(waiting.is_open, os.path.exists(waiting.dbpath or ""))
    with waiting:
        print(waiting.is_open, waiting.lib_version in ("0.9", "1.0"))
        with waiting.begin(write=True) as txn:
            table[txn, "here"] = 1

    zlmdb.Database.scratch(dbpath)
    zlmdb.Database.scratch(dbpath)
    print(os.path.exists(dbpath))
    print(refused(lambda: zlmdb.Database(os.path.join(directory, "none"), create=False)))
    print(refused(lambda: zlmdb.Database(os.path.join(directory, "none"), readonly=True)))

    with zlmdb.Database() as private, private.begin(write=True) as txn:
        table[txn, "temporary"] = 1
        print(table[txn, "temporary"], private.config()["is_temp"], os.path.isdir(private.dbpath or ""))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        main(temporary)

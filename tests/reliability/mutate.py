"""Damaged files: bits flipped, stretches overwritten, ends cut off. What `Database.verify` lets pass is opened, read.

With PATCHES, so many patches of the fields of pages and nodes come after that: see `tests.reliability.patches`.

A damaged file is refused, or what it gives is right: every value has a checksum, every key an index entry. The process
that asks is never harmed; which files harm one that opens them without asking is counted, too.
"""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import zlmdb

from .command import Crash, in_children, main
from .ledger import Ledger, Model, digest, reached, step
from .patches import patches as patched_files

TRANSACTIONS = 50


def mutated(data: bytes, rnd: random.Random) -> bytes:
    """*data* with a few bits flipped, a stretch overwritten, pages exchanged, or an end cut off."""
    copy = bytearray(data)
    kind = rnd.randrange(10)
    if kind < 5:
        for _ in range(rnd.choice([1, 1, 1, 4, 40])):
            copy[rnd.randrange(len(copy))] ^= 1 << rnd.randrange(8)
    elif kind < 7:
        start = rnd.randrange(len(copy))
        length = min(rnd.choice([1, 8, 100, 4096]), len(copy) - start)
        copy[start : start + length] = bytes(length) if kind == 5 else bytes(rnd.randrange(256) for _ in range(length))
    elif kind == 7:
        one, other = (4096 * rnd.randrange(len(copy) // 4096) for _ in range(2))
        copy[one : one + 4096], copy[other : other + 4096] = copy[other : other + 4096], copy[one : one + 4096]
    else:
        size = rnd.randrange(len(copy))
        del copy[size if kind == 8 else size // 4096 * 4096 :]
    return bytes(copy)


def read(path: Path, expected: str, *, ask: bool) -> str:
    """What opening and reading gives, in a word: "same", "refused" and by what, or "wrong"."""
    try:
        if ask and zlmdb.Database.verify(path):
            return "refused by verify"
        with zlmdb.open(path, Ledger, readonly=True) as db:
            report = db.check()
            if not report.ok:
                return f"refused by check: {report.problems[0].kind}"
            with db.read() as t:
                return "same" if digest(t) == expected else "wrong"
    except zlmdb.Error as error:
        return f"refused: {type(error).__name__}"


def mutations(
    directory: Path, files: int, format: str = "0.9", unasked: int = 0, seed: int = 1, patches: int = 0
) -> dict[str, Any]:
    """Damage FILES copies of a database; UNASKED more are opened without `Database.verify`. Then make PATCHES."""
    if patches:
        patching = patched_files(directory, patches, format, seed)
        if not files:
            return patching
        found = mutations(directory, files, format, unasked, seed)
        return {**found, **patching, "failures": found["failures"] + patching["failures"]}
    path, place = directory / "whole", directory / "damaged"
    zlmdb.Database(str(path), lib_version=format).close()
    model = Model()
    with zlmdb.open(path, Ledger, durability="none") as db:
        for n in range(1, TRANSACTIONS + 1):
            db.run(lambda t, n=n: step(t, n))
        if reached(db) != (TRANSACTIONS, model.after(TRANSACTIONS)):
            raise RuntimeError("the database is wrong before any damage")
    data, expected = (path / "data.mdb").read_bytes(), model.after(TRANSACTIONS)
    place.mkdir()

    def one(number: int) -> str:
        image = mutated(data, random.Random(seed * (files + unasked) + number))
        for file in place.iterdir():
            file.unlink()
        (place / "data.mdb").write_bytes(image)
        return read(place, expected, ask=number < files)

    asked: Counter[str] = Counter()
    not_asked: Counter[str] = Counter()
    failures: list[str] = []
    for number, found in in_children(one, range(files + unasked)):
        text = f"crash by signal {found.signal}" if isinstance(found, Crash) else found
        (asked if number < files else not_asked)[text] += 1
        if text == "wrong" or (number < files and isinstance(found, Crash)):
            failures.append(f"file {number}: {text}")
    return {"bytes": len(data), "verified": dict(asked), "unverified": dict(not_asked), "failures": failures[:20]}


if __name__ == "__main__":
    main(mutations, files=10_000, format="0.9", unasked=1000, seed=1, patches=0)

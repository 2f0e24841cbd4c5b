"""Patches of the fields that LMDB trusts: headers of pages and nodes, offsets, counts, roots, lists of free pages.

A patched file is refused by `verify`, or LMDB reads and writes it without harm: no process dies, no other records than
those of the nodes that were patched are different, and what was written to it afterwards is a sound file.
"""

from __future__ import annotations

import os
import random
import struct
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Optional

import lmdb

import zlmdb
from zlmdb.engines.lmdb import structure
from zlmdb.engines.lmdb.damaged import LmdbState
from zlmdb.engines.lmdb.nodes import Node, Nodes
from zlmdb.engines.lmdb.pages import BIG, BRANCH, LEAF, NO_PAGE, SUBTREE, TREE, PageFile, Tree

from .command import Crash, in_children

FORMATS = {"0.9": 0, "1.0": 1}
VARIANTS = 12
DULL = ("pad", "address", "map size", "value", "meta other tree", "reference 8")
TABLES = (b"t:long", b"t:small", b"t:large", b"i:t:long:by_age")

Records = dict[tuple[bytes, bytes], bytes]


class Field(NamedTuple):
    """A number in the file: where it is, its bytes, and what it is."""

    offset: int
    width: int
    kind: str


class Base:
    """An undamaged file: its bytes, its records, its fields, and which records lie where."""

    def __init__(self, path: Path) -> None:
        self.data = path.read_bytes()
        self.fields: dict[str, list[Field]] = defaultdict(list)
        self.kinds: dict[int, str] = {}
        self.places: list[tuple[int, int, tuple[bytes, bytes]]] = []
        with path.open("rb", buffering=0) as data:
            self.file = PageFile(data, str(path))
            self.nodes = Nodes(self.file)
            for meta in self.file.metas:
                self._meta(meta.number * self.file.page_size, newest=meta is self.file.metas[0])
            self._tree(b"free", self.file.metas[0].free)
            self._tree(b"", self.file.metas[0].main)
            self.before = dict(self._before())
        self.records = contents(path, self.file.format)
        kinds = sorted(self.fields)
        dull = [kind for kind in kinds if any(word in kind for word in DULL)]
        roots = [kind for kind in kinds if kind.startswith("meta") and kind not in dull]
        self.kinds_by_use = dull, roots, [kind for kind in kinds if kind not in dull and kind not in roots]
        """What LMDB does not read, the meta pages, and all others: most patches are of these."""

    def field(self, kind: str, offset: int, width: int) -> None:
        self.fields[kind].append(Field(offset, width, kind))
        self.kinds[offset] = kind

    def touched(self, offset: int, width: int) -> set[tuple[bytes, bytes]]:
        """The records that lie in these bytes."""
        return {name for start, end, name in self.places if start < offset + width and offset < end}

    def _before(self) -> Iterator[tuple[tuple[bytes, bytes], bytes]]:
        """The records of the last commit but one."""
        meta = self.file.metas[1]
        walk = LmdbState(self.file, meta)
        for one in walk.records("main", meta.main):
            yield (b"", one.key), one.value or b""
            for record in walk.records("table", one.tree) if one.tree is not None else ():
                yield (one.key.rstrip(b"\0"), record.key), record.value or b""

    def _meta(self, page: int, *, newest: bool) -> None:
        at, which = page + self.file.header, "newest" if newest else "other"
        for name, offset, width in (
            ("page number", page, 8), ("flags", at - 6, 2), ("magic", at, 4), ("version", at + 4, 4),
            ("address", at + 8, 8), ("map size", at + 16, 8), ("last page", at + 120, 8), ("number", at + 128, 8),
        ):  # fmt: skip
            self.field(f"meta {which} {name}", offset, width)
        for tree in (at + 24, at + 72):
            self._record(f"meta {which}", tree)

    def _record(self, kind: str, at: int) -> None:
        for name, offset, width in (
            ("pad", 0, 4), ("flags", 4, 2), ("depth", 6, 2), ("branches", 8, 8), ("leaves", 16, 8),
            ("overflows", 24, 8), ("entries", 32, 8), ("root", 40, 8),
        ):  # fmt: skip
            self.field(f"{kind} tree {name}", at + offset, width)

    def _tree(self, name: bytes, tree: Tree) -> None:
        if tree.root != NO_PAGE:
            self._page(name, tree.root)

    def _page(self, name: bytes, number: int) -> None:
        page, at, header = self.file.read(number), number * self.file.page_size, self.file.header
        assert page is not None
        kind = {LEAF: "leaf", BRANCH: "branch"}[self.file.flags(page)]
        self.field(f"{kind} page number", at, 8)
        if header == 24:
            self.field(f"{kind} page transaction", at + 8, 8)
        for what, offset in (("pad", 8), ("flags", 6), ("lower", 4), ("upper", 2)):
            self.field(f"{kind} {what}", at + header - offset, 2)
        lower = struct.unpack_from("=H", page, header - 4)[0] + self.file.base
        for place in range(header, lower, 2):
            offset = struct.unpack_from("=H", page, place)[0] + self.file.base
            self.field(f"{kind} offset", at + place, 2)
            for what, begin in (("low", 0), ("high", 2), ("flags", 4), ("key size", 6)):
                self.field(f"{kind} node {what}", at + offset + begin, 2)
            size = struct.unpack_from("=H", page, offset + 6)[0]
            if size:
                self.field(f"{kind} key", at + offset + 8, min(size, 8))
        if kind == "branch":
            for child in self.nodes.branch(page, name == b"free")[0]:
                self._page(name, child)
        else:
            for node in self.nodes.loose(page):
                self._node(name, at, node)

    def _node(self, name: bytes, page: int, node: Node) -> None:
        begin, where = page + node.where - len(node.key) - 9, page + node.where
        identity = name, node.key
        if node.flags & BIG:
            self.places.append((begin, where + self.nodes.reference, identity))
            for place in range(0, self.nodes.reference, 8):
                self.field(f"reference {place}", where + place, 8)
            self._big(identity, int.from_bytes(self.data[where : where + 8], "little"), node.length, name == b"free")
            return
        self.places.append((begin, where + node.length + 1, identity))
        if node.flags & SUBTREE:
            self._record("table", where)
            self._tree(node.key.rstrip(b"\0"), Tree(*TREE.unpack_from(self.data, where)))
        elif name == b"free":
            self._list(where, node.length)
        elif node.length:
            self.field("value", where, min(node.length, 8))

    def _big(self, identity: tuple[bytes, bytes], first: int, length: int, free: bool) -> None:
        at, header = first * self.file.page_size, self.file.header
        self.places.append((at + header, at + header + length, identity))
        self.field("overflow page number", at, 8)
        if header == 24:
            self.field("overflow page transaction", at + 8, 8)
        for what, offset, width in (("pad", 8, 2), ("flags", 6, 2), ("pages", 4, 4)):
            self.field(f"overflow {what}", at + header - offset, width)
        if free:
            self._list(at + header, length)

    def _list(self, where: int, length: int) -> None:
        for place in range(0, min(length, 400), 8):
            self.field("free count" if place == 0 else "free page", where + place, 8)


def base_file(path: Path, format: str, seed: int) -> None:
    """A file with deep and flat tables, long values, free pages, and some commits behind it."""
    rnd = random.Random(seed)
    env = lmdb.open(
        str(path), subdir=False, lock=False, sync=False, map_size=1 << 28, max_dbs=8, lib_version=FORMATS[format]
    )
    handles = {name: env.open_db(name) for name in TABLES}
    many = 15 if seed % 4 else 60
    for _ in range(rnd.randrange(2, 6)):
        with env.begin(write=True) as txn:
            for n in range(many):
                txn.put(b"%06d" % rnd.randrange(10 * many) + b"k" * rnd.randrange(200, 480), b"v" * rnd.randrange(90),
                        db=handles[TABLES[0]])  # fmt: skip
                txn.put(struct.pack(">Q", rnd.randrange(1 << 20)), rnd.randbytes(rnd.randrange(30)),
                        db=handles[TABLES[1]])  # fmt: skip
                txn.put(struct.pack(">QQ", rnd.randrange(50), n), b"", db=handles[TABLES[3]])
            for _ in range(4):
                txn.put(b"%d" % rnd.randrange(12), rnd.randbytes(rnd.choice([3000, 5000, 9000])), db=handles[TABLES[2]])
            for name in TABLES:
                for key in rnd.sample(found := [bytes(key) for key in txn.cursor(handles[name]).iternext(values=False)],
                                      len(found) // 4):  # fmt: skip
                    txn.delete(key, db=handles[name])
    if seed % 6 == 5:  # a list of free pages that has pages of its own
        for value in (b"x" * 2_400_000, None):
            with env.begin(write=True) as txn:
                for n in range(2):
                    if value is None:
                        txn.delete(b"huge %d" % n, db=handles[TABLES[2]])
                    else:
                        txn.put(b"huge %d" % n, value, db=handles[TABLES[2]])
    env.close()


def patched(base: Base, rnd: random.Random) -> list[tuple[int, bytes]]:
    """Some patches: offsets and the bytes that go there."""
    found: list[tuple[int, bytes]] = []
    for _ in range(rnd.choice([1, 1, 1, 1, 1, 1, 2, 2, 3, 6])):
        fields = base.fields[rnd.choice(base.kinds_by_use[min(rnd.randrange(16), 2)])]
        field = rnd.choice(fields)
        old = base.data[field.offset : field.offset + field.width]
        kind = rnd.randrange(10)
        if kind == 0 and len(fields) > 1:  # exchanged with another one of its kind
            other = rnd.choice(fields)
            if other.width == field.width:
                found.append((other.offset, old))
                found.append((field.offset, base.data[other.offset : other.offset + other.width]))
                continue
        found.append((field.offset, _value(old, fields, base, rnd, kind)))
    return [(offset, new) for offset, new in found if base.data[offset : offset + len(new)] != new]


def _value(old: bytes, fields: list[Field], base: Base, rnd: random.Random, kind: int) -> bytes:
    width, top = len(old), 1 << 8 * len(old)
    number = int.from_bytes(old, "little")
    if kind < 4:
        number ^= 1 << rnd.randrange(8 * width)
    elif kind < 7:
        number += rnd.choice([-1, 1, -2, 2, -8, 8, -16, 16, -4096, 4096])
    elif kind == 7:
        number = rnd.choice([0, 1, 2, 3, 4095, 4096, top - 1, top >> 1, len(base.data) // 4096])
    elif kind == 8:
        number = rnd.randrange(min(top, 1 << rnd.randrange(1, 8 * width + 1)))
    else:
        other = rnd.choice(fields)
        number = int.from_bytes(base.data[other.offset : other.offset + width], "little")
    return (number % top).to_bytes(width, "little")


def opened(path: Path, format: str) -> Any:
    """The file, by LMDB alone."""
    return lmdb.open(
        str(path), subdir=False, lock=False, sync=False, map_size=1 << 28, max_dbs=64, lib_version=FORMATS[format]
    )


def contents(path: Path, format: str) -> Records:
    """Every record, by LMDB: that of the main database, and those of all tables."""
    env = opened(path, format)
    try:
        with env.begin() as txn:
            found = {(b"", bytes(key)): bytes(value) for key, value in txn.cursor()}
        for name, handle in _tables(env):
            with env.begin() as txn:
                found.update(((name, bytes(key)), bytes(value)) for key, value in txn.cursor(handle))
        return found
    finally:
        env.close()


def _tables(env: Any) -> Iterator[tuple[bytes, Any]]:
    with env.begin() as txn:
        names = [bytes(key).rstrip(b"\0") for key in txn.cursor().iternext(values=False)]
    for name in names:
        try:
            yield name, env.open_db(name, create=False)
        except (lmdb.NotFoundError, lmdb.IncompatibleError, lmdb.BadValsizeError):  # its record was patched
            continue


def harm(path: Path, base: Base, expected: Records, touched: set[tuple[bytes, bytes]]) -> Optional[str]:
    """What is worse in what LMDB reads than the *touched* ones of the *expected* records being different."""
    found = contents(path, base.file.format)
    gone = {name[1].rstrip(b"\0") for name in touched if name[0] == b""}
    for name, value in expected.items():
        if name in touched or name[0] in gone or name[0] == b"":
            continue
        if found.get(name) != value:
            return f"record {name!r}"
    more = sum(1 for name in found.keys() - expected.keys() if name[0] in TABLES and name[0] not in gone)
    if more > len(touched):
        return f"{more} records more"
    env = opened(path, base.file.format)
    try:
        handles = dict(_tables(env))
        with env.begin() as txn:
            for (table, key), value in expected.items():
                known = table in handles and table not in gone and (table, key) not in touched
                if known and txn.get(key, db=handles[table]) != value:
                    return f"look-up of {key!r} in {table!r}"
    finally:
        env.close()
    return None


def write(path: Path, format: str, rnd: random.Random) -> None:
    """Change the file in every way: records deleted, replaced, added, tables emptied and dropped."""
    env = opened(path, format)
    try:
        handles = list(_tables(env))
        for part in range(3):
            with env.begin(write=True) as txn:
                for name, handle in handles:
                    keys = [bytes(key) for key in txn.cursor(handle).iternext(values=False)]
                    for key in keys:
                        choice = rnd.randrange(8)
                        if choice < 2 or (part == 2 and choice < 6):
                            txn.delete(key, db=handle)
                        elif choice == 2:
                            txn.put(key, b"n" * rnd.choice([0, 1, 50, 700, 3000, 9000]), db=handle)
                    for _ in range(8):
                        txn.put(rnd.randbytes(rnd.randrange(1, 300)), rnd.randbytes(rnd.randrange(60)), db=handle)
                    if part == 2 and name == TABLES[rnd.randrange(len(TABLES))]:
                        txn.drop(handle, delete=bool(rnd.randrange(2)))
        for _, handle in list(_tables(env))[:1]:
            with env.begin(write=True) as txn:
                cursor = txn.cursor(handle)
                while cursor.next():
                    cursor.delete()
    finally:
        env.close()


def verified(path: Path) -> list[str]:
    """What `verify` says of a file."""
    try:
        return structure.check(str(path))
    except zlmdb.InvalidDatabase as error:
        return [str(error)]


def one_patch(base: Base, path: Path, rnd: random.Random) -> tuple[str, str]:
    """Patch a file: what became of it, and what the first patch was."""
    patches = patched(base, rnd)
    if not patches:
        return "nothing changed", ""
    _write(path, patches)
    kind = ", ".join(sorted({base.kinds[offset] for offset, _ in patches}))
    if verified(path):
        _write(path, [(offset, base.data[offset : offset + len(new)]) for offset, new in patches])
        return "refused", kind
    try:
        touched = {name for offset, new in patches for name in base.touched(offset, len(new))}
        wrong, older = harm(path, base, base.records, touched), False
        if wrong is not None and "meta newest number" in kind:
            # A 2 taken away from the number is what LMDB leaves where it could not write a meta page.
            older = harm(path, base, base.before, touched) is None
        if wrong is not None and not older:
            return f"harm: {wrong}", kind
        write(path, base.file.format, rnd)
        left = verified(path)
        if left:
            return f"harm by writing: {left[0]}", kind
        if older:
            return "the records before the last commit", kind
        return "records of the patched nodes differ" if touched else "the same records", kind
    except (lmdb.Error, SystemError) as error:  # py-lmdb gives the second one where memory is damaged
        return f"refused by LMDB: {error}", kind
    finally:
        path.write_bytes(base.data)


def _write(path: Path, patches: list[tuple[int, bytes]]) -> None:
    with path.open("r+b", buffering=0) as data:
        for offset, new in patches:
            data.seek(offset)
            data.write(new)


def patches(directory: Path, count: int, format: str, seed: int = 1) -> dict[str, Any]:
    """Patch COUNT times; what became of the files. Failures are crashes and harm."""
    bases: dict[int, Base] = {}
    place = directory / "patched"

    def one(number: int) -> tuple[str, str]:
        rnd = random.Random(seed * 10_000_019 + number)
        base = _base(directory, format, number // 1000 % VARIANTS, bases)
        mine = Path(f"{place} {os.getpid()}")
        if not mine.exists() or mine.stat().st_size != len(base.data):
            mine.write_bytes(base.data)
        if number % 200 == 0:
            mine.write_bytes(base.data)
        return one_patch(base, mine, rnd)

    for variant in range(min(VARIANTS, count // 1000 + 1)):
        _base(directory, format, variant, bases)
    seen: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    failures: list[str] = []
    for number, found in in_children(one, range(count)):
        what, kind = (f"crash by signal {found.signal}", "?") if isinstance(found, Crash) else found
        if what.startswith(("crash", "harm", "refused by LMDB")):
            failures.append(f"patch {number} ({kind}): {what}")
            what = what.split(":")[0]
        seen[what] += 1
        if what not in ("refused", "nothing changed"):
            kinds[f"{kind}: {what}"] += 1
        for left in directory.glob("patched *") if isinstance(found, Crash) else ():
            left.unlink()
    return {"patches": dict(seen), "passed": dict(kinds.most_common(40)), "failures": failures[:20]}


def _base(directory: Path, format: str, variant: int, bases: dict[int, Base]) -> Base:
    if variant not in bases:
        path = directory / f"base {variant}"
        base_file(path, format, variant)
        bases[variant] = Base(path)
    return bases[variant]

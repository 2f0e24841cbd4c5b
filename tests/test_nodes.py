"""Every kind of patch of a page is found: by `verify`, by `check`, and by opening with ``verify=True``."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, Optional

import lmdb
import pytest
from operated import Store, content, data_file, make

import zlmdb
from zlmdb.engines.lmdb import structure
from zlmdb.engines.lmdb.damaged import LmdbState
from zlmdb.engines.lmdb.pages import BRANCH, LEAF, PageFile, Tree

pytestmark = pytest.mark.twice  # what is in a file does not depend on the version of Python

each_format = pytest.mark.parametrize("version", ["0.9", "1.0"])
PAGE = 4096


class Image:
    """A data file in memory, with its pages to look up and patch."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.data = bytearray(path.read_bytes())
        with path.open("rb", buffering=0) as data:
            self.file = PageFile(data, str(path))
            walk = LmdbState(self.file, self.file.metas[0])
            main = list(walk.records("main", self.file.metas[0].main))
        self.base, self.header = self.file.base, self.file.header
        self.trees: dict[bytes, Tree] = {one.key.rstrip(b"\0"): one.tree for one in main if one.tree is not None}

    def get(self, at: int, format: str = "=H") -> int:
        return int(struct.unpack_from(format, self.data, at)[0])

    def put(self, at: int, value: int, format: str = "=H") -> None:
        struct.pack_into(format, self.data, at, value)

    def add(self, at: int, more: int, format: str = "=H") -> None:
        self.put(at, self.get(at, format) + more, format)

    def pages(self, kind: int, table: bytes = b"t:long") -> list[int]:
        """Where the pages of a tree begin that are of a kind."""
        found, waiting = [], [self.trees[table].root * PAGE]
        while waiting:
            page = waiting.pop()
            flags = self.get(page + self.header - 6)
            if flags == kind:
                found.append(page)
            if flags == BRANCH:
                waiting.extend(self.child(node) * PAGE for node in self.nodes(page))
        return found

    def nodes(self, page: int) -> list[int]:
        count = (self.get(page + self.header - 4) + self.base - self.header) // 2
        return [page + self.base + self.get(page + self.header + 2 * n) for n in range(count)]

    def child(self, node: int) -> int:
        return self.get(node) | self.get(node + 2) << 16

    def leaf(self) -> int:
        return self.pages(LEAF)[1]

    def branch(self) -> int:
        return self.pages(BRANCH)[0]

    def reference(self) -> int:
        """Where a record refers to the pages of its long value."""
        node = next(node for page in self.pages(LEAF, b"t:large") for node in self.nodes(page) if self.get(node + 4))
        size = self.get(node + 6)
        return node + 8 + size + (size & 1 if self.base else 0)

    def overflow(self) -> int:
        return self.get(self.reference(), "=Q") * PAGE

    def record(self, table: bytes) -> int:
        """Where what the file says of a table begins."""
        return self.data.rindex(struct.pack("=IHHQQQQQ", *self.trees[table]))

    def free(self) -> int:
        """The root of the list of free pages, which is a leaf."""
        return self.file.metas[0].free.root * PAGE


def two_pointers(image: Image) -> None:
    page = image.leaf() + image.header
    image.put(page, image.get(page + 2))


def swapped_pointers(image: Image) -> None:
    page = image.leaf() + image.header
    first, second = image.get(page), image.get(page + 2)
    image.put(page, second)
    image.put(page + 2, first)


def swapped_children(image: Image) -> None:
    one, other = image.nodes(image.branch())[:2]
    first, second = image.child(one), image.child(other)
    image.put(one, second & 0xFFFF)
    image.put(other, first & 0xFFFF)


def a_hole(image: Image) -> None:
    """One node less in the array, whose bytes stay where they are."""
    page = image.leaf()
    image.add(page + image.header - 4, -2)


def a_leaf_above(image: Image) -> None:
    """A branch leads to a leaf and to a branch."""
    root = image.trees[b"t:long"].root * PAGE
    leaf = image.leaf() // PAGE
    node = image.nodes(root)[0]
    image.put(node, leaf & 0xFFFF)


def two_roots_are_one(image: Image) -> None:
    image.put(image.record(b"t:large") + 40, image.trees[b"t:long"].root, "=Q")


def used_and_free(image: Image) -> None:
    node = image.nodes(image.free())[-1]
    image.put(node + 16 + 8, image.leaf() // PAGE, "=Q")


def free_twice(image: Image) -> None:
    node = next(node for node in image.nodes(image.free()) if image.get(node) > 24)
    image.put(node + 16 + 16, image.get(node + 16 + 8, "=Q"), "=Q")


def free_key_of_another_size(image: Image) -> None:
    """The number of a transaction with a byte less, and a value with one more."""
    node = image.nodes(image.free())[0]
    image.put(node + 6, 7)
    image.add(node, 1)


PATCHES: dict[str, Callable[[Image], Any]] = {
    "a value overlaps the next node": lambda image: image.add(image.nodes(image.leaf())[1], 40),
    "a value ends before the next node": lambda image: image.add(image.nodes(image.leaf())[1], -2),
    "a value is longer than the page": lambda image: image.put(image.nodes(image.leaf())[1] + 2, 1),
    "a key is longer": lambda image: image.add(image.nodes(image.leaf())[1] + 6, 2),
    "a key is empty": lambda image: image.put(image.nodes(image.leaf())[1] + 6, 0),
    "two pointers lead to one node": two_pointers,
    "two pointers are exchanged": swapped_pointers,
    "a pointer leads into a node": lambda image: image.add(image.leaf() + image.header + 2, 2),
    "a pointer leads out of the page": lambda image: image.put(image.leaf() + image.header + 2, 4094),
    "an upper bound is too low": lambda image: image.add(image.leaf() + image.header - 2, -2),
    "an upper bound is too high": lambda image: image.add(image.leaf() + image.header - 2, 2),
    "a lower bound is too high": lambda image: image.add(image.leaf() + image.header - 4, 2),
    "a lower bound is odd": lambda image: image.add(image.leaf() + image.header - 4, 1),
    "a node is left out": a_hole,
    "a leaf is empty": lambda image: image.put(image.leaf() + image.header - 4, image.header - image.base),
    "keys are out of order in a page": lambda image: image.put(image.nodes(image.leaf())[1] + 8, 0xFF, "=B"),
    "keys are out of order across pages": lambda image: image.put(image.nodes(image.leaf())[-1] + 8, 0xFF, "=B"),
    "a key belongs before its page": lambda image: image.put(image.nodes(image.leaf())[0] + 8, 0, "=B"),
    "flags of a node": lambda image: image.put(image.nodes(image.leaf())[1] + 4, 4),
    "a value that is said to be long": lambda image: image.put(image.nodes(image.leaf())[1] + 4, 1),
    "a value that is said to be a table": lambda image: image.put(image.nodes(image.leaf())[1] + 4, 2),
    "flags of a page": lambda image: image.put(image.leaf() + image.header - 6, LEAF | 0x20),
    "a branch that is said to be a leaf": lambda image: image.put(image.branch() + image.header - 6, LEAF),
    "a leaf that is said to be a branch": lambda image: image.put(image.leaf() + image.header - 6, BRANCH),
    "the number of a page": lambda image: image.add(image.leaf(), 1, "=Q"),
    "a branch leads to one page twice": lambda image: image.put(
        image.nodes(image.branch())[1], image.get(image.nodes(image.branch())[0])
    ),
    "two pages of a branch are exchanged": swapped_children,
    "a branch leads to one page": lambda image: image.put(
        image.branch() + image.header - 4, image.header - image.base + 2
    ),
    "a branch leads out of the file": lambda image: image.put(image.nodes(image.branch())[1] + 2, 9),
    "a branch leads to a page of the second half of the numbers": lambda image: image.put(
        image.nodes(image.branch())[1] + 4, 0x8000
    ),
    "keys are out of order in a branch": lambda image: image.put(image.nodes(image.branch())[1] + 8, 0xFF, "=B"),
    "a key of a branch is longer": lambda image: image.add(image.nodes(image.branch())[1] + 6, 2),
    "a leaf above the others": a_leaf_above,
    "two tables share a root": two_roots_are_one,
    "a table is deeper": lambda image: image.add(image.record(b"t:long") + 6, 1),
    "a table is flatter": lambda image: image.add(image.record(b"t:long") + 6, -1),
    "a table has duplicates": lambda image: image.put(image.record(b"t:long") + 4, 4),
    "a table has a padding": lambda image: image.put(image.record(b"t:long"), 8, "=I"),
    "a table has more branches": lambda image: image.add(image.record(b"t:long") + 8, 1, "=Q"),
    "a table has fewer leaves": lambda image: image.add(image.record(b"t:long") + 16, -1, "=Q"),
    "a table has more overflow pages": lambda image: image.add(image.record(b"t:large") + 24, 1, "=Q"),
    "a table has fewer records": lambda image: image.add(image.record(b"t:long") + 32, -1, "=Q"),
    "a long value is on another page": lambda image: image.add(image.reference(), 1, "=Q"),
    "a long value is in a leaf": lambda image: image.put(image.reference(), image.leaf() // PAGE, "=Q"),
    "a long value has more pages": lambda image: image.add(image.overflow() + image.header - 4, 1, "=I"),
    "a long value has fewer pages": lambda image: image.add(image.overflow() + image.header - 4, -1, "=I"),
    "a long value has a million pages": lambda image: image.put(image.overflow() + image.header - 4, 1 << 20, "=I"),
    "flags of a long value": lambda image: image.put(image.overflow() + image.header - 6, LEAF),
    "a page is both used and free": used_and_free,
    "a page is free twice": free_twice,
    "a list of free pages is longer than it is": lambda image: image.add(
        image.nodes(image.free())[0] + 16, 1, "=Q"
    ),
    "a list of free pages is of a later transaction": lambda image: image.put(
        image.nodes(image.free())[-1] + 8, 1 << 40, "=Q"
    ),
    "a list of free pages has a key of seven bytes": free_key_of_another_size,
    "a page is lost": lambda image: image.add(image.nodes(image.free())[-1] + 16 + 8, 1, "=Q"),
}  # fmt: skip
IN_1_0: dict[str, Callable[[Image], Any]] = {
    "a page is of a later transaction": lambda image: image.put(image.leaf() + 8, 1 << 40, "=Q"),
    "a record counts the pages of its value": lambda image: image.add(image.reference() + 16, 1, "=Q"),
}


def made(path: Path, version: str) -> Path:
    """A file with a deep table, long values and free pages."""
    env = lmdb.open(str(path), lib_version=int(version == "1.0"), max_dbs=4)
    rnd = random.Random(1)
    handles = {name: env.open_db(name) for name in (b"t:long", b"t:large")}
    for part in range(3):
        with env.begin(write=True) as txn:
            for n in range(part, 90, 3):
                txn.put(b"%04d" % n + b"k" * 400, b"v" * 50, db=handles[b"t:long"])
            for n in range(part, 9, 3):
                txn.put(b"%d" % n, rnd.randbytes(9000), db=handles[b"t:large"])
    with env.begin(write=True) as txn:
        for n in range(0, 90, 2):
            txn.delete(b"%04d" % n + b"k" * 400, db=handles[b"t:long"])
    env.close()
    return path / "data.mdb"


def refusal(path: Path) -> Optional[str]:
    """What opening with ``verify=True`` says."""
    try:
        zlmdb.open(path, readonly=True, verify=True).close()
    except zlmdb.CorruptDatabase as error:
        return str(error)
    except zlmdb.InvalidDatabase:  # since it is no database of zlmdb: its pages are right
        return None
    return None


@each_format
def test_the_file_that_is_patched_is_sound_before(version: str, tmp_path: Path) -> None:
    file = made(tmp_path / "db", version)
    assert structure.check(str(file)) == []
    assert refusal(file) is None
    image = Image(file)
    assert image.trees[b"t:long"].depth == 3
    assert image.trees[b"t:large"].overflows > 20


@each_format
@pytest.mark.parametrize("what", [*PATCHES, *IN_1_0])
def test_a_patch_is_found(what: str, version: str, tmp_path: Path) -> None:
    if what in IN_1_0 and version == "0.9":
        return  # its pages have no such numbers
    file = made(tmp_path / "db", version)
    image = Image(file)
    before = bytes(image.data)
    {**PATCHES, **IN_1_0}[what](image)
    assert image.data != before
    file.write_bytes(image.data)
    assert zlmdb.Database.verify(file) != []
    assert "Database.salvage()" in str(refusal(file))


@each_format
def test_two_bytes_that_passed_once_are_found_in_a_database(version: str, tmp_path: Path) -> None:
    """A value's size that covers its neighbour: wrong data, and LMDB damages memory when the record is deleted."""
    zlmdb.Database(tmp_path / "db", lib_version=version).close()
    make(tmp_path / "db", 10)
    image = Image(data_file(tmp_path / "db"))
    page = image.pages(LEAF, b"t:logins")[0]
    image.put(min(image.nodes(page)), 60)  # behind which there are others
    data_file(tmp_path / "db").write_bytes(image.data)
    assert any("overlap" in one for one in zlmdb.Database.verify(tmp_path / "db"))
    with pytest.raises(zlmdb.CorruptDatabase, match=r"overlap.*salvage"):
        zlmdb.open(tmp_path / "db", Store, verify=True)
    with zlmdb.open(tmp_path / "db", Store, readonly=True) as db:
        report = db.check()
    assert [one.kind for one in report.problems] == ["structure"]
    assert "overlap" in report.problems[0].text
    report = zlmdb.Database.salvage(tmp_path / "db", tmp_path / "out")
    assert any("overlap" in one for one in report.damage)
    assert report.copied["users"] == 10


def test_a_sound_file_opens_with_verify_whoever_has_it_open(tmp_path: Path) -> None:
    make(tmp_path / "db", 10)
    with zlmdb.open(tmp_path / "db", Store, verify=True) as db:
        expected = content(db)
        with zlmdb.open(tmp_path / "db", Store, verify=True) as again:  # shared
            assert content(again) == expected
    with zlmdb.open(tmp_path / "db", Store, readonly=True, verify=True) as db:
        assert content(db) == expected
    with zlmdb.open(tmp_path / "new", Store, verify=True) as db, db.write() as t:
        t.logins["a"] = 1
    with zlmdb.open(None, Store, verify=True) as db:
        assert content(db)["logins"] == {}


@each_format
def test_a_file_without_a_directory_of_its_own_is_sound(version: str, tmp_path: Path) -> None:
    """LMDB marks such a file, which was taken for damage."""
    file = tmp_path / "one.mdb"
    env = lmdb.open(str(file), subdir=False, lib_version=int(version == "1.0"))
    with env.begin(write=True) as txn:
        txn.put(b"key", b"value")
    env.close()
    assert zlmdb.Database.verify(file) == []


def test_verify_lists_what_is_wrong_and_raises_for_what_is_no_database(tmp_path: Path) -> None:
    make(tmp_path / "db", 10)
    file = data_file(tmp_path / "db")
    whole = file.read_bytes()
    for image in (whole[:8192], whole[:4096] + bytes(4096) + whole[8192:], whole[: len(whole) // 2]):
        file.write_bytes(image)
        wrong = zlmdb.Database.verify(tmp_path / "db")
        assert wrong != []
        assert all(isinstance(one, str) for one in wrong)
    file.write_bytes(b"text" * 5000)
    with pytest.raises(zlmdb.InvalidDatabase):
        zlmdb.Database.verify(tmp_path / "db")


def test_a_key_as_long_as_the_format_allows_is_none_that_is_too_long(tmp_path: Path) -> None:
    for version, size in (("0.9", 511), ("1.0", 1978)):
        env = lmdb.open(str(tmp_path / version), lib_version=int(version == "1.0"))
        assert env.max_key_size() == size
        with env.begin(write=True) as txn:
            for n in range(40):
                txn.put(struct.pack(">H", n) * (size // 2) + b"x" * (size % 2), b"v" * (n * 60))
        env.close()
        assert structure.check(str(tmp_path / version / "data.mdb")) == []

"""Encoders, decoders and functions of indexes may read the table that is written: what they read is not disturbed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import zlmdb

pytestmark = pytest.mark.twice  # what indexes and links hold does not depend on the version of Python

TURNS: list[Callable[[], None]] = []


def turn() -> None:
    """Do what is waiting: it is done once."""
    while TURNS:
        TURNS.pop()()


class Spied:
    """Runs code when it is encoded."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> Any:
        if ENCODING:
            turn()
        return Spied, (self.number,)


ENCODING: list[bool] = []


def indexed(spied: Any) -> int:
    if not ENCODING:
        turn()
    return int(spied.number)


class Plain(zlmdb.Table[int, zlmdb.Unchecked[zlmdb.Pickle[Any]]]):
    """No index."""


class Kept(zlmdb.Table[int, zlmdb.Unchecked[zlmdb.Pickle[Any]]]):
    by_number = zlmdb.Index[int]("number")


class Called(zlmdb.Table[int, zlmdb.Unchecked[zlmdb.Pickle[Any]]]):
    by_number = zlmdb.Index[int](indexed, version=1)


class Fed(zlmdb.Table[int, zlmdb.Unchecked[zlmdb.Pickle[Any]]], feed=True):
    by_number = zlmdb.Index[int](indexed, version=1)


class Store(zlmdb.Schema):
    plain: Plain
    kept: Kept
    called: Called
    fed: Fed


def edits(table: Any) -> None:
    with table.edit(9) as one:
        one.number = 60


def edits_all(table: Any) -> None:
    with table.select(9, 12).edit() as found:
        for one in found:
            one.number += 60


def changed(one: Any) -> Any:
    one.number += 60
    return one


WAYS: dict[str, Callable[[Any], Any]] = {
    "put": lambda table: table.__setitem__(6, Spied(6)),
    "replace": lambda table: table.__setitem__(9, Spied(60)),
    "put_new": lambda table: table.put_new(6, Spied(6)),
    "setdefault": lambda table: table.setdefault(6, Spied(6)),
    "add": lambda table: table.add(Spied(6)),
    "update": lambda table: table.update({6: Spied(6), 9: Spied(60), 30: Spied(30)}),
    "list": lambda table: table.put_many([(6, Spied(6)), (9, Spied(60)), (30, Spied(30))]),
    "stream": lambda table: table.put_many(iter([(6, Spied(6)), (9, Spied(60)), (30, Spied(30))])),
    "append": lambda table: table.put_many([(29, Spied(6)), (30, Spied(30))], append=True),
    "change": lambda table: table.change(9, changed),
    "edit": edits,
    "change all": lambda table: table.select(9, 12).change(changed),
    "edit all": edits_all,
    "delete": lambda table: table.__delitem__(9),
    "pop": lambda table: table.pop(9),
    "delete all": lambda table: table.select(9, 12).delete(),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["plain", "kept", "called", "fed"])
@pytest.mark.parametrize("encoding", [True, False], ids=["encoder", "index"])
@pytest.mark.parametrize("engine", [pytest.param("memory", marks=pytest.mark.once), "lmdb"])
def test_a_scan_that_an_encoder_begins_visits_what_there_was(
    way: str, name: str, encoding: bool, engine: str, tmp_path: Any
) -> None:
    with zlmdb.open(None if engine == "memory" else tmp_path / "db", Store) as db, db.write() as t:
        table = t[name]
        table.update({number: Spied(number) for number in range(1, 20, 2)})
        scans: list[tuple[list[int], Iterator[int]]] = []

        def begin() -> None:
            wanted = sorted(table)
            for keys in (table.select().keys(), *([] if name == "plain" else [table.by_number.select().keys()])):
                scan = iter(keys)
                scans.append((wanted, scan))
                assert next(scan) == 1

        ENCODING[:] = [True] * encoding
        TURNS[:] = [begin]
        WAYS[way](table)
        TURNS.clear()
        gone = {9} if way in ("delete", "pop") else {9, 11} if way == "delete all" else set()
        for wanted, scan in scans:
            rest = list(scan)
            assert sorted(rest) in ([key for key in wanted if key != 1 and key not in gone], wanted[1:])
    assert not TURNS

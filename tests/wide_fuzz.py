# ruff: noqa: E501  # lists of expressions
"""Random queries of one wide model, each beside the same over a list; `python tests/wide_fuzz.py` goes on.

`query_fuzz` has few fields and many kinds of writes. Here a record has fields of most types, the table keys of most
types, an index of any of the kinds, and a query any of the endings: pages, sums, groups, rows once. Records of an
older shape lie among the others. Functions get their values from cells, globals, defaults, objects and partials. The
bounds at which the planner and the cached plans change their ways are low, so that small tables meet all of them.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from operator import itemgetter
from pathlib import Path
from random import Random
from typing import Any, Optional
from uuid import UUID

from bounds import lowered
from plain_rows import called
from wide_queries import CHANGES, OF_OWNERS, RAISED, SPACE, Query, Table, given_of, said
from wide_records import CITIES, INDEXES, KEYS, LATER, TEXTS, Item, Owner, Spec, item_of, maybe, spec_of

import zlmdb


class Undone(Exception):
    """Ends a block."""


REFUSED = (
    "cannot put a sort key",
    "compare it with a value of its type",
    "None has no order",
    "'NoneType' has no order",
    "compare values of one type",
    "may be None: a bytes-like object is required",  # in bytes
    "compare with its key",
)
"""What is refused although Python has an answer."""


class Run:
    """One seed: a table with all that its spec says, its records beside it, and the queries."""

    def __init__(self, seed: int, engine: str, directory: Optional[str], rounds: int, queries: int) -> None:
        self.chance = chance = Random(f"{seed}")
        self.seed, self.engine, self.rounds, self.asked = seed, engine, rounds, 0
        self.spec = spec_of(chance)
        self.path = None if directory is None else str(Path(directory) / f"wide{seed}")
        self.layout: Any = "classic" if chance.random() < 0.2 else "tables"
        self.now, self.wide = 1000.0, chance.choice([3, 8, 40])
        self.nan = chance.random() < 0.2 and self.spec.format != "json"
        self.size = chance.choice([0, 5, 20, 40, 80, 150])
        first = self.spec._replace(
            later=False, indexes=tuple(one for one in self.spec.indexes if one in INDEXES and chance.random() < 0.5)
        )
        # FlatBuffers leave out None, and pickles of the classic layout have the name of the class.
        refused = self.spec.format == "flat" or (self.spec.format == "pickle" and self.layout == "classic")
        begins_old = self.spec.later and self.path is not None and not refused
        self.records: dict[Any, Any] = {}
        self.owners: dict[int, Owner] = {}
        self.places: dict[UUID, Owner] = {}
        if begins_old:
            self.db = self.opened(first)
            self.spec, spec = first, self.spec
            self.fill(self.size)
            self.db.close()
            self.spec = spec
            for key, old in self.records.items():
                details = dict(vars(old))
                self.records[key] = Item(now=details.pop("was"), **details)
        self.db = self.opened(self.spec)
        self.fill(self.size if not begins_old else self.size // 2)
        self.queries = [Query(chance, self.spec) for _ in range(queries)]

    def opened(self, spec: Spec) -> Any:
        db = zlmdb.open(self.path, spec.schema(), layout=self.layout, durability="none")
        db.clock = lambda: self.now
        return db

    def fill(self, count: int) -> None:
        chance = self.chance
        make = KEYS[self.spec.key][1]
        with self.db.write() as t:
            for key in range(8):
                if key not in self.owners:
                    self.owners[key] = t.owners[key] = Owner(
                        chance.choice(TEXTS), chance.choice(CITIES), maybe(chance, range(50)), maybe(chance, range(8))
                    )
                    self.places[UUID(int=key)] = t.places[UUID(int=key)] = self.owners[key]
            rows = [self.row(make(chance.randrange(300))) for _ in range(count)]
            if chance.random() < 0.5:
                t.items.put_many(rows)
            else:
                for key, value in rows:
                    t.items[key] = value
            self.records.update(rows)

    def row(self, key: Any) -> tuple[Any, Any]:
        value = item_of(self.chance, self.spec.later, self.now, self.wide, self.nan)
        if self.spec.link and value.ref not in self.owners:
            value.ref = None
        return key, value

    def plain(self, t: Any) -> Any:
        items, owners = list(t.items.items()), list(t.owners.items())
        kept = sorted(self.records.items(), key=itemgetter(0))
        assert items == kept or said(items) == said(kept), (items, kept)
        return type(
            "Plain",
            (),
            {
                "items": Table(items, {**INDEXES, **LATER}),
                "owners": Table(owners, {}),
                "places": Table(list(t.places.items()), {}),
            },
        )()

    def compare(self, t: Any, queries: Iterable[Query]) -> None:
        plain = self.plain(t)
        for query in queries:
            given, size = given_of(self.chance), self.chance.choice([2, 5, 50]) + len(self.records) // 6
            wanted = query.outcome(plain, given, size)
            for turn in range(2):
                found = query.outcome(t, given, size)
                self.asked += 1
                if found == wanted or self.fits(found, wanted, query):
                    continue
                raise AssertionError(
                    f"{query.source}\nhow {query.how}, turn {turn}, size {size} with {given} in a {'writing' if t.txn._write else 'reading'} block\nfound  {found}\nwanted {wanted}"
                )

    def across(self, t: Any) -> None:
        """Pages of one query, between which records are written."""
        chance = self.chance
        query = Query(chance, self.spec)
        if query.selected not in OF_OWNERS and ".by_" not in query.selected:
            given, size = given_of(chance), chance.randrange(1, 6)
            order = query.order if query.ordered else None
            ask = query.compiled(query.selected)
            key_of = None if order is None else query.compiled(f"[{order}][0]")
            cursor, last = None, (None, None)
            for _ in range(4):
                try:
                    rows = wanted = list(ask(self.plain(t), given))
                    page = ask(t, given).page(size, cursor)
                    before = ask(t, given).page(size, page.previous) if page.previous is not None else None
                except RAISED:
                    return
                if cursor is not None:
                    by = None if key_of is None else key_of(t, given)

                    def place(row: Any, by: Any = by) -> Any:
                        return None if by is None else called(by, *row)

                    down = "reverse=True" in query.selected.split(".where")[0].split(".order_by")[0]
                    back = query.backwards
                    wanted = [row for row in wanted if self.behind(place(row), row[0], *last, down is not back, back)]
                if said(page.rows) != said(wanted[:size]):
                    raise AssertionError(
                        f"{query.source}\npages of {size} behind {cursor and last} with {given}\nfound {page.rows}\nwanted {wanted[:size]}"
                    )
                earlier = rows[: len(rows) - len(wanted)] if page.rows else []
                if said([] if before is None else before.rows) != said(earlier[-size:]):
                    raise AssertionError(
                        f"{query.source}\npages of {size} before {page.rows} with {given}\nfound {before}\nwanted {earlier[-size:]}"
                    )
                cursor = page.next
                if cursor is None:
                    if len(wanted) > size:
                        raise AssertionError(
                            f"{query.source}\nthe last page of {size} with {given}: {page.rows}, but {wanted}"
                        )
                    return
                row = page.rows[-1]
                last = (None if key_of is None else called(key_of(t, given), *row), row[0])
                self.put_some(t)

    @staticmethod
    def behind(place: Any, key: Any, last: Any, last_key: Any, down: bool, back: bool) -> bool:
        one, other = (place, last) if back else (last, place)
        if last is not None or place is not None:
            if one < other:
                return True
            if other < one:
                return False
        return bool(key < last_key if down else key > last_key)

    def put_some(self, t: Any) -> None:
        for _ in range(self.chance.randrange(4)):
            key, value = self.row(KEYS[self.spec.key][1](self.chance.randrange(60)))
            if self.chance.random() < 0.3:
                t.items.pop(key, None)
                self.records.pop(key, None)
            else:
                self.records[key] = t.items[key] = value

    def looped(self) -> None:
        """A loop whose body writes visits the same with indexes and without them."""
        chance = self.chance
        query = Query(chance, self.spec)
        if query.selected in OF_OWNERS or ".by_" in query.selected or self.spec.expires:
            return
        given, dice = given_of(chance), chance.random()
        limit = chance.choice(["", "", "", ".limit(5)", ".limit(6, 2)"])
        way = chance.choice(["", ".keys()", ".fields(lambda k, v: (k, v.n))", "edit"])
        ask = query.compiled(f"{query.selected}{limit}{'' if way == 'edit' else way}")
        alone = self.spec._replace(indexes=(), link=False)
        visited: list[Any] = []
        with zlmdb.open(None, alone.schema()) as twin, twin.write() as u:
            u.owners.update(self.owners)
            u.places.update(self.places)
            u.items.update(self.records)
            try:
                visited.append(self.visits(u, ask, given, Random(dice), way))
            except RAISED:
                return
            visited.append(dict(u.items.items()))
        with suppress(Undone), self.db.write() as t:
            try:
                found = self.visits(t, ask, given, Random(dice), way)
                now = dict(t.items.items())
            except Exception as error:
                raise AssertionError(f"{query.selected}{limit}{way} with {given}: {error!r}") from error
            if said([found, now]) != said(visited):
                raise AssertionError(
                    f"a loop whose body writes: {query.selected}{limit}{way}\nwith {given}\nfound  {said(found)}\nwanted {said(visited[0])}"
                )
            raise Undone

    def visits(self, t: Any, ask: Any, given: Any, dice: Random, way: str) -> list[Any]:
        seen: list[Any] = []
        keys = [*self.records, *(KEYS[self.spec.key][1](one) for one in range(5))]
        chance, self.chance = self.chance, dice
        try:
            with ExitStack() as stack:
                found = ask(t, given)
                rows = stack.enter_context(found.edit()) if way == "edit" else found
                for row in rows:
                    seen.append(said(row))
                    if way == "edit" and dice.random() < 0.5:
                        row.n, row.name = dice.randrange(9), dice.choice(TEXTS)
                    for _ in range(dice.randrange(3)):
                        other = dice.choice(keys)
                        if dice.random() < 0.3:
                            t.items.pop(other, None)
                        elif way != "edit":
                            t.items[other] = self.row(other)[1]
                    if dice.random() < 0.1:
                        with suppress(Undone), t.txn.savepoint():
                            other = dice.choice(keys)
                            t.items[other] = self.row(other)[1]
                            raise Undone
                    if dice.random() < 0.03:
                        break
        finally:
            self.chance = chance
        return seen

    def fits(self, found: Any, wanted: Any, query: Query) -> bool:
        """Whether both raise; or a record is skipped that would have raised."""
        if wanted[:1] == ("raises",):
            return True
        if found[:2] == ("raises", "EncodeError"):  # a key that an index cannot have
            return ".by_" in query.selected
        return found[:2] == ("raises", "TypeError") and any(one in found[2] for one in REFUSED)

    def change(self, t: Any) -> None:
        """Records are changed or deleted by a query."""
        chance = self.chance
        query = Query(chance, self.spec)
        if query.selected in OF_OWNERS:
            return
        query.how = "cells"
        given = given_of(chance, odd=0.0)
        limit = chance.choice(["", "", ".limit(3)", ".limit(4, 1)"])
        ask = query.compiled(query.selected + limit)
        plain = self.plain(t)
        verb = chance.choice(["change", "change", "edit", "delete", "edit some"])
        how = chance.choice(CHANGES)
        text = f"{query.selected}{limit} {verb} {how} {given}"
        try:
            rows = list(ask(plain, given))
        except RAISED:
            return
        space: dict[str, Any] = {**SPACE, **given}
        changed = eval(how, space)
        before = dict(self.records)
        try:
            found = ask(t, given)
        except TypeError:
            return
        if verb == "delete":
            count = found.delete()
            for key, _ in rows:
                del self.records[key]
            assert count == len(rows), (text, count, len(rows))
        elif verb == "change":
            count = found.change(changed)
            for key, value in rows:
                self.records[key] = changed(value)
            assert count == len(rows), (text, count, len(rows))
        else:
            stop = 2 if verb == "edit some" else 10**9
            done = 0
            with found.edit() as records:
                for record in records:
                    record.__dict__.update(vars(changed(record)))
                    done += 1
                    if done == stop:
                        break
            for key, value in rows[:stop]:
                self.records[key] = changed(value)
            assert done == min(len(rows), stop), (text, done, len(rows))
        now = dict(t.items.items())
        if said(now) != said(dict(sorted(self.records.items()))):
            raise AssertionError(
                f"{text}\nfound {[one for one in now.items() if said(one[1]) != said(self.records.get(one[0]))]}\nbefore {before}\nafter {self.records}"
            )

    def write(self) -> None:
        chance = self.chance
        make = KEYS[self.spec.key][1]
        with self.db.write() as t:
            for _ in range(chance.randrange(4)):
                verb = chance.random()
                if verb < 0.5:
                    key, value = self.row(make(chance.randrange(60)))
                    self.records[key] = t.items[key] = value
                elif verb < 0.7:
                    key = chance.choice([*self.records, make(3)])
                    t.items.pop(key, None)
                    self.records.pop(key, None)
                else:
                    self.change(t)
                if chance.random() < 0.3:
                    self.compare(t, chance.choices(self.queries, k=4))
        if self.spec.expires and chance.random() < 0.3:
            self.now += chance.choice([1, 6])
            for key in [key for key, one in self.records.items() if one.until is not None and one.until <= self.now]:
                del self.records[key]

    def __call__(self) -> int:
        try:
            for number in range(self.rounds):
                with self.db.read() as t:
                    self.compare(t, self.queries)
                if number < self.rounds - 1:
                    self.write()
                    for _ in range(3):
                        self.looped()
                    with self.db.write() as t:
                        for _ in range(3):
                            self.across(t)
            report = self.db.check()
            assert report.ok, report.problems
        except Exception as error:
            where = f"seed {self.seed} on {self.engine}: {self.spec} {self.layout}, {len(self.records)} records"
            raise AssertionError(f"{where}\n{type(error).__name__}: {error}") from error
        finally:
            self.db.close()
        return self.asked


def run(seed: int, engine: str, rounds: int = 3, queries: int = 16, low: bool = True) -> int:
    """One seed on *engine*; how many queries were compared. *low*: some bounds of the planner are low."""
    chance = Random(f"bounds {seed}")
    with ExitStack() as stack:
        stack.enter_context(lowered(chance, chance.choice([0.0, 0.2, 0.6]) if low else 0.0))
        directory = None if engine == "memory" else stack.enter_context(tempfile.TemporaryDirectory())
        return Run(seed, engine, directory, rounds, queries)()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--engine", choices=["memory", "lmdb", "both"], default="both")
    parser.add_argument("--go-on", action="store_true", help="show what fails, and go on")
    parser.add_argument("--high", action="store_true", help="with the bounds of the planner as they are")
    given = parser.parse_args()
    end, seed, asked = time.monotonic() + given.seconds, given.first, 0
    while time.monotonic() < end:
        for engine in ("memory", "lmdb") if given.engine == "both" else (given.engine,):
            try:
                asked += run(seed, engine, low=not given.high)
            except Exception as error:
                if not given.go_on:
                    raise
                sys.stdout.write(f"---- {seed} {str(error)[:3000]}\n")
                sys.stdout.flush()
        seed += 1
    sys.stdout.write(f"{seed - given.first} seeds, {asked} queries\n")


if __name__ == "__main__":
    main()

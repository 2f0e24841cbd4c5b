"""What the processes of `together` do with links, expiry and a change feed, each until it is killed.

A clerk changes linked tables at random, in groups, savepoints and transactions that it gives up. A stranger declares
only parts of the tables: what would break the rest must be refused. Two consumers read the feed of one of the tables:
the follower acknowledges what it has been given and tells of it; the mirror stores what it is told in a table of its
own, in the transaction that acknowledges it.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Callable, NamedTuple, Optional

import zlmdb
from tests.office import LINKS, Note, Office, Person, Task, change

TICKETS = 50


class Ticket(NamedTuple):
    """Whose *number* has grown each time."""

    number: int
    tags: list[str]
    until: Optional[float]


class Tickets(
    zlmdb.Table[int, zlmdb.Checked[zlmdb.Msgpack[Ticket]]], expires="until", feed=zlmdb.Feed(acknowledged=True)
):
    """Of which most expire at once or soon; a clerk puts them, and sweeps."""

    by_number = zlmdb.UniqueIndex[int]("number")
    by_tag = zlmdb.Index[str]("tags", each=True)
    by_text = zlmdb.Index[tuple[int, int]](lambda r: (len(r.tags), r.number), version=1)
    forever = zlmdb.Index(zlmdb.desc("number"), where=lambda r: r.until is None, carries=("tags",))


class Shop(Office):
    """What all declare but the stranger."""

    tickets: Tickets
    issued: zlmdb.Table[str, int]
    mirror: zlmdb.Table[int, zlmdb.Checked[zlmdb.Msgpack[Ticket]]]


class People(zlmdb.Table[int, zlmdb.Checked[Person]], name="people"): ...


class BareTickets(zlmdb.Table[int, zlmdb.Checked[zlmdb.Msgpack[Ticket]]], name="tickets"): ...


class Part(zlmdb.Schema):
    """What the stranger declares: none of the links and indexes, no expiry and no feed."""

    people: People
    tasks: zlmdb.Table[int, zlmdb.Checked[Task]]
    notes: zlmdb.Table[int, zlmdb.Checked[Note]]
    tickets: BareTickets
    own: zlmdb.Table[int, int]


Report = Callable[[str], None]
WORDS = ("clerk", "refused", "mirrored")


class GivenUp(Exception):
    """A transaction that is not to be stored."""


@contextmanager
def unless_the_map_is_full() -> Iterator[None]:
    """A block cannot run again by itself where the map has to grow, as a function for `run` does; the next one can."""
    try:
        yield
    except zlmdb.DatabaseFull as error:
        if "grows before the next transaction" not in str(error):
            raise


def clerk(db: zlmdb.Database[Any], worker: int, report: Report) -> None:
    """Change the linked tables and the tickets; a number in ``issued`` says how many tickets there were."""
    dice = random.Random(os.getpid())

    def work(t: Any) -> None:
        with suppress(GivenUp), t.txn.savepoint():
            change(t, dice.randrange(1 << 30))
            if dice.random() < 0.3:
                raise GivenUp
        for _ in range(dice.randrange(4)):
            number = t.issued.increment("tickets")
            until = dice.choice([None, 1.0, time.time() + dice.random() * 0.05])
            t.tickets[dice.randrange(TICKETS)] = Ticket(number, dice.choices("abc", k=2), until)
        if dice.random() < 0.2:
            t.tickets.pop(dice.randrange(TICKETS), None)
        if dice.random() < 0.02:
            t.tickets.clear()
        if dice.random() < 0.1:
            raise GivenUp
        if dice.random() < 0.1:
            t.people[dice.randrange(1, 7)] = Person(None, 99, [])  # refused by the commit, as its twin is not there
            t.notes.pop(1, None)

    while True:
        with suppress(GivenUp, zlmdb.DanglingLink):
            if dice.random() < 0.5:
                db.run(work)
            else:
                with unless_the_map_is_full(), db.write() as t:
                    work(t)
        report("clerk")
        if dice.random() < 0.05:
            db.sweep(100)


def stranger(db: zlmdb.Database[Any], worker: int, report: Report) -> None:
    """Try all that would leave a link, an index or the feed wrong, and write what would not."""
    dice = random.Random(os.getpid())
    while True:
        tries: list[Callable[[Any], object]] = [
            lambda t: t.people.clear(),
            lambda t: t.people.update({1: Person(99)}),
            lambda t: t.tasks.put_many([(1, Task(99))]),
            lambda t: t.notes.update({1: Note(99)}),
            lambda t: t.tickets.update({1: Ticket(0, [], None)}),
            lambda t: t.tickets.clear(),
        ]
        turn = dice.randrange(len(tries))
        with unless_the_map_is_full():
            try:
                with db.write() as t:
                    t.own.increment(0)
                    tries[turn](t)
            except (zlmdb.IndexNotAttached, zlmdb.SchemaMismatch):
                report("refused")
            else:
                report(f"wrong: a stranger was allowed change {turn}")
        db.run(lambda t: t.own.increment(1))


def follower(db: zlmdb.Database[Any], worker: int, report: Report) -> None:
    """Tell of the changes that it gets, and of those that it has acknowledged."""
    changes = db.changes(Tickets, consumer="follower", timeout=None)
    dice = random.Random(os.getpid())
    report(f"begin {changes.after}")
    while True:
        found = changes.take(dice.randrange(1, 30))
        for one in found:
            text = "" if one.new is None else one.new.number
            report(f"given {one.number} {one.transaction} {one.key} {text}")
        changes.acknowledge()
        report(f"acknowledged {found[-1].number}")


def mirror(db: zlmdb.Database[Any], worker: int, report: Report) -> None:
    """Keep a copy of the tickets in step."""
    changes = db.changes(Tickets, consumer="mirror")
    while True:
        with unless_the_map_is_full():
            copy(db, changes)
        next(iter(db.changes(Tickets, after=changes.after, timeout=0.1)), None)
        report("mirrored")


def copy(db: zlmdb.Database[Any], changes: Any) -> int:
    """Enter the next changes into the mirror, in one transaction; their number."""
    with db.write() as t:
        found = changes.take(100)
        for one in found:
            if one.kind == "clear":
                if len(t.mirror) != one.count:
                    raise AssertionError(f"change {one.number} cleared {one.count} records, there were {len(t.mirror)}")
                t.mirror.clear()
                continue
            if t.mirror.get(one.key) != one.old:
                raise AssertionError(f"change {one.number} says {one.old}, the one before left {t.mirror.get(one.key)}")
            if one.new is None:
                del t.mirror[one.key]
            else:
                t.mirror[one.key] = one.new
        if found:
            changes.acknowledge(t=t)
    return len(found)


class Heard:
    """What the followers have told: the numbers of the last change given and of the last one acknowledged."""

    KINDS = ("begin", "given", "acknowledged")

    def __init__(self) -> None:
        self.given = self.acknowledged = self.count = 0
        self._seen: dict[int, str] = {}

    def hear(self, words: list[str]) -> str:
        """What is wrong with a report; or nothing."""
        kind, number = words[0], int(words[1])
        if kind == "begin":
            before, self.given = self.given, number
            if not self.acknowledged <= number <= before:
                return f"a consumer began after {number}, of {before} given and {self.acknowledged} acknowledged"
            self.acknowledged = number
        elif kind == "acknowledged":
            self.acknowledged = number
        else:
            text, before = " ".join(words[2:]), self.given
            self.count += 1
            self.given = number
            if number != before + 1:
                return f"a consumer was given {number} after {before}"
            if self._seen.setdefault(number, text) != text:
                return f"change {number} was {self._seen[number]}, and is {text}"
        return ""


def wrong(t: Any, began: float) -> str:
    """What is wrong with a snapshot since *began*: a link that leads nowhere, an expired ticket, a missing entry."""
    for link in LINKS:
        for key, value in t[link.source].items():
            for to in link.keys(value):
                if to not in t[link.target]:
                    return f"{link.source} {key} refers to {link.target} {to}"
    tickets = dict(t.tickets)
    if any(one.until is not None and one.until <= began for one in tickets.values()):
        return "a ticket has expired"
    by_number = sorted(tickets, key=lambda key: tickets[key].number)
    forever = [key for key in reversed(by_number) if tickets[key].until is None]
    found = [*t.tickets.by_number.keys()], [*t.tickets.forever.keys()]
    if found != (by_number, forever):
        return f"the tickets are {by_number} and {forever}, those in the indexes {found}"
    if tickets and tickets[by_number[-1]].number > t.issued.get("tickets", 0):
        return "a ticket was not issued"
    return ""


def finish(db: zlmdb.Database[Any], heard: Heard) -> list[str]:
    """What is wrong at the end: the consumers go on where they were, and reach what the table has."""
    changes = db.changes(Tickets, consumer="mirror")
    while copy(db, changes):
        pass
    found = heard.hear(["begin", str(db.changes(Tickets, consumer="follower").after)])
    for one in db.changes(Tickets, consumer="follower"):
        text = "" if one.new is None else one.new.number
        found = found or heard.hear(f"given {one.number} {one.transaction} {one.key} {text}".split())
    failures = [found] if found else []
    db.clock = lambda: 0.0
    with db.read() as t:
        if dict(t.mirror) != dict(t.tickets):
            failures.append("the mirror is not like the tickets")
    db.clock = time.time
    return failures

"""A web API: filters that may be missing, sorting by name of a column, pages with a cursor."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any, Optional

import zlmdb


@dataclass
class Ticket:
    title: str
    status: str
    assignee: Optional[str]
    opened: date
    votes: int


class Tickets(zlmdb.Table[int, Ticket]):
    by_status = zlmdb.Index[str]("status")
    by_opened = zlmdb.Index[date]("opened")
    by_votes = zlmdb.Index[int]("votes")


class Api(zlmdb.Schema):
    tickets: Tickets


@dataclass
class Query:
    status: Optional[set[str]] = None
    assignee: Optional[str] = None
    since: Optional[date] = None
    text: str = ""
    sort: str = "opened"
    descending: bool = False


def listing(t: Api, q: Query, after: Optional[str], size: int = 7) -> dict[str, Any]:
    found = t.tickets.select()
    status, assignee, since, text = q.status, q.assignee, q.since, q.text.lower()
    if status is not None:
        found = found.where(lambda k: k.status in status)
    if assignee is not None:
        found = found.where(lambda k: k.assignee == assignee)
    if since is not None:
        found = found.where(lambda k: k.opened >= since)
    if text:
        found = found.where(lambda k: text in k.title.lower())
    # a column named by data: untyped, and still checked against the class when it is asked
    page = (
        found.order_by(lambda k: getattr(k, q.sort), reverse=q.descending)
        .fields(lambda key, k: {"id": key, "title": k.title, "votes": k.votes})
        .page(size, after)
    )
    return {"rows": page.rows, "next": page.next}


def run() -> None:
    db = zlmdb.open(None, Api)
    with db.write() as t:
        for i in range(50):
            t.tickets.add(
                Ticket(
                    f"Ticket {i % 13}",
                    ("open", "done", "new")[i % 3],
                    None if i % 4 == 0 else f"u{i % 5}",
                    date(2026, 1 + i % 9, 1 + i % 28),
                    i * 7 % 10,
                )
            )
    for q in (
        Query(),
        Query(status={"open", "new"}),
        Query(assignee="u3", sort="votes", descending=True),
        Query(since=date(2026, 4, 1), text="1", sort="title"),
    ):
        with db.read() as t:
            rows = [
                (k, v)
                for k, v in t.tickets.items()
                if (q.status is None or v.status in q.status)
                and (q.assignee is None or v.assignee == q.assignee)
                and (q.since is None or v.opened >= q.since)
                and q.text in v.title.lower()
            ]
            rows.sort(key=lambda r: getattr(r[1], q.sort))
            if q.descending:
                rows.reverse()
            got: list[Any] = []
            after: Optional[str] = None
            while True:
                page = listing(t, q, after)
                got += page["rows"]
                after = page["next"]
                if after is None:
                    break
            assert [r["id"] for r in got] == [k for k, _ in rows], q
    with db.read() as t:
        try:
            listing(t, Query(sort="vots"), None)
        except TypeError as error:
            print(error)


if __name__ == "__main__":
    run()

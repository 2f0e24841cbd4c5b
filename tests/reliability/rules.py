"""What a table does with records, written out over plain dicts: keys, unique keys, links, expiry."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .releases import Declared, Release

Record = dict[str, Any]
Content = dict[str, dict[Any, Record]]
"""Of each table by its id, the records by their keys."""


class Refused(Exception):
    """The rules refuse a statement."""


def unique_twice(table: Declared, records: dict[Any, Record], key: Any, record: Record) -> bool:
    """Whether another record has a unique key of this one."""
    for index in table.indexes.values():
        if index.unique:
            own = set(index.keys(record))
            if own and any(not own.isdisjoint(index.keys(other)) for at, other in records.items() if at != key):
                return True
    return False


def dangles(release: Release, content: Content, id: str, key: Any, record: Record, *, deferred: bool) -> bool:
    """Whether a link of a record leads nowhere."""
    return any(
        to not in content[link.target] and (link.target, to) != (id, key)
        for link in release.tables[id].links.values()
        if link.deferred == deferred
        for to in link.keys(record)
    )


def put(release: Release, content: Content, id: str, key: Any, record: Record) -> None:
    """Store one record, or raise `Refused`."""
    old = content[id].get(key)
    if unique_twice(release.tables[id], content[id], key, record):
        raise Refused("unique")
    for link in release.tables[id].links.values():
        known = [] if old is None else link.keys(old)
        if not link.deferred:
            for to in link.keys(record):
                if to not in known and to not in content[link.target] and (link.target, to) != (id, key):
                    raise Refused("dangles")
    content[id][key] = record


def delete(release: Release, content: Content, id: str, keys: Iterable[Any]) -> None:
    """Delete records as one statement, with what the links say; or raise `Refused`."""
    going = {(id, key) for key in keys if key in content[id]}
    links = [(table.id, link) for table in release.tables.values() for link in table.links.values()]
    while True:
        found = {
            (source, key)
            for source, link in links
            if link.on_delete == "cascade"
            for key, record in content[source].items()
            if any((link.target, to) in going for to in link.keys(record))
        }
        if found <= going:
            break
        going |= found
    changed: dict[tuple[str, Any], Record] = {}
    for source, link in links:
        for key, record in content[source].items():
            if (source, key) in going or all((link.target, to) not in going for to in link.keys(record)):
                continue
            if link.on_delete == "restrict":
                raise Refused("linked")
            now = changed.setdefault((source, key), dict(record))
            if link.each:
                now[link.field] = [to for to in now[link.field] if (link.target, to) not in going]
            else:
                now[link.field] = None
    for (source, key), record in changed.items():
        content[source][key] = record
    for source, key in going:
        del content[source][key]


def expired(content: Content, id: str, now: float) -> list[Any]:
    """The keys of the records whose time has come."""
    return [key for key, record in content[id].items() if record["until"] is not None and record["until"] <= now]


def expire(release: Release, content: Content, now: float) -> None:
    """Take out the records whose time has come."""
    for id, table in release.tables.items():
        if table.expires:
            for key in expired(content, id, now):
                del content[id][key]


def may_be_committed(release: Release, content: Content) -> bool:
    """Whether no deferred link leads nowhere."""
    return not any(
        dangles(release, content, id, key, record, deferred=True)
        for id in release.tables
        for key, record in content[id].items()
    )


def fit(release: Release, content: Content) -> bool:
    """Whether the records have no unique key twice, and no link that leads nowhere."""
    return all(
        not unique_twice(release.tables[id], content[id], key, record)
        and not dangles(release, content, id, key, record, deferred=False)
        and not dangles(release, content, id, key, record, deferred=True)
        for id in release.tables
        for key, record in content[id].items()
    )

"""Links that lead nowhere, as a salvage may leave them: found by reading all records that refer, and mended.

It does not need the indexes of the links, which a salvaged file lacks, and with which it could not be opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Optional

from .. import errors
from ..namedtuples import NamedTuple
from ..schema.rewrite import blocks
from ..shown import shortened
from ..tables.links import Link, leads
from ..tables.removal import delete_alone
from ..tables.storage import Storage
from ..tables.table import Table
from .brokenlinks import BrokenLink
from .progress import Progress, Told
from .report import KEPT

if TYPE_CHECKING:
    from .methods import Operations

How = Literal["declared", "delete", "clear"]

_BY_LINK = {"cascade": "delete", "set_none": "clear"}
_SHOWN = 5  # records that an error names


@dataclass
class LinksReport:
    """Links that lead to no record: the first 1,000 of *found*. *deleted* and *cleared* are numbers of records."""

    links: list[BrokenLink] = field(default_factory=list[BrokenLink])
    found: int = 0
    deleted: int = 0
    cleared: int = 0

    @property
    def ok(self) -> bool:
        """Whether every link led to a record."""
        return self.found == 0

    def _add(self, link: BrokenLink) -> None:
        self.found += 1
        if len(self.links) < KEPT:
            self.links.append(link)

    def as_dict(self) -> dict[str, Any]:
        """The report as plain data, for JSON."""
        links = [{"table": one.table, "link": one.name, "text": one.text} for one in self.links]
        counts = {"found": self.found, "deleted": self.deleted, "cleared": self.cleared}
        return {"ok": self.ok, **counts, "links": links}


class _Lost(NamedTuple):
    """A record of *table*, as it is stored under the engine's key *raw*, and the keys to which its links lead."""

    table: Table[Any, Any]
    raw: bytes
    key: Any
    value: Any
    missing: Mapping[Link, list[Any]]


def mend_links(
    db: Operations, storages: Mapping[str, tuple[Any, Storage[Any, Any]]], how: Optional[How], told: Told,
    timeout: Optional[float],
) -> LinksReport:  # fmt: skip
    """Find the links that lead nowhere, and mend them as *how* says; None only finds them."""
    links = {
        attribute: [follower for follower in storage.followers if isinstance(follower, Link)]
        for attribute, (_, storage) in list(storages.items())  # another thread may make tables meanwhile
    }
    mending = _Mending({attribute: found for attribute, found in links.items() if found}, told)
    if how is None:
        with db.read() as t:
            for lost in mending.lost(t):
                mending.report_on(lost)
    else:
        with db.write(timeout=timeout) as t:
            try:
                mending.mend(t, how)
            except errors.SchemaMismatch as error:  # it says to open the file anew, which these links prevent
                raise errors.SchemaMismatch(
                    f"{error}. While links lead nowhere, do that once with the class without its links, and then mend "
                    f"them with this one",
                    table=error.table,
                ) from error
    return mending.report


class _Mending:
    """One run over the tables that have *links*, by attribute."""

    def __init__(self, links: Mapping[str, list[Link]], told: Told) -> None:
        self._links = links
        self._told = told
        self.report = LinksReport()

    def report_on(self, lost: _Lost) -> list[BrokenLink]:
        """Enter the links of a record into the report."""
        table = lost.table._name
        found = [
            BrokenLink(
                table, link.name, lost.key, key,
                f"the link {link.name} of the record {shortened(lost.key)} leads to {shortened(key)} of "
                f"{link.target_in(lost.table._txn)._name!r}, which does not exist",
            )
            for link, keys in lost.missing.items() for key in keys
        ]  # fmt: skip
        for one in found:
            self.report._add(one)
        return found

    def lost(self, t: Any) -> Iterator[_Lost]:
        """The records with links that lead nowhere; they may be changed while this is iterated."""
        for attribute, links in self._links.items():
            table: Table[Any, Any] = getattr(t, attribute)
            if table._absent is not None:
                continue
            storage, txn = table._storage, table._txn._engine_txn
            total = int(txn.stat(table._db)["entries"]) if storage.alone else None
            targets = {link: link.target_in(table._txn) for link in links}
            done = 0
            for block in blocks(txn, table._db, storage):
                for raw, data in block:
                    key = storage.decode_key(raw)
                    value = storage.decode_value(data, key)
                    missing = {link: _missing(targets[link], link.keys(value), txn) for link in links}
                    if any(missing.values()):
                        yield _Lost(table, raw, key, value, {link: keys for link, keys in missing.items() if keys})
                done += len(block)
                self._told(Progress(f"links of {table._name}", done, total))

    def mend(self, t: Any, how: How) -> None:
        """Delete or change all these records, and those that referred to what was deleted.

        Raises `DanglingLink` if *how* does not say what to do with one.
        """
        again = True
        while again:
            again, undecided = False, 0
            left: list[BrokenLink] = []  # the first of them: there may be millions
            for lost in self.lost(t):
                found = self.report_on(lost)
                actions = {_BY_LINK.get(link.on_delete) if how == "declared" else how for link in lost.missing}
                if None in actions:
                    undecided += len(found)
                    left += found[: _SHOWN - len(left)]
                elif "delete" in actions or _is_hidden(lost):
                    delete_alone(lost.table, lost.raw)
                    self.report.deleted += 1
                    again = True  # others may refer to it
                else:
                    _clear(lost)
                    self.report.cleared += 1
            if left and not again:
                raise _undecided(left, undecided)


def _missing(target: Table[Any, Any], keys: Iterable[Any], txn: Any) -> list[Any]:
    storage, absent = target._storage, target._absent is not None
    return [key for key in keys if absent or not leads(storage, key, target._db, txn)]


def _is_hidden(lost: _Lost) -> bool:
    """Whether the record has expired."""
    table = lost.table
    return table._storage.expiring is not None and table._get(lost.raw, None, table._db) is None


def _clear(lost: _Lost) -> None:
    value = lost.value
    for link, keys in lost.missing.items():
        value = link.without(value, set(keys))
    try:
        lost.table[lost.key] = value
    except errors.EncodeError as error:
        names = ", ".join(link.name for link in lost.missing)
        raise errors.DanglingLink(
            f"table {lost.table._name!r}: {names} of the record {shortened(lost.key)} leads nowhere, and cannot be "
            f"cleared ({error}): let such records be deleted, with 'delete'",
            table=lost.table._name,
            key=lost.key,
        ) from error


def _undecided(left: list[BrokenLink], count: int) -> errors.DanglingLink:
    first = left[0]
    shown = "; ".join(f"{one.table}: {one.text}" for one in left)
    more = f"; and {count - len(left)} others" if count > len(left) else ""
    return errors.DanglingLink(
        f"nothing was changed, since links that restrict lead nowhere, and do not say what to do with their records: "
        f"{shown}{more}. Store the records that are missing, or say 'delete' or 'clear'",
        table=first.table,
        index=first.name,
        key=first.key,
        owner=first.missing,
    )

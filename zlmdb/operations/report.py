"""The result of a check: `Database.check` returns it, ``zlmdb check`` prints it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Optional

Kind = Literal["structure", "catalogue", "record", "index", "duplicate", "count", "link", "feed"]
Codecs = Literal["declared", "plain", "unknown"]

KEPT = 1000
"""Problems that a report keeps in words; the others are counted."""


@dataclass(frozen=True)
class Problem:
    """A problem of the database. *key* is the repr of the record's key.

    *kind*: ``structure``, the pages of the file; ``catalogue``, the file's records about its tables; ``record``, a key
    or value that cannot be decoded; ``index``, an entry without its record or a record without its entry;
    ``duplicate``, two records with one unique index key, as zlmdb 26 allowed; ``count``, LMDB's number of entries;
    ``link``, a link of a record that leads to none; ``feed``, a change that is missing, damaged, or not that of the
    record.
    """

    kind: Kind
    text: str
    table: Optional[str] = None
    index: Optional[str] = None
    key: Optional[str] = None


@dataclass
class TableReport:
    """A table: the number of records read, and of entries in each index.

    *codecs*: ``declared`` if the records were read by the program's own types, ``plain`` if by those that the file
    records, ``unknown`` if the file records none, so that the records were only counted.
    """

    name: str
    records: int = 0
    codecs: Codecs = "plain"
    indexes: dict[str, int] = field(default_factory=dict[str, int])


@dataclass
class CheckReport:
    """The result of a check. *problems* are the first 1,000 of *found*; *notes* say what could not be checked.

    *bytes* is the size of the file, *seconds* the time that the check took.
    """

    path: Optional[str]
    layout: str = ""
    bytes: int = 0
    seconds: float = 0.0
    tables: dict[str, TableReport] = field(default_factory=dict[str, TableReport])
    problems: list[Problem] = field(default_factory=list[Problem])
    notes: list[str] = field(default_factory=list[str])
    found: int = 0

    @property
    def ok(self) -> bool:
        """Whether there are no problems."""
        return self.found == 0

    @property
    def records(self) -> int:
        """The number of records read, of all tables."""
        return sum(table.records for table in self.tables.values())

    def _add(self, problem: Problem) -> None:
        """Count a problem, and keep it if it is one of the first."""
        self.found += 1
        if len(self.problems) < KEPT:
            self.problems.append(problem)

    def _note(self, text: str) -> None:
        """Keep a note, once."""
        if text not in self.notes:
            self.notes.append(text)

    def as_dict(self) -> dict[str, Any]:
        """The report as plain data, for JSON."""
        return {"ok": self.ok, "records": self.records, **asdict(self)}

    def __str__(self) -> str:
        state = "ok" if self.ok else f"{self.found} problem{'s' * (self.found != 1)}"
        return f"{self.path or 'in memory'}: {state}, {len(self.tables)} tables, {self.records} records"

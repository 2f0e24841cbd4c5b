"""Names that an index of a table class, and a table of a schema, cannot have. Any other identifier can be one.

They are the documented methods of tables and of schema objects, and those that later versions will add, so that a
program which works today keeps working. Names that begin with an underscore are our own.
"""

from __future__ import annotations

_MAPPING = "clear get items keys pop popitem setdefault update values"
_OF_ALL = "first last count explain fields group_by limit order_by where select delete"
_LATER = (
    "all auto change changes distinct edit expires feed increment links max mean min page replace submit sum "
    "sweep watch"
)

INDEXES = frozenset(f"{_MAPPING} {_OF_ALL} {_LATER} add get_many put_many put_new truncate txn".split())
"""What an index cannot be called."""

TABLES = frozenset(["migrations", "txn"])
"""What a table of a schema cannot be called."""


def refused(name: str, reserved: frozenset[str]) -> str:
    """The reason why *name* cannot be used; empty if it can."""
    if name.startswith("_"):
        return "names that begin with an underscore are zlmdb's own"
    return "the name is reserved for what zlmdb itself has, or will have, there" if name in reserved else ""

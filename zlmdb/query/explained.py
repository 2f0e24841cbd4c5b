"""What `Selection.explain` gives."""

from __future__ import annotations

from typing import Optional

from ..namedtuples import NamedTuple


class Plan(NamedTuple):
    """How a query is answered, as `Selection.explain` says it.

    *read* is what is read: all of a range, or an index. *keep* are the conditions asked of each record, *order* how
    the records come into their order, *take* the limit, *give* what is given. *called* tells for what the function is
    called for each record, and why; *rejected* which indexes are not used, and why not.
    """

    read: tuple[str, ...]
    keep: tuple[str, ...] = ()
    order: Optional[str] = None
    take: Optional[str] = None
    give: Optional[str] = None
    called: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()
    indexes: tuple[str, ...] = ()
    """The names of the indexes that are read; ``(key)`` is the key."""
    ordered: bool = False
    """Whether an index gives the order."""
    covered: bool = False
    """Whether the entries of the index are enough, so that no record is read."""
    links: tuple[str, ...] = ()
    """How the records of other tables are found to which records refer."""
    scanned: tuple[str, ...] = ()
    """The names of other tables that are read as a whole, once, for conditions on linked records."""

    def __str__(self) -> str:
        enough = ", and no records" if self.covered else ""
        lines = [f"{'or    ' if number else 'read  '} {one}{enough}" for number, one in enumerate(self.read)]
        lines += [f"keep   {one}" for one in self.keep]
        for name, one in (("order", self.order), ("take", self.take), ("give", self.give)):
            if one is not None:
                lines.append(f"{name:6} {one}")
        lines += [f"link   {one}" for one in self.links]
        lines += [f"called {one}" for one in self.called]
        lines += [f"not    {one}" for one in self.rejected]
        return "\n".join(lines)

    def __repr__(self) -> str:
        """What a shell shows."""
        return str(self)

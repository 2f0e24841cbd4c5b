"""A missing key of a table, an index or a selection."""

from __future__ import annotations


class _NoPosition(KeyError):
    """A missing key that looks like a position of a list; ``args`` are those of the plain `KeyError`."""

    def __str__(self) -> str:
        return (
            f"{self.args[0]!r} is not there: [...] looks up a key, as in a dict, and never a position: write .first() "
            f"or .last() for one record, .select(limit=10) or itertools.islice for some, list(...) for all"
        )


def missing(key: object) -> KeyError:
    """The error of a *key* that is not there. For 0 and negative numbers, the text says how to read by position."""
    return _NoPosition(key) if type(key) is int and key <= 0 else KeyError(key)

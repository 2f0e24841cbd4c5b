"""Checks of what a program gives to `Database.changes`, and asks of what that returns."""

from __future__ import annotations

from typing import Any

from ..missingattributes import has_no, tell
from ..numeric import is_number, is_whole
from ..shown import shortened
from .change import Change

_NEW = "write .new for the value after the change, None if the record was deleted; .old for the one before"
_KIND = "write .kind, which is 'put', 'delete' or 'clear'"
_TIME = "write .time, a datetime in UTC"
_OF_CHANGE = {
    **dict.fromkeys(("after", "body", "data", "new_value", "object", "obj", "record", "value"), _NEW),
    **dict.fromkeys(("before", "old_value", "previous"), _NEW),
    **dict.fromkeys(("action", "deleted", "event", "is_delete", "op", "operation", "type"), _KIND),
    **dict.fromkeys(("at", "created", "date", "timestamp", "when"), _TIME),
    **dict.fromkeys(("id", "offset", "position", "seq", "sequence"), "write .number, its place in the feed, or .key"),
    **dict.fromkeys(("transaction_id", "txn", "txnid"), "write .transaction, the number of its transaction"),
    "table": "all changes of a feed are of the table that db.changes(...) was given",
}
_TAKE = "write `for change in changes:`, or changes.take() for a list; timeout= of db.changes() waits for more"
OF_CHANGES = {
    **dict.fromkeys(("fetch", "get", "items", "next", "poll", "read", "receive"), _TAKE),
    **dict.fromkeys(("listen", "on", "subscribe", "watch"), _TAKE),
    **dict.fromkeys(("ack", "commit", "done"), "write .acknowledge(), with consumer= of db.changes()"),
    **dict.fromkeys(("offset", "position", "seek"), "write .after; db.changes(..., after=number) begins elsewhere"),
    **dict.fromkeys(("delete", "truncate"), "write .trim(through=number)"),
    "close": "there is nothing to close: each loop ends its transactions itself",
}
"""What others have in place of the methods of a feed."""


def of_changes(holder: object, name: str) -> str:
    """What to write for the attribute *name* that *holder*, a feed, does not have; empty for any other name."""
    return has_no(holder, name, OF_CHANGES[name]) if name in OF_CHANGES else ""


def _of_change(holder: object, name: str) -> str:
    return has_no(holder, name, _OF_CHANGE[name]) if name in _OF_CHANGE else ""


tell(Change, _OF_CHANGE, _of_change)


def check_number(given: Any, what: str, meant: str) -> None:
    """Raise TypeError or ValueError unless *given* is a whole number, 0 or more. *what* is it, as it is *meant*."""
    check_whole(given, what, meant)
    if given < 0:
        raise ValueError(f"{what}{given!r}{_end(what)}: expected {meant}")


def check_whole(given: Any, what: str, meant: str) -> None:
    """Raise TypeError unless *given* is a whole number."""
    if is_whole(given):
        return
    kind: Any = given.__class__
    advice = f"; write {what}change.number" if kind is Change and what.endswith("=") else ""
    raise TypeError(f"{what}{shortened(given)}{_end(what)}: expected {meant}{advice}")


def _end(what: str) -> str:
    return ")" if "(" in what else ""


def check_timeout(given: Any) -> None:
    """Raise TypeError or ValueError unless *given* is a number of seconds, or None."""
    meant = "expected seconds, 0 or more, or None to wait for ever"
    if given is None:
        return
    if not is_number(given):
        raise TypeError(f"timeout={shortened(given)}: {meant}")
    if not given >= 0:
        raise ValueError(f"timeout={given!r}: {meant}")


def _is_storable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # a part of a character, as of a file's name that is no text
        return False
    return True


def check_consumer(given: Any, longest: int) -> None:
    """Raise TypeError or ValueError unless *given* is a name of 1 to *longest* bytes."""
    if not isinstance(given, str):
        raise TypeError(f"consumer={shortened(given)}: expected a name, which is a text")
    if not (_is_storable(given) and 0 < len(given.encode()) <= longest):
        raise ValueError(f"consumer={shortened(given)}: expected a name of 1 to {longest} bytes in UTF-8")

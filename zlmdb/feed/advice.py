"""Names that changes and feeds of others have: what to write instead."""

from __future__ import annotations

_NEW = "write .new for the value after the change, None if the record was deleted; .old for the one before"
_KIND = "write .kind, which is 'put', 'delete' or 'clear'"
_TIME = "write .time, a datetime in UTC"
OF_CHANGE = {
    **dict.fromkeys(("after", "body", "data", "new_value", "object", "obj", "record", "value"), _NEW),
    **dict.fromkeys(("before", "old_value", "previous"), _NEW),
    **dict.fromkeys(("action", "deleted", "event", "is_delete", "op", "operation", "type"), _KIND),
    **dict.fromkeys(("at", "created", "date", "timestamp", "when"), _TIME),
    **dict.fromkeys(("id", "offset", "position", "seq", "sequence"), "write .number, its place in the feed, or .key"),
    **dict.fromkeys(("transaction_id", "txn", "txnid"), "write .transaction, the number of its transaction"),
    "table": "all changes of a feed are of the table that db.changes(...) was given",
}
"""Of a change."""

_TAKE = "write `for change in changes:`, or changes.take() for a list; timeout= of db.changes() waits for more"
OF_CHANGES = {
    **dict.fromkeys(("fetch", "get", "items", "next", "poll", "read", "receive"), _TAKE),
    **dict.fromkeys(("listen", "on", "subscribe", "watch"), _TAKE),
    **dict.fromkeys(("ack", "commit", "done"), "write .acknowledge(), with consumer= of db.changes()"),
    **dict.fromkeys(("offset", "position", "seek"), "write .after; db.changes(..., after=number) begins elsewhere"),
    **dict.fromkeys(("delete", "truncate"), "write .trim(through=number)"),
    "close": "there is nothing to close: each loop ends its transactions itself",
}
"""Of the changes of a table."""

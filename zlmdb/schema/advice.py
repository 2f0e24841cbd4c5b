"""Methods of Python's lists and sets, and of Redis', that sets and lists of values lack: what to write instead."""

from __future__ import annotations

from typing import Any

from ..missingattributes import has_no, public_names
from ..shown import nearest

FEW = "write .first() or .last() for one, itertools.islice for some, list(...) for all"
"""How positions are asked for: as of a table, but there is no limit."""

BY_POSITION = "a Table[tuple[K, int], V] has positions that the program chooses"

_TAKEN = "write value = values.first(), then values.discard(value)"
_APPENDED = f"a list grows at its end, and a value is not replaced in it: {BY_POSITION}"
_AS_SETS = (
    "copy", "difference", "intersection", "isdisjoint", "issubset", "issuperset", "symmetric_difference", "union",
)  # fmt: skip
OF_VALUE_SETS = {
    **dict.fromkeys(_AS_SETS, "a set of Python has it: write set(values).{name}(...)"),
    **dict.fromkeys(("append", "insert", "put"), "write values.add(value)"),
    **dict.fromkeys(("pop", "popleft", "spop"), _TAKEN),
    "extend": "write values.update(others)",
}
OF_VALUE_LISTS = {
    **dict.fromkeys(("appendleft", "extendleft", "index", "insert", "pop", "rotate", "sort"), _APPENDED),
    **dict.fromkeys(("popleft", "lpop"), _TAKEN),
    "update": "write values.extend(others)",
}

_OF_TABLES = {
    "get": "write table[key], which is empty if nothing was added",
    "pop": "write list(table[key]), then del table[key]",
    "values": "write .items(), or table[key] for those of a key",
    **dict.fromkeys(("put_many", "setdefault", "update"), "write table[key].{fill}(values)"),
    "remove": "write table.discard(key, value)",
    **dict.fromkeys(("fields", "group_by", "order_by", "where"), "only tables have queries: loop over .items()"),
}
OF_SET_TABLES = {name: advice.format(fill="update") for name, advice in _OF_TABLES.items()}
OF_LIST_TABLES = {name: advice.format(fill="extend") for name, advice in _OF_TABLES.items()}


def says(instead: dict[str, str]) -> Any:
    """The function that says what to write for a name: what *instead* has for it, or the most similar one."""

    def what(holder: object, name: str) -> str:
        advice = instead[name].format(name=name) if name in instead else ""
        if not advice and not name.startswith("_"):
            advice = nearest(name, public_names(type(holder)), listed=False)
        return has_no(holder, name, advice) if advice else ""

    return what

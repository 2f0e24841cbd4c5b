"""Checks that the keys of a `SetTable` or `ListTable` and its values belong together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..schema.multi import VALUES
from ..store.slots import Slot
from ..values.named import LIST_NUMBER, SET_NUMBER
from .report import Problem

_NUMBERED = {SET_NUMBER.name, LIST_NUMBER.name}
_WIDTH = 8  # bytes of a number, in the values of the one table and at the beginning of the keys of the other
_BIAS = 1 << 63


def problems(slots: Mapping[str, Slot], rows: Callable[[Slot], Iterator[tuple[bytes, Any]]]) -> Iterator[Problem]:
    """What is wrong between the two tables of each; *rows* gives the keys and values of a table, as bytes."""
    for slot in slots.values():
        if slot.value in _NUMBERED:
            values = slots.get(slot.name + VALUES)
            if values is None:
                yield Problem("catalogue", f"the table {slot.name + VALUES!r} of its values is missing", slot.name)
            else:
                yield from _between(slot, rows(slot), rows(values))


def empty_keys(
    slots: Mapping[str, Slot], rows: Callable[[Slot], Iterator[tuple[bytes, Any]]]
) -> Iterator[tuple[Slot, bytes]]:
    """The keys without values, as bytes, each with its table."""
    for slot in slots.values():
        values = slots.get(slot.name + VALUES)
        if slot.value in _NUMBERED and values is not None:
            found = {_number(entry) for entry, _ in rows(values)}
            for key, data in rows(slot):
                if int.from_bytes(bytes(data), "big") not in found:
                    yield slot, key


def _number(entry: Any) -> int:
    return int.from_bytes(bytes(entry[:_WIDTH]), "big") - _BIAS


def _between(slot: Slot, keys: Iterator[tuple[bytes, Any]], values: Iterator[tuple[bytes, Any]]) -> Iterator[Problem]:
    empty: dict[int, str] = {}
    for key, data in keys:
        number = int.from_bytes(bytes(data), "big")
        if number in empty:
            yield Problem("record", f"it has the values of the key {empty[number]} too", slot.name, key=key.hex())
        empty[number] = key.hex()
    last = -1
    known = frozenset(empty)
    for entry, _ in values:
        number = _number(entry)
        if number != last:
            last = number
            empty.pop(number, None)
            if number not in known:
                yield Problem("record", f"the values with the number {number} belong to no key", slot.name + VALUES)
    for shown in empty.values():
        yield Problem("record", "the key has no values", slot.name, key=shown)

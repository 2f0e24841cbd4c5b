"""The lines of generated writes that maintain one index: which entries a record has, and how they are written.

Each kind of index has its own lines: those with one entry for a record, those with an entry for each element, and those
whose entries carry values of fields. They name no module of that kind, so that a program without such indexes never
imports it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Any

from ..indexstorage import IndexStorage
from ..storage import Storage

_SIZE = Struct(">I").pack
_CONTAINERS = frozenset({list, set, frozenset, tuple})


class Lines:
    """The lines for the *n*-th index, whose records have at most one entry each.

    *primary* is the expression of the encoded primary key. *names* are those that the lines use. *new* take the index
    key ``k`` and the entry ``e`` from ``value``, *old* the entry ``d`` from ``old``; all with the number after it.
    *too_long* is an expression: whether the engine refuses an entry for its length; empty if it never does.
    """

    encoded = "k"
    """The variable with what is encoded, and the one with what is written, without the number."""
    written = "e"

    def __init__(self, n: int, index: IndexStorage, primary: str) -> None:
        self.n, self.storage, self.primary = n, index, primary
        self.names: dict[str, Any] = {f"take{n}": index.get_key, f"entry{n}": index.entry}
        self.data = f"v{n}" if index.carries else "b''" if index.tail else primary
        self.put = f"raw.put({self.written}{n}, {self.data}, True, True, False, h{n})"
        self.old_data: Sequence[str] = ()  # the lines for what *update* needs besides *old*
        self.too_long = ""
        if index.storage.key.composite:
            self.new = [f"e{n} = entry{n}(value, {primary})"]
            self.old = [f"d{n} = entry{n}(old, {primary}, stored=True)"]
            return
        self.check, self.encode, more = index.key_source(f"{self.encoded}{n}", f"_{n}")
        if index.joined is not None:
            self.encode += f" + {primary}"
        self.names.update(more)
        if not index.always_fits:
            self.too_long = self._too_long(index.storage.max_key_size)
        self.new = [self._take("value"), *self._entry(f"e{n}", "value", "")]
        self.old = [self._take("old"), *self._entry(f"d{n}", "old", ", stored=True")]

    def late(self) -> tuple[Sequence[str], Sequence[str]]:
        """The lines of *old*, and those of *new* behind them. Both entries are None if the entry stays.

        Unless scans must be told of it (``watched``). The old index key is encoded behind the new one, and neither is
        where it is the same object; ``o`` is that.
        """
        n, index = self.n, self.storage
        # Of a key of such a type, another one has to be another object.
        settled = type(self) is Lines and not index.storage.key.composite and self.check.startswith(f"type(k{n}) is ")
        if not settled or index.where is not None or index.as_stored:
            return self.old, self.new
        odd = f"None if k{n} is None else entry{n}(old, {self.primary}, stored=True)"
        old = [self._take("old"), f"o{n}, u{n} = k{n}, {self.check}", f"d{n} = None if u{n} else {odd}"]
        new = [
            self._take("value"),
            f"if u{n} and k{n} is o{n} and not watched: e{n} = d{n} = None",
            "else:",
            *[f"    {line}" for line in self._entry(f"e{n}", "value", "")],
            f"    if u{n}: k{n} = o{n}; d{n} = {self.encode}",
        ]
        return old, new

    def _take(self, value: str) -> str:
        field = self.storage.field
        return f"k{self.n} = take{self.n}({value})" if field is None else f"k{self.n} = {value}.{field}"

    def _entry(self, entry: str, value: str, stored: str) -> list[str]:
        checked = f"entry{self.n}({value}, {self.primary}{stored})"
        null = checked if self.storage.not_null and not stored else "None"
        if self.check == "True":
            found = f"{null} if k{self.n} is None else {self.encode}"
        else:
            found = f"{self.encode} if {self.check} else {null} if k{self.n} is None else {checked}"
        return [f"{entry} = {found}"]

    def _too_long(self, limit: int) -> str:
        return f"e{self.n} is not None and len(e{self.n}) > {limit}"

    # -- unique indexes --------------------------------------------------------------------------------------------

    def claimed(self, *, moved: bool) -> str:
        """An expression that claims a unique index key for the record; false if it belongs to another one."""
        n = self.n
        same = f"e{n} == d{n} or " if moved else ""
        return f"({same}e{n} is None or raw.put(e{n}, {self.data}, True, False, False, h{n}))"

    def entry(self, moved: bool) -> str:
        """An entry that a refused statement may have claimed, with its handle."""
        claimed = f"None if e{self.n} == d{self.n} else e{self.n}" if moved else f"e{self.n}"
        return f"({claimed}, h{self.n})"

    # -- what is written -------------------------------------------------------------------------------------------

    def insert(self) -> list[str]:
        """The lines that write the entries of a new record."""
        return [f"if e{self.n} is not None: {self.put}"]

    def update(self) -> list[str]:
        """The lines that write the differences, and count them in ``puts`` and ``dels``."""
        n = self.n
        put = "" if self.storage.unique else f"{self.put}; "
        return [
            f"if e{n} != d{n}:",
            f"    if d{n} is not None and raw.delete(d{n}, b'', h{n}): dels += 1",
            f"    if e{n} is not None: {put}puts += 1",
        ]

    def remove(self) -> list[str]:
        """The lines that delete the entries of a record, and count them in ``dels``."""
        return [f"if d{self.n} is not None and raw.delete(d{self.n}, b'', h{self.n}): dels += 1"]

    def inserted(self) -> str:
        """An expression: how many entries a new record has."""
        return f"(1 if e{self.n} is not None else 0)"  # a bool takes longer to add

    def listed(self) -> str:
        """The line that appends the entries of a new record to the list ``l``."""
        return f"if e{self.n} is not None: l{self.n}.append((e{self.n}, {self.data}))"

    def gone(self) -> str:
        """The line that appends the entries of a record that is deleted to the list ``l``."""
        return f"if d{self.n} is not None: l{self.n}.append(d{self.n})"

    def told(self) -> tuple[str, str]:
        """The old and the new entry for running scans: of a new record, and of one that has changed."""
        return f"(None, e{self.n}), ", f"(d{self.n}, e{self.n}), "


class ElementLines(Lines):
    """The lines for an index with an entry for each element: ``e`` and ``d`` are sets."""

    encoded = written = "x"

    def __init__(self, n: int, index: Any, primary: str) -> None:
        super().__init__(n, index, primary)
        self.names.update({
            f"entries{n}": index.entries, f"element{n}": index.entry_of, f"containers{n}": _CONTAINERS
        })  # fmt: skip
        if index.storage.key.composite:
            self.new = [f"e{n} = entries{n}(value, {primary})"]
            self.old = [f"d{n} = entries{n}(old, {primary}, stored=True)"]

    def _entry(self, entry: str, value: str, stored: str) -> list[str]:
        n = self.n
        one = self.encode
        if self.check != "True":
            one += f" if {self.check} else element{n}(x{n}, {self.primary})"
        return [
            f"{entry} = set()",
            f"if type(k{n}) in containers{n}:",
            f"    for x{n} in k{n}:",
            f"        if x{n} is not None: {entry}.add({one})",
            f"elif k{n} is not None: {entry} = entries{n}({value}, {self.primary}{stored})",
        ]

    def _too_long(self, limit: int) -> str:
        return f"e{self.n} and len(max(e{self.n}, key=len)) > {limit}"

    def insert(self) -> list[str]:
        return [f"for x{self.n} in e{self.n}: {self.put}"]

    def update(self) -> list[str]:
        n = self.n
        return [
            f"if e{n} != d{n}:",
            f"    for x{n} in d{n} - e{n}: dels += raw.delete(x{n}, b'', h{n})",
            f"    for x{n} in e{n} - d{n}: {self.put}; puts += 1",
        ]

    def remove(self) -> list[str]:
        return [f"for x{self.n} in d{self.n}: dels += raw.delete(x{self.n}, b'', h{self.n})"]

    def inserted(self) -> str:
        return f"len(e{self.n})"

    def listed(self) -> str:
        return f"for x{self.n} in e{self.n}: l{self.n}.append((x{self.n}, {self.data}))"

    def gone(self) -> str:
        return f"l{self.n}.extend(d{self.n})"

    def told(self) -> tuple[str, str]:
        """As of other indexes; of a record that has changed, it is enough that an entry comes."""
        return "(None, None), ", f"(None, next(iter(e{self.n} - d{self.n}), None)), "


class CarryingLines(Lines):
    """The lines for an index whose entries carry values of fields: ``v`` for the new record, ``w`` for the old one."""

    def __init__(self, n: int, index: Any, primary: str) -> None:
        super().__init__(n, index, primary)
        self.absent = index.absent
        self.names[f"size{n}"] = _SIZE
        for position, one in enumerate(index.serializers):
            self.names[f"dump{n}_{position}"] = one.raw_encode
        self.new = [*self.new, *self._carried("v", "e", "value")]
        self.old_data = self._carried("w", "d", "old")

    def _carried(self, into: str, entry: str, value: str) -> list[str]:
        n, x = self.n, f"x{self.n}"
        lines = [f"{into}{n} = b''", f"if {entry}{n} is not None:"]
        for position, field in enumerate(self.storage.carries):
            lines += [
                f"    {x} = {value}[{field!r}]" if self.storage.of_dicts else f"    {x} = {value}.{field}",
                f"    if {x} is None: {into}{n} += {self.absent!r}",
                "    else:",
                f"        {x} = dump{n}_{position}({x})",
                f"        {into}{n} += size{n}(len({x})) + {x}",
            ]
        return lines

    def update(self) -> list[str]:
        n = self.n
        return [*super().update(), f"elif e{n} is not None and v{n} != w{n}:", f"    {self.put}; puts += 1"]


def lines_of(storage: Storage[Any, Any], indexes: Iterable[IndexStorage]) -> tuple[list[Lines], str]:
    """The lines for all *indexes* of the table of *storage*, and the expression of the encoded primary key."""
    primary = f"encoded[{len(storage.prefix)}:]" if storage.prefix else "encoded"

    def kind(index: IndexStorage) -> type[Lines]:
        return ElementLines if index.several else CarryingLines if index.carries else Lines

    return [kind(index)(n, index, primary) for n, index in enumerate(indexes)], primary

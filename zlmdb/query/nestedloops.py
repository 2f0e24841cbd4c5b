"""What is given of records that refer, for each record: the functions that read them, and how these are written.

While nothing is written, one generated function finds the entries of a key by a cursor, reads their records and lists
what is given of them. Whatever is unusual, it leaves to `Nested.asked`, which asks as the program itself would.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from operator import itemgetter
from typing import Any, Optional

from ..codegen import Recipe
from ..handlers import let_through
from ..store.ranges import after, seek
from .expressionsource import Asked, arguments
from .following import Followed
from .following.following import nothing
from .following.nested import Inner, Nested
from .loops import Writer
from .ordering import checked, first_of
from .programs import Programs
from .projection import HITS, KEYS, PAIRS, VALUES
from .recordlines import Body
from .sums import mean, total
from .terms import conjuncts
from .translated import want_of, with_sort_key

_NESTED = Recipe("nested query")

Make = Callable[..., Callable[..., Any]]

_WHAT = {"pairs": PAIRS, "keys": KEYS, "values": VALUES}

_RESULTS: Mapping[str, str] = {
    "all": "rows",
    "count": "len(rows)",
    "truth": "len(rows) > 0",
    "sum": "total(rows)",
    "mean": "mean(rows)",
    "min": "min(rows, default=None)",
    "max": "max(rows, default=None)",
    "first": "rows[0] if rows else None",
    "last": "rows[-1] if rows else None",
}
"""What is given at last, by the method of `Reads`."""


class Entries:
    """How the entries of a key in an index are found: *encode* makes the bytes they begin with, if *check* holds.

    Both are expressions of ``of``, with *names*. *tail* is where the primary key begins in an entry, 0 if it is the
    entry's value; *prefix* comes before it in the key of the record. *of* is the expression of ``of``; another one
    is made of ``engine_key``, that of the outer record, and ``load_outer``, which decodes that.
    """

    def __init__(
        self, check: str, encode: str, names: Mapping[str, Any], tail: int, prefix: bytes, of: str = "of"
    ) -> None:  # fmt: skip
        self.check, self.encode, self.names, self.of = check, encode, names, of
        self.valued = not tail
        owner = f"entry[{tail}:]" if tail else "owner"
        self.key = f"{prefix!r} + {owner}" if prefix else owner


class Reader:
    """Makes what `reading` gives, for one `Nested` and an index in which entries are found as *entries* says.

    *programs* are those of the table that is read. *one*: no more than one row is wanted, and none skipped.
    """

    def __init__(self, node: Nested, entries: Entries, programs: Programs, *, one: bool) -> None:
        give = _WHAT[node.what] if node.value is None else _followed(node.value)
        want = HITS if node.how in ("count", "truth") else want_of((give,), programs, one=True)
        if node.order is not None:
            want = with_sort_key(_followed(node.order), want, programs)
        conditions = [_followed(one) for one in node.where]
        asked = [Asked(one, part) for one in conditions for part in conjuncts(one.node)]
        self._keys = programs.keys
        body = Body((), (), asked, want)
        self._sources = [
            (each.followed.reading, tuple(each.numbers), tuple(each.links), tuple(each.nested)) for each in body.every
        ]
        self._make = _NestedWriter(programs, node, entries, body).make(one=one)

    def made(
        self, table: Any, cursor: Any, question: Callable[..., Any], skip: int, most: int, parameters: Sequence[Any]
    ) -> Callable[..., Any]:  # fmt: skip
        """The function, of *table*, for captured values, while nothing is written. *question* answers all else."""
        asked: list[Any] = []
        for own, numbers, links, nested in self._sources:
            asked += arguments(Followed(own, nothing, parameters), numbers, links, nested, self._keys)
        return self._make(table, cursor, question, skip, most, *asked)


def _followed(function: Inner) -> Followed:
    return Followed(function.own, nothing, ())


def _in_order(pairs: list[tuple[Any, Any]], backwards: bool, skip: int = 0, most: Optional[int] = None) -> list[Any]:
    """The rows of *pairs* of a sort key and a row, sorted: *most* of them, after the first *skip*."""
    if backwards:  # equal ones, too, come the other way round
        pairs.reverse()
    stop = None if most is None else skip + most
    return list(map(itemgetter(1), islice(first_of(checked(pairs), stop, backwards=backwards), skip, stop)))


def _answer(question: Callable[..., Any], key: Any, *outer: Any) -> Any:
    """The general form."""
    return question(key, *outer)


class _NestedWriter(Writer):
    """Writes the function of one `Nested`."""

    def __init__(self, programs: Programs, node: Nested, entries: Entries, body: Body) -> None:
        super().__init__(programs, body)
        self.picking, self.node, self.entries = False, node, entries
        self.names.update(entries.names, let_through=let_through, general=_answer, total=total, mean=mean)
        self.names.update(load=programs.load, load_key=programs.load_key, in_order=_in_order, seek=seek, after=after)

    def make(self, *, one: bool) -> Make:
        """The function that makes it."""
        add, block, node = self.add, self.block, self.node
        asked = "".join([f", {name}" for n, each in enumerate(self.every) for name in each.names(n)])
        outer = "".join([f", each{number}" for number in node.given])
        with block(f"def make(bound, cursor, question, skip, most{asked}):"):
            add("raw, get, handle = bound._raw, bound._get, bound._db")
            add("find, current, following = cursor.set_range, cursor.key, cursor.iternext")
            given = "of" if self.entries.of == "of" else "engine_key, load_outer"
            with block(f"def read({given}{outer}):"):
                with block("try:"):
                    if given != "of":
                        add(f"of = {self.entries.of}")
                    with block(f"if bound._raw is raw and {self.entries.check}:"):
                        add(f"begin = {self.entries.encode}")
                        self.one() if one else self.several()
                with block("except Exception as error:"):
                    add("let_through(error)")
                add(f"return general(question, {given}{outer})")
            add("return read")
        return self.made("make", _NESTED)

    def one(self) -> None:
        """Lines for the first row alone."""
        add = self.add
        with self.block("if find(begin):"):
            add("entry = current()")
            with self.block("if entry.startswith(begin):"):
                if self.entries.valued:
                    add("owner = cursor.value()")
                self.record()
                add("rows = [found]")
                add("return found" if self.node.how == "first" else f"return {_RESULTS[self.node.how]}")
        if self.node.how == "first":
            add("return None")
        else:
            add("rows = []", f"return {_RESULTS[self.node.how]}")

    def several(self) -> None:
        """Lines for all rows, or the first ones."""
        add, node = self.add, self.node
        few = bool(node.limit) or node.single
        limited = few and node.order is None
        add("rows = []", "add = rows.append")
        if limited:
            add("left, before = most, skip")
        found = "seek(cursor, begin, after(begin), True)" if node.from_end else "find(begin)"
        with self.block(f"if {found}:"):
            pair = "entry, owner" if self.entries.valued else "entry"
            following = "cursor.iterprev" if node.from_end else "following"
            with self.block(f"for {pair} in {following}(True, {self.entries.valued}):"):
                with self.block("if not entry.startswith(begin):"):
                    add("break")
                if node.where:
                    self.record()
                if limited:
                    with self.block("if before:"):
                        add("before -= 1", "continue")
                if not node.where:
                    self.record()
                add("add(found)")
                if limited:
                    add("left -= 1")
                    with self.block("if not left:"):
                        add("break")
        if node.order is not None:
            add(f"rows = in_order(rows, {node.backwards}{', skip, most' if few else ''})")
        add(f"return {_RESULTS[node.how]}")

    def record(self) -> None:
        """Lines that read the record of an entry."""
        if self.want is HITS and not self.asked:
            self.add("found = None")
            return
        self.add(f"key = {self.entries.key}")
        if self.want is KEYS and not self.asked:
            self.add("found = load_key(key)")
            return
        self.add("data = get(key, None, handle)", "if data is None: raise LookupError")
        super().record()

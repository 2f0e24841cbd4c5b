"""Changing, editing and deleting what a selection finds, beside a loop over the same records."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Optional

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import zlmdb
from zlmdb.feed import log
from zlmdb.tables import changing, foundrows
from zlmdb.tables.executor import cachedscans

from .interrupts import INTERRUPTS, interrupting, traces_instructions


@dataclass
class Row:
    id: int
    a: Optional[str] = None
    b: Optional[int] = None
    tags: list[Optional[str]] = field(default_factory=list)
    note: Optional[str] = None


class Plain(zlmdb.Table[int, Row]):
    """No index."""


class Fed(zlmdb.Table[int, zlmdb.FlatBuffers[Row]], feed=True, key="id"):
    by_a = zlmdb.UniqueIndex[str]("a")


class Many(zlmdb.Table[int, Row], feed=zlmdb.Feed(max_count=5)):
    by_a = zlmdb.UniqueIndex[str]("a")
    by_pair = zlmdb.UniqueIndex[tuple[str, int]]("note", "b")
    by_b = zlmdb.Index[int]("b", carries=("note",))
    by_tag = zlmdb.Index[str]("tags", each=True)
    noted = zlmdb.Index[int]("b", where=lambda row: row.note is not None)


class Owned(zlmdb.Table[int, Row]):
    """Links to itself."""

    to = zlmdb.ForeignKey["Owned"]("b", on_delete="set_none")


class Later(zlmdb.Table[int, Row]):
    to = zlmdb.ForeignKey["Later"]("b", deferred=True, on_delete="cascade")


KINDS: dict[str, Any] = {"plain": Plain, "fed": Fed, "many": Many, "owned": Owned, "later": Later}


def open_one(cls: Any) -> Any:
    return zlmdb.open(None, type("One", (zlmdb.Schema,), {"__annotations__": {"rows": cls}}))


def stored(t: Any) -> list[Any]:
    """All that the engine has of the table, its indexes, and its feed without the times."""
    table, raw = t.rows, t.txn._engine_txn
    found = [list(raw.cursor(handle).iternext()) for handle in (table._db, *(bound.handle for bound in table._indexes))]
    for follower in table._storage.followers:
        if hasattr(follower, "present"):
            follower.aim(table)
            feed = follower.present.handle
            found.append([one._replace(time=0) for one in log.read(raw, feed, 0, 1000, 1 << 20)])
    found.append(sorted(key for _, key in t.txn._deferred or ()))
    return found


# What is done to each record: ``(table, row, dice)``, as a function of a change does it. ------------------------------


def again(table: Any, row: Row, dice: int) -> Any:
    return row


def moved(table: Any, row: Row, dice: int) -> Any:
    row.a, row.tags = f"{row.a}+{dice}", [*row.tags, "new"]
    return row


def noted(table: Any, row: Row, dice: int) -> Any:
    return replace(row, note=("n", None)[dice % 2], b=row.id)


def linked(table: Any, row: Row, dice: int) -> Any:
    row.b = 5 * dice
    return row


def paired(table: Any, row: Row, dice: int) -> Any:
    row.a, row.note, row.b = f"p{row.id}", "pair", 1
    return row


def taken(table: Any, row: Row, dice: int) -> Any:
    return replace(row, a="a1")


def emptied(table: Any, row: Row, dice: int) -> Any:
    return replace(row, a=None, b=None, tags=[])


def writes_others(table: Any, row: Row, dice: int) -> Any:
    table[40 + row.id] = replace(row, id=40 + row.id, a=None)
    table.pop(row.id + dice, None)
    row.tags = ["w"]
    return row


def changes_next(table: Any, row: Row, dice: int) -> Any:
    if row.id + 1 in table:
        table[row.id + 1] = replace(row, id=row.id + 1, a=f"next{row.id + 1}", note=f"by {row.id}")
    row.b = None
    return row


def writes_itself(table: Any, row: Row, dice: int) -> Any:
    table[row.id] = replace(row, a="itself", b=None, tags=["i"])
    return row


def undoes(table: Any, row: Row, dice: int) -> Any:
    with suppress(LookupError), table.txn.savepoint():
        table[row.id] = replace(row, a="undone")
        raise LookupError
    with table.txn.savepoint():
        if dice % 2:
            table.pop(row.id, None)
    row.note = "u"
    return row


def reads(table: Any, row: Row, dice: int) -> Any:
    open_ones.append(iter(table))
    next(open_ones[-1])
    row.b = None
    return row


def wrong(table: Any, row: Row, dice: int) -> Any:
    row.b = "x"  # type: ignore[assignment]  # what is refused
    return row if dice % 2 else None


def fails(table: Any, row: Row, dice: int) -> Any:
    row.a = "f"
    raise ZeroDivisionError


class Undone(Exception):
    """Ends a transaction."""


open_ones: list[Any] = []
HOWS = [again, moved, noted, linked, paired, taken, emptied, writes_others, changes_next, writes_itself, undoes]
HOWS += [reads, wrong, fails]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["change", "change", "edit", "break", "delete"]),
        st.sampled_from(HOWS), st.integers(0, 12), st.integers(0, 5), st.integers(0, 12),
    ),
    max_size=5,
)  # fmt: skip


def do(t: Any, step: tuple[str, Any, int, int, int]) -> Any:
    """By the selection."""
    verb, how, least, dice, stop = step
    table = t.rows
    found = table.where(lambda row: least <= row.id < least + stop)
    if verb == "change":
        return found.change(lambda row: how(table, row, dice))
    if verb == "delete":
        return found.delete()
    with found.edit() as rows:
        for row in rows:
            how(table, row, dice)
            if verb == "break":
                break
    return None


def do_by_hand(t: Any, step: tuple[str, Any, int, int, int]) -> Any:
    """By a loop over the table."""
    verb, how, least, dice, stop = step
    table, count = t.rows, 0
    keys = [key for key in table if least <= key < least + stop]
    if verb in ("edit", "break"):
        for key in keys:
            if key in table:
                with table.edit(key) as row:
                    how(table, row, dice)
                if verb == "break":
                    break
        return None
    with t.txn._statement():
        for key in keys:
            if key in table:
                if verb == "delete":
                    del table[key]
                else:
                    table[key] = returned(key, how(table, table[key], dice))
                count += 1
    return count


def returned(key: int, value: Any) -> Any:
    """*value*, which a function of a change has returned for the record *key*."""
    if value is None:
        raise zlmdb.EncodeError(
            f"table 'rows', key {key}: the function returned None, which is not stored: return the record; delete() "
            f"deletes the records"
        )
    return value


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=max(8, settings.default.max_examples // 3))
@given(steps=STEPS)
@example(steps=[("edit", paired, 2, 0, 4)])  # the second index refuses
@example(steps=[("change", linked, 2, 5, 4)])
@example(steps=[("change", writes_itself, 2, 0, 4)])
@example(steps=[("change", reads, 0, 0, 1), ("edit", writes_others, 0, 0, 1)])  # on PyPy that scan is still open
@example(steps=[("edit", writes_itself, 2, 0, 4), ("break", writes_itself, 2, 1, 4)])
@example(steps=[("change", changes_next, 2, 0, 4), ("edit", changes_next, 2, 0, 4)])
def test_a_selection_writes_what_a_loop_writes(kind: str, steps: list[Any]) -> None:
    """And counts and raises the same."""
    told: list[Any] = []
    for run in (do, do_by_hand):
        found: list[Any] = []
        with suppress(Undone), open_one(KINDS[kind]) as db, db.write() as t:
            for number in range(12):
                t.rows[number] = Row(number, f"a{number}", number % 3 if number else None, ["t", str(number % 4)])
            for step in steps:
                if kind in ("owned", "later") and step[0] == "delete":
                    continue  # what a deletion entails is another statement of a loop
                before = t.txn._puts, t.txn._dels
                try:
                    found.append(run(t, step))
                except (zlmdb.Error, ZeroDivisionError, TypeError, ValueError) as error:
                    found.append(repr(error))
                open_ones.clear()
                found.append((t.txn._puts - before[0], t.txn._dels - before[1], dict(t.rows.items())))
                assert not t.txn._edited
            found.append(stored(t))
            raise Undone  # deferred links may lead nowhere
        told.append(found)
    assert told[0] == told[1]


@pytest.mark.parametrize(("name", "few"), [("_KEPT", 600), ("_LONG", 1)])
def test_records_that_take_much_memory_are_read_when_their_turn_comes(
    monkeypatch: pytest.MonkeyPatch, name: str, few: int
) -> None:
    monkeypatch.setattr(cachedscans, "BLOCK", 3)
    with open_one(KINDS["plain"]) as db, db.write() as t:
        for number in range(12):
            t.rows[number] = Row(number, f"a{number}", None, [])
        chosen = t.rows.where(lambda row: row.id != 5)
        assert all([data is not None for _, data in changing._rows_of(chosen)])
        monkeypatch.setattr(changing, name, few)
        rows = changing._rows_of(chosen)
        assert [data is not None for _, data in rows] == [n < 3 and name == "_KEPT" for n in range(11)]
        with chosen.edit() as found:
            for row in found:
                row.note = f"b{row.id}"
        assert chosen.change(lambda row: replace(row, b=row.id)) == 11
        expected = [(None, None) if n == 5 else (n, f"b{n}") for n in range(12)]
        assert [(row.b, row.note) for row in t.rows.values()] == expected
        t.txn.abort()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kept", [0, 600])
def test_keys_that_are_packed_are_those_of_a_loop(monkeypatch: pytest.MonkeyPatch, kind: str, kept: int) -> None:
    monkeypatch.setattr(cachedscans, "BLOCK", 3)
    monkeypatch.setattr(changing, "_KEPT", kept)
    monkeypatch.setattr(changing, "_LISTED", 4)
    steps = [
        ("change", noted, 1, 1, 11),
        ("edit", again, 0, 0, 12),
        ("break", moved, 3, 0, 9),
        ("change", moved, 1, 2, 9),
    ]
    steps += [("change", writes_others, 5, 1, 5)] + [("delete", again, 2, 0, 40)] * (kind not in ("owned", "later"))
    told: list[Any] = []
    for run in (do, do_by_hand):
        with suppress(Undone), open_one(KINDS[kind]) as db, db.write() as t:
            for number in range(12):
                t.rows[number] = Row(number, f"a{number}", number % 3 if number else None, ["t", str(number % 4)])
            told.append([*[run(t, step) for step in steps], dict(t.rows.items()), stored(t)])
            raise Undone
    assert told[0] == told[1]


@pytest.mark.parametrize("what", ["delete", "change", "edit"])
def test_the_keys_of_many_records_take_little_memory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, what: str
) -> None:
    tracemalloc = pytest.importorskip("tracemalloc")
    many = 60_000
    monkeypatch.setattr(changing, "_KEPT", 0)
    schema = type("One", (zlmdb.Schema,), {"__annotations__": {"rows": zlmdb.Table[int, int]}})
    with zlmdb.open(tmp_path / "db", schema, durability="none") as db, db.write() as t:
        t.rows.update({number: number for number in range(many)})
        chosen = t.rows.where(lambda number: number >= 0)
        tracemalloc.start()
        try:
            if what == "delete":
                found: Any = changing._keys_of(chosen)
            else:
                found = changing._rows_of(chosen)
            held = tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()
        assert len(found) == many
        assert held < 30 * many  # a list of them takes 49 for each, and one of pairs 113


def test_packed_keys_are_a_sequence() -> None:
    keys = [bytes([65 + n % 26]) * (n % 5 + 1) for n in range(23)]
    packed = foundrows.PackedKeys()
    for start in range(0, 23, 6):
        packed.add(keys[start : start + 6])
    packed.add([])
    rows = foundrows.FoundRows([(b"first", b"data")], packed)
    expected: list[Any] = [(b"first", b"data"), *[(key, None) for key in keys]]
    parts = [
        slice(None),
        slice(0, 1),
        slice(1, 1),
        slice(0, 5),
        slice(20, 99),
        slice(30, 40),
        slice(3, 17, 4),
        slice(-4, -1),
    ]
    for found, whole in ((packed, keys), (rows, expected)):
        assert list(found) == whole
        assert [found[n] for n in range(-len(whole), len(whole))] == whole * 2
        assert [found[part] for part in parts] == [whole[part] for part in parts]
        with pytest.raises(IndexError):
            found[len(whole)]
    assert list(rows.keys()) == [key for key, _ in expected]
    assert rows.stored() == [b"data"]
    assert list(foundrows.PackedKeys()) == foundrows.PackedKeys()[:9] == []


@pytest.mark.parametrize("kind", ["plain", "fed", "many"])
def test_a_damaged_record_behind_the_first_ones_refuses_the_whole_statement(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(cachedscans, "BLOCK", 3)
    with open_one(KINDS[kind]) as db, db.write() as t:
        for number in range(12):
            t.rows[number] = Row(number, f"a{number}", number, [])
        chosen = t.rows.where(lambda row: row.id != 5)
        t.txn._engine_txn.put(t.rows._lookup(7), b"\xff", db=t.rows._db)
        before = stored(t)
        for statement in (chosen.delete, lambda: chosen.change(lambda row: replace(row, b=1))):
            with pytest.raises(zlmdb.DecodeError, match=r"7"):
                statement()
            assert stored(t) == before
        assert t.rows.select(0, 7).where(lambda row: row.id != 5).delete() == 6
        assert sorted(t.rows.select(8).keys()) == [8, 9, 10, 11]
        assert list(t.rows.select(0, 7).keys()) == [5]
        t.txn.abort()


class Texts(zlmdb.Table[int, Row]):
    by_a = zlmdb.UniqueIndex[str]("a")
    by_note = zlmdb.Index[str]("note")


def encoded(t: Any, change: Any) -> list[str]:
    """The texts that are encoded while *change* changes all records."""
    found: list[str] = []

    def profile(frame: Any, event: str, argument: Any) -> None:
        if event == "c_call" and argument.__name__ == "encode" and isinstance(argument.__self__, str):
            found.append(argument.__self__)

    change(t)
    sys.setprofile(profile)
    try:
        change(t)
    finally:
        sys.setprofile(None)
    return found


@pytest.mark.skipif(
    sys.implementation.name != "cpython",
    reason="sys.setprofile, which counts the encodings here, tells of calls of C on CPython only",
)
def test_an_index_key_that_stays_is_not_encoded() -> None:
    def edited(t: Any) -> None:
        with t.rows.select().edit() as rows:
            for row in rows:
                row.b = row.id
                row.note = f"{row.note}+"

    with open_one(Texts) as db, db.write() as t:
        for number in range(3):
            t.rows[number] = Row(number, f"a{number}", None, [], "n")
        assert encoded(t, edited) == ["n++", "n+"] * 3
        assert encoded(t, lambda t: t.rows.select().change(lambda row: replace(row, b=7))) == []
        assert [note for note, _ in t.rows.by_note.groups()] == ["n++"]
        assert t.rows.by_a["a2"] == Row(2, "a2", 7, [], "n++")
        t.txn.abort()


def test_a_scan_of_an_index_still_comes_to_a_record_that_moved_before_it_was_changed() -> None:
    with open_one(Texts) as db, db.write() as t:
        for number in range(9):
            t.rows[number] = Row(number, f"a{number}", None, [], "n")
        scan = iter(t.rows.by_a.select())
        seen = [next(scan)[0]]
        t.rows[5] = Row(5, "A", None, [], "n")  # behind the scan
        with t.rows.select().edit() as rows:
            for row in rows:
                row.b = row.id
        assert t.rows.select().change(lambda row: replace(row, note="m")) == 9
        seen += [key for key, _ in scan]
        assert sorted(seen) == list(range(9))
        t.txn.abort()


class Writing:
    """Its encoder writes another record."""

    table: Any = None

    def __init__(self, number: int) -> None:
        self.number, self.note = number, ""

    def __getstate__(self) -> Any:
        if Writing.table is not None and self.number == 0:
            table, Writing.table = Writing.table, None
            later = Writing(2)
            later.note = "by the encoder"
            table[2] = later
        return self.__dict__


def test_what_an_encoder_writes_is_not_undone_by_what_was_read_before() -> None:
    with open_one(zlmdb.Table[int, zlmdb.Pickle[Writing]]) as db, db.write() as t:
        for number in range(3):
            t.rows[number] = Writing(number)
        Writing.table = t.rows
        try:
            with t.rows.select().edit() as rows:
                for row in rows:
                    row.note += "+"
        finally:
            Writing.table = None
        assert [row.note for row in t.rows.values()] == ["+", "+", "by the encoder+"]
        t.txn.abort()


def test_a_record_changed_after_the_block_began_is_read_again() -> None:
    with open_one(KINDS["plain"]) as db, db.write() as t:
        for number in range(4):
            t.rows[number] = Row(number, f"a{number}", None, [])
        with t.rows.where(lambda row: row.id > 1).edit() as rows:
            t.rows[2] = Row(2, "other", 7, ["x"])
            for row in rows:
                row.note = "edited"
        assert t.rows[2] == Row(2, "other", 7, ["x"], "edited")
        t.txn.abort()


CHANGING = str(Path(zlmdb.__file__).parent / "tables" / "changing.py")


@traces_instructions
@pytest.mark.parametrize("verb", ["change", "edit", "delete"])
def test_an_interrupted_statement_is_whole_or_not_committed(verb: str) -> None:
    """Whatever instruction it comes in; the program goes on in the block and commits."""
    rows = [Row(n, f"a{n}", n, ["t"]) for n in range(4)]

    def write(t: Any, at: int) -> bool:
        with interrupting(at, lambda name: name.startswith((CHANGING, "<zlmdb changes", "<zlmdb del"))) as count:
            do(t, (verb, moved, 1, 1, 2))
        return at <= count[0]

    at, more, refused = 1, True, 0
    with open_one(Many) as db:
        with suppress(Undone), db.write() as t:
            t.rows.update((row.id, replace(row)) for row in rows)
            do(t, (verb, moved, 1, 1, 2))  # what is generated is there, and not interrupted
            raise Undone
        while more:
            with db.write() as t:
                t.rows.update((row.id, replace(row)) for row in rows)
            try:
                with db.write() as t, suppress(*INTERRUPTS):
                    t.rows[0] = replace(rows[0], note="before")
                    more = write(t, at)
            except (zlmdb.TransactionPoisoned, zlmdb.DatabaseInUse):  # the latter if the savepoint is left open
                refused += 1
            assert db.check().ok
            with db.read() as t:
                changed = [t.rows.get(key) != rows[key] for key in (1, 2)]
                assert verb == "edit" or changed in ([True, True], [False, False])
            at += 11
    assert refused


@pytest.mark.parametrize("name", KINDS)
def test_a_change_that_returns_none_is_told_what_to_return(name: str) -> None:
    with open_one(KINDS[name]) as db, db.write() as t:
        t.rows.update({n: Row(n, str(n)) for n in range(3)})
        before = dict(t.rows.items())
        with pytest.raises(zlmdb.EncodeError) as caught:
            t.rows.select().change(lambda row: None)
        assert "the function returned None, which is not stored: return the record; delete() del" in str(caught.value)
        assert (caught.value.key, caught.value.table) == (0, "rows")
        assert dict(t.rows.items()) == before


def test_a_change_may_return_none_where_none_is_a_value() -> None:
    with open_one(zlmdb.Table[int, Optional[int]]) as db, db.write() as t:
        t.rows[1] = 3
        assert t.rows.select().change(lambda number: None) == 1
        assert dict(t.rows.items()) == {1: None}

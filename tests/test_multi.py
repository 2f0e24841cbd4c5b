"""Sets and lists of values: `SetTable` and `ListTable`, on each engine and layout."""

from __future__ import annotations

import io
import json
import random
from dataclasses import dataclass
from pathlib import Path
from types import new_class
from typing import Any

import pytest

import zlmdb

pytestmark = pytest.mark.twice  # what indexes and links hold does not depend on the version of Python


@dataclass
class Event:
    text: str
    size: int = 0


class Tags(zlmdb.SetTable[str, int], name="labels"):
    """What people are tagged with."""


class Store(zlmdb.Schema):
    tags: Tags
    events: zlmdb.ListTable[tuple[str, int], Event]
    words: zlmdb.SetTable[bytes, str]


@pytest.fixture
def db(make_db: Any) -> Any:
    return make_db(Store)


def test_a_set_has_each_value_once_and_sorted(db: Any) -> None:
    with db.write() as t:
        assert [t.tags.add("ann", value) for value in (3, 1, 3, -2)] == [True, True, False, True]
        assert t.tags["bob"].update([5, 4, 5]) == 2
        ann = t.tags["ann"]
        assert (list(ann), list(reversed(ann)), ann.first(), ann.last(), len(ann)) == ([-2, 1, 3], [3, 1, -2], -2, 3, 3)
        assert 3 in ann
        assert 4 not in ann
        assert list(ann.select(-1)) == [1, 3]
        assert list(ann.select(through=1, reverse=True)) == [1, -2]
        assert ann.select(1).count() == 2
        assert ann.select().page(2).rows == [-2, 1]
        assert ann.discard(1)
        assert not ann.discard(1)
        with pytest.raises(KeyError):
            ann.remove(1)
    with db.read() as t:
        assert list(t.tags.items()) == [("ann", -2), ("ann", 3), ("bob", 4), ("bob", 5)]
        assert (list(t.tags), len(t.tags), t.tags.count()) == (["ann", "bob"], 2, 4)
        assert (repr(t.tags), repr(t.tags["ann"])) == (
            "<Tags 'labels': 2 keys>",
            "<values of 'ann' in 'labels': [-2, 3]>",
        )
    assert db.check().ok


def test_a_list_keeps_the_order_and_equal_values(db: Any) -> None:
    a, b = Event("a"), Event("b", 2)
    with db.write() as t:
        mine = t.events["ann", 1]
        mine.extend([b, a])
        mine.append(b)
        assert not mine.add(a)
        assert mine.add(Event("c"))
        assert list(mine) == [b, a, b, Event("c")]
        assert (mine.first(), mine.last(), b in mine, Event("d") in mine) == (b, Event("c"), True, False)
        assert mine.discard(b)
        assert list(mine) == [a, b, Event("c")]
        mine.remove(Event("c"))
        mine.append(a)
        assert list(mine) == [a, b, a]
    assert db.check().ok


def test_a_key_without_values_is_not_stored(db: Any) -> None:
    with db.write() as t:
        none = t.tags["none"]
        assert (list(none), none.first(), len(none), bool(none), 1 in none) == ([], None, 0, False, False)
        assert list(none.select(1)) == []
        assert not none.discard(1)
        assert none.clear() == 0
        with pytest.raises(KeyError):
            del t.tags["none"]
        t.tags.add("one", 1)
        assert t.tags["one"]
        t.tags.discard("one", 1)
        assert "one" not in t.tags
        assert len(t.tags) == 0
    assert db.check().ok


def test_a_branch_of_keys_is_read_and_deleted(db: Any) -> None:
    with db.write() as t:
        for key in (("ann", 1), ("ann", 2), ("anna", 1)):
            t.events[key].extend([Event("x"), Event("y")])
        branch = t.events.select(prefix=("ann",))
        assert [(key, event.text) for key, event in branch] == [
            (("ann", 1), "x"), (("ann", 1), "y"), (("ann", 2), "x"), (("ann", 2), "y")
        ]  # fmt: skip
        assert [event.text for _, event in t.events.select(prefix=("ann",), reverse=True)] == ["y", "x", "y", "x"]
        assert branch.first() == (("ann", 1), Event("x"))
        assert (branch.count(), list(branch.keys()), bool(branch)) == (4, [("ann", 1), ("ann", 2)], True)
        assert branch.delete() == 4
        assert (list(t.events), bool(branch), branch.delete()) == ([("anna", 1)], False, 0)
        t.events.clear()
        assert (len(t.events), t.events.count()) == (0, 0)


def test_a_loop_ends_whatever_its_body_adds(db: Any) -> None:
    with db.write() as t:
        t.tags["a"].update([1, 2])
        for key, value in t.tags.items():
            t.tags.add(key, value + 10)
            t.tags.add(key + "x", value)
        assert sorted(t.tags["a"]) == [1, 2, 11, 12]


def test_random_changes_agree_with_sets_and_lists_of_python(db: Any) -> None:
    rnd = random.Random(7)
    sets: dict[str, set[int]] = {}
    lists: dict[tuple[str, int], list[Event]] = {}
    for _ in range(6):
        with db.write() as t:
            for _ in range(40):
                name, number = rnd.choice("abc"), rnd.randrange(5)
                key, event = (name, number % 2), Event("e", number)
                choice = rnd.randrange(6)
                if choice < 3:
                    assert t.tags.add(name, number) == (number not in sets.setdefault(name, set()))
                    sets[name].add(number)
                    t.events.append(key, event)
                    lists.setdefault(key, []).append(event)
                elif choice < 5:
                    assert t.tags.discard(name, number) == (number in sets.get(name, ()))
                    sets.get(name, set()).discard(number)
                    assert t.events.discard(key, event) == (event in lists.get(key, []))
                    if event in lists.get(key, []):
                        lists[key].remove(event)
                else:
                    assert t.tags["c"].clear() == len(sets.pop("c", ()))
                    assert t.events["c", 0].clear() == len(lists.pop(("c", 0), ()))
        with db.read() as t:
            assert {key: list(t.tags[key]) for key in t.tags} == {key: sorted(one) for key, one in sets.items() if one}
            assert {key: list(t.events[key]) for key in t.events} == {key: one for key, one in lists.items() if one}
    assert db.check().ok


def test_what_does_not_fit_changes_nothing_and_the_transaction_goes_on(db: Any) -> None:
    with db.write() as t:
        for key, value in (("ann", "x"), (7, 1), ("ann", 2**63), ("k" * 2000, 1)):
            with pytest.raises(zlmdb.EncodeError):
                t.tags.add(key, value)
        with pytest.raises(zlmdb.EncodeError, match=r"^table 'events', key \('a', 1\): .*Event.* got 'no event'"):
            t.events["a", 1].append("no event")
        uses = (t.tags.add, t.tags.discard, lambda key, value: value in t.tags[key])
        for use in (*uses, *uses, lambda key, value: t.tags[key].select(value)):
            with pytest.raises(zlmdb.EncodeError, match="^table 'labels', key 'ann': 'x' is not a value of") as raised:
                use("ann", "x")
            assert (raised.value.table, raised.value.key) == ("labels", "ann")
            if use is uses[-1]:
                t.tags.add("ann", 1)
    with db.read() as t:
        assert list(t.tags.items()) == [("ann", 1)]
        assert list(t.events) == []
        with pytest.raises(zlmdb.ReadonlyDatabase):
            t.tags.add("ann", 2)


def test_a_key_is_as_long_as_in_a_table_and_a_value_eight_bytes_shorter(tmp_path: Path) -> None:
    for version, limit in (("0.9", 511), ("1.0", 1978)):
        with zlmdb.open(tmp_path / version, Store, lib_version=version) as db, db.write() as t:
            assert t.words.add(b"k" * limit, "v" * (limit - 8))
            assert t.words.add(b"k", "")
            for key, value, most in ((b"k" * (limit + 1), "v", limit), (b"new", "v" * (limit - 7), limit - 8)):
                with pytest.raises(zlmdb.EncodeError, match=f"'words'.* takes {most + 1} bytes, at most {most} fit"):
                    t.words.add(key, value)
            assert list(t.words) == [b"k", b"k" * limit]
            assert list(t.words[b"k"]) == [""]


def test_the_table_is_found_by_its_attribute_and_its_parts_by_their_names(db: Any) -> None:
    with db.write() as t:
        t.tags.add("ann", 5)
        assert sorted(t) == ["events", "tags", "words"]
        assert isinstance(t["tags"], Tags)
        assert dict(t["tags.values"]) == {(0, 5): b""}
        with pytest.raises(AttributeError, match="cannot be replaced"):
            t.tags = 1
        kept = t.tags
    with pytest.raises(zlmdb.TransactionClosed):
        kept.add("ann", 6)
    with pytest.raises(AttributeError, match="Store.tags is a table"):
        Store.tags  # noqa: B018
    assert {"labels", "labels.values"} <= set(db.tables())


def test_a_failure_between_key_and_value_spoils_the_transaction(db: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any) -> None:
        raise KeyboardInterrupt

    def interrupted(t: Any) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(type(t.tags._numbers), "__setitem__", fail)
            with pytest.raises(KeyboardInterrupt):
                t.tags.add("ann", 5)

    with pytest.raises(zlmdb.TransactionPoisoned):
        db.run(interrupted)
    with db.read() as t:
        assert list(t.tags) == []


class Plain(zlmdb.Schema):
    tags: zlmdb.Table[str, int]


class Sets(zlmdb.Schema):
    tags: zlmdb.SetTable[str, int]


class Lists(zlmdb.Schema):
    labels: zlmdb.ListTable[str, int]


def test_a_set_is_no_table_of_numbers_and_no_list(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "db", Plain) as db, db.write() as t:
        t.tags["a"] = 5
    with pytest.raises(zlmdb.SchemaMismatch, match="int64"):
        zlmdb.open(tmp_path / "db", Sets)
    zlmdb.open(tmp_path / "other", Store).close()
    with pytest.raises(zlmdb.SchemaMismatch, match="set-number"):
        zlmdb.open(tmp_path / "other", Lists)


def test_check_finds_keys_without_values_and_values_without_keys(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "db", Store) as db:
        with db.write() as t:
            t.tags["a"].update([1, 2])
            t.tags["b"].update([1])
            del t.tags._values[1, 1]
            t.tags._values[9, 1] = b""
            t.tags._numbers["c"] = 0
        report = db.check()
    texts = sorted(problem.text for problem in report.problems)
    assert [text.partition(" of")[0].partition(" with")[0] for text in texts] == [
        "it has the values", "the key has no values", "the values"
    ]  # fmt: skip


def test_a_program_that_does_not_declare_it_writes_neither_part(make_db: Any, tmp_path: Path) -> None:
    with make_db(Store) as db, db.write() as t:
        t.tags.add("a", 1)
        t.events["a", 1].append(Event("x"))
        for name, key, value in (("labels", "b", 5), ("labels.values", (0, 2), b""), ("events", ("b", 1), 5)):
            kind = "List" if name == "events" else "Set"
            part = t._undeclared(name)
            assert part.count() == 1
            for write in (
                lambda: part.update({key: value}),  # noqa: B023
                lambda: part.select().delete(),  # noqa: B023
                lambda: part.clear(),  # noqa: B023
            ):
                with pytest.raises(zlmdb.SchemaMismatch, match=rf"{name.partition('.')[0]}: zlmdb\.{kind}Table\["):
                    write()
    with zlmdb.open(tmp_path / "file", Store) as db, db.write() as t:
        t.tags.add("a", 1)
    pytest.importorskip("click", reason="the command line needs click")
    from click.testing import CliRunner

    from zlmdb.cli import main

    done = CliRunner().invoke(main, ["delete", str(tmp_path / "file"), "labels", "a"])
    assert done.exit_code == 1
    assert "SetTable" in done.output


def test_copies_and_dumps_take_them_along(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path / "db", Store) as db:
        with db.write() as t:
            t.tags["a"].update([1, 2])
            t.events["a", 1].append(Event("x"))
        db.backup(tmp_path / "copy")
        with (tmp_path / "dump").open("wb") as out:
            db.dump(out)
    with zlmdb.open(tmp_path / "loaded", zlmdb.Schema) as db, (tmp_path / "dump").open("rb") as dumped:
        db.load(dumped)
    for name in ("copy", "loaded"):
        with zlmdb.open(tmp_path / name, Store) as db:
            with db.read() as t:
                assert list(t.tags.items()) == [("a", 1), ("a", 2)]
                assert list(t.events.items()) == [(("a", 1), Event("x"))]
            assert db.check().ok


def test_operations_without_a_block_refuse_sets_and_lists(db: Any) -> None:
    with pytest.raises(AttributeError, match="has no sets and lists of values: write `with db.write"):
        db.auto.tags  # noqa: B018
    assert list(db.auto) == []


def test_savepoints_undo_sets_and_lists(make_db: Any) -> None:
    def fail(t: Any) -> None:
        with t.txn.savepoint():
            t.tags.add("c", 1)
            t.tags["a"].clear()
            raise ZeroDivisionError

    with make_db(Store) as db, db.write() as t:
        t.tags.add("a", 1)
        with t.txn.savepoint():
            t.tags.add("b", 2)
        with pytest.raises(ZeroDivisionError):
            fail(t)
        t.tags.add("d", 3)
        assert list(t.tags.items()) == [("a", 1), ("b", 2), ("d", 3)]
        assert sorted(t.tags._numbers.values()) == [0, 1, 2]


def test_sets_and_lists_are_made_at_run_time(db: Any) -> None:
    colours = db.table("colours", zlmdb.SetTable[str, str])
    notes = db.table("notes", zlmdb.ListTable[int, str])
    assert db.table("colours", zlmdb.SetTable[str, str]) is colours
    with db.write() as t:
        t[colours].add("sky", "blue")
        t[notes][5].extend(["b", "a"])
        t.tags.add("x", 1)
    with db.read() as t:
        assert list(t[colours]["sky"]) == ["blue"]
        assert list(t[notes].items()) == [(5, "b"), (5, "a")]
        assert {"colours", "notes", "tags"} <= set(t)
    for wrong in (zlmdb.SetTable[str, int], zlmdb.ListTable[str, str]):
        with pytest.raises(zlmdb.SchemaMismatch):
            db.table("colours", wrong)
    with pytest.raises(ValueError, match="declared by Store"):
        db.table("tags", zlmdb.SetTable[str, int])
    with pytest.raises(zlmdb.SchemaMismatch, match="before"):
        db.table("colours", str, int)
    assert db.check().ok


def test_values_are_not_assigned(db: Any) -> None:
    with db.write() as t:
        with pytest.raises(TypeError, match=r"table\[key\]\.update\(values\)"):
            t.tags["a"] = {1}
        with pytest.raises(TypeError, match=r"table\[key\]\.extend\(values\)"):
            t.events["a", 1] = [Event("x")]


def test_the_description_of_a_table_is_that_of_the_program() -> None:
    """The file had the docstrings of zlmdb's own classes."""

    class Plain(zlmdb.Schema):
        tags: zlmdb.SetTable[str, str]
        events: zlmdb.ListTable[str, str]
        jobs: zlmdb.Queue[str]
        names: zlmdb.Table[str, str]

    class Words(zlmdb.SetTable[str, str]):
        """The words of each text."""

    class Described(zlmdb.Schema):
        words: Words

    for schema, expected in (Plain, set()), (Described, {"The words of each text."}):
        with zlmdb.open(None, schema) as db:
            stream = io.BytesIO()
            db.dump(stream)
        lines = [json.loads(line) for line in stream.getvalue().splitlines()]
        assert {line["description"] for line in lines if "description" in line} == expected


def test_wrong_declarations_say_what_to_write() -> None:
    class NoTypes(zlmdb.Schema):
        tags: zlmdb.SetTable

    class NoKey(zlmdb.Schema):
        tags: zlmdb.SetTable[str, dict]

    for schema, match in ((NoTypes, r"write SetTable\[KeyType, ValueType\]"), (NoKey, "dict is not a key type")):
        with pytest.raises(TypeError, match=match):
            zlmdb.open(None, schema)
    with pytest.raises(TypeError, match="annotate the attribute"):

        class Assigned(zlmdb.Schema):
            tags = zlmdb.SetTable[str, str]

    with pytest.raises(TypeError, match="makes no table"):
        Tags()
    for options, match in (
        ({"expires": "until", "ttl": 5}, r"Some\(..., expires=...\): only a zlmdb.Table has this option"),
        ({"nmae": "tags"}, r"Some\(..., nmae=...\): there is no such option; did you mean 'name'"),
    ):
        with pytest.raises(TypeError, match=match):
            new_class("Some", (zlmdb.SetTable[str, str],), options)
    with pytest.raises(TypeError, match=r"^Indexed.by_tag: only a zlmdb.Table has indexes and links"):

        class Indexed(zlmdb.SetTable[str, str]):
            by_tag = zlmdb.Index[str]("tag")


def test_values_of_a_key_are_no_list_and_say_what_to_write(db: Any) -> None:
    with db.write() as t:
        t.tags["ant"].update([2, 1])
        t.events["ant", 1].extend([Event("a", 1), Event("b", 2)])
        for values in (t.tags["ant"], t.tags.select(), t.events["ant", 1], t.events.select()):
            with pytest.raises(TypeError, match=r"write \.first\(\) or \.last\(\)"):
                values[0]
            with pytest.raises(TypeError, match=r"compare list\("):
                assert values == [1, 2]
        assert list(reversed(t.tags)) == ["ant"]
        with pytest.raises(TypeError, match=r"write \.count\(\)"):
            len(t.tags.select())


@pytest.mark.once
@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (lambda t: t.events["a", 1].pop(), r"'pop'.*is not replaced in it: a Table\[tuple\[K, int\], V\] has"),
        (lambda t: t.events["a", 1].insert(0, Event("x")), r"'insert'.*a Table\[tuple\[K, int\], V\] has"),
        (lambda t: t.events["a", 1].popleft(), r"value = values\.first\(\), then values\.discard\(value\)"),
        (lambda t: t.events["a", 1].update([]), r"write values\.extend\(others\)"),
        (lambda t: t.tags["a"].append(1), r"write values\.add\(value\)"),
        (lambda t: t.tags["a"].extend([1]), r"write values\.update\(others\)"),
        (lambda t: t.tags["a"].pop(), r"value = values\.first\(\), then values\.discard\(value\)"),
        (lambda t: t.tags["a"].intersection(t.tags["b"]), r"a set of Python has it: write set\(values\)\.intersection"),
        (lambda t: t.tags.get("a"), r"write table\[key\], which is empty if nothing was added"),
        (lambda t: t.tags.values(), r"write \.items\(\)"),
        (lambda t: t.events.pop(("a", 1)), r"write list\(table\[key\]\), then del table\[key\]"),
        (lambda t: t.events.put_many([]), r"write table\[key\]\.extend\(values\)"),
        (lambda t: t.tags.put_many([]), r"write table\[key\]\.update\(values\)"),
        (lambda t: t.tags.where(lambda tag: tag), r"loop over \.items\(\)"),
    ],
)
def test_a_method_of_python_or_redis_is_answered_with_ours(mistake: Any, said: str) -> None:
    with zlmdb.open(None, Store) as db, db.write() as t:
        t.tags["a"].add(1)
        with pytest.raises(AttributeError, match=said):
            mistake(t)
        assert not hasattr(t.tags, "put_many")
        assert "pop" not in dir(t.tags["a"])


@pytest.mark.once
@pytest.mark.skipif(not hasattr(AttributeError(), "obj"), reason="an AttributeError knows its object since Python 3.10")
def test_a_misspelt_method_of_values_is_answered_with_the_nearest() -> None:
    with zlmdb.open(None, Store) as db:
        with pytest.raises(AttributeError, match="'disrcad': did you mean 'discard'"), db.write() as t:
            t.tags["a"].disrcad(1)
        with pytest.raises(AttributeError, match="'counts': did you mean 'count'"), db.write() as t:
            t.tags.counts()


@pytest.mark.once
def test_positions_and_operators_of_values_say_what_is_there() -> None:
    """What the error names exists: a `ValueList` and the pairs have no ``select(limit=...)``."""
    with zlmdb.open(None, Store) as db, db.write() as t:
        t.events["a", 1].extend([Event("x"), Event("y")])
        for values in (t.events["a", 1], t.events.items(), t.tags["a"], t.tags.items()):
            with pytest.raises(TypeError, match=r"or \.last\(\) for one, itertools\.islice for some, list"):
                values[0:1]
        for change in ("values[0] = Event('z')", "del values[0]"):
            with pytest.raises(
                TypeError, match=r"\[0\]: values are not replaced by position: .*Table\[tuple\[K, int\]"
            ):
                exec(change, {"values": t.events["a", 1], "Event": Event})
        for wrong in (lambda: t.tags["a"] & t.tags["b"], lambda: t.tags["a"] | {1}, lambda: {1} - t.tags["a"]):
            with pytest.raises(TypeError, match=r"a set of Python has that operator: write set\(values\)"):
                wrong()


@pytest.mark.once
def test_what_a_shell_shows_after_the_transaction_has_ended() -> None:
    with zlmdb.open(None, Store) as db:
        with db.write() as t:
            t.tags["ann"].add(3)
            shown = [t.tags, t.tags["ann"], t.tags.select()]
            assert list(map(repr, shown))[1:] == [
                "<values of 'ann' in 'labels': [3]>",
                "<pairs of 'labels': [('ann', 3)]>",
            ]
        assert all("its transaction has ended" in repr(one) for one in shown)

"""Expired records: absent for every read, in nobody's way, and swept by writers or `Database.sweep`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import new_class
from typing import Any, Callable, NamedTuple, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

import zlmdb
from zlmdb.schema import indexbuilding
from zlmdb.tables import expiring

from .reliability.failing import Fuse, Fused

pytestmark = pytest.mark.twice  # what engines and tables do does not depend on the version of Python

NOW = [1000.0]


@dataclass
class Session:
    user: str
    until: Optional[float] = None
    tags: list[str] = field(default_factory=list)


class Sessions(zlmdb.Table[str, Session], expires="until"):
    by_user = zlmdb.Index[str]("user")
    by_key = zlmdb.UniqueIndex[str](lambda one: one.user + "!", version=1)
    by_tag = zlmdb.Index[str]("tags", each=True)


@dataclass
class Event:
    number: int
    at: datetime


class Events(zlmdb.Table[int, Event], expires="at", ttl=timedelta(hours=1)): ...


class Store(zlmdb.Schema):
    sessions: Sessions
    events: Events
    others: zlmdb.Table[str, Session]


@pytest.fixture
def db(make_db: Callable[..., Any]) -> Any:
    return opened(make_db)


def opened(make_db: Callable[..., Any]) -> Any:
    NOW[0] = 1000.0
    db = make_db(Store)
    db.clock = lambda: NOW[0]
    return db


@pytest.fixture
def memory() -> Iterator[zlmdb.Database[Store]]:
    NOW[0] = 1000.0
    with zlmdb.open(None, Store) as db:
        db.clock = lambda: NOW[0]
        yield db


def fill(db: Any) -> None:
    """Three that expire at 1010, three that do not, in turns."""
    with db.write() as t:
        for number in range(6):
            until = 1010.0 if number % 2 else [None, 2000.0][number // 2 % 2]
            t.sessions[f"k{number}"] = Session(f"u{number}", until, ["all", f"t{number}"])


LIVING = ["k0", "k2", "k4"]


def check_reads(table: Any) -> None:
    """That every way of reading sees k0, k2 and k4, and no other record."""
    gone = "k1"
    assert table.get(gone) is None
    assert gone not in table
    with pytest.raises(KeyError):
        table[gone]
    assert table["k2"].user == "u2"
    assert list(table) == list(table.keys()) == LIVING
    assert list(reversed(table)) == LIVING[::-1]
    assert len(table) == table.count() == table.select().count() == 3
    assert table.select(limit=2).count() == 2
    assert bool(table)
    assert not table.select("k1", "k2")
    assert not table.select("k5")
    assert [key for key, _ in table.items()] == [key for key, _ in table.select(reverse=True)][::-1] == LIVING
    assert [one.user for one in table.values()] == ["u0", "u2", "u4"]
    assert list(table.select("k1", "k4").keys()) == ["k2"]
    assert table.select("k1").first()[0] == "k2"
    assert table.select(through="k5").last()[0] == table.last()[0] == "k4"
    assert [value and value.user for value in table.get_many(["k0", "k1", "k2"])] == ["u0", None, "u2"]
    assert [key for key, _ in table.where(lambda one: one.user > "u0")] == ["k2", "k4"]
    assert table.where(lambda one: one.user != "u2").count() == 2
    assert [key for key, _ in table.order_by(lambda one: one.user, reverse=True)] == LIVING[::-1]
    assert list(table.fields(lambda one: one.user)) == ["u0", "u2", "u4"]
    assert table.group_by(lambda one: one.until, lambda group: group.count()) == {None: 2, 2000.0: 1}
    assert [key for key, _ in table.select().page(2).rows] == ["k0", "k2"]
    # by an index, which does not answer alone
    assert [key for key, _ in table.by_user.select()] == LIVING
    assert table.by_user.count() == table.by_user.select("u0", "u5").count() == 3
    assert not table.by_user["u1"]
    assert list(table.by_user["u2"].keys()) == ["k2"]
    assert "u3" not in table.by_user
    assert "u2" in table.by_user
    assert [key for key, _ in table.by_user.groups()] == ["u0", "u2", "u4"]
    assert table.by_user.last()[0] == "k4"
    assert table.by_key.get("u1!") is None
    assert "u1!" not in table.by_key
    with pytest.raises(KeyError):
        table.by_key["u3!"]
    with pytest.raises(KeyError):
        table.by_key.key("u3!")
    assert table.by_key["u4!"].user == "u4"
    assert table.by_key.count() == 3
    assert [key for key, _ in table.by_tag["all"]] == LIVING
    assert not table.by_tag["t1"]
    assert table.where(lambda one: "t3" in one.tags).count() == 0
    assert table.where(lambda one: one.user == "u3").first() is None
    assert [key for key, _ in table.where(lambda one: one.until is None or one.until < 3000)] == LIVING


def test_an_expired_record_is_absent_for_every_read(db: Any) -> None:
    fill(db)
    with db.read() as t:
        assert len(t.sessions) == 6
    NOW[0] = 1010.0
    for _ in range(2):
        with db.read() as t:
            check_reads(t.sessions)
    with db.write() as t:
        check_reads(t.sessions)
        with t.txn.savepoint():
            check_reads(t.sessions)
        check_reads(t.sessions)


def test_it_is_absent_where_buffers_are_asked_for_too(memory: Any) -> None:
    fill(memory)
    NOW[0] = 1010.0
    storages = memory._storages["sessions"]
    with memory.begin(buffers=True) as txn:
        table = storages[0]._bound(txn, storages[1])
        assert list(table) == LIVING
        assert [one.user for one in table.values()] == ["u0", "u2", "u4"]
        assert table.get("k1") is None
        assert len(table) == 3


@pytest.mark.parametrize("moment", [float, int, datetime])
def test_a_ttl_or_a_clock_beyond_all_times_is_the_end_of_time(moment: Any) -> None:
    @dataclass
    class One:
        until: moment

    class Ones(zlmdb.Table[int, One], expires="until"): ...

    class Kept(zlmdb.Table[int, One], expires="until", ttl=1e300): ...

    class Both(zlmdb.Schema):
        ones: Ones
        kept: Kept

    with zlmdb.open(None, Both) as db:
        for clock, expired in ((1e299, True), (-1e299, False), (float("inf"), True)):
            db.clock = lambda clock=clock: clock
            with db.write() as t:
                time = datetime(1970, 1, 2, tzinfo=timezone.utc) if moment is datetime else 86400
                t.ones[1] = t.kept[1] = One(time)
            with db.read() as t:
                assert [len(t.ones), len(t.kept)] == [1 - expired, 0 if clock == float("inf") else 1]


def test_whole_seconds_expire_at_their_time_with_a_clock_near_zero() -> None:
    """Times before 1970 were rounded up, as a clock of a test that begins with 0 gives them with a ttl."""

    @dataclass
    class Seen:
        at: int

    visits = new_class("Visits", (zlmdb.Table[str, Seen],), {"expires": "at", "ttl": 1})
    with zlmdb.open(None, type("Store", (zlmdb.Schema,), {"__annotations__": {"visits": visits}})) as db:
        for now, there in ((0.5, True), (0.999, True), (1.0, False)):
            db.clock = lambda now=now: now
            with db.write() as t:
                t.visits["a"] = Seen(0)
                assert ("a" in t.visits) is there


def test_the_clock_is_read_once_a_transaction(memory: Any) -> None:
    fill(memory)
    calls = []

    def clock() -> float:
        calls.append(1)
        NOW[0] += 6
        return NOW[0]

    memory.clock = clock
    with memory.read() as t:
        assert len(t.sessions) == 6
        assert len(t.events) == 0
        assert len(t.sessions) == 6
    assert len(calls) == 1
    with memory.read() as t:
        assert len(t.sessions) == 3
    assert len(calls) == 2
    assert memory.clock is clock


def test_the_clock_stays_when_the_file_is_replaced(tmp_path: Path) -> None:
    """Records were gone, or there again, as compact() set the clock to that of the machine."""
    with zlmdb.open(tmp_path / "db", Store) as db:
        db.clock = lambda: 1000.0
        fill(db)
        db.compact()
        with db.read() as t:
            assert len(t.sessions) == 6
        assert db.clock() == 1000.0


def test_what_is_not_swept_is_there_again_when_the_clock_is_set_back(memory: Any) -> None:
    fill(memory)
    now = NOW[0]
    with memory.read() as t:
        there = dict(t.sessions)
    NOW[0] = 1e9
    with memory.read() as t:
        assert len(t.sessions) < len(there)
    NOW[0] = now
    with memory.read() as t:
        assert dict(t.sessions) == there
        assert len(t.sessions) == len(there)


def test_an_expired_record_is_in_nobodys_way(db: Any) -> None:
    fill(db)
    NOW[0] = 1010.0
    with db.write() as t:
        with pytest.raises(KeyError):
            del t.sessions["k1"]
        assert t.sessions.pop("k1", None) is None
        with pytest.raises(KeyError):
            t.sessions.change("k1", lambda one: one)
        assert not t.sessions.replace("k1", Session("new"))
        # the key, the unique key of another, and both
        assert t.sessions.put_new("k1", Session("new", 2000.0))
        t.sessions["k9"] = Session("u3")
        t.sessions["k5"] = Session("u5")
        assert list(t.sessions) == ["k0", "k1", "k2", "k4", "k5", "k9"]
        assert t.sessions.by_key["u3!"] == Session("u3")
        with pytest.raises(zlmdb.DuplicateKey):
            t.sessions["k7"] = Session("u2")
        assert [key for key, _ in t.sessions.by_user.select()] == ["k1", "k0", "k2", "k9", "k4", "k5"]
    assert db.check().ok
    with db.read() as t:
        assert len(t.sessions) == 6


def test_a_savepoint_that_is_undone_leaves_the_transaction_as_it_was(db: Any) -> None:
    fill(db)
    NOW[0] = 1010.0
    with db.write() as t:
        with pytest.raises(ZeroDivisionError), t.txn.savepoint():  # noqa: PT012 - the error is to leave the block
            for number in range(9, 13):
                t.sessions[f"z{number}"] = Session(f"z{number}")
            raise ZeroDivisionError
        check_reads(t.sessions)
        t.sessions["k1"] = Session("u1")
        assert list(t.sessions) == ["k0", "k1", "k2", "k4"]
    assert db.check().ok


def test_writes_sweep_a_few_and_sweep_the_rest(db: Any) -> None:
    with db.write() as t:
        t.sessions.put_many([(f"k{number:03}", Session(f"u{number}", 1001.0)) for number in range(50)])
        t.events[1] = Event(1, datetime.fromtimestamp(NOW[0], timezone.utc))
    NOW[0] = 1002.0

    def stored() -> int:
        NOW[0] -= 100
        with db.read() as t:
            found = len(t.sessions)
        NOW[0] += 100
        return found

    assert stored() == 50
    with db.write() as t:
        t.sessions["a"] = Session("a")
    assert stored() == 49
    with db.write() as t:
        t.sessions.put_many([(f"b{number}", Session(f"b{number}")) for number in range(5)])
    assert stored() == 44
    with pytest.raises(ValueError, match="limit=-1"):
        db.sweep(-1)
    with pytest.raises(TypeError, match=r"limit=1\.5: expected the greatest number"):
        db.sweep(1.5)
    assert db.sweep(7) == 7
    assert db.sweep() == 31
    assert db.sweep() == 0
    assert stored() == 6
    with db.read() as t:
        assert len(t.events) == 1
    NOW[0] += 3600
    with db.read() as t:
        assert not t.events
    assert db.sweep() == 1
    assert db.check().ok


def test_a_record_that_has_expired_when_it_is_stored_is_not_there(db: Any) -> None:
    with db.write() as t:
        t.sessions["k"] = Session("u", 999.0)
        assert "k" not in t.sessions
        assert list(t.sessions) == []
        t.sessions["k"] = Session("u", 1001.0)
        assert list(t.sessions) == ["k"]
    with db.read() as t:
        assert len(t.sessions) == 1


def test_a_loop_that_writes_visits_what_was_there(db: Any) -> None:
    fill(db)
    NOW[0] = 1010.0
    seen = []
    with db.write() as t:
        for key, one in t.sessions.items():
            seen.append(key)
            t.sessions[key] = Session(one.user, 900.0 if key == "k2" else one.until)
            t.sessions["n" + key] = Session("n" + one.user)
        assert seen == LIVING
        assert list(t.sessions) == ["k0", "k4", "nk0", "nk2", "nk4"]
        seen = [key for key, _ in t.sessions.by_user.select()]
        assert seen == ["nk0", "nk2", "nk4", "k0", "k4"]
        assert t.sessions.select().delete() == 5
        assert not t.sessions
    assert db.sweep() <= 4
    assert db.check().ok


def test_clear_deletes_what_has_expired_too(db: Any) -> None:
    fill(db)
    NOW[0] = 1010.0
    with db.write() as t:
        t.sessions.clear()
    NOW[0] = 900.0
    with db.read() as t:
        assert len(t.sessions) == t.sessions.by_user.count() == 0
    assert db.check().ok


def test_an_index_that_is_rebuilt_still_leads_the_sweep_to_what_has_expired(db: Any) -> None:
    fill(db)
    NOW[0] = 1010.0
    with db.write() as t:
        for bound in t.sessions._indexes:
            t.sessions._rebuild(bound)
        check_reads(t.sessions)
    assert db.sweep() == 3
    assert db.check().ok


@given(st.lists(st.tuples(st.sampled_from("psdwcxui"), st.integers(0, 5), st.integers(0, 5)), max_size=30))
def test_random_operations_against_a_dict(steps: list[tuple[str, int, int]]) -> None:
    NOW[0] = 1000.0
    with zlmdb.open(None, Store) as db:
        db.clock = lambda: NOW[0]
        model: dict[str, Session] = {}
        for step, number, other in steps:
            if step == "w":
                NOW[0] += number
            if step == "s":
                db.sweep(number)
            model = {key: one for key, one in model.items() if one.until is None or one.until > NOW[0]}
            key, new = f"k{number}", Session(f"u{other}", None if other == 5 else NOW[0] + other - 1)
            taken = any(one.user == new.user and name != key for name, one in model.items())
            with db.write() as t:
                if step == "p" and taken:
                    with pytest.raises(zlmdb.DuplicateKey):
                        t.sessions[key] = new
                elif step == "p":
                    t.sessions[key] = new
                    model[key] = new
                elif step == "d":
                    assert (t.sessions.pop(key, None) is None) == (model.pop(key, None) is None)
                elif step == "c":
                    t.sessions.clear()
                    model.clear()
                elif step == "u" and not taken:
                    assert t.sessions.put_new(key, new) == (key not in model)
                    model.setdefault(key, new)
                model = {name: one for name, one in model.items() if one.until is None or one.until > NOW[0]}
                assert dict(t.sessions) == model
                assert sorted(t.sessions.by_user.select().keys()) == sorted(model)
            with db.read() as t:
                assert dict(t.sessions) == model
                assert len(t.sessions) == t.sessions.by_user.count() == len(model)
        assert db.check().ok


# -- the declaration and the file ---------------------------------------------------------------------------------


class Unaware(zlmdb.Table[str, Session], name="sessions"):
    by_user = zlmdb.Index[str]("user")
    by_key = zlmdb.UniqueIndex[str](lambda one: one.user + "!", version=1)
    by_tag = zlmdb.Index[str]("tags", each=True)


class Ignorant(zlmdb.Schema):
    sessions: Unaware


def test_a_program_that_lets_nothing_expire_may_not_write(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path, Store, durability="none") as db, db.write() as t:
        t.sessions["k"] = Session("u", 1.0)
    with zlmdb.open(tmp_path, Ignorant, durability="none") as other:
        with other.read() as u:
            assert len(u.sessions) == 1
        with pytest.raises(zlmdb.IndexNotAttached, match="expires"), other.write() as u:
            u.sessions["k"] = Session("u")
    with zlmdb.open(tmp_path, Ignorant, durability="none", drop_indexes=True) as other, other.write() as u:
        u.sessions["k2"] = Session("u2")


def test_an_existing_table_gets_an_expiry(tmp_path: Path) -> None:
    with zlmdb.open(tmp_path, Ignorant, durability="none") as other, other.write() as u:
        u.sessions["k"] = Session("u", 1.0)
        u.sessions["l"] = Session("v")
    with zlmdb.open(tmp_path, Store, durability="none", readonly=True) as db, db.read() as t:
        assert list(t.sessions) == ["l"]  # before the index of the times is built
    with zlmdb.open(tmp_path, Store, durability="none") as db:
        with db.read() as t:
            assert list(t.sessions) == ["l"]
        assert db.sweep() == 1


def test_a_made_table_and_a_derived_class_expire(memory: Any) -> None:
    class Derived(Events, name="derived"):
        """It inherits the expiry."""

    made = memory.table("derived", Derived)
    with memory.write() as t:
        t[made][1] = Event(1, datetime.fromtimestamp(NOW[0] - 3600, timezone.utc))
        t[made][2] = Event(2, datetime.fromtimestamp(NOW[0] - 3599, timezone.utc))
        assert list(t[made]) == [2]


WRONG: tuple[Any, ...] = (-1, "5", "", b"5", True, False, float("nan"), float("inf"), timedelta(-1), {}, 10**400)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"ttl": 3}, TypeError, "add expires="),
        ({"expires": 3}, TypeError, "the name of a field"),
        *[({"expires": "until", "ttl": ttl}, ValueError, "not negative") for ttl in WRONG],
        ({"expires": "user"}, TypeError, "expected datetime, or float or int"),
        ({"expires": "nothing"}, TypeError, "has no field 'nothing'"),
    ],
)
def test_a_declaration_that_makes_no_sense_is_refused(options: dict[str, Any], error: Any, text: str) -> None:
    def body(namespace: dict[str, Any]) -> None:
        namespace["__annotations__"] = {"wrong": new_class("Wrong", (zlmdb.Table[str, Session],), options)}
        namespace["__module__"] = __name__

    with pytest.raises(error, match=text):
        zlmdb.open(None, new_class("Wrongs", (zlmdb.Schema,), {}, body))


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
def test_a_program_without_expiry_does_not_load_it(tmp_path: Path) -> None:
    program = (
        "import sys, zlmdb\n"
        "class S(zlmdb.Schema):\n    a: zlmdb.Table[int, int]\n"
        "db = zlmdb.open(None, S)\n"
        "with db.write() as t: t.a[1] = 2\n"
        "print('zlmdb.tables.expiring' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]


def test_while_nothing_has_expired_the_engine_is_read_directly(memory: Any) -> None:
    fill(memory)
    with memory.read() as t:
        assert t.sessions._get.__self__ is t.txn._raw
        assert t.sessions.explain().count
    NOW[0] = 1010.0
    with memory.read() as t:
        assert t.sessions._get.__self__ is not t.txn._raw
    assert memory.sweep() == 3
    with memory.read() as t:
        assert t.sessions._get.__self__ is t.txn._raw


def test_what_has_expired_is_absent_without_a_block(memory: Any) -> None:
    fill(memory)
    sessions = memory.auto.sessions
    for now, found in ((1009.0, True), (1010.0, False), (1011.0, False)):
        NOW[0] = now
        for _ in range(3):
            assert (sessions.get("k1") is not None) == ("k1" in sessions) == found
            assert (sessions.by_key.get("u1!") is not None) == found
            assert len(sessions) == (6 if found else 3)
    assert sessions.put_new("k1", Session("u1"))


@dataclass
class Reading:
    sensor: str
    value: float
    until: float


class Readings(zlmdb.Table[int, Reading], expires="until"):
    by_sensor = zlmdb.Index[str]("sensor", carries=("value",))
    by_value = zlmdb.UniqueIndex[float]("value")


class Measured(zlmdb.Schema):
    readings: Readings


def test_no_index_answers_alone_for_what_has_expired() -> None:
    NOW[0] = 1000.0
    with zlmdb.open(None, Measured) as db:
        db.clock = lambda: NOW[0]
        with db.write() as t:
            for number in range(10):
                t.readings[number] = Reading("ab"[number % 2], number / 2, 1001.0 + number % 5)
        for now, living in ((1000.0, range(10)), (1003.0, [3, 4, 8, 9]), (1005.0, [])):
            NOW[0] = now
            for block in (db.read, db.write):
                with block() as t:
                    values = [number / 2 for number in living]
                    for sensor in "ab":
                        expected = [number / 2 for number in living if number % 2 == "ab".index(sensor)]
                        found = t.readings.by_sensor[sensor]
                        assert list(found.fields(lambda one: one.value)) == expected
                        assert found.count() == found.fields(lambda one: one.value).count() == len(expected)
                        assert found.fields(lambda one: one.value).sum() == sum(expected)
                        assert t.readings.where(lambda one: one.sensor == sensor).fields(  # noqa: B023 - used at once
                            lambda one: one.value
                        ).max() == max(expected, default=None)
                    assert sorted(t.readings.by_sensor.select().fields(lambda one: (one.sensor, one.value))) == sorted(
                        ("ab"[number % 2], number / 2) for number in living
                    )
                    assert list(t.readings.by_value.select().fields(lambda one: one.value)) == values
                    assert t.readings.where(lambda one: one.value >= 0).fields(lambda one: one.value).sum() == sum(
                        values
                    )
                    assert t.readings.by_value.count() == t.readings.by_sensor.count() == len(values)
                    groups = t.readings.group_by(lambda one: one.sensor, lambda group: group.count())
                    assert sum(groups.values()) == len(values)
                    assert [key for key, _ in t.readings.by_sensor.groups()] == sorted(groups)


def test_counts_and_conditions_do_not_read_what_has_expired(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look-up by an index read every record of the table, to know how many there are."""
    records = {f"k{number:03}": Session(f"u{number:03}", NOW[0] + 1 + number % 2 * 100) for number in range(400)}
    with memory.write() as t:
        t.sessions.update(records)
    NOW[0] += 10
    living = {key: one for key, one in records.items() if one.until > NOW[0]}
    judged = []
    judge = expiring.Expiring._has_expired
    monkeypatch.setattr(
        expiring.Expiring, "_has_expired", lambda self, value: judged.append(value) or judge(self, value)
    )
    for block in (memory.read, memory.write):
        with block() as t:
            assert len(t.sessions) == t.sessions.select().count() == len(living)
            assert not judged
            for user in ("u007", "u008", "u500"):
                found = t.sessions.where(lambda one: one.user == user)  # noqa: B023 - used at once
                expected = [pair for pair in living.items() if pair[1].user == user]
                assert found.all() == list(found) == expected
                assert found.first() == (expected[0] if expected else None)
                assert found.count() == len(expected)
            assert len(judged) < len(records) // 2
            judged.clear()
    with memory.write() as t:
        t.sessions["k008"] = Session("u008", NOW[0] + 50)  # deletes some, too
        living["k008"] = t.sessions["k008"]
        assert len(t.sessions) == len(living)
        assert dict(t.sessions) == living


# -- links --------------------------------------------------------------------------------------------------------


@dataclass
class Login:
    session: str


class Logins(zlmdb.Table[int, Login]):
    of = zlmdb.ForeignKey["Sessions"]("session", on_delete="cascade")


class Holds(zlmdb.Table[int, Login]):
    of = zlmdb.ForeignKey["Sessions"]("session")


class Linked(zlmdb.Schema):
    sessions: Sessions
    logins: Logins
    holds: Holds


def test_what_has_expired_is_absent_for_links_and_swept_with_what_it_entails() -> None:
    NOW[0] = 1000.0
    with zlmdb.open(None, Linked) as db:
        db.clock = lambda: NOW[0]
        with db.write() as t:
            t.sessions.update(a=Session("a", 1001.0), b=Session("b", 1002.0), c=Session("c", 1003.0))
            t.logins.update({1: Login("a"), 2: Login("c")})
            t.holds[1] = Login("b")
        NOW[0] = 1005.0
        with db.write() as t, pytest.raises(zlmdb.DanglingLink):
            t.logins[3] = Login("a")
        assert db.sweep(1) == 1
        with db.read() as t:
            assert list(t.logins) == [2]
        assert db.sweep() == 1  # the other one is held
        with db.read() as t:
            assert not t.logins
            assert not t.sessions
        with db.write() as t:
            del t.holds[1]
        assert db.sweep() == 1
        assert db.check().ok


def test_writes_go_on_to_delete_behind_what_others_hold() -> None:
    """Two records that were held were all that a write looked at, and the table grew until `sweep`."""
    NOW[0] = 1000.0
    held = 5
    with zlmdb.open(None, Linked) as db:
        db.clock = lambda: NOW[0]
        with db.write() as t:
            for number in range(held):
                t.sessions[f"held {number}"] = Session(f"held {number}", 1001.0)
                t.holds[number] = Login(f"held {number}")
        for number in range(100):
            NOW[0] += 1
            with db.write() as t:
                t.sessions[str(number)] = Session(str(number), NOW[0] + 2)
        assert db.tables()["sessions"].count < 3 * held
        with db.write() as t:
            t.holds.clear()
        NOW[0] += 10
        for _ in range(2 * held):
            with db.write() as t:
                t.sessions["last"] = Session("last")
        assert db.tables()["sessions"].count == 1  # those that were held are gone as well
        assert db.check().ok


def test_a_new_record_takes_the_place_of_an_expired_one_to_which_others_refer() -> None:
    NOW[0] = 1000.0
    writes: list[Callable[[Any], Any]] = [
        lambda sessions: sessions.__setitem__("b", Session("new")),
        lambda sessions: sessions.put_many([("b", Session("new"))]),
        lambda sessions: sessions.put_new("b", Session("new")),
        lambda sessions: sessions.setdefault("b", Session("new")),
        lambda sessions: sessions.change("b", lambda _: Session("new"), default=None),
    ]
    for write in writes:
        NOW[0] = 1000.0
        with zlmdb.open(None, Linked) as db:
            db.clock = lambda: NOW[0]
            with db.write() as t:
                t.sessions.update(b=Session("b", 1002.0, ["old"]), c=Session("c", 1002.0))
                t.holds[1] = Login("b")
            NOW[0] = 1005.0
            with db.write() as t:
                write(t.sessions)
                assert dict(t.sessions.items()) == {"b": Session("new")}
                assert t.sessions.by_tag["old"].count() == 0
                assert t.holds.of["b"].count() == 1
                with pytest.raises(zlmdb.StillLinked):
                    del t.sessions["b"]
            assert db.check().ok


def test_an_expired_record_to_which_others_refer_stays_where_the_new_one_is_refused() -> None:
    NOW[0] = 1000.0
    with zlmdb.open(None, Linked) as db:
        db.clock = lambda: NOW[0]
        with db.write() as t:
            t.sessions.update(b=Session("b", 1002.0), c=Session("c"))
            t.sessions["c!"] = Session("c2")
            t.holds[1] = Login("b")
        NOW[0] = 1005.0
        with db.write() as t:
            for wrong in (Session("c"), Session(3)):  # type: ignore[arg-type]
                with pytest.raises((zlmdb.DuplicateKey, zlmdb.EncodeError)):
                    t.sessions["b"] = wrong
            assert "b" not in t.sessions
        assert db.check().ok
        with db.write() as t:
            del t.holds[1]
        assert db.sweep() == 1


@dataclass
class Ticket:
    seat: int
    until: Optional[float] = None


class Seats(zlmdb.Table[int, str]): ...


class Loose(zlmdb.Table[int, Ticket], name="tickets", expires="until"): ...


class LooseHall(zlmdb.Schema):
    seats: Seats
    tickets: Loose


class ByLink(zlmdb.Table[int, Ticket], name="tickets", expires="until"):
    by_seat = zlmdb.ForeignKey[Seats]("seat")


class LinkedHall(zlmdb.Schema):
    seats: Seats
    tickets: ByLink


class Unique(zlmdb.Table[int, Ticket], name="tickets", expires="until"):
    by_seat = zlmdb.UniqueIndex[int]("seat")


class UniqueHall(zlmdb.Schema):
    seats: Seats
    tickets: Unique


@pytest.mark.parametrize("batch", [1, 1000])
@pytest.mark.parametrize(
    ("schema", "seat", "error"), [(LinkedHall, 7, "SchemaMismatch"), (UniqueHall, 1, "DuplicateKey")]
)
def test_what_has_expired_is_in_the_way_of_no_link_and_no_unique_index_that_is_declared_later(
    schema: Any, seat: int, error: str, batch: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexbuilding, "BATCH", batch)
    for path, until in ((tmp_path / "expired", 10.0), (tmp_path / "living", None)):
        with zlmdb.open(path, LooseHall) as db:
            db.clock = lambda: 0.0
            with db.write() as t:
                t.seats[1] = "front"
                t.tickets.update({1: Ticket(1), 2: Ticket(seat, 10.0), 3: Ticket(seat, until)})
    with zlmdb.open(tmp_path / "expired", schema) as db:
        with db.read() as t:
            assert list(t.tickets) == [1]
        assert db.check().ok
    with pytest.raises(getattr(zlmdb, error), match=r"\b3\b"):
        zlmdb.open(tmp_path / "living", schema)


# -- the change feed ----------------------------------------------------------------------------------------------


class Followed(zlmdb.Table[str, Session], expires="until", feed=True): ...


class Feeding(zlmdb.Schema):
    sessions: Followed


def test_what_is_swept_is_a_change() -> None:
    NOW[0] = 1000.0
    with zlmdb.open(None, Feeding) as db:
        db.clock = lambda: NOW[0]
        with db.write() as t:
            t.sessions.update(a=Session("a", 1001.0), b=Session("b", 1001.0), c=Session("c"))
        NOW[0] = 1002.0
        with db.write() as t:
            t.sessions["a"] = Session("new")
        assert db.sweep() == 0  # the write has deleted the other one
        found = [(change.key, change.old and change.old.user, change.new and change.new.user)
                 for change in db.changes("sessions", timeout=0)]  # fmt: skip
        assert found == [
            ("a", None, "a"), ("b", None, "b"), ("c", None, "c"),
            ("a", "a", None), ("a", None, "new"), ("b", "b", None),
        ]  # fmt: skip


class OneUser(zlmdb.Table[str, Session], expires="until", feed=True):
    by_user = zlmdb.UniqueIndex[str]("user")


class Owned(zlmdb.Table[int, Login]):
    of = zlmdb.ForeignKey[OneUser]("session", on_delete="cascade")


class Owning(zlmdb.Schema):
    sessions: OneUser
    logins: Owned


def test_what_a_refused_write_has_swept_is_gone_with_all_that_follows_and_the_refused_record_is_nowhere() -> None:
    """The record of the key had expired, and made way; the unique key of the new one belongs to a living record."""
    NOW[0] = 1000.0
    with zlmdb.open(None, Owning) as db:
        db.clock = lambda: NOW[0]
        with db.write() as t:
            t.sessions.update(a=Session("old", 1001.0), b=Session("taken"), c=Session("other", 1001.0))
            t.logins[1] = Login("a")
        number = db.changes("sessions", timeout=0).take(10)[-1].number
        NOW[0] = 1002.0
        with db.write() as t:
            with pytest.raises(zlmdb.DuplicateKey):
                t.sessions["a"] = Session("taken")
            with pytest.raises(zlmdb.EncodeError):
                t.sessions["a"] = Session(7)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
            assert (list(t.sessions), list(t.logins)) == (["b"], [])
        assert db.check().ok
        db.sweep()
        found = [(change.key, change.old and change.old.user, change.new and change.new.user)
                 for change in db.changes("sessions", after=number, timeout=0)]  # fmt: skip
        assert sorted(found) == [("a", "old", None), ("c", "other", None)]
        assert db.check().ok


@pytest.mark.parametrize("append", [False, True])
def test_of_a_list_of_records_those_that_have_expired_already_are_absent_at_once(db: Any, append: bool) -> None:
    with db.write() as t:
        for _ in range(3):  # the first record of a table is stored in another way
            t.sessions["z"] = Session("z")
            t.events[9] = Event(9, datetime.fromtimestamp(5000.0, timezone.utc))
        t.sessions.clear()
        t.events.clear()
        t.sessions.put_many([("a", Session("a", 999.0)), ("b", Session("b", 1001.0))], append=append)
        ages = (-4000.0, -1000.0)
        t.events.put_many(
            [(n, Event(n, datetime.fromtimestamp(1000.0 + age, timezone.utc))) for n, age in enumerate(ages)],
            append=append,
        )
        assert ([*t.sessions], [*t.events]) == (["b"], [1])
    with db.read() as t:
        assert ([*t.sessions], [*t.events]) == (["b"], [1])


def test_whatever_call_of_the_engine_fails_beside_an_expired_record_the_error_is_one_of_ours(tmp_path: Path) -> None:
    fuse = Fuse(lambda: zlmdb.lmdb.Error("mdb_get: Input/output error"))
    failed = 0
    with zlmdb.open(tmp_path / "db", Store, durability="none") as db:
        db._open_store.env = Fused(db._open_store.env, fuse)
        for at in range(1, 1000):
            db.clock = lambda: 1000.0
            with db.write() as t:
                t.sessions.update(a=Session("a", 1001.0), b=Session("b", 1001.0), c=Session("c", 1001.0))
            db.clock = lambda: 1002.0
            fuse.light(at)
            try:
                with db.write() as t:
                    t.sessions["a"] = Session("b")
            except zlmdb.Error:
                failed += 1
            calls, _ = fuse.calls, fuse.light(None)
            if calls < at:
                break
        db._open_store.env = db._open_store.env._inner
    assert failed > 5


def test_a_broken_record_is_named_where_another_one_has_expired(db: Any) -> None:
    with db.write() as t:
        t.sessions.update(b=Session("b"), a=Session("a", 999.0))
        t.sessions._raw.put(t.sessions._storage.encode_key("b"), b"?", True, True, False, t.sessions._db)
        with pytest.raises(zlmdb.DecodeError, match="key 'b'"):
            t.sessions["b"] = Session("new")
        with pytest.raises(zlmdb.DecodeError, match="key 'b'"):
            t.sessions["c"] = Session("b")
        t.txn.abort()


class Named(NamedTuple):
    name: str
    until: Optional[float]


_asked: list[str] = []


def _name(record: Named) -> str:
    _asked.append(record.name)
    return record.name


class Names(zlmdb.Table[int, zlmdb.Msgpack[Named]], expires="until"):
    by_name = zlmdb.UniqueIndex[str](_name, version=1)


class OfNames(zlmdb.Schema):
    names: Names


def test_a_refused_record_that_has_expired_already_is_tried_as_often_as_any_other() -> None:
    """Once more would be in a transaction that the first try may have broken."""
    counts: list[int] = []
    with zlmdb.open(None, OfNames) as db, db.write() as t:
        t.names[1] = Named("a", None)
        for until in (None, 1.0):
            _asked.clear()
            with pytest.raises(zlmdb.DuplicateKey):
                t.names[2] = Named("a", until)
            counts.append(len(_asked))
    assert counts[0] == counts[1] > 0


class Earlier(zlmdb.Schema):
    sessions: new_class("Sessions", (zlmdb.Table[str, Session],), {"expires": "until"})  # type: ignore[valid-type]
    lasting: zlmdb.Table[str, Session]
    others: zlmdb.Table[str, Session]


RENAMES = """
import sys, zlmdb
from dataclasses import dataclass, field
from typing import Annotated, Optional

@dataclass
class Session:
    person: Annotated[str, zlmdb.Was("user")]
    until: Optional[float] = None
    tags: list[str] = field(default_factory=list)

class Sessions(zlmdb.Table[str, Session], expires="until"): ...

class Later(zlmdb.Schema):
    sessions: Sessions
    lasting: zlmdb.Table[str, Session]

with zlmdb.open(sys.argv[1], Later) as db, db.write() as t:
    t.sessions["t"] = t.lasting["t"] = Session("eve")
"""


@pytest.mark.parametrize("expired", [False, True])
def test_a_running_program_whose_table_has_another_shape_now_reads_and_writes_its_other_tables(
    tmp_path: Path, expired: bool
) -> None:
    refused = pytest.raises(zlmdb.SchemaMismatch, match="newer than this program")
    with zlmdb.open(tmp_path / "db", Earlier) as db:
        db.clock = lambda: 6e9 if expired else 1e9
        with db.write() as t:
            t.sessions["s"], t.others["o"], t.lasting["s"] = Session("ann", 5e9), Session("ann"), Session("ann")
        for _ in range(2):  # tables that are kept for the next transaction
            with db.read() as t:
                assert "o" in t.others
                assert "s" in t.lasting
                assert ("s" in t.sessions) == (not expired)
            with db.write() as t:
                t.others["o"], t.sessions["s"], t.lasting["s"] = Session("bob"), Session("bob", 5e9), Session("bob")
        subprocess.run([sys.executable, "-c", RENAMES, str(tmp_path / "db")], check=True)
        writes: list[Callable[[Any], object]] = [
            lambda table: table.__setitem__("s", Session("eve")),
            lambda table: table.put_many([("s", Session("eve"))]),
            lambda table: table.pop("s", None),
            lambda table: table.setdefault("s", Session("eve")),
            lambda table: table.change("s", lambda one: None),
            lambda table: table.where(lambda one: True).delete(),
            lambda table: table.clear(),
        ]
        for write in writes:
            with db.read() as t:
                assert t.others["o"].user == "bob"
                for name in ("sessions", "lasting"):
                    with refused:
                        getattr(t, name).get("s")
            with db.write() as t:
                t.others["o"] = Session("bob")
                for name in ("sessions", "lasting"):
                    with refused:
                        write(getattr(t, name))
                    with t.txn.savepoint(), refused:
                        write(getattr(t, name))

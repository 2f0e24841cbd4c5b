"""Steps of a schema: each applied once, in order, whole or not at all, and recorded."""

from __future__ import annotations

import io
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from operated import Store, child, fill

import zlmdb
from zlmdb import Migration
from zlmdb.operations import progress
from zlmdb.store.tablescatalogue import TablesCatalogue

pytestmark = pytest.mark.twice  # what is in a file does not depend on the version of Python

LAYOUTS = pytest.mark.parametrize("layout", ["tables", "classic"])


def upper(t: Any) -> None:
    for key, user in list(t.users.items()):
        t.users[key] = replace(user, email=user.email.upper())


def count(t: Any) -> None:
    t.logins["total"] = len(t.users)


class First(Store):
    migrations = (Migration(1, "addresses in upper case", upper),)


class Second(Store):
    migrations = (*First.migrations, Migration(2, "count the users", count))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "db"


def start(path: Path, layout: Any = "tables") -> None:
    with zlmdb.open(path, Store, layout=layout, durability="none") as db:
        fill(db, 10)


@LAYOUTS
def test_steps_are_applied_in_order_and_once(layout: Any, path: Path) -> None:
    start(path, layout)
    with zlmdb.open(path, First) as db:
        assert db.schema_version == 0
        assert [(one.version, one.name) for one in db.migrate()] == [(1, "addresses in upper case")]
        assert db.schema_version == 1
        assert db.migrate() == []
    with zlmdb.open(path, Second) as db:
        told: list[Any] = []
        [applied] = db.migrate(progress=told.append)
        assert (applied.version, applied.puts) == (2, 1)
        assert told[-1].done == told[-1].total == 2
        with db.read() as t:
            assert t.logins["total"] == 10
            assert t.users.by_email["U7@EXAMPLE.COM"].name == "user 7"
        assert db.check().ok


@LAYOUTS
def test_a_dry_run_says_what_would_be_done_and_does_nothing(layout: Any, path: Path) -> None:
    start(path, layout)
    with zlmdb.open(path, Second) as db:
        tried = db.migrate(dry_run=True)
        assert [one.version for one in tried] == [1, 2]
        assert tried[0].puts == 20  # a record and an entry each
        assert db.schema_version == 0
        with db.read() as t:
            assert "total" not in t.logins
            assert "u7@example.com" in t.users.by_email


def test_a_step_that_raises_leaves_the_version_before_it(path: Path) -> None:
    def fail(t: Any) -> None:
        t.logins.clear()
        raise RuntimeError("no")

    class Broken(Store):
        migrations = (*First.migrations, Migration(2, "broken", fail), Migration(3, "never", count))

    start(path)
    with zlmdb.open(path, Broken) as db:
        with pytest.raises(RuntimeError, match="no"):
            db.migrate()
        assert db.schema_version == 1
        with db.read() as t:
            assert len(t.logins) == 10


def test_a_file_that_is_newer_than_the_program_is_refused(path: Path) -> None:
    start(path)
    with zlmdb.open(path, Second) as db:
        db.migrate()
    with pytest.raises(zlmdb.SchemaMismatch, match="use a newer program"):
        zlmdb.open(path, First)
    with zlmdb.open(path, Store) as db:  # a schema without steps says nothing about them
        assert db.schema_version == 2
        assert db.migrate() == []


def test_a_step_that_was_renamed_or_left_out_is_refused(path: Path) -> None:
    class Renamed(Store):
        migrations = (Migration(1, "something else", upper),)

    class LeftOut(Store):
        migrations = (Migration(2, "count the users", count),)

    start(path)
    with zlmdb.open(path, Second) as db:
        db.migrate()
    for schema in (Renamed, LeftOut):
        with pytest.raises(zlmdb.SchemaMismatch):
            zlmdb.open(path, schema)


def test_steps_out_of_order_are_a_mistake_of_the_program(path: Path) -> None:
    class Unordered(Store):
        migrations = (Migration(2, "b", count), Migration(1, "a", count))

    class NoStep(Store):
        migrations = (count,)

    with pytest.raises(ValueError, match="not after 2"):
        zlmdb.open(path, Unordered)
    with pytest.raises(TypeError, match="expected zlmdb.Migration"):
        zlmdb.open(path, NoStep)
    for wrong in (None, lambda: None, lambda t, old, more: None):
        steps: Any = {"migrations": (Migration(1, "first", count), Migration(2, "second", wrong))}
        with zlmdb.open(path, type("Wrong", (Store,), steps)) as db:
            with pytest.raises(TypeError, match=r"version 2 .*def step\(t, old\)"):
                db.migrate()
            assert db.schema_version == 0


def test_a_readonly_database_and_an_open_transaction_are_refused(path: Path) -> None:
    start(path)
    with zlmdb.open(path, First, readonly=True) as db, pytest.raises(zlmdb.ReadonlyDatabase):
        db.migrate()
    with zlmdb.open(path, First) as db, db.write(), pytest.raises(zlmdb.NestedTransaction):
        db.migrate()


def test_a_database_in_memory_is_migrated(tmp_path: Path) -> None:
    with zlmdb.open(None, Second) as db:
        fill(db, 3)
        assert len(db.migrate()) == 2
        assert db.schema_version == 2


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
def test_processes_that_migrate_at_once_apply_each_step_once(path: Path) -> None:
    start(path)
    program = f"""
import zlmdb
def step(t):
    t.counts["n"] = t.counts.get("n", 0) + 1
class Store(zlmdb.Schema):
    counts: zlmdb.Table[str, int]
    migrations = tuple([zlmdb.Migration(n, f"step {{n}}", step) for n in range(1, 21)])
with zlmdb.open({str(path)!r}, Store) as db:
    db.migrate()
"""
    processes = [subprocess.Popen(child(program), stderr=subprocess.PIPE, text=True) for _ in range(3)]
    for process in processes:
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
    with zlmdb.open(path, readonly=True) as db, db.read() as t:
        assert t["counts"]["n"] == 20
        assert db.schema_version == 20


@LAYOUTS
def test_the_version_goes_along_with_every_copy(layout: Any, path: Path, tmp_path: Path) -> None:
    start(path, layout)
    with zlmdb.open(path, Second) as db:
        db.migrate()
        db.backup(tmp_path / "copy")
        stream = io.BytesIO()
        db.dump(stream)
    zlmdb.Database.salvage(path, tmp_path / "salvaged")
    with zlmdb.open(None, zlmdb.Schema) as db:
        stream.seek(0)
        db.load(stream)
        assert db.schema_version == 2
    names = ["copy", "salvaged"]
    if layout == "classic":
        zlmdb.Database.convert(path, tmp_path / "converted")
        names.append("converted")
    for name in names:
        with zlmdb.open(tmp_path / name, Second) as db:
            assert db.schema_version == 2
            assert db.migrate() == []


def test_a_program_that_is_too_old_changes_nothing(path: Path) -> None:
    class Rows(zlmdb.Table[int, dict[str, int]]):
        by_new = zlmdb.Index[int](lambda row: row["new"], version=1)

    class New(zlmdb.Schema):
        rows: Rows
        migrations = (Migration(1, "one", lambda t: None), Migration(2, "two", lambda t: None))

    class Plain(zlmdb.Table[int, dict[str, int]]):
        """Without the index."""

    class Old(zlmdb.Schema):
        rows: Plain
        more: zlmdb.Table[str, int]
        migrations = New.migrations[:1]

    with zlmdb.open(path, New) as db:
        with db.write() as t:
            t.rows[1] = {"new": 7}
        db.migrate()
        with pytest.raises(zlmdb.SchemaMismatch, match="use a newer program"):
            zlmdb.open(path, Old)
        assert list(db.tables()) == ["rows"]
        with db.read() as t:
            assert t.rows.by_new[7].count() == 1
        assert db.check().ok


def test_a_table_that_waits_for_a_migration_is_named_once_in_the_error(tmp_path: Path) -> None:
    @dataclass
    class Before:
        name: str

    @dataclass
    class After:
        full: str

    class Old(zlmdb.Schema):
        users: zlmdb.Table[int, Before]

    def step(t: Any, old: Any) -> None:
        old.rewrite("users", lambda key, fields: {"full": fields["name"]})

    class New(zlmdb.Schema):
        users: zlmdb.Table[int, After]
        migrations = (zlmdb.Migration(1, "names", step),)

    with zlmdb.open(tmp_path / "db", Old) as db, db.write() as t:
        t.users[1] = Before("Ann")
    with zlmdb.open(tmp_path / "db", New) as db, db.read() as t:
        with pytest.raises(zlmdb.SchemaMismatch, match=r"call db\.migrate\(\)") as raised:
            t.users[1]
        assert str(raised.value).count("table 'users'") == 1


@dataclass
class Account:
    number: int
    code: int


class ByNumber(zlmdb.Table[int, Account], name="accounts", key="number"):
    """Accounts, as they were."""


class ByCode(zlmdb.Table[int, Account], name="accounts", key="code"):
    """Accounts, as they are."""


def test_the_file_gets_the_key_field_of_a_table_that_a_step_has_taken(path: Path) -> None:
    """It kept that of before, by which the command `put` refused records under their new keys."""

    class Old(zlmdb.Schema):
        accounts: ByNumber

    class New(zlmdb.Schema):
        accounts: ByCode
        migrations = (Migration(1, "by code", lambda t, old: take(t, old)),)

    def take(t: Any, old: Any) -> None:
        for fields in old.take("accounts").values():
            t.accounts.add(Account(**fields))

    with zlmdb.open(path, Old) as db, db.write() as t:
        t.accounts.add(Account(1, 20))
    with zlmdb.open(path, New) as db:
        db.migrate()
    with pytest.raises(zlmdb.SchemaMismatch, match="the keys in the file are those of the field 'code'"):
        zlmdb.open(path, Old)
    with zlmdb.open(path) as plain, plain.write() as u:
        accounts = u._undeclared("accounts", by_fields=True)
        assert accounts._storage.key_field is not None
        assert (list(accounts), accounts._storage.key_field.path) == ([20], "code")


def test_a_table_is_not_rewritten_for_another_key_field_under_its_old_keys(path: Path) -> None:
    class Old(zlmdb.Schema):
        accounts: ByNumber

    class New(zlmdb.Schema):
        accounts: ByCode
        migrations = (Migration(1, "by code", lambda t, old: old.rewrite("accounts", lambda key, fields: fields)),)

    with zlmdb.open(path, Old) as db, db.write() as t:
        t.accounts.add(Account(1, 20))
    with (
        zlmdb.open(path, New) as db,
        pytest.raises(zlmdb.SchemaMismatch, match="takes its keys from the field 'code', which is 20 in the value"),
    ):
        db.migrate()


@LAYOUTS
def test_each_loop_over_the_records_tells_its_progress(
    layout: Any, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last step told nothing while it stored millions of records in their new shape and built their indexes."""
    monkeypatch.setattr(progress, "EVERY", 4)

    @dataclass
    class Before:
        name: str

    @dataclass
    class After:
        full: str

    class Numbered(zlmdb.Table[int, Before]):
        pass

    class Named(zlmdb.Table[int, After]):
        by_full = zlmdb.Index[str](lambda row: row.full, version=1)

    class Old(zlmdb.Schema):
        rows: Numbered

    class New(zlmdb.Schema):
        rows: Named
        migrations = (
            Migration(1, "names", lambda t, old: old.rewrite("rows", lambda key, fields: {"full": fields["name"]})),
        )

    with zlmdb.open(path, Old, layout=layout, durability="none") as db, db.write() as t:
        t.rows.put_many([(n, Before(f"name {n}")) for n in range(10)])
    told: list[Any] = []
    with zlmdb.open(path, New) as db:
        db.migrate(progress=told.append)
    total = 10 if layout == "tables" else None  # of a part of a keyspace nobody knows
    ends = [(4, total), (8, total), (10, 10)]
    stages = ["1 names: rows", "1 names: rows fits", "1 names: index rows.by_full"]
    assert [(one.stage, one.done, one.total) for one in told if one.stage != "migrations"] == [
        (stage, *end) for stage in stages for end in (ends if stage != stages[0] else [(4, 10), (8, 10), (10, 10)])
    ]
    assert told[-1] == ("migrations", 1, 1)


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_disk_that_fails_while_the_steps_of_the_file_are_read_is_an_error_of_ours(
    path: Path, monkeypatch: pytest.MonkeyPatch, dry_run: bool
) -> None:
    start(path)
    real: Any = TablesCatalogue.migrations
    left = [0]

    def fails(self: Any, txn: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            raise zlmdb.lmdb.DiskError("No space left on device")
        return real(self, txn)

    monkeypatch.setattr(TablesCatalogue, "migrations", fails)
    failed = 0
    with zlmdb.open(path, First) as db:
        while True:
            left[0] = failed + 1
            try:
                done = db.migrate(dry_run=dry_run)
            except zlmdb.DiskError:
                failed += 1
            else:
                break
    assert [one.version for one in done] == [1]
    assert failed >= 2

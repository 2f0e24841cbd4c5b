"""Fork: the child opens anew, what it inherited is refused, and the parent's snapshots stay right row by row.

Closing the inherited environment in the child would free the parent's reader slots, and its open snapshots would then
return pages that the writer has reused. Each scenario runs in a process of its own, since pytest's has threads.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import zlmdb

from . import workers

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork()")

PRELUDE = """
import gc, os, sys, warnings
import zlmdb

class Store(zlmdb.Schema):
    rows: zlmdb.Table[int, str]

FIRST = [(i, f"first {i}") for i in range(2000)]

def opened():
    db = zlmdb.open(sys.argv[1], Store)
    with db.write() as t:
        t.rows.put_many(FIRST)
    for _ in range(12):  # fill the cache of spare read transactions
        with db.read() as t:
            len(t.rows)
    return db

def in_child(work):
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            work()
            status = 0
        except BaseException:
            import traceback
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0, "the child failed"

def refuses(call, error):
    try:
        call()
    except error:
        return
    raise SystemExit(f"{call} did not raise {error.__name__}")

def churn(db, word):
    # More rewrites than LMDB keeps snapshots for: pages that no reader holds are reused.
    for i in range(20):
        with db.write() as t:
            t.rows.put_many((key, f"{word} {i} {key}") for key, _ in FIRST)
"""


def run(script: str, tmp_path: Path) -> None:
    """Run *script* after the prelude; it fails by a traceback or an exit status."""
    program = PRELUDE + textwrap.dedent(script)
    environment = workers.surroundings()
    command = [sys.executable, "-c", program, str(tmp_path / "data")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_parents_snapshot_stays_right_row_by_row_whatever_the_child_does(tmp_path: Path) -> None:
    run(
        """
        db = opened()
        snapshot = db.read()
        half = iter(snapshot.rows.select())
        next(half)

        def child():
            global snapshot, half, db
            with db.read() as t:
                assert len(t.rows) == 2000
            churn(db, "child")
            snapshot = half = None
            gc.collect()
            db.close()
            db = None
            gc.collect()

        for round in range(3):
            in_child(child)
            churn(db, f"parent {round}")
            assert list(snapshot.rows.items()) == FIRST
        assert [next(half)] + list(half) == FIRST[1:]
        snapshot.txn.abort()
        """,
        tmp_path,
    )


def test_a_transaction_carried_over_raises_in_the_child(tmp_path: Path) -> None:
    run(
        """
        db = opened()
        reading = db.read()
        half = iter(reading.rows.select())
        next(half)
        keys = reading.rows.select().keys()
        begun = db.begin()
        begun.__enter__()

        def child():
            refuses(lambda: reading.rows[1], zlmdb.ForkedTransaction)
            refuses(lambda: list(reading.rows.items()), zlmdb.ForkedTransaction)
            refuses(lambda: len(reading.rows), zlmdb.ForkedTransaction)
            refuses(lambda: next(half), zlmdb.ForkedTransaction)
            refuses(lambda: list(keys), zlmdb.ForkedTransaction)
            refuses(lambda: begun.get(b"x"), zlmdb.TransactionClosed)
            begun.abort()

        in_child(child)
        assert reading.rows[1] == "first 1"
        assert len(list(half)) == 1999
        reading.txn.abort()
        begun.abort()
        """,
        tmp_path,
    )


def test_a_write_transaction_carried_over_does_not_touch_the_parents(tmp_path: Path) -> None:
    run(
        """
        db = opened()
        with db.write() as t:
            t.rows[1] = "written by the parent"
            def child():
                refuses(lambda: t.rows.__setitem__(2, "by the child"), zlmdb.TransactionClosed)
                t.txn.abort()
            in_child(child)
            assert t.rows[1] == "written by the parent"
            assert t.rows[2] == "first 2"
        with db.read() as t:
            assert t.rows[1] == "written by the parent"
            assert t.rows[2] == "first 2"
        """,
        tmp_path,
    )


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
def test_the_child_reads_although_its_parent_is_writing(tmp_path: Path) -> None:
    """Nor does it wait for ever to write: the parent here waits for the child."""
    run(
        """
        db = opened()
        with db.write() as t:
            t.rows[1] = "changed"
            def child():
                with db.read() as mine:
                    assert dict(mine.rows) == dict(FIRST)
                def write():
                    with db.write(timeout=0.05):
                        pass
                refuses(write, zlmdb.WriterTimeout)
            in_child(child)
        with db.read() as t:
            assert t.rows[1] == "changed"
        """,
        tmp_path,
    )


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
def test_the_child_that_read_beside_its_parents_writing_writes_after_it(tmp_path: Path) -> None:
    run(
        """
        db = opened()
        looked, ended = os.pipe(), os.pipe()
        t = db.write().__enter__()
        t.rows[1] = "changed"
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                with db.read() as mine:
                    assert mine.rows[1] == "first 1"
                    os.write(looked[1], b"x")
                    os.read(ended[0], 1)
                    refuses(db.write().__enter__, zlmdb.DatabaseInUse)
                with db.write() as mine:
                    assert mine.rows[1] == "changed"
                    mine.rows[2] = "by the child"
                status = 0
            finally:
                os._exit(status)
        os.read(looked[0], 1)
        t.txn.commit()
        os.write(ended[1], b"x")
        assert os.waitpid(pid, 0)[1] == 0
        with db.read() as t:
            assert (t.rows[1], t.rows[2]) == ("changed", "by the child")
        """,
        tmp_path,
    )


def test_the_child_opens_anew_and_both_write(tmp_path: Path) -> None:
    run(
        """
        db = opened()

        def child():
            with db.write() as t:
                t.rows[5000] = "from the child"
            with db.read() as t:
                assert t.rows[5000] == "from the child"

        in_child(child)
        with db.write() as t:
            assert t.rows[5000] == "from the child"
            t.rows[5001] = "from the parent"
        in_child(lambda: db.run(lambda t: t.rows[5001]))
        """,
        tmp_path,
    )


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
def test_the_child_of_a_child_names_itself_as_the_writer(tmp_path: Path) -> None:
    run(
        """
        db = opened()

        def grandchild():
            with db.write() as t:
                with open(db._open_store.writer.path) as file:
                    assert int(file.read(20)) == os.getpid()

        in_child(lambda: in_child(grandchild))
        """,
        tmp_path,
    )


def test_a_lock_that_another_thread_held_without_an_environment_is_not_inherited(tmp_path: Path) -> None:
    run(
        """
        import signal, threading
        db = opened()
        held, done = threading.Event(), threading.Event()

        def swap():  # as compact() does
            with db._open_store.writing(None), db._open_store.lock:
                db._open_store.suspend()
                held.set()
                done.wait()

        def child():
            signal.alarm(10)
            with db.read() as t:
                assert dict(t.rows) == dict(FIRST)

        thread = threading.Thread(target=swap, daemon=True)
        thread.start()
        held.wait()
        in_child(child)
        done.set()
        thread.join()
        with db.read() as t:
            assert dict(t.rows) == dict(FIRST)
        """,
        tmp_path,
    )


def test_closing_and_opening_in_the_child_leaves_the_parent_alone(tmp_path: Path) -> None:
    run(
        """
        db = opened()
        snapshot = db.read()

        def child():
            other = zlmdb.open(sys.argv[1], Store)
            with other.read() as t:
                assert len(t.rows) == 2000
            other.close()
            db.close()
            with zlmdb.open(sys.argv[1], Store) as again, again.write() as t:
                t.rows.clear()

        in_child(child)
        assert list(snapshot.rows.items()) == FIRST
        snapshot.txn.abort()
        with db.read() as t:
            assert len(t.rows) == 0
        """,
        tmp_path,
    )


def test_other_options_than_those_of_the_parent_are_refused_with_the_fork_as_the_reason(tmp_path: Path) -> None:
    run(
        """
        db = zlmdb.open(sys.argv[1], Store, durability="none")
        def child():
            try:
                zlmdb.open(sys.argv[1], Store)
            except zlmdb.DatabaseInUse as error:
                assert "which was forked while it was open, with durability='none', not" in str(error), error
            db.close()
            zlmdb.open(sys.argv[1], Store).close()
        in_child(child)
        try:
            zlmdb.open(sys.argv[1], Store)
        except zlmdb.DatabaseInUse as error:
            assert "is already open in this process with durability='none', not" in str(error), error
        db.close()
        """,
        tmp_path,
    )


def test_a_database_in_memory_is_copied_into_the_child(tmp_path: Path) -> None:
    run(
        """
        db = zlmdb.open(None, Store)
        with db.write() as t:
            t.rows[1] = "one"

        def child():
            with db.write() as t:
                assert t.rows[1] == "one"
                t.rows[2] = "two"
            with db.read() as t:
                assert len(t.rows) == 2

        in_child(child)
        with db.read() as t:
            assert list(t.rows) == [1]
        """,
        tmp_path,
    )


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
def test_py_lmdb_still_asks_for_the_identity_of_files_where_the_child_intervenes(tmp_path: Path) -> None:
    run(
        """
        import lmdb, lmdb._envid
        asked = []
        original = lmdb._envid.env_keys
        lmdb._envid.env_keys = lambda *args: asked.append(args) or original(*args)
        lmdb.open(sys.argv[1]).close()
        assert asked, "engines.lmdb.engine.LmdbEngine.in_child relies on it"
        """,
        tmp_path,
    )


USES = """
class Persons(zlmdb.Table[int, dict]):
    by_age = zlmdb.Index[int](lambda person: person["age"], version=1)
    by_name = zlmdb.UniqueIndex[str](lambda person: person["name"], version=1)

class Both(zlmdb.Schema):
    persons: Persons
    rows: zlmdb.Table[int, int]

def uses(t, write):
    begun = {
        "scan": iter(t.rows.items()), "index": iter(t.persons.by_age.select()),
        "backwards": iter(t.rows.select(reverse=True)),
        "condition": iter(t.persons.where(lambda p: p["age"] > 2)), "fields": iter(t.rows.values()),
    }
    for iterator in begun.values():
        next(iterator), next(iterator)
    rows, persons, txn = t.rows, t.persons, t.txn
    selection, view, keys, values = rows.select(), persons.by_name, rows.keys(), rows.select().values()
    calls = {
        **{name: lambda iterator=iterator: next(iterator) for name, iterator in begun.items()},
        "[]": lambda: rows[1], "get": lambda: rows.get(1), "in": lambda: 1 in rows, "len": lambda: len(rows),
        "get_many": lambda: list(rows.get_many([1])), "select": lambda: list(selection), "count": selection.count,
        "first": selection.first, "last": selection.last, "bool": lambda: bool(selection),
        "keys": lambda: list(keys), "values": lambda: list(values), "items": lambda: list(rows.items()),
        "view": lambda: view["p1"], "in view": lambda: "p1" in view, "range": lambda: list(persons.by_age.select(1, 3)),
        "schema": lambda: t["rows"],
        "raw get": lambda: txn.get(b"key"), "id": txn.id, "enter": t.__enter__, "commit": txn.commit,
        "set": lambda: rows.__setitem__(1, 1), "delete": lambda: rows.__delitem__(1), "clear": rows.clear,
        "add": lambda: rows.add(1), "pop": lambda: rows.pop(1), "put_many": lambda: rows.put_many([(1, 1)]),
        "edit": persons.edit(1).__enter__, "savepoint": txn.savepoint().__enter__,
        "raw put": lambda: txn.put(b"k", b"v"),
        "delete all": selection.delete, "after commit": lambda: txn.after_commit(print),
    }
    return {(write, name): call for name, call in calls.items()}

def fill(db):
    with db.write() as t:
        t.rows.update((n, n) for n in range(100))
        t.persons.update((n, {"age": n, "name": f"p{n}"}) for n in range(100))

def check_all(db):
    fill(db)
    reading, block = db.read(), db.write()
    writing = block.__enter__()
    calls = {**uses(reading, False), **uses(writing, True)}

    def child():
        for name, call in calls.items():
            try:
                call()
            except zlmdb.ForkedTransaction:
                continue
            except BaseException as error:
                raise SystemExit(f"{name}: {error!r}")
            raise SystemExit(f"{name} did not raise")
        with db.read() as t:
            assert len(t.rows) == 100

    in_child(child)
    assert len(dict(reading.rows)) == 100
    block.__exit__(None, None, None)
"""


@pytest.mark.parametrize("path", ["sys.argv[1]", "None"], ids=["disk", "memory"])
def test_every_use_of_what_was_inherited_is_refused(path: str, tmp_path: Path) -> None:
    """The loops of C, too, which ask nobody whether they may go on."""
    run(f"{USES}\ncheck_all(zlmdb.open({path}, Both))\n", tmp_path)


@pytest.mark.skipif(sys.implementation.name == "pypy", reason="PyPy calls LMDB without counting the calls")
def test_a_fork_while_other_threads_write(tmp_path: Path) -> None:
    """py-lmdb waits for the calls of other threads before it frees an environment; in the child they never return."""
    run(
        """
        import signal, threading, time

        db = opened()
        stopped = threading.Event()

        def write(number):
            while not stopped.is_set():
                with db.write() as t:
                    t.rows[number] = "again"

        def ended(pid):
            until = time.monotonic() + 20
            while time.monotonic() < until:
                done, status = os.waitpid(pid, os.WNOHANG)
                if done:
                    return status == 0
                time.sleep(0.002)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return False

        threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        try:
            for turn in range(60):
                pid = os.fork()
                if pid == 0:
                    with db.read() as t:
                        assert len(t.rows) == 2000
                    if turn % 20:
                        os._exit(0)
                    sys.exit(0)  # the end of Python frees what is left
                assert ended(pid), "the child did not end"
        finally:
            stopped.set()
        """,
        tmp_path,
    )


def test_a_child_that_leaves_a_copy_of_its_parent_removes_nothing(tmp_path: Path) -> None:
    """A child of a fork in a function that is told the progress, which raises, deleted the file that was written."""
    run(
        """
        class Left(Exception):
            pass

        path = sys.argv[1]
        opened().close()
        copies = {
            "backup": lambda told: db.backup(path + "backup", progress=told, compact=False),
            "restore": lambda told: zlmdb.Database.restore(path, path + "restore", progress=told),
            "salvage": lambda told: zlmdb.Database.salvage(path, path + "salvage", progress=told),
        }
        with zlmdb.open(path, Store) as db:
            for name, copy in copies.items():
                for stage in ("copy", "verify", "rows"):
                    children = []

                    def told(progress):
                        if progress.stage == stage and not children:
                            children.append(os.fork())
                            if children == [0]:
                                raise Left

                    try:
                        copy(told)
                    except Left:
                        os._exit(0)
                    except FileExistsError:
                        continue  # it has no such stage, and the copy was made before
                    assert all(os.waitpid(child, 0)[1] == 0 for child in children)
                    with zlmdb.open(path + name, Store) as there, there.read() as t:
                        assert len(t.rows) == 2000
                    if children:
                        zlmdb.Database.scratch(path + name)
        """,
        tmp_path,
    )


def test_a_child_closes_within_a_time_what_its_parent_has_submitted_to(tmp_path: Path) -> None:
    """It waited for functions that only its parent runs."""
    run(
        """
        import threading
        db = opened()
        go, begun = threading.Event(), threading.Event()

        def held(t):
            begun.set()
            go.wait(30)

        waits = [db.submit(held), db.submit(lambda t: None)]
        begun.wait(30)
        in_child(lambda: db.close(timeout=1))
        go.set()
        for one in waits:
            one.result(30)
        db.close(timeout=5)
        """,
        tmp_path,
    )


def test_a_child_that_knows_nothing_of_what_was_opened_as_it_was_forked_is_in_nobodys_way(tmp_path: Path) -> None:
    """Its parent, which opened the database again, was refused: another process with its own number had it open."""
    run(
        """
        import threading, time
        from zlmdb.engines.lmdb import presence
        real, opening, go = presence.share, threading.Event(), threading.Event()

        def share(*given):  # the locks are taken, and nobody knows it yet
            found = real(*given)
            opening.set()
            go.wait(30)
            return found

        presence.share = share
        opens = threading.Thread(target=lambda: opened().close())
        opens.start()
        opening.wait(30)
        pid = os.fork()
        if pid == 0:
            time.sleep(60)
            os._exit(0)
        presence.share = real
        go.set()
        opens.join()
        try:
            opened().close()
        finally:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
        """,
        tmp_path,
    )


def test_a_fork_while_another_thread_opens_waits_for_that(tmp_path: Path) -> None:
    """The child knew nothing of the file, and LMDB there said that it was open in this process already."""
    script = """
import threading, time
from zlmdb.engines.lmdb import engine
opens = engine.lmdb.open
begun = threading.Event()
def slowly(*args, **given):
    env = opens(*args, **given)
    begun.set()
    time.sleep(0.3)
    return env
engine.lmdb.open = slowly
dbs = []
thread = threading.Thread(target=lambda: dbs.append(opened()))
thread.start()
begun.wait()
def work():
    engine.lmdb.open = opens
    with zlmdb.open(sys.argv[1], Store) as db, db.write() as t:
        t.rows[5000] = "child"
in_child(work)
thread.join()
with dbs[0].read() as t:
    assert t.rows[5000] == "child"
dbs[0].close()
"""
    run(script, tmp_path)


def test_a_fork_waits_for_imports_that_zlmdb_has_asked_others_for(tmp_path: Path) -> None:
    """Between zlmdb and Python's importer there are `importlib.import_module`, and what looks for an encoding."""
    script = """
from zlmdb.store import fork
found = {}
class Look:
    def find_spec(self, name, *others):
        found[name] = fork._imports(sys._getframe())
sys.meta_path.insert(0, Look())
opened().close()
zlmdb.Cache(sys.argv[1] + "cache").close()
assert found["zlmdb.engines.lmdb.engine"], found
assert found.get("encodings.ascii", True), "it may be there from the start"
"""
    run(script, tmp_path)


KILLED = """
import os, signal, sys, threading, time
import zlmdb
from zlmdb.cache import file
from zlmdb.store import lockfile

class Store(zlmdb.Schema):
    rows: zlmdb.Table[int, str]

begun = threading.Event()
path = sys.argv[1]

def slow(function, seconds):
    def slowly(*args):
        made = function(*args)
        begun.set()
        time.sleep(seconds)
        return made
    return slowly

def child_of_a_killed_one(works):
    thread = threading.Thread(target=works, daemon=True)
    thread.start()
    begun.wait()
    if os.fork():
        time.sleep(1)
        os.kill(os.getpid(), signal.SIGKILL)
    print("child", flush=True)
    sys.stdin.read()
    os._exit(0)
"""


def killed(script: str, tmp_path: Path) -> subprocess.Popen[str]:
    """The process of *script*, which was killed, and has a child that lives until its input ends."""
    done = subprocess.Popen(
        [sys.executable, "-c", KILLED + script, str(tmp_path / "db")], env=workers.surroundings(), text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert done.stdout is not None
    assert done.stdout.readline() == "child\n"
    done.wait(60)
    return done


@pytest.mark.once  # its processes have to start, which takes a while on PyPy
def test_a_child_holds_no_lock_of_a_parent_that_was_killed_as_it_wrote(tmp_path: Path) -> None:
    """The thread had just mapped the lock file as memory, by one more descriptor, which the child did not know."""
    script = """
lockfile.make_room = slow(lockfile.make_room, 0.3)
def works():
    with zlmdb.open(path, Store) as db, db.write() as t:
        t.rows[1] = "a"
        time.sleep(60)
child_of_a_killed_one(works)
"""
    zlmdb.open(tmp_path / "db", zlmdb.Schema).close()
    process = killed(script, tmp_path)
    try:
        with zlmdb.open(tmp_path / "db") as db, db.write(timeout=5):
            pass
    finally:
        process.communicate()


@pytest.mark.once
def test_a_child_holds_no_lock_of_a_parent_that_was_killed_as_it_opened_a_database_anew(tmp_path: Path) -> None:
    """As after a copy had taken its place. The child would have had it open, too, as far as others see."""
    script = """
from zlmdb.engines.lmdb import presence
db = zlmdb.open(path, Store)
def works():
    presence.share = slow(presence.share, 0.3)
    db.compact()
    time.sleep(60)
child_of_a_killed_one(works)
"""
    zlmdb.open(tmp_path / "db", zlmdb.Schema).close()
    process = killed(script, tmp_path)
    try:
        with zlmdb.open(tmp_path / "db", zlmdb.Schema) as db:
            db.compact()  # of one that nobody else has open
    finally:
        process.communicate()


@pytest.mark.once
def test_a_child_keeps_nobody_out_of_a_cache_that_its_killed_parent_was_opening(tmp_path: Path) -> None:
    """It has the only user's lock while it marks the cache."""
    script = """
file.CacheFile._write_mark = slow(file.CacheFile._write_mark, 60)
child_of_a_killed_one(lambda: zlmdb.Cache(path))
"""
    process = killed(script, tmp_path)
    try:
        opened = subprocess.run(
            [sys.executable, "-c", "import sys, zlmdb; zlmdb.Cache(sys.argv[1]).close()", str(tmp_path / "db")],
            env=workers.surroundings(), timeout=20, check=True,
        )  # fmt: skip
        assert opened.returncode == 0
    finally:
        process.communicate()


def test_a_fork_while_another_thread_computes_a_cached_value_does_not_leave_the_child_waiting(tmp_path: Path) -> None:
    """Before Python 3.12, `functools.cached_property` holds a lock meanwhile."""
    script = """
import signal, threading, time
from zlmdb.schema.declaration import Declaration
form = vars(Declaration)["indexes"]
work = getattr(form, "function", None) or form.func
begun = threading.Event()
def slowly(self):
    begun.set()
    time.sleep(1)
    return work(self)
setattr(form, "function" if hasattr(form, "function") else "func", slowly)
thread = threading.Thread(target=lambda: form.__get__(made))
made = Declaration.__new__(Declaration)
made._declared = {}
thread.start()
begun.wait()
def child():
    signal.alarm(10)
    other = Declaration.__new__(Declaration)
    other._declared = {}
    assert other.indexes == {}
in_child(child)
thread.join()
"""
    run(script, tmp_path)

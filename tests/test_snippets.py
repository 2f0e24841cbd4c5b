"""The lines of the documentation that are no doctests do what the pages say, each in a program that is made around it.

A block of Python that no test runs is refused: add it to those below.
"""

from __future__ import annotations

import ast
import asyncio
import re
import subprocess
import sys
import textwrap
import time
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Annotated, Any, Optional
from uuid import UUID, uuid4

import pytest
from hypothesis import given, settings, strategies

import zlmdb

pytestmark = pytest.mark.once  # the pages are the same everywhere

DOCS = Path(__file__).resolve().parent.parent / "docs"
BLOCK = re.compile(r"^(?:\.\. code-block:: python\n(?:   :.*\n)*|(?!\.\.).*::\n)\n((?:[ ]{3,}.*\n|\n)+)", re.MULTILINE)
ELSEWHERE = {"testing": "import pytest", "design": "", "operate": "mkdir data"}  # run by test_testing.py; no Python


def snippets(page: str) -> list[str]:
    text = (DOCS / f"{page}.rst").read_text(encoding="utf-8")
    return [textwrap.dedent(block).strip("\n") for block in BLOCK.findall(text) if ">>>" not in block]


def snippet(page: str, beginning: str) -> str:
    """The block of a page that begins so."""
    [block] = [one for one in snippets(page) if one.startswith(beginning)]
    return block


def run(page: str, beginning: str, **names: Any) -> dict[str, Any]:
    """Run a block with these names; returns the names that there are afterwards."""
    names = {"zlmdb": zlmdb, "Any": Any, "UUID": UUID, **names}
    exec(compile(snippet(page, beginning), f"docs/{page}.rst", "exec", dont_inherit=True), names)
    return names


class Log:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def error(self, text: Any, *given: Any) -> None:
        self.lines.append(str(text) % given)


@dataclass
class User:
    name: str
    email: str


class Users(zlmdb.Table[int, User], feed=True):
    pass


class Store(zlmdb.Schema):
    users: Users


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with a database of two users in ``data``."""
    monkeypatch.chdir(tmp_path)
    with zlmdb.open("data", Store, durability="none") as db, db.write() as t:
        t.users.update({1: User("Ann Lee", "Ann@x"), 2: User("Bob Day", "BOB@x")})
    return tmp_path


def test_a_backup_is_made_checked_and_restored(place: Path) -> None:
    Path("copies").mkdir()
    log = Log()
    run("operate", 'with zlmdb.open("data", Store) as db:\n    db.backup', Store=Store, log=log)
    assert log.lines == []
    with zlmdb.open("data", Store) as db, db.write() as t:
        t.users.clear()
    run("operate", "zlmdb.Database.restore(")
    with zlmdb.open("data", Store) as db, db.read() as t:
        assert len(t.users) == 2


def test_values_have_a_checksum(place: Path) -> None:
    schema = run("operate", "class Store(zlmdb.Schema):\n    users: zlmdb.Table[UUID, zlmdb.Checked", User=User)[
        "Store"
    ]
    with zlmdb.open(None, schema) as db, db.write() as t:
        key = t.users.add(User("Ann", "a@x"))
        assert t.users[key] == User("Ann", "a@x")


def test_a_file_from_elsewhere_is_checked_and_salvaged(place: Path) -> None:
    zlmdb.Database.salvage("data", "suspect")
    with zlmdb.open("data", Store) as db:
        db.backup("upload.mdb")
    log = Log()
    assert run("operate", "for problem in zlmdb.Database.verify(", Store=Store, log=log)["report"].complete
    assert log.lines == []


def test_a_dump_is_loaded(place: Path) -> None:
    with zlmdb.open("data", Store) as db:
        run("operate", 'with open("all.jsonl"', db=db)
    with zlmdb.open("other", Store) as db, db.read() as t:
        assert [user.name for user in t.users.values()] == ["Ann Lee", "Bob Day"]


def test_a_classic_file_is_converted(place: Path) -> None:
    @zlmdb.table("40ce61ae-3c59-45f3-9a5b-0d8f7c4c3a20", marshal=vars, parse=lambda data: User(**data))
    class Old(zlmdb.MapOidCbor):
        pass

    @zlmdb.table("40ce61ae-3c59-45f3-9a5b-0d8f7c4c3a21")
    class ByEmail(zlmdb.MapStringOid):
        pass

    by_hand = zlmdb.MapUuidCbor(7)
    with zlmdb.Database("old", layout="classic") as db:
        users, emails = db.attach_table(Old), db.attach_table(ByEmail)
        users.attach_index("by_email", emails, lambda user: user.email)
        with db.begin(write=True) as txn:
            users[txn, 1] = User("Ann", "a@x")
            by_hand[txn, uuid4()] = {"a": 1}
    report = run("operate", "report = zlmdb.Database.convert(", Users=Old, UsersByEmail=ByEmail)["report"]
    assert (sum(report.records.values()), report.failed) == (3, 0)


def test_a_migration_changes_records_once(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("changing", 'def lower_addresses(t: "Store")', Users=Users, replace=replace)
    assert capsys.readouterr().out == "1 addresses in lower case 2\n"
    with zlmdb.open("data", Store) as db, db.read() as t:
        assert [user.email for user in t.users.values()] == ["ann@x", "bob@x"]


def test_migrations_split_and_merge(tmp_path: Path) -> None:
    steps = run("changing", 'def split_names(t: "Store"', Store=Store, Party=Party)

    class New(zlmdb.Schema):
        users: zlmdb.Table[UUID, Split]
        parties: zlmdb.Table[UUID, Party]
        migrations = (
            zlmdb.Migration(1, "split names", steps["split_names"]),
            zlmdb.Migration(2, "merge", steps["merge"]),
        )

    with zlmdb.open(tmp_path, Former) as db, db.write() as t:
        t.users.add(Aged("Ann Mary Lee", "31"))
        t.people.add(Named("Bob"))
        t.firms.add(Firm("Cid & Co", "DE1"))
    with zlmdb.open(tmp_path, New) as db:
        db.migrate()
        with db.read() as t:
            assert list(t.users.values()) == [Split("Ann", "Mary Lee", 31)]
            assert sorted(party.name for party in t.parties.values()) == ["Bob", "Cid & Co"]
        assert sorted(db.tables()) == ["parties", "users"]


@dataclass
class Aged:
    name: str
    age: str


@dataclass
class Named:
    name: str


@dataclass
class Firm:
    name: str
    tax: str


@dataclass
class Party:
    name: str
    tax: Optional[str] = None


@dataclass
class Split:
    first: str
    last: str
    age: int


class Former(zlmdb.Schema):
    users: zlmdb.Table[UUID, Aged]
    people: zlmdb.Table[UUID, Named]
    firms: zlmdb.Table[UUID, Firm]


def test_the_entries_of_a_diskcache_are_copied_with_what_is_left_of_their_time(
    tmp_path: Path, monkeypatch: Any
) -> None:
    diskcache = pytest.importorskip("diskcache", exc_type=ImportError, reason="diskcache is not installed")
    monkeypatch.chdir(tmp_path)
    with diskcache.Cache("old") as old:
        old.set("a", {1, 2})
        old.set("b", 2, expire=1000, tag="t")
        old.set(7, None)
        old.set("gone", 1, expire=1e-9)
    run("cache", "with diskcache.Cache(", diskcache=diskcache, time=time)
    with zlmdb.Cache("new", str, zlmdb.Pickle) as new:
        assert [(key, new.get(key), new.details(key).tag) for key in new] == [
            ("7", None, None), ("a", {1, 2}, None), ("b", 2, "t"),
        ]  # fmt: skip
        assert [900 < (new.details(key).expire_time or 1e12) - time.time() < 1001 for key in new] == [
            False,
            False,
            True,
        ]


def test_two_loops_follow_changes_and_a_feed_is_bounded(place: Path) -> None:
    loops = snippet("changes", "for change in db.changes(Users, consumer=").replace("timeout=None", "timeout=0.01")
    source = textwrap.indent(loops.replace("...", "seen.append(change.key); changes += 1"), "    ")
    names: dict[str, Any] = {"Users": Users}
    exec(f"async def follow(db, seen):\n    changes = 0\n{source}\n    return changes", names)
    seen: list[int] = []
    with zlmdb.open("data", Store) as db:
        assert asyncio.run(names["follow"](db, seen)) == 4  # nothing is acknowledged
    assert seen == [1, 2, 1, 2]
    bounded = run("changes", "class Users(zlmdb.Table[int, User], feed=", User=User, timedelta=timedelta)["Users"]
    assert issubclass(bounded, zlmdb.Table)


def test_a_query_of_the_books(tmp_path: Path) -> None:
    class Shop(zlmdb.Schema):
        books: zlmdb.Table[int, Book]

    with zlmdb.open(None, Shop) as db, db.write() as t:
        t.books.update({1: Book(1980, "NO"), 2: Book(1999, "SE"), 3: Book(1999, "DE")})
        assert eval(snippet("following", "t.books.where("), {"t": t}).keys().all() == [2]


@dataclass
class Book:
    year: int
    country: str


def test_rows_of_another_database_become_records() -> None:
    sqlalchemy = pytest.importorskip("sqlalchemy", exc_type=ImportError, reason="SQLAlchemy is not installed")
    orm = pytest.importorskip("sqlalchemy.orm")
    base = orm.declarative_base()

    class OldUser(base):  # type: ignore[misc,valid-type]
        __tablename__ = "old"
        id = sqlalchemy.Column(sqlalchemy.Integer, primary_key=True)
        name = sqlalchemy.Column(sqlalchemy.String)
        email = sqlalchemy.Column(sqlalchemy.String)

    class Django:  # the one method chain that the page uses
        def values_list(self, *names: str) -> Django:
            self.names = names
            return self

        def iterator(self) -> Iterator[tuple[Any, ...]]:
            return iter([tuple({"id": 8, "name": "Bob", "email": "b@x"}[name] for name in self.names)])

    sqlalchemic, django, store = snippet("coming", "rows = session.execute(").splitlines()
    engine = sqlalchemy.create_engine("sqlite://")
    base.metadata.create_all(engine)
    with orm.Session(engine) as session, zlmdb.open(None, Store) as db, db.write() as t:
        session.add(OldUser(id=7, name="Ann", email="a@x"))
        session.flush()
        names = {"session": session, "select": sqlalchemy.select, "OldUser": OldUser, "User": User, "t": t}
        exec(f"{sqlalchemic}\n{store}", names)
        OldUser.objects = Django()
        exec(f"{django}\n{store}", names)
        assert dict(t.users) == {7: User("Ann", "a@x"), 8: User("Bob", "b@x")}
    engine.dispose()


@dataclass
class Person:
    name: str
    age: int
    born: datetime


class Persons(zlmdb.Table[int, Person]):
    by_age = zlmdb.Index[int]("age")
    by_birth = zlmdb.Index[datetime]("born")


class People(zlmdb.Schema):
    users: Persons


def test_hypothesis_makes_records() -> None:
    names = {"st": strategies, "settings": settings, "given": given, "timezone": timezone, "People": People}
    run("testing", "users = st.builds(", User=Person, **names)["test_a_record_comes_back"]()


@dataclass
class Reading:
    id: int
    degrees: float


@dataclass
class Sale:
    id: int
    city: Optional[str]
    amount: int
    time: datetime


class Figures(zlmdb.Schema):
    readings: zlmdb.Table[int, Reading]
    sales: zlmdb.Table[int, Sale]


def test_records_become_a_frame_and_rows_of_a_frame_become_records() -> None:
    pandas = pytest.importorskip("pandas", exc_type=ImportError, reason="pandas is not installed")
    numpy = pytest.importorskip("numpy", reason="numpy is not installed")
    whole, some, array = snippet("coming", "pandas.DataFrame(map(").splitlines()
    with zlmdb.open(None, Figures) as db, db.write() as t:
        t.readings.update({1: Reading(1, 0.5), 2: Reading(2, 1.5)})
        names = {"pandas": pandas, "numpy": numpy, "t": t}
        assert eval(whole.partition("  #")[0], names).degrees.tolist() == [0.5, 1.5]
        assert eval(some, names)["id"].tolist() == [1, 2]
        assert eval(array.partition("  #")[0], names).tolist() == [0.5, 1.5]
        times = pandas.to_datetime(["2026-01-01T00:00Z", "2026-02-01T00:00Z"])
        frame = pandas.DataFrame({"id": [1, 2], "city": ["Bonn", None], "amount": [3, 4], "time": times})
        run("coming", "rows = frame.astype(object)", frame=frame, Sale=Sale, t=t)
        assert list(t.sales.values()) == [
            Sale(1, "Bonn", 3, datetime(2026, 1, 1, tzinfo=timezone.utc)),
            Sale(2, None, 4, datetime(2026, 2, 1, tzinfo=timezone.utc)),
        ]


@dataclass
class Article:
    id: str
    likes: int = 0


class Articles(zlmdb.Table[str, Article], key="id"):
    pass


class Site(zlmdb.Schema):
    articles: Articles


def test_a_long_answer_and_a_database_for_each_test_of_a_service() -> None:
    fastapi = pytest.importorskip("fastapi", exc_type=ImportError, reason="FastAPI is not installed")
    client = pytest.importorskip("fastapi.testclient").TestClient
    app = fastapi.FastAPI()
    opened = []

    def memory(schema: Any) -> Any:
        opened.append(zlmdb.open(None, schema))
        return opened[-1]

    with zlmdb.open(None, Site) as db:
        db.auto.articles.update({"a": Article("a"), "b": Article("b", 2)})
        names = {"app": app, "db": db, "AsyncGenerator": AsyncGenerator}
        names["StreamingResponse"] = fastapi.responses.StreamingResponse
        run("webservice", '@app.get("/export")', **names)
        assert client(app).get("/export").text == "a,0\nb,2\n"
        names |= {"Store": Site, "Article": Article, "Annotated": Annotated, "Depends": fastapi.Depends}
        block = snippet("webservice", "def get_db()").replace(
            "-> Article: ...", "-> Article:\n    return db.auto.articles[id]"
        )
        source = block.replace("@pytest.fixture\n", "")
        names |= {"zlmdb": zlmdb, "TestClient": client}
        exec(source, names)
        assert client(app).get("/articles/b").json() == {"id": "b", "likes": 2}
        for test_client in names["client"](memory):  # type: ignore[operator]
            opened[0].auto.articles["z"] = Article("z", 9)
            assert test_client.get("/articles/z").json()["likes"] == 9
        opened[0].close()
        assert not app.dependency_overrides


def test_a_like_is_counted_with_flask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flask = pytest.importorskip("flask", exc_type=ImportError, reason="Flask is not installed")
    monkeypatch.chdir(tmp_path)
    names = run(
        "webservice",
        "db = zlmdb.open(",
        Flask=flask.Flask,
        abort=flask.abort,
        Store=Site,
        Article=Article,
        __name__=__name__,
    )
    with names["db"] as db:
        db.auto.articles["a"] = Article("a", 4)
        client = names["app"].test_client()
        answers = [client.post(f"/articles/{id}/likes") for id in "ax"]
        assert [(answer.status_code, answer.json) for answer in answers] == [(200, {"likes": 5}), (404, None)]


def test_a_server_of_asyncio_alone_ends_by_its_signal(tmp_path: Path) -> None:
    """In a process of its own, to which the signal is sent. The function for aiohttp is called as aiohttp calls it."""
    program = f"""
import asyncio, os, signal, zlmdb
from collections.abc import AsyncGenerator
from functools import partial
from types import SimpleNamespace
from dataclasses import dataclass
@dataclass
class Article:
    id: str
class Store(zlmdb.Schema):
    articles: zlmdb.Table[str, Article]
class web:
    Application = dict
async def follow(db):
    await asyncio.sleep(60)
async def handle(db, reader, writer):
    pass
{snippet("webservice", "async def database(app").replace("port=8000", "port=0, host='127.0.0.1'")}
async def both():
    app = {{}}
    async for _ in database(app):
        assert app["db"].auto.articles.get("x") is None
    asyncio.get_running_loop().call_later(0.2, os.kill, os.getpid(), signal.SIGTERM)
    await main()
asyncio.run(both())
print("ended")
"""
    if sys.platform == "win32":
        pytest.skip("event loops have no signal handlers on Windows")
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr) == ("ended\n", "")


def test_every_block_of_python_in_the_pages_is_run_by_a_test() -> None:
    left = []
    for page in sorted(path.stem for path in DOCS.glob("*.rst")):
        for block in snippets(page):
            known = any(seen == page and block.startswith(beginning) for seen, beginning in NAMED)
            if not known and not block.startswith(ELSEWHERE.get(page, "\0")):
                left.append(f"docs/{page}.rst: {block.splitlines()[0]}")
    assert left == []


_CALLS = re.findall(r'(?:run|snippet)\(\s*"(\w+)",\s*("[^"]*"|\'[^\']*\')', Path(__file__).read_text(encoding="utf-8"))
NAMED = {(page, ast.literal_eval(beginning)) for page, beginning in _CALLS}

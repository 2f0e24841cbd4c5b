"""What a type checker must infer for users. Checked by `tox -e types`, never run."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, NamedTuple, Optional, Union
from uuid import UUID

import numpy as np
from typing_extensions import assert_type

import zlmdb


@dataclass
class User:
    name: str
    email: str
    age: int


class Users(zlmdb.Table[UUID, User]):
    """Users by id."""

    by_email = zlmdb.UniqueIndex[str]("email")
    by_age = zlmdb.Index[int]("age")


def is_adult(user: User) -> bool:
    return user.age >= 18


class Kinds(zlmdb.Table[UUID, User]):
    """An index of each kind."""

    by_letter = zlmdb.Index[str](lambda user: set(user.name), version=1, each=True)
    by_name = zlmdb.Index[str]("name.casefold()")
    by_age = zlmdb.Index[tuple[int, str]](zlmdb.desc("age"), "name", carries=("email",))
    by_email = zlmdb.UniqueIndex[str]("email", where=is_adult)


class Store(zlmdb.Schema):
    users: Users
    kinds: Kinds
    logins: zlmdb.Table[str, int]
    readings: zlmdb.Table[tuple[UUID, datetime], float]
    sessions: zlmdb.Table[str, zlmdb.Zlib[zlmdb.Json[User]]]
    documents: zlmdb.Table[str, zlmdb.Cbor]
    notes: zlmdb.Table[str, zlmdb.Compressed[zlmdb.Cbor[User]]]
    grids: zlmdb.Table[str, zlmdb.Array[np.float64]]
    squeezed: zlmdb.Table[str, zlmdb.Zstd[zlmdb.Array[np.int32]]]
    jars: zlmdb.Table[str, Annotated[User, zlmdb.PickleSerializer(allow=[UUID])]]
    blobs: zlmdb.Table[str, Annotated[zlmdb.Json[User], zlmdb.Compression("zstd", threshold=100)]]
    pickles: zlmdb.Table[str, zlmdb.Pickle[User]]
    jsons: zlmdb.Table[str, zlmdb.Json[User]]
    cbors: zlmdb.Table[str, zlmdb.Cbor[User]]
    msgpacks: zlmdb.Table[str, zlmdb.Msgpack[User]]
    flats: zlmdb.Table[str, zlmdb.FlatBuffers[User]]
    views: zlmdb.Table[str, zlmdb.values.FlatBuffersView[User]]
    packed: zlmdb.Table[str, zlmdb.Unchecked[zlmdb.Msgpack[User]]]


class ClassicUsers(zlmdb.MapUuidCbor[User]):
    """Users by id, as zlmdb <= 26 has them."""


class UsersByTime(zlmdb.PersistentMap[tuple[zlmdb.keys.Uuid, zlmdb.keys.Timestamp], zlmdb.values.Uuid]):
    """A map with parts of its own choice."""


def a_database_knows_its_schema(db: zlmdb.Database[Store]) -> None:
    with db.read() as t:
        assert_type(t, Store)
        assert_type(t.users, Users)
    with db.write(timeout=1.5) as t:
        assert_type(t.logins["ann"], int)
    assert_type(db.run(lambda t: len(t.users)), int)
    changes = db.changes(Users, after=3, consumer="index")
    assert_type(changes, zlmdb.Changes[UUID, User])
    for change in changes:
        assert_type(change.key, UUID)
        assert_type(change.new, Optional[User])
    assert_type(db.changes("users").take(), list[zlmdb.Change[Any, Any]])


def opening_gives_a_database_of_the_schema() -> None:
    assert_type(zlmdb.open("data", Store), zlmdb.Database[Store])
    assert_type(zlmdb.open(None, Store), zlmdb.Database[Store])
    assert_type(zlmdb.open("data"), zlmdb.Database[zlmdb.Schema])


def a_table_knows_its_keys_and_values(t: Store, key: UUID, when: datetime) -> None:
    assert_type(t.users[key], User)
    assert_type(t.users.add(User("Ann", "ann@example.com", 31)), UUID)
    assert_type(t.logins.pop("ann"), int)
    assert_type(t.readings[key, when], float)
    assert_type(t.sessions["token"], User)
    assert_type(t.documents["readme"], Any)
    assert_type(t.notes["a"], User)
    assert_type(t.jars["a"], User)
    assert_type(t.blobs["a"], User)
    assert_type(t.pickles["a"], User)
    assert_type(t.packed["a"], User)
    assert_type(t.jsons["a"], User)
    assert_type(t.cbors["a"], User)
    assert_type(t.msgpacks["a"], User)
    assert_type(t.flats["a"], User)
    assert_type(t.views["a"], User)
    assert_type(zlmdb.values.load(t.views["a"]), User)
    assert_type(t.grids["a"], "np.ndarray[Any, np.dtype[np.float64]]")
    assert_type(t.squeezed["a"], "np.ndarray[Any, np.dtype[np.int32]]")
    assert_type(t.users.get(key), Optional[User])
    assert_type(t.logins.get("ann", 0), int)
    assert_type(t.logins.get("ann", "never"), Union[int, str])
    assert_type(t["users"], zlmdb.Table[Any, Any])
    with t.users.edit(key) as user:
        assert_type(user, User)
    for found in t.users:
        assert_type(found, UUID)
    for maybe in t.users.get_many([key]):
        if maybe is not None:
            assert_type(maybe, User)


def a_selection_knows_what_it_gives(t: Store) -> None:
    for key, user in t.users.select(reverse=True, limit=10):
        assert_type(key, UUID)
        assert_type(user, User)
    for user in t.users.select().values():
        assert_type(user, User)
    assert_type(t.users.select().count(), int)
    assert_type(t.logins.select("a", "b", startswith="a").delete(), int)


def bounds_and_prefixes_may_be_leading_parts(t: Store, key: UUID, when: datetime) -> None:
    found = t.readings.select((key,), (key, when), through=(key,), prefix=(key,), reverse=True)
    assert_type(found, zlmdb.Selection[tuple[UUID, datetime], float])
    assert_type(t.users.by_email.select(startswith="ann"), zlmdb.Selection[UUID, User])
    assert_type(t["users"].select(prefix=("a",), startswith="b"), zlmdb.Selection[Any, Any])


def an_index_on_the_table_knows_its_key_and_the_record(t: Store) -> None:
    assert_type(t.users.by_email["ann@example.com"], User)
    assert_type(t.users.by_email.key("ann@example.com"), UUID)
    assert_type(t.users.by_email.key("ann@example.com", None), Optional[UUID])
    for key, user in t.users.by_age.select(30, 40):
        assert_type(key, UUID)
        assert_type(user, User)
    assert_type(t.users.by_age[32].count(), int)
    assert_type(t.users.by_age[32], zlmdb.Selection[UUID, User])
    assert_type(t.users.by_email.get("ann@example.com"), Optional[User])
    for age, users in t.users.by_age.groups():
        assert_type(age, int)
        assert_type(users, zlmdb.Selection[UUID, User])
    assert_type(t.kinds.by_letter["a"], zlmdb.Selection[UUID, User])
    assert_type(t.kinds.by_age[31, "Ann"].values().all(), list[User])
    assert_type(t.kinds.by_email["ann@example.com"], User)
    assert_type(Users.by_email, zlmdb.UniqueIndex[str])
    assert_type(Users.by_age, zlmdb.Index[int])


def a_selection_may_be_empty(t: Store) -> None:
    assert_type(t.users.select().first(), Optional[tuple[UUID, User]])
    assert_type(dict(t.users.select(limit=10)), dict[UUID, User])


def a_plain_database_is_one_of_any_schema(db: zlmdb.Database, store: zlmdb.Database[Store]) -> None:
    assert_type(db, zlmdb.Database[zlmdb.Schema])
    _: zlmdb.Database = store
    assert_type(zlmdb.Database("data"), zlmdb.Database[zlmdb.Schema])
    assert_type(db.attach_table(ClassicUsers), ClassicUsers)
    with db.read() as t:
        for name in t:
            assert_type(name, str)
    for info in db.tables().values():
        assert_type(info.count, int)


def a_classic_map_gives_the_value_or_none(txn: zlmdb.Transaction, key: UUID, when: np.datetime64) -> None:
    users = zlmdb.MapUuidCbor[User](1)
    assert_type(users[txn, key], Optional[User])
    assert_type(ClassicUsers(1)[txn, key], Optional[User])
    assert_type(zlmdb.MapUuidCbor(1)[txn, key], Optional[Any])
    assert_type(zlmdb.MapOidString(2)[txn, 7], Optional[str])
    assert_type(zlmdb.MapUuidTimestampUuid(3)[txn, (key, when)], Optional[UUID])
    assert_type(UsersByTime(4)[txn, (key, when)], Optional[UUID])
    assert_type(users.bind(txn), zlmdb.Table[UUID, User])
    for oid, user in users.select(txn, from_key=key):
        assert_type(oid, UUID)
        assert_type(user, User)
    for user in users.select(txn, return_keys=False):
        assert_type(user, User)
    assert_type(users.rebuild_indexes(txn), tuple[int, int])


def queries_are_functions_of_a_record(t: Store) -> None:
    found = t.users.where(lambda u: u.age > 30)
    assert_type(found, zlmdb.Selection[UUID, User])
    assert_type(list(found), list[tuple[UUID, User]])
    assert_type(found.all(), list[tuple[UUID, User]])
    assert_type(list(found.keys()), list[UUID])
    assert_type(found.values().all(), list[User])
    assert_type(found.first(), Optional[tuple[UUID, User]])
    assert_type(found.count(), int)
    assert_type(found.fields(lambda u: (u.name, u.age)), zlmdb.Reads[tuple[str, int]])
    assert_type(found.fields(lambda k, u: (k, u.name)), zlmdb.Reads[tuple[UUID, str]])
    assert_type(found.fields(lambda u: u.age).sum(), int)
    assert_type(found.fields(lambda u: u.age).mean(), Optional[float])
    assert_type(found.fields(lambda u: u.name).min(), Optional[str])
    assert_type(found.fields(lambda u: u.name).distinct(), zlmdb.Reads[str])
    assert_type(found.group_by(lambda u: u.age, lambda g: g.count()), dict[int, int])
    assert_type(found.order_by(lambda u: (zlmdb.desc(u.age), u.name)).limit(10), zlmdb.Selection[UUID, User])
    assert_type(found.order_by(lambda u: zlmdb.desc(u.age or None)), zlmdb.Selection[UUID, User])  # as after where()
    assert_type(found.values().page(20).rows, list[User])
    assert_type(found.page(20, None).next, Optional[str])
    assert_type(found.explain(), zlmdb.Plan)
    assert_type(t.users.by_age[3].where(lambda k, u: u.name > "a").delete(), int)
    assert_type(t.users.by_age.where(lambda u: u.name > "a"), zlmdb.Selection[UUID, User])
    assert_type(t.users.by_email.order_by(lambda u: u.name, reverse=True), zlmdb.Selection[UUID, User])
    assert_type(t.users.order_by(lambda u: u.name).last(), Optional[tuple[UUID, User]])
    assert_type(t.users.group_by(lambda u: u.name, lambda g: g.fields(lambda u: u.age).max()), dict[str, Optional[int]])
    assert_type(t.users.where(lambda u: u.age > 3).change(lambda u: u), int)
    with t.users.where(lambda u: u.age > 3).edit() as users:
        for user in users:
            assert_type(user, User)


def tables_made_at_run_time(db: zlmdb.Database[Store]) -> None:
    counts, people = db.table("counts", str, int), db.table("people", Users)
    assert_type(counts, zlmdb.MadeTable[zlmdb.Table[str, int]])
    with db.write() as t:
        assert_type(t[counts]["a"], int)
        assert_type(t[people], Users)
        assert_type(t[people].by_email["a@x"], User)
        assert_type(t[counts].put_new("a", 1), bool)
        assert_type(t["any"], zlmdb.Table[Any, Any])


class Author(NamedTuple):
    name: str


class Book(NamedTuple):
    title: str
    author: UUID
    place: Optional[tuple[str, str]]


class Authors(zlmdb.Table[UUID, Author]):
    """Authors by id."""


class Books(zlmdb.Table[int, Book]):
    by_author = zlmdb.ForeignKey["Authors"]("author", on_delete="cascade")
    by_class = zlmdb.ForeignKey[Authors]("author", deferred=True)


class Library(zlmdb.Schema):
    authors: Authors
    books: Books


def a_link_is_an_index_by_the_keys_of_the_other_table(t: Library, key: UUID) -> None:
    assert_type(t.books.by_author, zlmdb.IndexView[UUID, int, Book])
    assert_type(t.books.by_author[key], zlmdb.Selection[int, Book])
    assert_type(t.books.by_class[key].first(), Optional[tuple[int, Book]])
    assert_type(t.books.fields(lambda b: t.authors[b.author].name), zlmdb.Reads[str])


class Multi(zlmdb.Schema):
    tags: zlmdb.SetTable[str, int]
    visits: zlmdb.ListTable[tuple[str, int], User]


def many_values(db: zlmdb.Database[Multi], t: Multi, user: User) -> None:
    colours = db.table("colours", zlmdb.SetTable[str, str])
    assert_type(colours, zlmdb.MadeTable[zlmdb.SetTable[str, str]])
    assert_type(t[colours]["sky"].first(), Optional[str])
    assert_type(t.tags["a"], zlmdb.ValueSet[str, int])
    assert_type(t.tags["a"].first(), Optional[int])
    assert_type(t.tags.add("a", 1), bool)
    assert_type(list(t.tags["a"].select(1)), list[int])
    assert_type(list(t.visits["a", 1]), list[User])
    assert_type(list(t.visits.items()), list[tuple[tuple[str, int], User]])
    t.visits["a", 1].append(user)


class Jobs(zlmdb.Schema):
    mails: zlmdb.Queue[User]


def a_queue_knows_its_jobs(db: zlmdb.Database[Jobs], user: User) -> None:
    with db.write() as t:
        assert_type(t.mails.put(user, priority=3), UUID)
        lease = t.mails.claim()
        assert_type(lease, Optional[zlmdb.Lease[User]])
        assert_type([job.body.name for job in t.mails.dead.values()], list[str])
    worker = zlmdb.Worker(db, lambda t: t.mails)
    assert_type(worker, zlmdb.Worker[User])
    assert_type(worker.get(), zlmdb.Lease[User])
    with worker.job() as job:
        assert_type(job.body, User)


async def waiting_for_a_job(worker: zlmdb.Worker[User]) -> None:
    assert_type(await worker.aget(timeout=1), zlmdb.Lease[User])
    async with worker.ajob() as job:
        assert_type(job.body, User)


class Expiring(zlmdb.Table[str, User], expires="age", ttl=5): ...


def a_cache_knows_its_types() -> None:
    plain = zlmdb.Cache("plain")
    assert_type(plain, zlmdb.Cache[str, Any])
    cache = zlmdb.Cache(None, UUID, User, size_limit=1 << 20)
    assert_type(cache, zlmdb.Cache[UUID, User])
    assert_type(cache.get(UUID(int=1)), Optional[User])
    assert_type(cache.get(UUID(int=1), 5), Union[User, int])
    assert_type(list(cache), list[UUID])
    pickles = zlmdb.Cache("pickles", str, zlmdb.Pickle)
    assert_type(pickles, zlmdb.Cache[Any, Any])

    @plain.memoize(expire=60)
    def name(user: User) -> str:
        return user.name

    assert_type(name(User("", "", 1)), str)


async def rows(db: zlmdb.Database[Store]) -> None:
    async for pair in db.arows(lambda t: t.users):
        assert_type(pair, tuple[UUID, User])
    async for found in db.arows(lambda t: t.users.where(lambda user: user.age > 30), snapshot=True):
        assert_type(found, tuple[UUID, User])
    async for name in db.arows(lambda t: t.users.where(is_adult).fields(lambda user: user.name)):
        assert_type(name, str)


def edits(t: Store, key: UUID) -> None:
    with t.users.edit(key) as user:
        assert_type(user, User)
    with t.users.where(is_adult).edit() as users:
        for user in users:
            assert_type(user, User)

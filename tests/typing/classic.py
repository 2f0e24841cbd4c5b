"""What a type checker must infer for classic maps. Checked by `tox -e types`, never run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Optional
from uuid import UUID

import numpy as np
from typing_extensions import assert_type

import zlmdb


class User:
    def __init__(self, name: str) -> None:
        self.name = name

    def marshal(self) -> dict[str, Any]:
        return {"name": self.name}

    @staticmethod
    def parse(data: dict[str, Any]) -> User:
        return User(data["name"])


@zlmdb.table("c2b1f0c4-0000-4000-8000-000000000001", marshal=User.marshal, parse=User.parse)
class Users(zlmdb.MapUuidCbor[User]):
    """Users by id."""


class Plain(zlmdb.MapOidJson):
    """Without a type argument: plain data."""


def a_decorated_class_is_itself(db: zlmdb.Database) -> None:
    assert_type(db.attach_table(Users), Users)
    assert_type(db.begin(write=True), zlmdb.Transaction)


def a_record_may_be_missing(users: Users, txn: zlmdb.Transaction, key: UUID) -> None:
    assert_type(users[txn, key], Optional[User])
    users[txn, key] = User("ann")
    del users[txn, key]
    assert_type((txn, key) in users, bool)
    assert_type(users.bind(txn), "zlmdb.Table[UUID, User]")
    assert_type(users.bind(txn)[key], User)


def a_selection_gives_what_it_was_asked_for(users: Users, txn: zlmdb.Transaction) -> None:
    for key, user in users.select(txn, reverse=True, limit=10):
        assert_type(key, UUID)
        assert_type(user, User)
    assert_type(iter(users.select(txn, return_values=False)), Iterator[UUID])
    assert_type(iter(users.select(txn, return_keys=False)), Iterator[User])
    assert_type(next(users.select(txn, return_keys=False)), User)
    assert_type(users.select(txn).first(), Optional[tuple[UUID, User]])
    assert_type(users.count(txn), int)
    assert_type(users.truncate(txn), int)


def named_maps_know_their_types(txn: zlmdb.Transaction) -> None:
    assert_type(zlmdb.MapStringOid(1)[txn, "ann"], Optional[int])
    assert_type(zlmdb.MapUuidUuidSet(1)[txn, UUID(int=1)], Optional[set[UUID]])
    times = zlmdb.MapUuidTimestampBytes32(1)
    for key, digest in times.select(txn, (UUID(int=1), np.datetime64(0, "ns"))):
        assert_type(key, tuple[UUID, np.datetime64])
        assert_type(digest, bytes)
    assert_type(Plain(1)[txn, 1], Optional[Any])
    assert_type(zlmdb.MapOidPickle[User](1)[txn, 1], Optional[User])


def an_index_takes_the_value(users: Users) -> None:
    users.attach_index("name", zlmdb.MapStringUuid(2), lambda user: user.name, nullable=True)
    assert_type(users.indexes(), list[str])

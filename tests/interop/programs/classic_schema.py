"""Registered tables with registered indexes and FlatBuffers, in the style of the predecessor's largest user."""

from __future__ import annotations

import pprint
import sys
import tempfile
import uuid
from typing import Any, Optional

import numpy as np
import zlmdb
from zlmdb import (
    MapBytes20TimestampUuid,
    MapOidOidFlatBuffers,
    MapStringUuid,
    MapUuidFlatBuffers,
    MapUuidStringUuid,
    table,
)

zlmdb.setup_flatbuffers_import()
import flatbuffers  # noqa: E402
from flatbuffers.table import Table  # noqa: E402


class AccountGen:
    """What the FlatBuffers compiler generates for a table of three fields."""

    __slots__ = ["_tab"]

    @classmethod
    def GetRootAs(cls, buf: Any, offset: int = 0) -> AccountGen:
        n = flatbuffers.encode.Get(flatbuffers.packer.uoffset, buf, offset)
        x = AccountGen()
        x.Init(buf, n + offset)
        return x

    def Init(self, buf: Any, pos: int) -> None:
        self._tab = Table(buf, pos)

    def Level(self) -> int:
        o = flatbuffers.number_types.UOffsetTFlags.py_type(self._tab.Offset(4))
        return int(self._tab.Get(flatbuffers.number_types.Uint8Flags, o + self._tab.Pos)) if o != 0 else 0

    def Username(self) -> Optional[bytes]:
        o = flatbuffers.number_types.UOffsetTFlags.py_type(self._tab.Offset(6))
        return bytes(self._tab.String(o + self._tab.Pos)) if o != 0 else None

    def Registered(self) -> int:
        o = flatbuffers.number_types.UOffsetTFlags.py_type(self._tab.Offset(8))
        return int(self._tab.Get(flatbuffers.number_types.Uint64Flags, o + self._tab.Pos)) if o != 0 else 0


class Account:
    """The object that the application works with, over a generated one until something is set."""

    def __init__(self, from_fbs: Optional[AccountGen] = None) -> None:
        self._from_fbs = from_fbs
        self._username: Optional[str] = None
        self._level: Optional[int] = None
        self._registered: Optional[np.datetime64] = None

    @property
    def username(self) -> Optional[str]:
        if self._username is None and self._from_fbs:
            name = self._from_fbs.Username()
            self._username = None if name is None else name.decode("utf8")
        return self._username

    @username.setter
    def username(self, value: Optional[str]) -> None:
        self._username = value

    @property
    def level(self) -> int:
        if self._level is None and self._from_fbs:
            self._level = self._from_fbs.Level()
        return self._level or 0

    @level.setter
    def level(self, value: int) -> None:
        self._level = value

    @property
    def registered(self) -> np.datetime64:
        if self._registered is None and self._from_fbs:
            self._registered = np.datetime64(self._from_fbs.Registered(), "ns")
        return self._registered if self._registered is not None else np.datetime64(0, "ns")

    @registered.setter
    def registered(self, value: np.datetime64) -> None:
        self._registered = value

    def marshal(self) -> dict[str, Any]:
        return {"username": self.username, "level": self.level, "registered": str(self.registered)}

    def __str__(self) -> str:
        return pprint.pformat(self.marshal())

    @staticmethod
    def cast(buf: Any) -> Account:
        return Account(AccountGen.GetRootAs(buf, 0))

    def build(self, builder: flatbuffers.Builder) -> Any:
        username = self.username
        if username:
            username = builder.CreateString(username)
        builder.StartObject(3)
        builder.PrependUint8Slot(0, self.level, 0)
        if username:
            builder.PrependUOffsetTRelativeSlot(1, username, 0)
        builder.PrependUint64Slot(2, int(self.registered.astype("int64")), 0)
        return builder.EndObject()


@table("11111111-1111-4111-8111-000000000001", build=lambda account, builder: account.build(builder), cast=Account.cast)
class Accounts(MapUuidFlatBuffers):
    """
    Accounts by id: ``account_oid -> account``.
    """


@table("11111111-1111-4111-8111-000000000002")
class IndexAccountByUsername(MapStringUuid):
    """
    ``username -> account_oid``
    """


@table("11111111-1111-4111-8111-000000000003")
class IndexAccountByWallet(MapBytes20TimestampUuid):
    """
    ``(wallet, registered) -> account_oid``
    """


@table("11111111-1111-4111-8111-000000000004")
class IndexMembers(MapUuidStringUuid):
    """
    ``(market_oid, username) -> account_oid``
    """


@table("11111111-1111-4111-8111-000000000005", build=lambda account, builder: account.build(builder), cast=Account.cast)
class Shards(MapOidOidFlatBuffers):
    """Accounts by two numbers."""


def wallet(account: Account) -> bytes:
    return (account.username or "").encode().ljust(20, b"\0")


MARKET = uuid.UUID(int=0xABC << 100)


class MySchema:
    """
    All tables, attached in one place.
    """

    def __init__(self, db: zlmdb.Database) -> None:
        self.db = db

    accounts: Accounts
    idx_by_username: IndexAccountByUsername
    idx_by_wallet: IndexAccountByWallet
    idx_members: IndexMembers
    shards: Shards

    @staticmethod
    def attach(db: zlmdb.Database) -> MySchema:
        schema = MySchema(db)
        schema.accounts = db.attach_table(Accounts)
        schema.idx_by_username = db.attach_table(IndexAccountByUsername)
        schema.accounts.attach_index("idx1", schema.idx_by_username, lambda account: account.username, nullable=True)
        schema.idx_by_wallet = db.attach_table(IndexAccountByWallet)
        schema.accounts.attach_index(
            "idx2", schema.idx_by_wallet, lambda account: (wallet(account), account.registered), nullable=False
        )
        schema.idx_members = db.attach_table(IndexMembers)
        schema.accounts.attach_index("idx3", schema.idx_members, lambda account: (MARKET, account.username))
        schema.shards = db.attach_table(Shards)
        return schema


def main(dbpath: str) -> None:
    start = np.datetime64("2023-01-01T00:00:00", "ns")
    names = ["ann", "bob", "zo\u00eb", "dan", "eve"]
    with zlmdb.Database(dbpath, maxsize=2**30, readonly=False, sync=True, context=None) as db:
        schema = MySchema.attach(db)
        stats = zlmdb.TransactionStats()
        with db.begin(write=True, stats=stats) as txn:
            for n, name in enumerate(names):
                account = Account()
                account.username = name
                account.level = n
                account.registered = start + np.timedelta64(n, "D")
                schema.accounts[txn, uuid.UUID(int=n + 1)] = account
                schema.shards[txn, (n % 2, n)] = account
        print("stats", stats.puts, stats.dels)

    with zlmdb.Database(dbpath, maxsize=2**30) as db:
        schema = MySchema.attach(db)
        for buffers in (False, True):
            with db.begin(buffers=buffers) as txn:
                for account in schema.accounts.select(txn, return_keys=False):
                    print(account)
                print(str(schema.shards[txn, (1, 3)]), schema.shards[txn, (3, 1)])
        with db.begin() as txn:
            oid = schema.idx_by_username[txn, "bob"]
            if oid:
                print(oid, schema.accounts[txn, oid])
            print("nobody", schema.idx_by_username[txn, "nobody"])
            before = (MARKET, "c")
            print([key[1] for key in schema.idx_members.select(txn, to_key=before, return_values=False)])
            print(schema.idx_members.count(txn, prefix=(MARKET, None)), schema.idx_members.count(txn, (MARKET, "d")))
            for key, oid in schema.idx_by_wallet.select(txn, from_key=(b"d".ljust(20, b"\0"), start), reverse=True):
                print(key[0].rstrip(b"\0"), key[1], oid.int)
        with db.begin(write=True) as txn:
            bob = schema.accounts[txn, uuid.UUID(int=2)]
            assert bob is not None
            bob.username = "robert"
            schema.accounts[txn, uuid.UUID(int=2)] = bob
            del schema.accounts[txn, uuid.UUID(int=1)]
        with db.begin() as txn:
            print([(name, oid.int) for name, oid in schema.idx_by_username.select(txn)])
            print([(key[1], oid.int) for key, oid in schema.idx_members.select(txn)])
            print(schema.idx_by_wallet.count(txn), schema.accounts.count(txn), schema.shards.count(txn))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        main(sys.argv[1] if len(sys.argv) > 1 else directory)

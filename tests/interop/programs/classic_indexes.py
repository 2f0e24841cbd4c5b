"""Secondary indexes as the predecessor's programs attach them, and the statistics of their transactions."""

from __future__ import annotations

import sys
import tempfile
from typing import Any, Optional

import zlmdb


class User:
    """A record with something to index of every kind: required, optional, composite."""

    def __init__(self, oid: int, authid: str, mrealm: int = 1, email: Optional[str] = None) -> None:
        self.oid = oid
        self.authid = authid
        self.mrealm = mrealm
        self.email = email

    def __repr__(self) -> str:
        return f"<{self.oid} {self.authid} {self.mrealm} {self.email}>"


class Users:
    """The maps of one schema; indexes come after their table, each with a slot above it."""

    def __init__(self) -> None:
        self.users = zlmdb.MapOidPickle(1)
        self.by_authid = zlmdb.MapStringOid(2)
        self.by_email = zlmdb.MapStringOid(3)
        self.by_mrealm = zlmdb.MapOidOidOid(4)
        self.users.attach_index("authid", self.by_authid, lambda user: user.authid)
        self.users.attach_index("email", self.by_email, lambda user: user.email, nullable=True)
        self.users.attach_index("mrealm", self.by_mrealm, lambda user: (user.mrealm, user.oid))


def counts(stats: zlmdb.TransactionStats) -> str:
    return f"{stats.puts} puts, {stats.dels} dels"


def show(schema: Users, txn: Any) -> None:
    print("  users:    ", list(schema.users.select(txn, return_keys=False)))
    print("  by authid:", list(schema.by_authid.select(txn)))
    print("  by email: ", list(schema.by_email.select(txn)))
    print("  by mrealm:", list(schema.by_mrealm.select(txn)))


def main(dbpath: str) -> None:
    schema = Users()
    print(schema.users.indexes(), schema.users.is_index(), schema.by_authid.is_index())
    db = zlmdb.Database(dbpath, maxsize=2**24)

    stats = zlmdb.TransactionStats()
    print("fresh:", counts(stats), stats.started > 0, stats.duration > 0)
    with db.begin(write=True, stats=stats) as txn:
        for n in range(1, 6):
            schema.users[txn, n] = User(n, f"user{n}", n % 2, f"u{n}@example.com")
        show(schema, txn)
    print("five users:", counts(stats))

    stats.reset()
    with db.begin(write=True, stats=stats) as txn:
        schema.users[txn, 6] = User(6, "user6")
    print("no email:", counts(stats))

    with db.begin(write=True) as txn:
        schema.users[txn, 1] = User(1, "first", 0, "u1@example.com")
        schema.users[txn, 2] = User(2, "user2", 0)
        schema.users[txn, 6] = User(6, "user6", 1, "late@example.com")
        show(schema, txn)

    stats.reset()
    with db.begin(write=True, stats=stats) as txn:
        del schema.users[txn, 3]
        del schema.users[txn, 99]
        print("deleted:", counts(stats))
        show(schema, txn)

    # Nothing may be null in an index that does not say so.
    try:
        with db.begin(write=True) as txn:
            schema.users[txn, 7] = User(7, "seven")
            schema.users[txn, 8] = User(8, None)
    except zlmdb.NullValueConstraint:
        print("null refused")
    except RuntimeError:
        print("a null must be refused as such")
    with db.begin() as txn:
        print(schema.users[txn, 7], schema.users[txn, 8], schema.by_authid[txn, "seven"])

    # By an index to the record.
    with db.begin() as txn:
        oid = schema.by_authid[txn, "user4"]
        assert oid is not None
        print("user4:", schema.users[txn, oid])
        in_realm = schema.by_mrealm.select(txn, from_key=(1, 0), to_key=(2, 0), return_keys=False)
        print("realm 1:", [schema.users[txn, oid] for oid in in_realm])

    # A detached index is left as it is.
    schema.users.detach_index("mrealm")
    print(schema.users.indexes())
    stats.reset()
    with db.begin(write=True, stats=stats) as txn:
        schema.users[txn, 9] = User(9, "nine", 5, "nine@example.com")
        print(counts(stats), schema.by_mrealm.count(txn))
    with db.begin(write=True) as txn:
        print("truncated:", schema.by_mrealm.truncate(txn), schema.users.count(txn))
    stats.reset()
    with db.begin(write=True, stats=stats) as txn:
        print("truncated:", schema.users.truncate(txn), counts(stats))
        show(schema, txn)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        main(sys.argv[1] if len(sys.argv) > 1 else directory)

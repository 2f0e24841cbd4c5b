"""An application of zlmdb <= 26 moves to declared tables, step by step, over one file that both can use at any time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

import zlmdb


@dataclass
class User:
    oid: UUID
    name: str
    email: str
    org: UUID

    def marshal(self) -> dict[str, Any]:
        return {"oid": str(self.oid), "name": self.name, "email": self.email, "org": str(self.org)}

    @staticmethod
    def parse(data: dict[str, Any]) -> User:
        return User(UUID(data["oid"]), data["name"], data["email"], UUID(data["org"]))


# What the application was: maps with UUIDs, and two of them attached to the first one as its indexes.

USERS = "6b7f9a30-54b1-4f3c-8a5e-1d8a3a7f0001"
BY_EMAIL = "6b7f9a30-54b1-4f3c-8a5e-1d8a3a7f0002"
BY_ORG = "6b7f9a30-54b1-4f3c-8a5e-1d8a3a7f0003"


@zlmdb.table(USERS, marshal=User.marshal, parse=User.parse)
class ClassicUsers(zlmdb.MapUuidCbor[User]):
    """Users by id."""


@zlmdb.table(BY_EMAIL)
class ClassicUsersByEmail(zlmdb.MapStringUuid):
    """Ids of users by address."""


@zlmdb.table(BY_ORG)
class ClassicUsersByOrg(zlmdb.MapUuidUuidUuid):
    """Ids of users by organisation, and id: several users may have one organisation."""


class ClassicSchema:
    """The maps of the application, attached to a database."""

    def __init__(self, db: zlmdb.Database) -> None:
        self.users = db.attach_table(ClassicUsers)
        self.by_email = db.attach_table(ClassicUsersByEmail)
        self.by_org = db.attach_table(ClassicUsersByOrg)
        self.users.attach_index("email", self.by_email, lambda user: user.email)
        self.users.attach_index("org", self.by_org, lambda user: (user.org, user.oid))


# What it becomes: the same records under the same UUIDs, and the index tables adopted as they are.


class Users(zlmdb.Table[UUID, zlmdb.Cbor[User]], uuid=USERS, key="oid"):
    """Users by id."""

    by_email = zlmdb.UniqueIndex[str]("email", table=BY_EMAIL)
    by_org = zlmdb.Index[UUID]("org", table=BY_ORG)


class Store(zlmdb.Schema):
    users: Users


ACME, INITECH = UUID(int=1), UUID(int=2)
ANN, BOB, CAT, DAN, EVE = (UUID(int=n) for n in range(11, 16))


def as_it_was(schema: ClassicSchema, db: zlmdb.Database) -> None:
    """Step 0: nothing has changed but the version of zlmdb."""
    with db.begin(write=True) as txn:
        for user in (User(ANN, "Ann", "ann@acme.com", ACME), User(BOB, "Bob", "bob@acme.com", ACME)):
            schema.users[txn, user.oid] = user
    with db.begin() as txn:
        oid = schema.by_email[txn, "bob@acme.com"]
        print("0:", oid and schema.users[txn, oid])


def with_dicts_in_a_transaction(schema: ClassicSchema, db: zlmdb.Database) -> None:
    """Step 1: new code binds a map to the transaction, and has a dict."""
    with db.begin(write=True) as txn:
        users = schema.users.bind(txn)
        user = users[ANN]
        user.name = "Anne"
        users[ANN] = user
        print("1:", len(users), [user.name for user in users.values()])


def with_declared_tables(store: zlmdb.Database[Store]) -> None:
    """Step 2: modules move to the declared tables one by one; the others keep their maps, over the same file."""
    with store.write() as t:
        print("2:", t.users.by_email["ann@acme.com"].name, t.users.by_org[ACME].count())
        t.users.add(User(CAT, "Cat", "cat@initech.com", INITECH))
        with t.users.edit(BOB) as bob:
            bob.org = INITECH


def in_alternation(schema: ClassicSchema, db: zlmdb.Database, store: zlmdb.Database[Store]) -> None:
    """Step 3: each sees, through its indexes too, what the other one wrote."""
    with db.begin(write=True) as txn:
        print("3:", schema.by_email[txn, "cat@initech.com"] == CAT, schema.by_org.count(txn, prefix=(INITECH, None)))
        schema.users[txn, DAN] = User(DAN, "Dan", "dan@acme.com", ACME)
        del schema.users[txn, CAT]
    with store.write() as t:
        print("  ", [user.name for user in t.users.by_org[ACME].values()], "cat@initech.com" in t.users.by_email)
        try:
            t.users.add(User(EVE, "Eve", "dan@acme.com", ACME))
        except zlmdb.DuplicateKey as error:
            print("  ", error.key, "belongs to", t.users[error.owner].name)


def as_it_is_now(path: str) -> None:
    """Step 4: the maps are gone from the program. The file never changed its layout."""
    with zlmdb.open(path, Store) as store, store.read() as t:
        for org, users in t.users.by_org.groups():
            print("4:", org.int, [user.name for user in users.values()])
        print("   checked:", {user.email: t.users.by_email.key(user.email).int for user in t.users.values()})


def move(path: str, layout: Literal["tables", "classic"]) -> None:
    with zlmdb.Database(path, layout=layout) as db:
        print(f"-- {db.layout}")
        schema = ClassicSchema(db)
        as_it_was(schema, db)
        with_dicts_in_a_transaction(schema, db)
        with zlmdb.open(path, Store) as store:
            with_declared_tables(store)
            in_alternation(schema, db, store)
    as_it_is_now(path)


def main() -> None:
    move("new", "tables")
    move("old", "classic")


if __name__ == "__main__":
    main()

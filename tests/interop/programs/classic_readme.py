"""A first program as the predecessor's users write it: objects in maps of a schema class, by slot."""

from __future__ import annotations

import sys
import tempfile
from typing import Any, Optional

import zlmdb


class User:
    """A user, with the two functions that turn it into plain data and back."""

    def __init__(self, oid: int, name: str, authid: str, email: Optional[str] = None) -> None:
        self.oid = oid
        self.name = name
        self.authid = authid
        self.email = email
        self.tags: list[str] = []

    def marshal(self) -> dict[str, Any]:
        return {"oid": self.oid, "name": self.name, "authid": self.authid, "email": self.email, "tags": self.tags}

    @staticmethod
    def parse(data: dict[str, Any]) -> User:
        user = User(data["oid"], data["name"], data["authid"], data["email"])
        user.tags = data["tags"]
        return user

    def __str__(self) -> str:
        return f"User(oid={self.oid}, name={self.name}, authid={self.authid}, email={self.email}, tags={self.tags})"


def marshal(user: User) -> dict[str, Any]:
    return user.marshal()


class MySchema(zlmdb.Schema):
    """All maps of the application, each in a slot that the application chose."""

    def __init__(self) -> None:
        self.users = zlmdb.MapStringJson(1, marshal=marshal, unmarshal=User.parse)
        self.users_by_oid = zlmdb.MapOidCbor(2, marshal=marshal, unmarshal=User.parse)
        self.pictures = zlmdb.MapOidString(slot=3, compress=zlmdb.PersistentMap.COMPRESS_ZLIB)


def main(dbpath: str) -> None:
    schema = MySchema()

    db = zlmdb.Database(dbpath)
    with db:
        with db.begin(write=True) as txn:
            for oid, name in enumerate(["Ann", "Bob", "Zo\u00eb", "Dan"], 1):
                user = User(oid, name, name.lower(), f"{name.lower()}@example.com" if oid % 2 else None)
                user.tags = ["geek"] * (oid % 3)
                schema.users[txn, user.authid] = user
                schema.users_by_oid[txn, user.oid] = user
                schema.pictures[txn, user.oid] = name * 1000

        with db.begin() as txn:
            print(schema.users[txn, "ann"])
            print(schema.users_by_oid[txn, 3])
            print(schema.users[txn, "nobody"], schema.users.get((txn, "nobody")))
            print((txn, "bob") in schema.users, (txn, "nobody") in schema.users)
            print(len(schema.pictures[txn, 4] or ""))
            for authid, user in schema.users.select(txn):
                print(authid, user)

        # What a block that fails wrote is gone.
        try:
            with db.begin(write=True) as txn:
                del schema.users[txn, "ann"]
                schema.users[txn, "eve"] = User(5, "Eve", "eve")
                print("inside:", schema.users[txn, "ann"], schema.users[txn, "eve"])
                raise ZeroDivisionError("on purpose")
        except ZeroDivisionError as error:
            print("aborted:", error)
        with db.begin() as txn:
            print("after:", schema.users[txn, "ann"], schema.users[txn, "eve"])

        with db.begin(write=True) as txn:
            del schema.users[txn, "ann"]
            del schema.users[txn, "nobody"]
            changed = schema.users[txn, "bob"]
            assert changed is not None
            changed.email = "bob@example.org"
            schema.users[txn, "bob"] = changed
            print("pop:", schema.users.pop((txn, "dan")), schema.users.pop((txn, "dan")))

    print("open:", db.is_open)

    with zlmdb.Database(dbpath) as again, again.begin() as txn:
        print([str(user) for user in schema.users.select(txn, return_keys=False)])
        print(list(schema.users_by_oid.select(txn, return_values=False)))
        print(schema.users.count(txn), schema.users_by_oid.count(txn), schema.pictures.count(txn))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as directory:
        main(sys.argv[1] if len(sys.argv) > 1 else directory)

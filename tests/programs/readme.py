from dataclasses import dataclass
from uuid import UUID
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

class Store(zlmdb.Schema):
    users: Users
    logins: zlmdb.Table[str, int]                         # no class needed when there is no index

with zlmdb.open("data", Store) as db:
    with db.write() as t:                                 # t is a Store: your tables, in one transaction
        if "ann@example.com" not in t.users.by_email:
            t.users.add(User("Ann", "ann@example.com", 31))
        t.logins.increment("ann")
    with db.read() as t:                                  # a snapshot, which waits for nobody
        print(t.users.by_email["ann@example.com"])
        thirties = t.users.where(lambda user: 30 <= user.age < 40).order_by(lambda user: user.name)
        print(thirties.count(), "in their thirties,", t.logins["ann"], "logins of Ann")

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
        ann = t.users.add(User("Ann", "ann@example.com", 31))
        with t.users.edit(ann) as user:
            user.age += 1
    with db.read() as t:
        t.users.by_email["ann@example.com"]               # the User
        t.users.by_age[32].count()                        # everyone of that age
        for key, user in t.users.by_age.select(30, 40): ...
        for key, user in t.users.select(reverse=True, limit=10): ...
        t.users.select().where(zlmdb.F.name == "Ann").fields("email", "age")   # tuples, of any field

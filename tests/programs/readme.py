from dataclasses import dataclass
from uuid import UUID
import zlmdb

@dataclass
class User:
    name: str
    email: str
    age: int

@dataclass
class Login:
    user: UUID
    city: str

class Users(zlmdb.Table[UUID, User]):
    """Users by id."""
    by_email = zlmdb.UniqueIndex[str]("email")
    by_age = zlmdb.Index[int]("age")

class Logins(zlmdb.Table[int, Login]):
    """Logins by number. A user with logins cannot be deleted."""
    by_user = zlmdb.ForeignKey[Users]("user")

class Store(zlmdb.Schema):
    users: Users
    logins: Logins
    visits: zlmdb.Table[str, int]  # no class needed when there is no index

with zlmdb.open("data", Store) as db:
    with db.write() as t:  # t is a Store: your tables, in one transaction
        if "ann@example.com" not in t.users.by_email:
            t.users.add(User("Ann", "ann@example.com", 31))
        t.logins.add(Login(t.users.by_email.key("ann@example.com"), "Bonn"))
        t.visits.increment("Bonn")
    with db.read() as t:  # a snapshot, which waits for nobody
        print(t.users.by_email["ann@example.com"])
        thirties = t.users.where(lambda user: 30 <= user.age < 40)
        print([user.name for user in thirties.order_by(lambda user: user.name).values()])
        logins = t.logins.where(lambda login: t.users[login.user].age < 40)
        print(logins.count(), "logins by users under 40")

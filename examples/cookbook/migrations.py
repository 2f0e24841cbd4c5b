import tempfile
from dataclasses import dataclass
from typing import Annotated

import zlmdb


@dataclass
class User:
    mail: str


class Before(zlmdb.Schema):
    users: zlmdb.Table[int, User]


@dataclass
class Person:
    email: Annotated[str, zlmdb.Was("mail")]
    language: str = "en"


class People(zlmdb.Table[int, Person], was="users"):
    """The users of before."""


class After(zlmdb.Schema):
    people: People


with tempfile.TemporaryDirectory() as place:
    with zlmdb.open(place, Before) as old, old.write() as before:
        before.users[1] = User("ann@example.com")

    with zlmdb.open(place, After) as new, new.read() as after:
        print(after.people[1])

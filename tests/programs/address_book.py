"""An address book: people under time-ordered ids, found by e-mail address, name, town and birthday."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from typing import Optional
from uuid import UUID

import zlmdb


@dataclass
class Person:
    name: str
    email: str
    town: str
    born: Optional[date] = None
    phones: list[str] = field(default_factory=list[str])

    def birthday(self) -> Optional[tuple[int, int]]:
        return None if self.born is None else (self.born.month, self.born.day)


class People(zlmdb.Table[UUID, Person]):
    """Everyone in the book."""

    by_email = zlmdb.UniqueIndex[str]("email")
    by_name = zlmdb.Index[str](lambda person: person.name.casefold(), version=1)
    by_town = zlmdb.Index[tuple[str, str]]("town", "name")
    by_birthday = zlmdb.Index[tuple[int, int]](Person.birthday, version=1)


class Book(zlmdb.Schema):
    people: People
    notes: zlmdb.Table[str, str]


FRIENDS = [
    Person("Ada Lovelace", "ada@example.com", "London", date(1815, 12, 10), ["+44 20 1815"]),
    Person("Alan Turing", "alan@example.com", "London", date(1912, 6, 23)),
    Person("Grace Hopper", "grace@example.com", "New York", date(1906, 12, 9)),
    Person("Kurt Gödel", "kurt@example.com", "Vienna"),
    Person("alonzo church", "church@example.com", "Washington", date(1903, 6, 14)),
]


def fill(db: zlmdb.Database[Book]) -> None:
    with db.write() as t:
        for person in FRIENDS:
            if person.email not in t.people.by_email:
                t.people.add(person)
        t.notes["Vienna"] = "ask for the Café Central"


def show(db: zlmdb.Database[Book]) -> None:
    with db.read() as t:
        print(f"{len(t.people)} people")
        print("born:", t.people.by_email["ada@example.com"].born)
        print("names with al:", [person.name for person in t.people.by_name.select(startswith="al").values()])
        print("in London:", [person.name for person in t.people.by_town.select(prefix=("London",)).values()])
        for (month, day), people in t.people.by_birthday.groups():
            print(f"birthday {day}.{month}.:", ", ".join(person.name for person in people.values()))
        december = t.people.by_birthday.select((12, 1), (13, 1))
        print("in December:", december.count())
        newest = t.people.select(reverse=True, limit=1).first()
        print("entered last:", newest and newest[1].name)
        kurt = t.people.by_email["kurt@example.com"]
        print("note:", t.notes.get(kurt.town, "none"))


def change(db: zlmdb.Database[Book]) -> None:
    """Ada moves, Alan leaves, and nobody gets her address."""
    with db.write() as t:
        with t.people.edit(t.people.by_email.key("ada@example.com")) as ada:
            ada.town = "Paris"
            ada.phones.append("+33 1 1815")
        del t.people[t.people.by_email.key("alan@example.com")]
    try:
        with db.write() as t:
            t.notes["Paris"] = "never stored: the whole block is undone"
            t.people.add(Person("Augusta King", "ada@example.com", "London"))
    except zlmdb.DuplicateKey as error:
        with db.read() as t:
            print(f"{error.key} is taken by {t.people[error.owner].name}")
            print("note of Paris:", t.notes.get("Paris"))


def main() -> None:
    with zlmdb.open("book", Book) as db:
        fill(db)
        show(db)
        change(db)
    with zlmdb.open("book", Book, readonly=True) as db, db.read() as t:
        ada = t.people.by_email["ada@example.com"]
        print(f"{ada.name} is in {ada.town} now, {' or '.join(ada.phones)}")
        print("in London:", t.people.by_town.select(prefix=("London",)).count())


if __name__ == "__main__":
    main()

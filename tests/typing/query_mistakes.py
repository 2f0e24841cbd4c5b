"""Mistakes in queries, links and declarations that type checkers must report, one a line. Never run.

As in `mistakes.py`, an ignore without an error is an error. `tests/test_mistakes.py` counts the reports.
"""

# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnusedExpression=false

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Optional
from uuid import UUID

import zlmdb


@dataclass
class Author:
    name: str
    country: str
    mentor: Optional[int] = None


@dataclass
class Book:
    title: str
    author: int
    year: int
    price: float
    tags: list[int] = field(default_factory=list[int])


@dataclass
class Tag:
    name: str


class Authors(zlmdb.Table[int, Author]):
    by_country = zlmdb.Index[str]("country")
    by_mentor = zlmdb.ForeignKey["Authors"]("mentor", on_delete="set_none")


class Books(zlmdb.Table[UUID, Book]):
    by_author = zlmdb.ForeignKey["Authors"]("author", on_delete="restrict")
    by_tag = zlmdb.ForeignKey["Tags"]("tags", each=True)
    by_year = zlmdb.Index[int]("year")


class Tags(zlmdb.Table[int, Tag]):
    by_name = zlmdb.UniqueIndex[str]("name")


class Store(zlmdb.Schema):
    authors: Authors
    books: Books
    tags: Tags


def mistakes(t: Store, key: UUID) -> None:
    t.books.where(lambda b: b.yaer > 2000)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]  # M01: a typing error
    t.books.where(lambda b: b.year > "2000")  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue]  # M02: another type
    t.books.where(lambda b: b.year == "2000")  # type: ignore[comparison-overlap]  # pyright: ignore[reportUnnecessaryComparison]  # M03: it is never equal
    t.books.where(lambda b: b.title in {1, 2})  # type: ignore[comparison-overlap]  # pyright: ignore[reportUnnecessaryContains]  # M04: it is never in there
    t.books.where(lambda b: b.title)  # type: ignore[arg-type, return-value]  # pyright: ignore[reportArgumentType, reportAttributeAccessIssue, reportCallIssue]  # M05: no bool
    t.books.where(lambda b: t.authors[b.title].country == "NO")  # type: ignore[index]  # pyright: ignore[reportArgumentType]  # M06: a wrong key through a link
    t.books.where(lambda b: t.authors[b.author].contry == "NO")  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]  # M07: a typing error behind a link
    t.books.where(lambda b: t.tags[b.tags].name == "x")  # type: ignore[index]  # pyright: ignore[reportArgumentType]  # M08: a list for a key
    t.authors.where(lambda a: t.authors[a.mentor].country == "NO")  # type: ignore[index]  # pyright: ignore[reportArgumentType]  # M09: None for a key
    t.authors.where(lambda k, a: t.books.by_author[a.name].count() > 3)  # type: ignore  # pyright: ignore[reportArgumentType]  # M10: a wrong key of an index
    t.authors.where(lambda k, a: t.books.by_author[k])  # type: ignore[arg-type, misc]  # pyright: ignore[reportArgumentType, reportCallIssue]  # M11: a selection is no bool
    t.books.by_author["ann"]  # type: ignore[index]  # pyright: ignore[reportArgumentType]  # M12: a wrong key of an index
    t.books.by_autor[1]  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]  # M13: no such index
    x: zlmdb.Reads[tuple[str, str]] = t.books.select().fields(lambda b: (b.title, b.year))  # type: ignore[arg-type, return-value]  # pyright: ignore[reportAssignmentType]  # M14: other types
    t.books.select().fields(lambda b: b.title).sum()  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]  # M15: a sum of texts
    t.books.select().fields(lambda b: b.titel)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]  # M16: a typing error
    t.authors.select().order_by(lambda a: a.mentor)  # type: ignore[arg-type, return-value]  # pyright: ignore[reportArgumentType, reportAttributeAccessIssue, reportCallIssue]  # M17: None has no order
    t.books.select().order_by(lambda b: b.yaer)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]  # M18: a typing error
    n: int = t.books.select().fields(lambda b: b.year).max()  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]  # M19: it may be None
    d: dict[str, int] = t.books.select().group_by(lambda b: b.year, lambda g: g.count())  # type: ignore[arg-type, return-value]  # pyright: ignore[reportAssignmentType]  # M20: other keys
    t.books.select().group_by(lambda b: b.year, lambda g: g.cuont())  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]  # M21: a typing error
    t.books.select().change(lambda b: b.title)  # type: ignore[arg-type, return-value]  # pyright: ignore[reportArgumentType]  # M22: no record
    t.books.select().change(lambda b: replace(b, yaer=3))  # type: ignore[call-arg]  # M23: a typing error, which pyright does not report
    with t.books.select().edit() as found:
        for book in found:
            book.price = "3"  # type: ignore[assignment]  # pyright: ignore[reportAttributeAccessIssue]  # M24: another type
    t.books.where(lambda k, b: k > 3)  # type: ignore  # pyright: ignore[reportOperatorIssue]  # M25: a wrong type of the key
    t.books.where(lambda a, b, c: True)  # type: ignore[arg-type, misc]  # pyright: ignore[reportArgumentType, reportCallIssue]  # M26: too many arguments
    zlmdb.ForeignKey["Authors"]("author", on_delete="explode")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # M27: no such rule
    t.books.values().where(lambda b: b.year > 1)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]  # M28: the values of a mapping
    t.books.select().page("20")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  # M29: another type
    t.books.where(lambda b: not b.title.startwith("x"))  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]  # M30: a typing error
    t.books.where(lambda b: b.year > 2000 and t.authors[b.author].mentor < 3)  # type: ignore[operator]  # pyright: ignore[reportOptionalOperand]  # M31: None behind a link
    t.books.where(lambda b: any(t.tags[k].nam == "x" for k in b.tags))  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]  # M32: a typing error in a loop
    t.books.where(t.books.by_year[2000])  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]  # M33: a selection is no function
    t.books.select().fields(lambda b: b.price).mean() + 1  # type: ignore[operator]  # pyright: ignore[reportOptionalOperand]  # M34: it may be None
    t.books.where(lambda b: b.year > 2000 or "NO")  # type: ignore[arg-type, return-value]  # pyright: ignore[reportArgumentType, reportAttributeAccessIssue, reportCallIssue]  # M35: no bool
    _ = x, n, d, key

"""The planner by itself: conditions and facts in, a plan out, with no table anywhere."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any, Callable, Optional

import pytest

from zlmdb.query.accesses import Access, Bound, IndexFacts, Part, ordered_by
from zlmdb.query.following import Following
from zlmdb.query.plan import Choice, Question, choose
from zlmdb.query.terms import CAP, KEY, Asking

pytestmark = pytest.mark.twice  # plans do not depend on the version of Python


@dataclass
class Book:
    title: str
    year: int
    country: str
    price: float
    editor: Optional[str] = None
    sold: bool = False
    tags: list[str] = field(default_factory=list)


def part(name: str, kind: type, *, present: bool = True) -> Part:
    return Part((name,), kind, present)


BY_YEAR = IndexFacts("by_year", (part("year", int),), unique=False)
BY_TITLE = IndexFacts("by_title", (part("title", str),), unique=True)
BY_PLACE = IndexFacts("by_place", (part("country", str), part("year", int)), unique=False)
BY_EDITOR = IndexFacts("by_editor", (part("country", str), part("editor", str, present=False)), unique=False)
BY_SOLD = IndexFacts("by_sold", (part("sold", bool),), unique=False)
PRIMARY = IndexFacts(KEY, (Part((KEY, 0), str, present=True), Part((KEY, 1), int, present=True)), unique=True)
ALL = (BY_YEAR, BY_TITLE, BY_PLACE, BY_EDITOR, BY_SOLD, PRIMARY)

BOOKS = Following(Book, tuple[str, int])
TOTAL = 100_000


def chosen(
    *conditions: Callable[..., Any],
    counts: Optional[dict[str, Optional[int]]] = None,
    order: Optional[Callable[..., Any]] = None,
    limit: Optional[int] = None,
    total: int = TOTAL,
    hasty: bool = False,
    counted: Optional[list[int]] = None,
) -> tuple[Choice, list[str]]:
    asked = [BOOKS.condition(one) for one in conditions]
    by = None if order is None else BOOKS.value(order)
    known = counts or {}

    def measure(access: Access, most: int) -> Optional[int]:
        found = known.get(access.facts.name, 5)
        if counted is not None:
            counted.append(min(found or 0, most))
        return None if found is None else min(found, most)

    question = Question(
        [Asking(one.node, one.parameters, one.keyed) for one in asked], ALL, total,
        None if by is None else ordered_by(by.node, by.keyed), limit, hasty=hasty,
    )  # fmt: skip
    choice = choose(question, measure)
    return choice, [access.facts.name for access in choice.accesses]


def said(choice: Choice) -> list[str]:
    return [f"{access}: {why}" for access, why in choice.rejected]


def test_a_range_of_keys_is_read_however_long_it_is() -> None:
    assert chosen(lambda k, b: k[0] > "a", counts={KEY: TOTAL})[1] == [KEY]
    assert chosen(lambda k, b: k[0] in ("a", "b"), counts={KEY: TOTAL})[1] == []


WHERE: list[tuple[Callable[..., Any], list[str]]] = [
    (lambda b: b.year == 1990, ["by_year"]),
    (lambda b: 1990 == b.year, ["by_year"]),  # noqa: SIM300
    (lambda b: 1990 < b.year <= 2000, ["by_year"]),
    (lambda b: b.year in (1990, 1991), ["by_year"]),
    (lambda b: b.title == "Sult", ["by_title"]),
    (lambda b: b.title.startswith("Su"), ["by_title"]),
    (lambda b: b.title == "Sult" and b.year == 1890, ["by_title"]),
    (lambda b: b.country == "NO" and b.year > 1990, ["by_place"]),
    (lambda b: b.country == "NO" and b.editor == "A", ["by_editor"]),
    (lambda b: b.sold, ["by_sold"]),
    (lambda b: not b.sold, ["by_sold"]),
    (lambda b: b.title == "Sult" or b.year == 1, ["by_title", "by_year"]),
    (lambda b: b.price > 3 and (b.title == "Sult" or b.year == 1), ["by_title", "by_year"]),
    (lambda k, b: k[0] == "a" and k[1] < 9, [KEY]),
    (lambda k, b: k[1] < 9, []),
    (lambda b: b.year != 1990, []),
    (lambda b: b.price > 3, []),
    (lambda b: b.title == "Sult" or b.price > 3, []),
    (lambda b: not b.year == 1990, []),  # noqa: SIM201
    (lambda b: b.year == len(b.title), []),
    (lambda b: b.title == b.country, []),
    (lambda b: b.year == 3.5 and b.price > 2, ["by_year"]),
    (lambda b: b.year == True, []),  # noqa: E712
    (lambda b: b.editor is None and b.price > 1, []),
    (lambda b: any(tag == "x" for tag in b.tags), []),
    (lambda b: b.title.upper() == "SULT", []),
]


@pytest.mark.parametrize(("condition", "names"), WHERE, ids=map(str, range(len(WHERE))))
def test_a_condition_is_served_by(condition: Callable[..., Any], names: list[str]) -> None:
    assert chosen(condition)[1] == names


def test_ranges_are_those_of_the_condition() -> None:
    low = 1980
    (access,) = chosen(lambda b: b.country == "NO" and low <= b.year < 2000)[0].accesses
    assert (access.facts, access.equal) == (BY_PLACE, ("NO",))
    assert (access.lower, access.upper) == (Bound(1980, True), Bound(2000, False))
    assert str(access) == "index by_place: (b.country == 'NO') and (low <= b.year) and (b.year < 2000)"
    (access,) = chosen(lambda b: b.country in {"NO", "SE"})[0].accesses
    assert access.members is not None
    assert sorted(access.members) == ["NO", "SE"]


def test_an_index_that_lacks_records_is_not_used() -> None:
    """Records without an editor are not in `BY_EDITOR`: it serves nothing that they may match."""
    for _, names in [chosen(lambda b: b.country == "NO", counts={"by_place": TOTAL})]:
        assert names == []
    assert chosen(lambda b: b.country == "NO" and b.editor == "A", counts={"by_place": 900})[1] == ["by_editor"]


def test_the_index_with_the_fewest_entries_is_read() -> None:
    both = lambda b: b.year == 1990 and b.sold  # noqa: E731
    choice, names = chosen(both, counts={"by_year": 50, "by_sold": 20})
    assert names == ["by_sold"]
    assert said(choice) == ["index by_year: (b.year == 1990): 50 entries"]
    assert chosen(both, counts={"by_year": 50, "by_sold": 2000})[1] == ["by_year"]
    assert chosen(both, counts={"by_year": None, "by_sold": 20})[1] == ["by_sold"]


@pytest.mark.parametrize("fewest", [0, 3, 15, 16, 17, 100, 999, 1000, 1001, 30_000, None])
def test_in_haste_no_more_is_counted_than_the_best_index_has(fewest: Optional[int]) -> None:
    both = lambda b: b.year == 1990 and b.sold  # noqa: E731
    for other in (fewest, 20, 70, 2000, TOTAL):
        for total in (TOTAL, 3000, 15):
            for counts in ({"by_year": fewest, "by_sold": other}, {"by_year": other, "by_sold": fewest}):
                counted: list[int] = []
                names = chosen(both, counts=counts, total=total, hasty=True, counted=counted)[1]
                assert names == chosen(both, counts=counts, total=total)[1]
                least = min([one for one in counts.values() if one is not None], default=0)
                if least < 250:
                    assert sum(counted) <= 2 * (16 + 4 * max(least, 16) * 4 // 3)


def test_what_is_not_worth_it_is_rejected() -> None:
    choice, names = chosen(lambda b: b.year > 3, counts={"by_year": TOTAL})
    assert names == []
    assert said(choice) == ["index by_year: (b.year > 3): 25,000 or more of 100,000 records, all are read faster"]
    choice, names = chosen(lambda b: b.year > 3, counts={"by_year": None})
    assert names == []
    assert said(choice) == ["index by_year: (b.year > 3): it cannot hold such a value"]
    assert chosen(lambda b: b.year > 3, counts={"by_year": 15}, total=18)[1] == ["by_year"]
    choice, names = chosen(lambda b: b.year > 3 and b.title > "x", counts={"by_year": 5, "by_title": CAP + 7})
    assert names == ["by_year"]
    assert said(choice) == ["index by_title: (b.title > 'x'): 1,000 or more entries"]  # no more are counted


ORDERS: list[tuple[dict[str, Any], Optional[str], list[str]]] = [
    ({"order": lambda b: b.year}, "by_year", []),
    ({"order": lambda b: (b.country, b.year)}, "by_place", []),
    ({"order": lambda b: b.country}, None, []),
    ({"order": lambda b: (b.country, b.editor or "")}, None, []),
    ({"order": lambda b: -b.year}, None, []),
    ({"order": lambda b: b.price}, None, []),
    ({"where": lambda b: b.country == "NO", "order": lambda b: b.year}, "by_place", []),
    ({"where": lambda b: b.country == "NO" and b.year > 3, "order": lambda b: b.year}, "by_place", []),
    ({"where": lambda b: b.title == "Sult", "order": lambda b: b.year, "limit": 3}, None, ["by_title"]),
    ({"where": lambda b: b.sold, "order": lambda b: b.year, "limit": 3}, None, ["by_sold"]),
    ({"where": lambda b: b.sold, "order": lambda b: b.year, "limit": 3, "counts": {"by_sold": 2 * CAP}}, "by_year", []),
    ({"where": lambda b: b.sold, "order": lambda b: b.year, "counts": {"by_sold": 2 * CAP}}, None, ["by_sold"]),
]


@pytest.mark.parametrize(("asked", "order", "names"), ORDERS, ids=map(str, range(len(ORDERS))))
def test_an_index_gives_the_order(asked: dict[str, Any], order: Optional[str], names: list[str]) -> None:
    where = [asked["where"]] if "where" in asked else []
    choice, found = chosen(*where, **{name: value for name, value in asked.items() if name != "where"})
    assert (None if choice.order is None else choice.order.facts.name, found) == (order, names)
    if choice.order is not None and "where" in asked and "year" in asked["where"].__code__.co_names:
        assert choice.order.lower == Bound(3, False)


class Paper(enum.Enum):
    THIN = 1
    THICK = 2
    COATED = 3


@dataclass
class Print:
    paper: Paper


@pytest.mark.parametrize("present", [True, False])
def test_not_to_be_some_members_is_to_be_the_others_where_there_is_no_none(present: bool) -> None:
    """A pickle may hold None: it is none of the members, and in no index."""
    prints = Following(Print)
    index = IndexFacts("by_paper", (Part(("paper",), Paper, present, sorts=False),), unique=False)
    for condition, members in (
        (lambda p: p.paper is not Paper.THIN, (Paper.THICK, Paper.COATED)),
        (lambda p: p.paper not in (Paper.THIN, Paper.THICK), (Paper.COATED,)),
    ):
        asked = prints.condition(condition)
        question = Question([Asking(asked.node, asked.parameters, keyed=False)], [index], TOTAL)
        found = choose(question, lambda access, most: 5).accesses
        assert [one.members or one.equal for one in found] == ([members] if present else [])


@pytest.mark.parametrize("present", [True, False])
def test_not_to_be_true_is_to_be_false_where_there_is_no_none(present: bool) -> None:
    index = IndexFacts("by_sold", (part("sold", bool, present=present),), unique=False)
    for condition, used in ((lambda b: b.sold, True), (lambda b: not b.sold, present)):
        asked = BOOKS.condition(condition)
        question = Question([Asking(asked.node, asked.parameters, keyed=False)], [index], TOTAL)
        assert bool(choose(question, lambda access, most: 5).accesses) is used

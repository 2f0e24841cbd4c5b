"""Questions about persons and their orders, by an index and without one: zlmdb beside SQL, ORMs, and loops over lmdb.

Each question is asked with other values each time, as a service asks it, of the same records with the same indexes in
each store. sqlite3 gives tuples; zlmdb, the ORMs, ObjectBox and the loops over lmdb give objects. Answers are compared
before any time counts.
"""

from __future__ import annotations

import importlib
import random
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

from ..askers import askers
from ..askers.base import Asker, email
from ..contenders.base import Cannot
from .inside import Inside, Question, Timed, row

ASKED, ROWS = 200, 50_000
"""How often a question is asked in a turn: so often, or until so many rows are given."""

BASE = "sqlite3"
OF_PERSON = attrgetter("id", "name", "email", "age", "city", "score")


@dataclass(frozen=True)
class Asked:
    """*method* of the askers; *values* makes its arguments of dice and the size, and a cursor where it has a page.

    *rows*: what part of the persons it gives. *plain* makes an answer comparable; *sorted*: its order is anybody's.
    *scan*: every record is looked at, once a turn.
    """

    name: str
    method: str
    values: Callable[[random.Random, int], tuple[Any, ...]]
    plain: Callable[[Any], Any]
    rows: float = 0.0
    scan: bool = False

    def times(self, asker: Asker, size: int) -> int:
        if self.scan or self.method in asker.slow:
            return 1
        return max(1, min(ASKED, round(ROWS / (self.rows * size + 1))))


def person(answer: Any) -> Any:
    return tuple(answer) if isinstance(answer, tuple) else OF_PERSON(answer)


def in_order(answer: Iterable[Any]) -> Any:
    return list(map(person, answer))


def any_order(answer: Iterable[Any]) -> Any:
    return sorted(map(person, answer))


def any_orders(answer: Iterable[Any]) -> Any:
    return sorted(map(order, answer))


def order(answer: Any) -> Any:
    """Of an ORM, *person* is an object unless it is asked for by its key."""
    if isinstance(answer, tuple):
        return answer
    return answer.id, getattr(answer, "person_id", None) or answer.person, answer.total


def texts(answer: Iterable[Any]) -> Any:
    return sorted(one[0] if isinstance(one, tuple) else one for one in answer)


def sums(answer: Any) -> Any:
    """By city the count and the sum, which is rounded: not all add in the same order."""
    rows = answer.items() if isinstance(answer, dict) else ((city, more) for city, *more in answer)
    return sorted((city, count, round(total, 3)) for city, (count, total) in rows)


def one_email(dice: random.Random, size: int) -> tuple[str]:
    return (email(dice.randint(1, size)),)


def ten_ages(dice: random.Random, size: int) -> tuple[tuple[int, ...]]:
    first = dice.randrange(980)
    return (tuple(range(first, first + 10)),)


def age_range(dice: random.Random, size: int) -> tuple[int, int]:
    first = dice.randrange(980)
    return first, first + 10


BY_INDEX = (
    Asked("one record, where() on a unique field", "one", one_email, person),
    Asked("one record, by the unique index", "one_by_view", one_email, person),
    Asked("where() equal, one thousandth", "equal", lambda dice, size: (dice.randrange(980),), any_order, 0.001),
    Asked("where() in a range, one hundredth", "within", age_range, any_order, 0.01),
    Asked("where() in ten values, one field", "among", ten_ages, texts, 0.01),
    Asked("order by an index, the first 20", "ordered", lambda dice, size: (20,), in_order),
    Asked("a page of 50 by its cursor", "page", lambda dice, size: (50,), in_order),
    Asked("the way back of a link", "orders_of", lambda dice, size: (dice.randint(1, size),), any_orders),
    Asked("where() over a link, unique", "orders_by", one_email, any_orders),
)
SCANS = (
    Asked("no index: where(), no match", "nobody", lambda dice, size: ("nobody",), in_order, scan=True),
    Asked("no index: one field of all", "names", lambda dice, size: (), texts, scan=True),
    Asked("no index: top 10 by a field", "top", lambda dice, size: (10,), in_order, scan=True),
    Asked("no index: group by, count and sum", "groups", lambda dice, size: (), sums, scan=True),
)


@contextmanager
def ask(directory: Path, size: int, asked: Asked, stores: dict[str, Asker]) -> Iterator[Timed]:
    """What each store answers to the same, the first answers compared; *stores* that cannot are left out of it."""
    dice = random.Random(size)
    values = [asked.values(dice, size) for _ in range(ASKED)]
    expected: list[Any] = []
    timed: Timed = {}
    for label, store in stores.items():
        more = (store.cursor(*values[0]),) if asked.method == "page" else ()
        method = getattr(store, asked.method)
        found = [asked.plain(method(*value, *more)) for value in values[: 1 if asked.scan else 3]]
        if found != (expected := expected or found):
            raise AssertionError(f"{label} answers otherwise to: {asked.name}")
        repeated = [(*value, *more) for value in values[: asked.times(store, size)]]
        timed[label] = partial(run, method, repeated, size if asked.scan else 1)
    yield timed


def run(method: Callable[..., object], values: list[tuple[Any, ...]], each: int) -> int:
    for value in values:
        method(*value)
    return each * len(values)


class Questions(Inside):
    name = "questions"
    title = "Questions, by an index and without one"
    filled_once = True
    sizes = {"tiny": (200,), "small": (2_000,), "window": (100_000,), "full": (100_000, 1_000_000)}
    labels = ("sqlite3", "raw lmdb + msgspec", "SQLAlchemy ORM", "peewee", "ObjectBox", "zlmdb", "zlmdb FlatBuffers")
    questions = tuple(
        Question(one.name, partial(ask, asked=one), BASE, "record" if one.scan else "question")
        for one in (*BY_INDEX, *SCANS)
    )

    def measure(self, size: int, rounds: int) -> dict[str, Any]:
        """As of all, but each store is filled once, for all questions."""
        rows: dict[str, Any] = {label: row({}, label) for label in self.labels}
        with tempfile.TemporaryDirectory(prefix="zlmdb-bench-") as directory, ExitStack() as stack:
            stores: dict[str, Asker] = {}
            for label, module in askers().items():
                try:
                    for needed in module.NEEDS:
                        importlib.import_module(needed)
                    stores[label] = module.ASKERS[label](Path(directory), size)
                    stack.callback(stores[label].close)
                except ImportError as error:
                    wanted = " ".join(f"'{requirement}'" for requirement in module.NEEDS.values())
                    rows[label]["absent"] = f"not installed ({error}): pip install {wanted}"
                except Cannot as error:
                    rows[label]["absent"] = str(error)
            for asked, question in zip((*BY_INDEX, *SCANS), self.questions):
                able = {}
                for label, store in stores.items():
                    if asked.scan or not store.scans_only:
                        if asked.method in store.unable:
                            rows[label]["skipped"][asked.name] = store.unable[asked.method]
                        else:
                            able[label] = store
                with question.ask(Path(directory), size, stores=able) as timed:
                    self._interleave(question, timed, rounds, rows, size)
        return rows

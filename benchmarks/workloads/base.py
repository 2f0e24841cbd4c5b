"""What a workload is: data made from a seed, and steps that are timed on every contender alike."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar

from ..clock import Clock
from ..contenders.base import Store
from ..records import Shape

Pair = tuple[Any, Any]
SIZES = ("tiny", "small", "window", "full")
"""tiny: the tests. small: a run of minutes. window: half an hour. full: the published sizes, hours."""

PYPY = sys.implementation.name == "pypy"

BRIEF = 5_000
"""Up to so many records a collection takes PyPy longer than most steps do: see `collects`."""

WARMED_UP = 20_000
"""Up to so many records a first round warms up; beyond, a round is long enough to do so itself."""

LARGE = 200_000
"""Beyond so many records a process lives for one round, and in it a step is run once, unless it is `Step.quick`."""


def collects(size: int) -> bool:
    """Whether garbage is collected before each step, so that none pays for another's.

    Not on PyPy if steps are brief: that was half of the time of the small comparison.
    """
    return not PYPY or size > BRIEF


@dataclass(frozen=True)
class Outcome:
    """What a step did: how many operations, and how to check that what came of them is right (not timed).

    *batches*: nanoseconds of each transaction, where the published form tells them.
    """

    count: int
    check: Callable[[], object] = bool
    batches: tuple[int, ...] = ()


@dataclass(frozen=True)
class Step:
    """One timed part of a workload.

    *run* is handed the store, the data and the clock, and puts a ``with clock:`` around what counts. *unit* is what an
    operation is called. *repeat*: so often in each round, for steps that change nothing; beyond `LARGE` records only if
    *quick*, that is if the number of records should make no difference. *fresh*: in a new process, opened with the
    store inside the clock. *processes*: run by so many at once, on one database.
    *sized*: the files are measured behind it, with the database closed, and not at the end of the round.
    """

    name: str
    run: Callable[[Store, Any, Clock], Outcome]
    unit: str = "record"
    fresh: bool = False
    repeat: int = 1
    quick: bool = False
    processes: int = 1
    sized: bool = False

    def times(self, size: int) -> int:
        """How often it is run in a round of so many records."""
        return self.repeat if size <= LARGE or self.quick else 1


class Workload:
    """Sizes are numbers of records; *durability* what is asked of every contender."""

    name: ClassVar[str]
    title: ClassVar[str]
    shape: ClassVar[Shape]
    durability: ClassVar[str] = "none"
    sizes: ClassVar[dict[str, tuple[int, ...]]]
    steps: ClassVar[tuple[Step, ...]]
    only: ClassVar[tuple[str, ...]] = ("",)
    """Labels that begin so take part."""
    operations: ClassVar[int] = 0
    """As many as a step does at any size, if its records allow; none for steps that do what there is."""
    patience: ClassVar[float] = 1.0
    """How many times the usual budget a contender may repeat for."""

    def wants(self, label: str) -> bool:
        """Whether the contender is one of `only`."""
        return label.startswith(self.only)

    def prepare(self, size: int) -> Any:
        """The data of one size, the same in every process."""
        raise NotImplementedError

    def prepare_fresh(self, size: int) -> Any:
        """What the steps in new processes need of it."""
        return self.prepare(size)

    def prepare_beside(self, size: int, process: int) -> Any:
        """What the first, second, ... of the processes that work at the same time needs: no two do the same."""
        raise NotImplementedError


def parts(pairs: Iterable[Pair], count: int) -> Iterator[list[Pair]]:
    """Lists of *count* pairs each, and of what is left; *pairs* may be made as they are asked for."""
    rest = iter(pairs)
    while part := list(islice(rest, count)):
        yield part


def fill(store: Store, pairs: Iterable[Pair], clock: Clock, batch: int) -> tuple[int, ...]:
    """Put all pairs, *batch* in a transaction; they, and what a program has in hand, are made outside the clock.

    The nanoseconds of each transaction.
    """
    batches = []
    for part in parts(pairs, batch):
        native = store.native(part)
        before = clock.wall
        with clock:
            store.put_many(native)
        batches.append(clock.wall - before)
    with clock:
        store.flush()
    return tuple(batches)

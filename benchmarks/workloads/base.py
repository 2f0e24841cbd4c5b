"""What a workload is: data made from a seed, and steps that are timed on every contender alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from ..clock import Clock
from ..contenders.base import Store
from ..records import Shape

SIZES = ("tiny", "small", "window", "full")
"""tiny: the tests. small: a run of minutes. window: half an hour. full: the published sizes, hours."""


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
    operation is called. *repeat*: so often in each round, for steps that change nothing. *fresh*: in a new process,
    opened with the store inside the clock. *processes*: run by so many at once, on one database.
    """

    name: str
    run: Callable[[Store, Any, Clock], Outcome]
    unit: str = "record"
    fresh: bool = False
    repeat: int = 1
    processes: int = 1


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

    def prepare(self, size: int) -> Any:
        """The data of one size, the same in every process."""
        raise NotImplementedError

    def prepare_fresh(self, size: int) -> Any:
        """What the steps in new processes need of it."""
        return self.prepare(size)


def fill(store: Store, pairs: list[tuple[Any, Any]], clock: Clock, batch: int) -> tuple[int, ...]:
    """Put all pairs, *batch* in a transaction; what a program has in hand is made outside the clock.

    The nanoseconds of each transaction.
    """
    batches = []
    for start in range(0, len(pairs), batch):
        native = store.native(pairs[start : start + batch])
        before = clock.wall
        with clock:
            store.put_many(native)
        batches.append(clock.wall - before)
    with clock:
        store.flush()
    return tuple(batches)

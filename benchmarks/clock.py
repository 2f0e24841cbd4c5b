"""Wall-clock and processor time of the parts of a step that count."""

from __future__ import annotations

import gc
from resource import RUSAGE_CHILDREN, getrusage
from time import perf_counter_ns, process_time_ns, sleep


class Clock:
    """Adds up the time inside its ``with`` blocks: *wall* and *cpu* (of all threads), in nanoseconds.

    *at*: the first begins then, on the clock that processes share; they prepare before. *began* and *ended* are the
    beginning of the first and the end of the last.
    """

    def __init__(self, at: int = 0) -> None:
        self.wall = self.cpu = 0
        self.began, self.ended = 0, 0
        self._at = at

    def __enter__(self) -> None:
        if not self.began:
            sleep(max(0, self._at - perf_counter_ns()) / 1e9 if self._at else 0)
            self.began = perf_counter_ns()
        self._cpu = cpu_time()
        self._wall = perf_counter_ns()

    def __exit__(self, *_: object) -> None:
        self.ended = perf_counter_ns()
        self.wall += self.ended - self._wall
        self.cpu += cpu_time() - self._cpu


def cpu_time() -> int:
    """Nanoseconds of processor time of this process, and of the processes that it waited for."""
    children = getrusage(RUSAGE_CHILDREN)
    return process_time_ns() + round((children.ru_utime + children.ru_stime) * 1e9)


def set_aside() -> None:
    """Have the garbage collector leave alone what is there: looking through the data is no work of a contender's."""
    if hasattr(gc, "freeze"):  # PyPy's collector has nothing of the kind
        gc.unfreeze()
        gc.collect()
        gc.freeze()

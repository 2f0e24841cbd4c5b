"""Wall-clock and processor time of the parts of a step that count."""

from __future__ import annotations

import gc
from time import perf_counter_ns, process_time_ns


class Clock:
    """Adds up the time inside its ``with`` blocks: *wall* and *cpu* (all threads of this process), in nanoseconds."""

    def __init__(self) -> None:
        self.wall = self.cpu = 0

    def __enter__(self) -> None:
        self._cpu = process_time_ns()
        self._wall = perf_counter_ns()

    def __exit__(self, *_: object) -> None:
        self.wall += perf_counter_ns() - self._wall
        self.cpu += process_time_ns() - self._cpu


def set_aside() -> None:
    """Have the garbage collector leave alone what is there: looking through the data is no work of a contender's."""
    if hasattr(gc, "freeze"):  # PyPy's collector has nothing of the kind
        gc.unfreeze()
        gc.collect()
        gc.freeze()

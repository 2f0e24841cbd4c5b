"""Many at once in one process: threads that begin together, tasks of asyncio."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from time import monotonic, sleep
from typing import Any

from ..clock import Clock
from ..contenders.base import Cannot

PATIENCE = 30.0
"""Seconds that threads have for a step; the slowest that finishes takes a tenth of that."""


def shared_out(operations: Sequence[Any], count: int) -> list[list[Any]]:
    """*count* shares, dealt like cards."""
    return [[*operations[at::count]] for at in range(count)]


def in_threads(shares: list[list[Any]], clock: Clock, begin: Callable[[], object], work: Callable[..., None]) -> None:
    """Call ``work(share)`` in a thread each. The clock starts when all have called *begin*, and ends with the last.

    Raises `Cannot` if that takes longer than `PATIENCE`; all that was to be done is done then, by this thread.
    """
    kept = [list(share) for share in shares]
    failed: list[BaseException] = []
    ready = threading.Barrier(len(shares) + 1)

    def run(share: Sequence[Any]) -> None:
        try:
            begin()
            ready.wait()
            work(share)
        except BaseException as error:
            failed.append(error)
            ready.abort()

    workers = [threading.Thread(target=run, args=(share,)) for share in shares]
    for worker in workers:
        worker.start()
    with suppress(threading.BrokenBarrierError):
        while ready.n_waiting < len(shares) and not ready.broken:
            sleep(0.001)
        with clock:
            ready.wait()
            end = monotonic() + PATIENCE
            for worker in workers:
                worker.join(max(0.0, end - monotonic()))
    late = any(worker.is_alive() for worker in workers)
    if late:
        for share in shares:
            share.clear()  # which ends the loop over it
    for worker in workers:
        worker.join()
    if late:
        for share in kept:
            work(share)
        raise Cannot(f"{len(shares)} threads did not finish within {PATIENCE:.0f} s")
    if failed:
        raise Cannot(f"an operation failed: {type(failed[0]).__name__}: {failed[0]}") from failed[0]


def in_tasks(
    shares: Sequence[Sequence[Any]], clock: Clock, begin: Callable[[], object], work: Callable[..., Any], helpers: int
) -> None:
    """Await ``work(share)`` in a task each. The *helpers*, threads of the executor, have called *begin* before."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        executor = ThreadPoolExecutor(helpers)
        loop.set_default_executor(executor)
        together = threading.Barrier(helpers)

        def started() -> None:
            together.wait()
            begin()

        await asyncio.gather(*(loop.run_in_executor(executor, started) for _ in range(helpers)))
        with clock:
            await asyncio.gather(*map(work, shares))

    asyncio.run(main())

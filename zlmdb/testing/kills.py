"""A program killed at each of its writes, one after the other."""

from __future__ import annotations

import multiprocessing
import os
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from ..engines import registry
from ..store import fork
from .watched import WatchedEngine, Watcher

_KILLED = 86
"""The exit status of a process that was killed."""


class _Killer(Watcher):
    """Ends the process at the point numbered *at*, as SIGKILL does: no ``finally``, no ``atexit``, no flush."""

    def __init__(self, at: int) -> None:
        self._left = at

    def _reach(self) -> None:
        self._left -= 1
        if self._left == 0:
            os._exit(_KILLED)

    put = delete = commit = committed = _reach


def kill_points(work: Callable[..., object], *args: Any, timeout: float = 60) -> Iterator[int]:
    """Run ``work(*args)`` again and again, each time in a process of its own, and kill it one point later.

    A point is before each write of the engine, and before and after each commit, in all databases that *work* opens;
    creating tables and indexes is included. Yields the number of the point after each kill, for the checks of the test,
    and ends when *work* runs to its end. *work* finds what the run before left, as a program that is started again.

    The process is a fork where the system can fork; elsewhere *work* and *args* must be picklable. Raises RuntimeError
    with the traceback if *work* raises, TimeoutError if it takes longer than *timeout* seconds.
    """
    point = 0
    while True:
        point += 1
        if not _killed(work, args, point, timeout):
            return
        yield point


def _killed(work: Callable[..., object], args: tuple[Any, ...], point: int, timeout: float) -> bool:
    """Run *work* in a process that is killed at *point*; whether it got there."""
    methods = multiprocessing.get_all_start_methods()
    context: Any = multiprocessing.get_context("fork" if "fork" in methods else "spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(sender, work, args, point))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of threads, which are not this one's
        process.start()
    sender.close()
    try:
        problem = receiver.recv() if receiver.poll(timeout) else None
    except EOFError:  # it ended, or was killed
        problem = ""
    finally:
        receiver.close()
    if problem is not None:
        process.join(timeout)
    late = process.is_alive()
    if late:
        process.kill()
        process.join()
    if problem:
        raise RuntimeError(f"the run that was to be killed at point {point} failed by itself:\n{problem}")
    if late:
        raise TimeoutError(f"the run that was to be killed at point {point} did not end within {timeout} s")
    if process.exitcode not in (0, _KILLED):
        raise RuntimeError(f"the run that was to be killed at point {point} ended with the status {process.exitcode}")
    return bool(process.exitcode == _KILLED)


def _child(sender: Any, work: Callable[..., object], args: tuple[Any, ...], point: int) -> None:
    """Run *work* with all databases of this process watched."""
    try:
        watch_all(_Killer(point))
        work(*args)
    except BaseException:
        sender.send(traceback.format_exc())
    finally:
        sender.close()


def watch_all(watcher: Watcher) -> None:
    """Let *watcher* watch every database that this process has open or opens from now on."""
    plain = registry.engine

    def watched(*args: Any, **options: Any) -> Any:
        return WatchedEngine(plain(*args, **options), watcher)

    registry.engine = watched
    for store in list[Any](fork.environments):
        store.engine = WatchedEngine(store.engine, watcher)

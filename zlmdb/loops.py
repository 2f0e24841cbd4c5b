"""The event loop of asyncio that runs here; other libraries have none."""

from __future__ import annotations

from asyncio import AbstractEventLoop, get_running_loop


def running_loop() -> AbstractEventLoop:
    """The event loop that runs in this thread. Raises RuntimeError, with what to write, if there is none."""
    try:
        return get_running_loop()
    except RuntimeError as error:
        raise RuntimeError(
            "no event loop of asyncio runs in this thread, and what is awaited here needs one: with trio, call in a "
            "thread what has no `a` before its name, `await trio.to_thread.run_sync(db.run, function)`"
        ) from error

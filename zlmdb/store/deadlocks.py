"""Finds the task of asyncio that has a write block open and waits in it for what can only be done after the block.

The future of such a function wakes a task, directly or by way of other futures (`asyncio.gather`, `asyncio.wait_for`,
`asyncio.shield`, a task group). The ``with`` statement of the block holds an object that nothing else has, see
`blocks`. If that is among what the coroutines of the woken task hold, the block is that of this task. The tasks are
suspended while this looks, because it is called by their loop.
"""

from __future__ import annotations

import gc
from asyncio import Future, Task, current_task, get_running_loop
from collections import deque
from collections.abc import Callable, Iterator
from types import AsyncGeneratorType, CellType, CoroutineType, FrameType, FunctionType, GeneratorType, MethodType
from typing import Any

_LOOKED_THROUGH = (
    CoroutineType, GeneratorType, AsyncGeneratorType, FrameType, MethodType, tuple, list, deque,
)  # fmt: skip
_MOST = 10_000  # objects that are looked at


def waits_for_itself(future: Any, holder: Any) -> bool:
    """Whether a task that *future* wakes has the block of the transaction *holder* open."""
    if holder is None:
        return False
    block = getattr(holder, "_block", None)
    statement = None if block is None else block()
    if statement is None:  # an `ExitStack` has the transaction, or the object with its tables
        unit = getattr(holder, "_unit", None)
        statement = holder if unit is None else unit.view
    return any([_has(task.get_coro(), statement) for task in _woken(future)])


async def is_of_this_task(holder_here: Callable[[], Any]) -> bool:
    """Whether the task that runs, or one that waits for it, has the block of the transaction open that is here."""
    task, loop = current_task(), get_running_loop()
    answer: Future[bool] = loop.create_future()

    def look() -> None:  # from the loop: what a coroutine has can be seen while it is suspended
        if not answer.done():
            answer.set_result(waits_for_itself(task, holder_here()))

    loop.call_soon(look)
    return await answer


def _woken(future: Any) -> list[Any]:
    """The tasks that go on when *future* is done."""
    found: dict[int, Any] = {}
    todo = [future]
    while todo:
        one = todo.pop()
        if id(one) not in found:
            found[id(one)] = one
            for callback, *_ in getattr(one, "_callbacks", None) or ():
                todo.extend(_futures_of(callback))
    return [one for one in found.values() if isinstance(one, Task)]


def _futures_of(callback: Any) -> Iterator[Any]:
    """The futures that *callback* may finish, and the task that it wakes."""
    if isinstance(callback, FunctionType):
        parts: list[Any] = [cell.cell_contents for cell in callback.__closure__ or () if _is_filled(cell)]
        yield from [one for one in parts if _is_waiter(one)]
        return
    for one in gc.get_referents(callback):
        if isinstance(one, Future):
            yield one
        else:  # the arguments of a partial; a method of a task group, say
            yield from [part for part in _parts_of(one) if _is_waiter(part)]


def _parts_of(one: Any) -> Any:
    return gc.get_referents(one) if isinstance(one, tuple) else getattr(one, "__dict__", {}).values()


def _is_filled(cell: CellType) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _is_waiter(one: Any) -> bool:
    """Whether *one* is a future that somebody waits for; tasks are there for other reasons, too."""
    return isinstance(one, Future) and not isinstance(one, Task)


def _has(coroutine: Any, wanted: Any) -> bool:
    """Whether *coroutine*, or what it awaits, has *wanted* in a variable or a statement."""
    seen: dict[int, Any] = {}
    todo: list[Any] = [coroutine]
    while todo and len(seen) < _MOST:
        one = todo.pop()
        if one is wanted:
            return True
        if id(one) in seen:
            continue
        seen[id(one)] = one
        if isinstance(one, _LOOKED_THROUGH):
            todo.extend(gc.get_referents(one))
        elif _is_block(one):
            todo.extend(getattr(one, "__dict__", {}).values())
    return False


def _is_block(one: object) -> bool:
    """Whether *one* is for ``with`` or ``async with``."""
    cls = type(one)
    return hasattr(cls, "__exit__") or hasattr(cls, "__aexit__")

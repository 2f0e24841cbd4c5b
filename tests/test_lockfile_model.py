"""The steps of `store.lockfile` and `WriterLock`, in every order in which processes can take them.

A processor shows what it has stored after a while; until then only it knows, and it may look at something else before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Optional

import pytest

pytestmark = pytest.mark.twice  # processes and what is in files, which no version of Python makes different


class Process(NamedTuple):
    """Where a process is, what it believes, and what it has stored in `BUSY` but not shown yet."""

    at: str = "closed"
    alone: bool = False
    met: bool = False
    stored: tuple[int, ...] = ()


class State(NamedTuple):
    """Three processes, the two bytes, and who has which lock."""

    processes: tuple[Process, ...]
    busy: int = 0
    others: int = 0
    here: frozenset[int] = frozenset()
    sole: Optional[int] = None
    lock: Optional[int] = None

    def go(self, one: int, at: str, **changes: object) -> State:
        process, rest = self.processes[one]._replace(at=at), dict(changes)
        for name in ("alone", "met", "stored"):
            if name in rest:
                process = process._replace(**{name: rest.pop(name)})  # type: ignore[arg-type]
        processes = (*self.processes[:one], process, *self.processes[one + 1 :])
        return self._replace(processes=processes, **rest)  # type: ignore[arg-type]

    def shown(self) -> State:
        """When all has been shown."""
        state = self
        for one, process in enumerate(self.processes):
            if process.stored:
                state = state.go(one, process.at, stored=())._replace(busy=process.stored[-1])
        return state

    def ended(self, one: int) -> State:
        """After the kernel has released what the process had."""
        return State(
            (*self.processes[:one], Process(), *self.processes[one + 1 :]),
            self.busy,
            self.others,
            self.here - {one},
            None if self.sole == one else self.sole,
            None if self.lock == one else self.lock,
        )


WRITING = ("writes alone", "writes")


def own_steps(state: State, one: int) -> Iterator[State]:
    """What process *one* may do next by itself; nothing if it waits."""
    process, go = state.processes[one], state.go
    stored, at = process.stored, process.at
    if at == "begins":
        if process.alone:
            yield go(one, "looks", stored=(*stored, 1))
        else:
            yield go(one, "prepares")
    elif at == "looks":
        yield go(one, "goes back" if state.others else "writes alone")
    elif at == "goes back":
        yield go(one, "gives up", stored=(*stored, 0), alone=False)
    elif at == "gives up":  # a system call: all is shown before
        if not stored:
            yield go(one, "prepares", sole=None if state.sole == one else state.sole)
    elif at == "prepares":
        if process.met:
            yield go(one, "locks")
            yield go(one, "tries")
        else:
            yield go(one, "settles", others=1)
    elif at == "settles":
        yield go(one, "meets").shown()
    elif at == "meets":
        if not (state.busy and state.sole not in (None, one)):
            yield go(one, "prepares", met=True)
    elif at == "tries":
        if state.sole in (None, one) and not stored:
            yield go(one, "resets", sole=one)
        elif state.sole not in (None, one):
            yield go(one, "locks")
    elif at == "resets":
        yield go(one, "counts", busy=0, others=0)
    elif at == "counts":
        if state.here == {one}:
            yield go(one, "begins", alone=True)
        else:
            yield go(one, "locks", sole=None)
    elif at == "locks" and state.lock is None:
        yield go(one, "writes", lock=one)


def steps(state: State) -> Iterator[State]:
    for one, process in enumerate(state.processes):
        yield from own_steps(state, one)
        if process.stored:
            yield state.go(one, process.at, stored=process.stored[1:])._replace(busy=process.stored[0])
        if process.at == "closed":
            yield state.go(one, "idle", here=state.here | {one}, met=state.sole in (None, one))
            continue
        yield state.ended(one)  # killed, or closed
        if process.at == "idle":
            yield state.go(one, "begins")
        elif process.alone:  # the end of the write, or an interrupt
            yield state.go(one, "idle", stored=(*process.stored, 0))
        else:
            lock = None if state.lock == one else state.lock
            gives_up = process.at in ("resets", "counts")  # as `be_alone` does
            yield state.go(one, "idle", lock=lock, sole=None if gives_up else state.sole)


def waits(state: State, one: int) -> bool:
    return state.processes[one].at in ("meets", "locks")


def check(count: int) -> int:
    """How many states there are; in none of them two write at once, or wait for nobody who writes."""
    first = State((Process(),) * count)
    found, todo = {first}, [first]
    while todo:
        state = todo.pop()
        writing = [process.at for process in state.processes if process.at in WRITING]
        assert len(writing) <= 1, state
        goes_on = any(True for one in range(count) for _ in own_steps(state, one))
        pending = any(process.stored for process in state.processes)
        if any(waits(state, one) for one in range(count)):
            assert writing or goes_on or pending, state
        for after in steps(state):
            if max(len(process.stored) for process in after.processes) <= 3 and after not in found:
                found.add(after)
                todo.append(after)
    return len(found)


@pytest.mark.once
def test_three_processes_never_write_at_the_same_time_and_never_wait_for_nobody() -> None:
    assert check(3) > 10_000

"""Functions whose results a cache keeps: each result is computed once, however many callers wait for it."""

from __future__ import annotations

import asyncio
import datetime as dt
import inspect
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, TimeoutError
from enum import Enum
from functools import wraps
from hashlib import blake2b
from types import ModuleType
from typing import TYPE_CHECKING, Any, Optional, Union
from uuid import UUID
from weakref import ReferenceType, ref

from ..locks import monotonic
from ..loops import running_loop
from ..numeric import checked_seconds
from ..shown import nearest, shortened
from ..store.asyncfutures import waits_for
from ..values.base import is_a
from .entry import stored_tag

if TYPE_CHECKING:
    from .pending import CachePending

_LONGEST = 200  # characters of a key; the arguments of a longer one are hashed
_ATOMS = (bool, int, float, str, bytes, UUID, dt.datetime, dt.date, dt.time, dt.timedelta, type(None))
_FIRST_LOOK, _LAST_LOOK = 0.002, 0.05  # seconds between looks for what another process computes
_LAMBDA = "<lambda>"
_DECIMAL_BITS = 2048  # of an int whose text is decimal: 617 digits, and Python may be told to make no more than 640
AGAIN: Any = object()
"""In place of a result: whoever computed it was interrupted."""

_LATE: Any = object()
"""In place of a result: whoever computes it takes longer than its lock."""

_OWN: Future[Any] = Future()
"""In place of a future: the caller itself computes it."""


class _Flight:
    """A *key* whose value a thread or a task computes, and for which others wait; *result*: its value, or `AGAIN`.

    It lives as long as the call that computes it, which alone refers to it: however that call ends, the others go on.
    They do, too, when it has computed for *patience* seconds: *since* is when it became the first, or has last looked
    whether it may compute. *waits*: for how long its own call waits for another one.
    """

    __slots__ = (
        "__weakref__", "_cache", "_flights", "_key", "_patience", "future", "me", "owner", "result", "since", "waits"
    )  # fmt: skip

    def __init__(self, cache: CachePending[Any, Any], key: str, patience: float) -> None:
        self._patience = self.waits = patience
        self.since = monotonic()
        self._cache = cache
        self._flights = cache._flights
        self._key = key
        self.owner = _me()
        self.result: Any = AGAIN
        self.me: ReferenceType[_Flight] = ref(self)
        self.future: Future[Any] = Future()  # last: see `__del__`

    def __del__(self) -> None:
        future: Optional[Future[Any]] = getattr(self, "future", None)  # None: an interrupt came before anybody waited
        if future is not None and not future.done():  # it came where nothing could be done about it
            self._forget(self.me)
            future.set_result(AGAIN)

    def take_off(self) -> Optional[Future[Any]]:
        """Compute the value, which returns None, unless another does so: then what to wait for.

        That is `_OWN` if it is this caller itself who computes it, further up.
        """
        while True:
            self.since = monotonic()  # it may have waited for others, who took longer than their time
            first = self._flights.setdefault(self._key, self.me)
            if first is self.me:
                return None
            other = first()
            if other is not None:
                self.waits = self._left_to(other)
                return _OWN if other.owner == self.owner else other.future
            self._forget(first)

    def _left_to(self, other: _Flight) -> float:
        return max(0.0, other.since + self._patience - monotonic())

    def follows(self, first: Future[Any], result: Any) -> bool:
        """Whether *result*, for which it has waited by *first*, is the value. If it is late, others may compute it."""
        if result is _LATE:
            known = self._flights.get(self._key)
            flight = None if known is None else known()
            if known is not None and flight is not None and flight.future is first and not self._left_to(flight):
                self._forget(known)
            return False
        return result is not AGAIN

    def pauses(self, lock: float) -> Iterator[float]:
        """How long to wait before each look for what another process computes. *result* then is that, or `AGAIN`."""
        pause = _FIRST_LOOK
        while True:
            there, value = self._cache._begin(self._key, lock, self.me)
            self.since = monotonic()
            if there:
                self.result = value
            if there or value is None:
                return
            yield pause
            pause = min(2 * pause, _LAST_LOOK)

    def land(self) -> None:
        """It is computed, or is not going to be."""
        self._forget(self.me)
        self.future.set_result(self.result)

    def _forget(self, flight: ReferenceType[_Flight]) -> None:
        if self._flights.get(self._key) is flight:
            self._flights.pop(self._key, None)


Call = ReferenceType[_Flight]
"""A call that computes a value: `_Flight.me`, which is all that may outlive it."""


def has_ended(call: Call) -> bool:
    """Whether *call* has ended, however it did."""
    flight = call()
    return flight is None or flight.future.done()


def _in_time(future: Future[Any], seconds: float) -> Any:
    """The result of *future*; `_LATE` if there is none for so many seconds."""
    try:
        return future.result(seconds)
    except TimeoutError:
        return _LATE


async def _ain_time(future: Future[Any], seconds: float) -> Any:
    """As `_in_time`; whoever stops to wait does not stop the others."""
    loop = running_loop()
    waiter = waits_for(future, loop)
    timer = loop.call_later(seconds, lambda: None if waiter.done() else waiter.set_result(_LATE))
    try:
        return await waiter
    finally:
        timer.cancel()


def task_here() -> Optional[asyncio.Task[Any]]:
    """The task of asyncio that runs now, or None."""
    try:
        return asyncio.current_task()
    except RuntimeError:  # no loop runs in this thread
        return None


def _me() -> object:
    """The task that runs now, or else the thread."""
    task = task_here()
    return threading.get_ident() if task is None else task


def text_of(value: Any) -> str:
    """A text that equal arguments have in common, and others not. Raises TypeError for objects that have none."""
    if isinstance(value, Enum):
        name: Any = value.name  # None: flags without a name of their own, as all sets of flags before 3.11
        member = text_of(value.value) if name is None else name
        return f"{type(value).__module__}.{type(value).__qualname__}.{member}"
    if isinstance(value, int) and value.bit_length() > _DECIMAL_BITS:
        return hex(value)
    if isinstance(value, _ATOMS):
        return repr(value)
    if is_a(value, (list, tuple)):
        return f"{type(value).__name__}({','.join(map(text_of, value))})"
    if is_a(value, (set, frozenset)):
        return f"set({','.join(sorted(map(text_of, value)))})"
    if is_a(value, Mapping):
        return f"dict({','.join(sorted(f'{text_of(key)}:{text_of(one)}' for key, one in value.items()))})"
    raise TypeError(
        f"an argument of a memoized function is {shortened(value)} ({type(value).__name__}), of which no key can be "
        f"made: give numbers, texts, bytes, UUIDs, times, enums, or lists and dicts of them; or name it in ignore=; or "
        f"give key=, a function of the arguments that returns the key"
    )


def _name_of(function: Callable[..., Any], name: object) -> str:
    """The *name* of the results of *function*, by default its own. Raises TypeError where there is none."""
    if isinstance(name, str):
        return name
    if name is not None:
        raise TypeError(
            f"memoize({shortened(name)}): expected the name of the results, a text: for seconds write expire="
        )
    own = getattr(function, "__qualname__", _LAMBDA)
    owner = getattr(function, "__self__", None)  # of a method; a function of C has its module
    if own.endswith(_LAMBDA) or not (owner is None or isinstance(owner, ModuleType)):
        raise TypeError(
            f"memoize: {function!r} has no name of its own, and another one would get its results: "
            f"give a name, @cache.memoize('name')"
        )
    return f"{function.__module__}.{own}"


def _keys(
    function: Callable[..., Any], name: str, ignore: Union[str, Iterable[str]], key: Optional[Callable[..., str]]
) -> Callable[..., str]:
    """The function that gives the key of a result, for the arguments of *function*: *key*, if there is one."""
    try:
        signature = inspect.signature(function)
    except ValueError as error:  # of a function of C
        raise TypeError(f"memoize: {function!r} does not tell its parameters: decorate one that calls it") from error
    given: Any = ignore
    ignored: tuple[Any, ...] = tuple(given) if is_a(given, Iterable) and not is_a(given, str) else (given,)
    for one in ignored:
        if not isinstance(one, str):
            raise TypeError(f"ignore={shortened(given)}: expected the names of parameters, which are texts")
        if one not in signature.parameters:
            raise ValueError(f"ignore: {name}() has no parameter {one!r}; {nearest(one, signature.parameters)}")

    def key_of(*args: Any, **kwargs: Any) -> str:
        """The key of the result for these arguments."""
        if key is not None:
            return key(*args, **kwargs)
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        text = ",".join(f"{one}={text_of(value)}" for one, value in bound.arguments.items() if one not in ignored)
        found = f"{name}({text})"
        if len(found.encode(errors="replace")) <= _LONGEST:  # the cache says what is wrong with a name that is no text
            return found
        return f"{name}#{blake2b(text.encode(), digest_size=16).hexdigest()}"

    return key_of


def memoized(
    cache: CachePending[Any, Any], function: Callable[..., Any], name: Optional[str], expire: Optional[float],
    tag: Optional[str], ignore: Union[str, Iterable[str]], key: Optional[Callable[..., str]], lock: float,
) -> Any:  # fmt: skip
    """*function*, with a `Cache` for its results."""
    if not callable(function):
        raise TypeError(f"memoize: expected a function, got {shortened(function)}")
    if not (key is None or callable(key)):
        raise TypeError(f"key={shortened(key)}: expected a function of the arguments that returns the key")
    stored_tag(tag)  # raises here, and not after each computation
    kinds = function, getattr(function, "__call__", function)  # noqa: B004 - an object may have an async __call__
    if any([inspect.isgeneratorfunction(one) or inspect.isasyncgenfunction(one) for one in kinds]):
        raise TypeError(f"memoize: calling {function!r} gives a generator, which cannot be kept: let it return a list")
    key_of = _keys(function, _name_of(function, name), ignore, key)
    lock = min(checked_seconds("lock", lock, ", that a computation may take"), sys.float_info.max)
    kind = _computing_in_tasks if any(map(inspect.iscoroutinefunction, kinds)) else _computing
    made: Any = wraps(function)(kind(cache, function, key_of, expire, tag, lock))
    made.__cache_key__ = key_of
    return made


def _computing(
    cache: CachePending[Any, Any], function: Callable[..., Any], key_of: Callable[..., str], expire: Optional[float],
    tag: Optional[str], lock: float,
) -> Callable[..., Any]:  # fmt: skip
    """What looks for the result, waits for whoever computes it, or calls *function*."""
    patience = min(lock, threading.TIMEOUT_MAX)  # callers in one process may wait for each other, and none would end

    def compute(*args: Any, **kwargs: Any) -> Any:
        found = key_of(*args, **kwargs)
        value = cache._known(found)
        if value is not AGAIN:
            return value
        if cache._inside():
            value = function(*args, **kwargs)
            cache._end(found, value, expire, tag, None)
            return value
        flight = _Flight(cache, found, patience)
        while (first := flight.take_off()) is not None:
            if first is _OWN:
                return function(*args, **kwargs)
            result = _in_time(first, flight.waits)
            if flight.follows(first, result):
                return result
        try:
            for pause in flight.pauses(lock):
                time.sleep(pause)
            if flight.result is AGAIN:
                value = function(*args, **kwargs)
                cache._end(found, value, expire, tag, flight.me)
                flight.result = value
            return flight.result
        except BaseException:  # an interrupt as it began included
            cache._give_up(found, flight.me)
            raise
        finally:
            flight.land()

    return compute


def _computing_in_tasks(
    cache: CachePending[Any, Any], function: Callable[..., Any], key_of: Callable[..., str], expire: Optional[float],
    tag: Optional[str], lock: float,
) -> Callable[..., Any]:  # fmt: skip
    """As `_computing`, step by step, of a coroutine function: what waits differs in each of them."""
    patience = min(lock, threading.TIMEOUT_MAX)  # as above

    async def compute(*args: Any, **kwargs: Any) -> Any:
        found = key_of(*args, **kwargs)
        value = cache._known(found)
        if value is not AGAIN:
            return value
        if cache._inside():
            value = await function(*args, **kwargs)
            cache._end(found, value, expire, tag, None)
            return value
        flight = _Flight(cache, found, patience)
        while (first := flight.take_off()) is not None:
            if first is _OWN:
                return await function(*args, **kwargs)
            result = await _ain_time(first, flight.waits)
            if flight.follows(first, result):
                return result
        try:
            for pause in flight.pauses(lock):
                await asyncio.sleep(pause)
            if flight.result is AGAIN:
                value = await function(*args, **kwargs)
                cache._end(found, value, expire, tag, flight.me)
                flight.result = value
            return flight.result
        except BaseException:  # an interrupt as it began included
            cache._give_up(found, flight.me)
            raise
        finally:
            flight.land()

    return compute

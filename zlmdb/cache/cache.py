"""A cache in a file of its own: values with an expiry and a tag, up to a size, evicted by use."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Optional, TypeVar, Union, overload
from weakref import WeakSet

from .. import DecodeError, Error, SchemaMismatch
from .. import open as open_database
from ..database.state import StrPath
from ..missingattributes import tell_each
from ..numeric import is_number
from ..shown import shortened, shown_path
from ..values import serializer
from .advice import INSTEAD, refuse_asked, refuse_options
from .entry import HEAD, MOVED, NEVER, SIZE, added, check_keys, negated, shown, tag_bytes_of, tag_of, until_of
from .entry import CacheDetails as CacheDetails
from .file import CacheFile, path_of
from .memoized import memoized, task_here
from .pending import CachePending
from .state import MISSING
from .tables import tables_for

if TYPE_CHECKING:
    from typing_extensions import Self

K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])

EvictionPolicy = Literal["least-recently-used", "least-recently-stored", "none"]

_PAGE = 1000  # keys that an iteration reads at once
_POLICIES = ("least-recently-used", "least-recently-stored", "none")
_clock = time.time


class Cache(CachePending[K, V]):
    """A cache of values by key, which threads and processes share: ``zlmdb.Cache("cache", str, User)``.

    *path* is a directory, which belongs to the cache; None makes one in memory. *key* and *value* are types as in a
    `Table`; without them, keys are texts, and values plain data (texts, numbers, bytes, None, lists and dicts of them).
    Values are unpickled only with ``zlmdb.Pickle`` as *value*.

    *size_limit*: bytes; beyond it, each write evicts up to ten entries. *eviction_policy*: which ones,
    ``"least-recently-used"``, ``"least-recently-stored"``, or ``"none"``. Uses are remembered approximately, and a read
    writes nothing: of a cache that is more than half full, they are noted in the file every 512 uses, or every 5
    seconds.

    The file is written without waiting for the disk. It survives the end of the process, however that comes. If the
    machine stops while it is in use, the cache is empty afterwards; *keep* opens the file in any case, which may then
    be damaged. Each method is one transaction, and reading never waits. Raises `SchemaMismatch` if the directory has a
    cache of other types.
    """

    @overload
    def __init__(
        self: Cache[str, Any], path: Optional[StrPath], /, *, size_limit: int = ...,
        eviction_policy: EvictionPolicy = ..., keep: bool = ...,
    ) -> None: ...  # fmt: skip
    @overload
    def __init__(
        self, path: Optional[StrPath], key: type[K], value: type[V], /, *, size_limit: int = ...,
        eviction_policy: EvictionPolicy = ..., keep: bool = ...,
    ) -> None: ...  # fmt: skip
    @overload
    def __init__(
        self: Cache[Any, Any], path: Optional[StrPath], key: Any, value: Any, /, *, size_limit: int = ...,
        eviction_policy: EvictionPolicy = ..., keep: bool = ...,
    ) -> None: ...  # fmt: skip
    def __init__(
        self,
        path: Optional[StrPath],
        key: Any = str,
        value: Any = Any,
        /,
        *,
        size_limit: int = 1 << 30,
        eviction_policy: EvictionPolicy = "least-recently-used",
        keep: bool = False,
    ) -> None:
        if eviction_policy not in _POLICIES:
            raise ValueError(f"eviction_policy={eviction_policy!r}: expected {', '.join(map(repr, _POLICIES))}")
        if not is_number(size_limit) or not size_limit > 0:
            raise ValueError(f"size_limit={shortened(size_limit)}: expected a number of bytes, more than 0")
        self._path = path_of(path)
        self._size_limit, self._policy = size_limit, eviction_policy
        self._textual = key is str
        self._given = self._path, key, value, size_limit, eviction_policy, keep
        codec = serializer(value)
        self._encode, self._decode = codec.encode, codec.decode
        self._file = None if self._path is None else CacheFile(self._path, keep=keep)
        self._hits = self._misses = 0
        self._writes = self._written = 0
        self._excess = 0
        self._round = 1
        self._marked = set()
        self._marking = False
        self._look_at = 0.0
        self._blocks = {}
        self._flights = {}
        self._mine = {}
        try:
            where = None if self._file is None else self._file.database
            self._db = open_database(where, tables_for(key), durability="none")
            self._db._called = "cache"
        except BaseException as error:
            if self._file is not None:
                self._file.close(None)
            check_keys(self._path, key, error)
            raise
        try:
            self._db.run(lambda t: self._check_types(t, codec.name))
            self._measure()
        except BaseException:
            self.close()
            raise
        self._find = shown(self._db).auto.entries.get
        _caches.add(self)

    def _check_types(self, t: Any, name: str) -> None:
        stored = t.types.setdefault("values", name)
        if stored != name:
            raise SchemaMismatch(
                f"the cache {self._path!r} has values of type {stored}, not {name}: give the stored type, or "
                "another path"
            )
        self._forget_ended(t)

    def _after_fork(self) -> None:
        """In the child, which has none of the other threads: what these do will not end there."""
        me = threading.get_ident()
        self._flights = {}
        self._mine = {}
        self._blocks = {thread: t for thread, t in self._blocks.items() if thread == me}
        if self._file is not None:
            with suppress(OSError):
                self._file.after_fork()

    def close(self) -> None:
        """Close the cache. The last user of the file waits until it is on the disk. Closing twice does nothing."""
        if self._db.is_open:
            if self._marked:
                with suppress(Error):  # a full disk is no reason not to close it
                    self._db.run(self._note)
            if self._file is None:
                self._db.close()
            else:
                self._file.close(self._db)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        if self._path is None:
            raise TypeError("a cache in memory cannot be pickled: give it a path")
        return _opened_again, self._given

    def __repr__(self) -> str:
        return f"<cache {shown_path(self._path)}, {'open' if self._db.is_open else 'closed'}>"

    # -- reading ----------------------------------------------------------------------------------------------------

    @overload
    def get(self, key: K, default: None = None) -> Optional[V]: ...
    @overload
    def get(self, key: K, default: Union[V, D]) -> Union[V, D]: ...
    def get(
        self, key: K, default: Any = None, read: Any = 0, expire_time: Any = 0, tag: Any = 0, retry: Any = 0
    ) -> Any:
        """The value of *key*, or *default*. A value that does not fit the type is not there, such as an older one."""
        if read or expire_time or tag or retry:  # with ** in place of them, each call would take longer
            refuse_asked("get", read=read, expire_time=expire_time, tag=tag, retry=retry)
        data = self._find(key) if not self._blocks else self._found(key)
        if data is not None:
            until, _, size = HEAD.unpack_from(data)
            now = _clock()
            if until > now:
                try:
                    value = self._decode(data[SIZE + size :])
                except DecodeError:
                    self._misses += 1
                    return default
                self._hits += 1
                if self._marking:
                    self._mark(key)
                if now > self._look_at:
                    self._look()
                return value
        self._misses += 1
        return default

    def __getitem__(self, key: K) -> V:
        """The value of *key*. Raises `KeyError`."""
        value: Any = self.get(key, MISSING)
        if value is MISSING:
            raise KeyError(key)
        return value

    def __contains__(self, key: K) -> bool:
        data = self._found(key)
        return data is not None and HEAD.unpack_from(data)[0] > _clock()

    def details(self, key: K, /) -> Optional[CacheDetails]:
        """The value of *key* with its expiry and its tag; None as `get`. It counts neither as hit nor use."""
        data = self._found(key)
        if data is None:
            return None
        until, _, size = HEAD.unpack_from(data)
        if until <= _clock():
            return None
        tag = tag_of(data) if size else None
        value = self._value(data, size)
        if value is MISSING:
            return None
        return CacheDetails(value, None if until == NEVER else until, tag or None)

    def __len__(self) -> int:
        """The number of entries, those included that have expired and are not deleted yet."""
        return self._do(lambda t: len(t.entries), write=False)

    def __iter__(self) -> Iterator[K]:
        return self.iterkeys()

    def __reversed__(self) -> Iterator[K]:
        return self.iterkeys(reverse=True)

    def iterkeys(self, reverse: bool = False) -> Iterator[K]:
        """The keys in their order, with *reverse* backwards, those included that have expired and are not deleted yet.

        They are read in blocks, each from a snapshot of its own, so that the loop may take its time, and may write.
        """
        last: Any = MISSING
        while True:
            block = self._do(partial(self._page, last, reverse), write=False)
            yield from block
            if len(block) < _PAGE:
                return
            last = block[-1]

    @staticmethod
    def _page(last: Any, reverse: bool, t: Any) -> list[K]:
        if last is MISSING:
            rows = t.entries.select(reverse=reverse, limit=_PAGE)
        elif reverse:
            rows = t.entries.select(None, last, reverse=True, limit=_PAGE)
        else:
            rows = t.entries.select(last, limit=_PAGE + 1)
        found: list[K] = rows.keys().all()
        return found if reverse or last is MISSING or found[:1] != [last] else found[1:]

    def stats(self, *, reset: bool = False) -> tuple[int, int]:
        """The hits and the misses of `get` and ``[]`` of this object; with *reset* they are counted from 0 again.

        Threads that count at the same time may lose one.
        """
        found = self._hits, self._misses
        if reset:
            self._hits = self._misses = 0
        return found

    # -- writing ----------------------------------------------------------------------------------------------------

    def set(
        self, key: K, value: V, expire: Optional[float] = None, *, tag: Optional[str] = None, **others: NoReturn
    ) -> None:
        """Store *value*, for *expire* seconds, by default for ever. `evict` deletes the entries with a *tag*.

        Raises `EncodeError` for a key or value that does not fit.
        """
        if others:
            refuse_options("set", others)
        data = self._data(key, value, expire, tag)
        self._do(lambda t: self._put(t, key, data, t.entries.get(key)))

    def __setitem__(self, key: K, value: V) -> None:
        self.set(key, value)

    def add(
        self, key: K, value: V, expire: Optional[float] = None, *, tag: Optional[str] = None, **others: NoReturn
    ) -> bool:
        """Store *value* unless there is one; whether it was stored."""
        if others:
            refuse_options("add", others)
        data = self._data(key, value, expire, tag)
        if self._holds(self._found(key)):  # a look takes less than a write transaction
            return False

        def work(t: Any) -> bool:
            old = t.entries.get(key)
            if self._holds(old):
                return False
            self._put(t, key, data, old)
            return True

        return self._do(work)

    def incr(self, key: K, delta: Any = 1, default: Any = 0) -> V:
        """Add *delta* to the number under *key*, and return the sum. Without one, *default* is what it is added to.

        Expiry and tag stay as they are. If *default* is None, a missing number raises `KeyError`. Raises TypeError for
        values that cannot be added.
        """

        def work(t: Any) -> Any:
            old = t.entries.get(key)
            if old is not None:
                until, round, size = HEAD.unpack_from(old)
                number = self._value(old, size) if until > _clock() else MISSING
                if number is not MISSING:
                    total = added(key, number, delta)
                    head = HEAD.pack(until, self._round | round & MOVED, size)
                    t.entries[key] = head + old[SIZE : SIZE + size] + self._encoded(key, total)
                    self._wrote(t, 0)
                    return total
            if default is None:
                raise KeyError(key)
            total = added(key, default, delta)
            self._put(t, key, HEAD.pack(NEVER, self._round, 0) + self._encoded(key, total), old)
            return total

        return self._do(work)

    def decr(self, key: K, delta: Any = 1, default: Any = 0) -> V:
        """As `incr`, with *delta* subtracted."""
        return self.incr(key, negated(key, delta), default)

    def touch(self, key: K, expire: Optional[float] = None) -> bool:
        """Let the entry expire in *expire* seconds, or never; whether there is one."""
        until = until_of(expire)

        def work(t: Any) -> bool:
            old = self._living(t, key)
            if old is None:
                return False
            tag, size = tag_bytes_of(old), HEAD.unpack_from(old)[2]
            data = HEAD.pack(until, self._round, len(tag)) + tag + old[SIZE + size :]
            self._put(t, key, data, old)
            return True

        return self._do(work)

    @overload
    def pop(self, key: K, default: None = None) -> Optional[V]: ...
    @overload
    def pop(self, key: K, default: Union[V, D]) -> Union[V, D]: ...
    def pop(self, key: K, default: Any = None, expire_time: Any = 0, tag: Any = 0, retry: Any = 0) -> Any:
        """Delete the entry, and return its value; *default* if there is none."""
        if expire_time or tag or retry:
            refuse_asked("pop", expire_time=expire_time, tag=tag, retry=retry)

        def work(t: Any) -> Any:
            old = self._living(t, key)
            self._forget(t, key)
            value = MISSING if old is None else self._value(old, HEAD.unpack_from(old)[2])
            return default if value is MISSING else value

        return self._do(work)

    def delete(self, key: K) -> bool:
        """Delete the entry; whether there was one."""

        def work(t: Any) -> bool:
            there = self._living(t, key) is not None
            return self._forget(t, key) and there

        return self._do(work)

    def __delitem__(self, key: K) -> None:
        if not self.delete(key):
            raise KeyError(key)

    def clear(self) -> int:
        """Delete all entries; returns their number."""

        def work(t: Any) -> int:
            count = len(t.entries)
            for table in (t.entries, t.until, t.tags, t.used, t.pending, t.hand):
                table.clear()
            return count

        return self._do(work)

    def evict(self, tag: str) -> int:
        """Delete the entries with this tag; returns their number."""
        return self._in_steps(lambda t: self._forget_tagged(t, tag, _PAGE))

    def expire(self, *key: NoReturn) -> int:
        """Delete what has expired; returns the number of entries. Writes do so, too, little by little."""
        if key:
            raise TypeError("expire() deletes what has expired: write touch(key, expire=seconds) for one entry")
        if not self._do(self._some_expired, write=False):  # a look takes less than a write transaction
            return 0
        return self._in_steps(lambda t: self._forget_expired(t, _PAGE))

    def cull(self) -> int:
        """Delete what has expired, and entries until the cache is within its limit; returns their number."""
        deleted = self.expire()
        self._measure_outside()
        while self._policy != "none" and self._excess > 0 and len(self):
            deleted += self._do(self._evict_page)
            self._measure_outside()  # each time: a small entry takes several times the bytes that were counted
        return deleted

    def _in_steps(self, forget: Callable[[Any], tuple[int, int]]) -> int:
        """Call *forget* until it has looked at all; returns the number of deleted entries."""
        deleted = 0
        while True:
            found, gone = self._do(forget)
            deleted += gone
            if found < _PAGE:
                return deleted

    @contextmanager
    def transact(self) -> Generator[None, None, None]:
        """A block whose operations of this thread are one transaction: all of them are stored, or none.

        Other writers wait until its end. In asyncio, it is a block of its task, and nothing may be awaited inside:
        another task of the thread cannot write meanwhile, which raises `NestedTransaction`.
        """
        if self._inside():
            yield
            return
        self._refuse_others()
        me = threading.get_ident()
        with self._db.write() as t:
            try:
                self._blocks[me] = t, task_here()
                yield
            finally:
                self._blocks.pop(me, None)

    def memoize(
        self,
        name: Optional[str] = None,
        *,
        expire: Optional[float] = None,
        tag: Optional[str] = None,
        ignore: Union[str, Iterable[str]] = (),
        key: Optional[Callable[..., str]] = None,
        lock: float = 60.0,
        **others: NoReturn,
    ) -> Callable[[F], F]:
        """A decorator of functions and coroutine functions, whose results the cache keeps.

        ``@cache.memoize(expire=60)``. The key is made of *name*, by default that of the function, and of the arguments
        that *ignore* does not name; or *key*, a function of the arguments, returns it. Functions of one name share
        their results, so lambdas, partials, bound methods and functions that others make again and again need a *name*.
        ``function.__cache_key__(...)`` is the key of a call. The keys of the cache must be texts.

        A result is computed by one caller at a time: others, in this process or another, wait for it. If that process
        dies, or takes longer, another caller computes after *lock* seconds. An exception is not kept; threads that wait
        for it compute in turn.
        """
        if others:
            refuse_options("memoize", others)
        until_of(expire)  # raises here, and not after each computation
        if callable(name):
            raise TypeError("memoize is called with its options: write @cache.memoize()")
        if not self._textual:
            raise TypeError("memoize needs a cache whose keys are texts: zlmdb.Cache(path, str, ...)")

        def decorate(function: F) -> F:
            return memoized(self, function, name, expire, tag, ignore, key, lock)

        return decorate


def _opened_again(path: str, key: Any, value: Any, size_limit: int, policy: EvictionPolicy, keep: bool) -> Any:
    """The cache of a pickle."""
    return Cache(path, key, value, size_limit=size_limit, eviction_policy=policy, keep=keep)


tell_each(Cache, INSTEAD)

_caches: WeakSet[Cache[Any, Any]] = WeakSet()


def _after_fork() -> None:
    for cache in list(_caches):
        cache._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

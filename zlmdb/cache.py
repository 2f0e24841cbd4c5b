"""A cache in a file of its own: values with an expiry and a tag, up to a size, evicted by use."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from struct import Struct
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, Optional, TypeVar, Union, overload

from . import Database, DecodeError, Schema, SchemaMismatch, Table
from . import open as open_database
from .cachefile import CacheFile
from .memoized import memoized
from .values import serializer

if TYPE_CHECKING:
    from typing_extensions import Self

K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])

StrPath = Union[str, "os.PathLike[str]"]
EvictionPolicy = Literal["least-recently-used", "least-recently-stored", "none"]

_HEAD = Struct("<dII")  # until, the round in which it was stored, the bytes of the tag; then the tag, then the value
_SIZE = _HEAD.size
_NEVER = float("inf")
_MISSING: Any = object()
_SWEEP_EVERY, _SWEEP = 16, 40  # writes between two looks at what has expired, and what one look deletes at most
_MEASURE_EVERY = 64  # writes between two looks at the size of the file
_CULL = 10  # entries that a write to a full cache deletes
_SCAN, _SCAN_BYTES = 200, 4 << 20  # what it looks at
_PAGE = 1000  # keys that an iteration reads at once
_MARKS, _MARK_SECONDS = 512, 5.0  # reads that are noted together in the file, or those of so many seconds
_ROUND, _HAND = "round", 0
_POLICIES = ("least-recently-used", "least-recently-stored", "none")
_clock = time.time


class CacheDetails(NamedTuple):
    """An entry of a cache: its value, when it expires in seconds since 1970, or None, and its tag, or None."""

    value: Any
    expire_time: Optional[float]
    tag: Optional[str]


class Cache(Generic[K, V]):
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
        if size_limit <= 0:
            raise ValueError(f"size_limit={size_limit}: expected bytes, more than 0")
        self._path = None if path is None else os.fspath(path)
        self._size_limit, self._policy = size_limit, eviction_policy
        self._textual = key is str
        self._given = self._path, key, value, size_limit, eviction_policy, keep
        codec = serializer(value)
        self._encode, self._decode = codec.encode, codec.decode
        self._file = None if self._path is None else CacheFile(self._path, keep=keep)
        self._hits = self._misses = 0
        self._writes = self._written = 0
        self._excess = 0  # bytes beyond the limit, as last measured, without what was evicted since
        self._round = 1  # of the hand that looks for entries to evict, as of the last look
        self._marked: set[K] = set()  # keys that were used, and are not noted in the file yet
        self._marking = False
        self._look_at = 0.0
        self._blocks: dict[int, Any] = {}  # the tables of those that are going on, by thread
        self._flights: dict[str, Any] = {}
        try:
            where = None if self._file is None else self._file.database
            self._db: Database[Any] = open_database(where, _schema(key), durability="none")
        except BaseException:
            if self._file is not None:
                self._file.close(None)
            raise
        try:
            self._db.run(lambda t: self._check_types(t, codec.name))
            self._measure()
        except BaseException:
            self.close()
            raise
        self._find: Callable[..., Optional[bytes]] = self._db.auto.entries.get

    def _check_types(self, t: Any, name: str) -> None:
        stored = t.types.setdefault("values", name)
        if stored != name:
            raise SchemaMismatch(
                f"the cache {self._path!r} has values of type {stored}, not {name}: give the stored type, or "
                "another path"
            )

    def close(self) -> None:
        """Close the cache. The last user of the file waits until it is on the disk. Closing twice does nothing."""
        if self._db.is_open:
            if self._marked:
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
        return f"<cache {self._path!r}, {'open' if self._db.is_open else 'closed'}>"

    # -- reading ----------------------------------------------------------------------------------------------------

    @overload
    def get(self, key: K, default: None = None) -> Optional[V]: ...
    @overload
    def get(self, key: K, default: Union[V, D]) -> Union[V, D]: ...
    def get(self, key: K, default: Any = None) -> Any:
        """The value of *key*, or *default*. A value that does not fit the type is not there, such as an older one."""
        data = self._find(key) if not self._blocks else self._found(key)
        if data is not None:
            until, _, size = _HEAD.unpack_from(data)
            now = _clock()
            if until > now:
                try:
                    value = self._decode(data[_SIZE + size :])
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
        value: Any = self.get(key, _MISSING)
        if value is _MISSING:
            raise KeyError(key)
        found: V = value
        return found

    def __contains__(self, key: K) -> bool:
        data = self._found(key)
        return data is not None and _HEAD.unpack_from(data)[0] > _clock()

    def details(self, key: K, /) -> Optional[CacheDetails]:
        """The value of *key* with its expiry and its tag; None if it is not there. It counts neither as hit nor use."""
        data = self._found(key)
        if data is None:
            return None
        until, _, size = _HEAD.unpack_from(data)
        if until <= _clock():
            return None
        return CacheDetails(
            self._decode(data[_SIZE + size :]), None if until == _NEVER else until, _tag_of(data, size) or None
        )  # fmt: skip

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
        last: Any = _MISSING
        while True:
            block = self._do(partial(self._page, last, reverse), write=False)
            yield from block
            if len(block) < _PAGE:
                return
            last = block[-1]

    @staticmethod
    def _page(last: Any, reverse: bool, t: Any) -> list[K]:
        if last is _MISSING:
            rows = t.entries.select(reverse=reverse, limit=_PAGE)
        elif reverse:
            rows = t.entries.select(None, last, reverse=True, limit=_PAGE)
        else:
            rows = t.entries.select(last, limit=_PAGE + 1)
        found: list[K] = rows.keys().all()
        return found if reverse or last is _MISSING or found[:1] != [last] else found[1:]

    def volume(self) -> int:
        """The bytes that the entries take in the file."""
        used: int = self._db.stats()["used"]
        return used

    def stats(self, *, reset: bool = False) -> tuple[int, int]:
        """The hits and the misses of `get` and ``[]`` of this object; with *reset* they are counted from 0 again.

        Threads that count at the same time may lose one.
        """
        found = self._hits, self._misses
        if reset:
            self._hits = self._misses = 0
        return found

    # -- writing ----------------------------------------------------------------------------------------------------

    def set(self, key: K, value: V, expire: Optional[float] = None, *, tag: Optional[str] = None) -> None:
        """Store *value*, for *expire* seconds, by default for ever. `evict` deletes the entries with a *tag*.

        Raises `EncodeError` for a key or value that does not fit.
        """
        data = self._data(value, expire, tag)
        self._do(lambda t: self._put(t, key, data))

    def __setitem__(self, key: K, value: V) -> None:
        self.set(key, value)

    def add(self, key: K, value: V, expire: Optional[float] = None, *, tag: Optional[str] = None) -> bool:
        """Store *value* unless there is one; whether it was stored."""
        data = self._data(value, expire, tag)

        def work(t: Any) -> bool:
            if self._living(t, key) is not None:
                return False
            self._put(t, key, data)
            return True

        return self._do(work)

    def incr(self, key: K, delta: Any = 1, default: Any = 0) -> V:
        """Add *delta* to the number under *key*, and return the sum. Without one, *default* is what it is added to.

        Expiry and tag stay as they are. If *default* is None, a missing number raises `KeyError`. Raises TypeError for
        values that cannot be added.
        """

        def work(t: Any) -> Any:
            old = self._living(t, key)
            if old is None:
                if default is None:
                    raise KeyError(key)
                total = default + delta
                self._put(t, key, _HEAD.pack(_NEVER, self._round, 0) + self._encode(total))
                return total
            until, _, size = _HEAD.unpack_from(old)
            total = self._decode(old[_SIZE + size :]) + delta
            t.entries[key] = _HEAD.pack(until, self._round, size) + old[_SIZE : _SIZE + size] + self._encode(total)
            self._wrote(t, 0)
            return total

        total: V = self._do(work)
        return total

    def decr(self, key: K, delta: Any = 1, default: Any = 0) -> V:
        """As `incr`, with *delta* subtracted."""
        return self.incr(key, -delta, default)

    def touch(self, key: K, expire: Optional[float] = None) -> bool:
        """Let the entry expire in *expire* seconds, or never; whether there is one."""

        def work(t: Any) -> bool:
            old = self._living(t, key)
            if old is None:
                return False
            _, _, size = _HEAD.unpack_from(old)
            self._put(t, key, _HEAD.pack(_until(expire), self._round, size) + old[_SIZE:])
            return True

        return self._do(work)

    @overload
    def pop(self, key: K, default: None = None) -> Optional[V]: ...
    @overload
    def pop(self, key: K, default: Union[V, D]) -> Union[V, D]: ...
    def pop(self, key: K, default: Any = None) -> Any:
        """Delete the entry, and return its value; *default* if there is none."""

        def work(t: Any) -> Any:
            old = self._living(t, key)
            self._forget(t, key)
            return default if old is None else self._decode(old[_SIZE + _HEAD.unpack_from(old)[2] :])

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
        return self._in_steps(lambda t: [key for _, key in t.tags.select(prefix=(tag,), limit=_PAGE).keys().all()])

    def expire(self) -> int:
        """Delete what has expired; returns the number of entries. Writes do so, too, little by little."""
        return self._in_steps(lambda t: self._expired(t, _PAGE))

    def cull(self) -> int:
        """Delete what has expired, and entries until the cache is within its limit; returns their number."""
        deleted = self.expire()
        self._measure()
        while self._policy != "none" and self._excess > 0 and len(self):
            deleted += self._do(lambda t: self._evict_some(t, _PAGE, self._excess))
            if self._excess <= 0:
                self._measure()
        return deleted

    @contextmanager
    def transact(self) -> Generator[None, None, None]:
        """A block whose operations of this thread are one transaction: all of them are stored, or none.

        Other writers wait until its end.
        """
        me = threading.get_ident()
        if me in self._blocks:
            yield
            return
        with self._db.write() as t:
            self._blocks[me] = t
            try:
                yield
            finally:
                del self._blocks[me]

    def memoize(
        self,
        name: Optional[str] = None,
        *,
        expire: Optional[float] = None,
        tag: Optional[str] = None,
        ignore: tuple[str, ...] = (),
        key: Optional[Callable[..., str]] = None,
        lock: float = 60.0,
    ) -> Callable[[F], F]:
        """A decorator of functions and coroutine functions, whose results the cache keeps.

        ``@cache.memoize(expire=60)``. The key is made of *name*, by default that of the function, and of the arguments
        that *ignore* does not name; or *key*, a function of the arguments, returns it. ``function.__cache_key__(...)``
        is the key of a call. The keys of the cache must be texts.

        A result is computed by one caller at a time: others, in this process or another, wait for it. If that process
        dies, another caller computes after *lock* seconds. An exception is not kept; threads that wait for it compute
        in turn.
        """
        if callable(name):
            raise TypeError("memoize is called with its options: write @cache.memoize()")
        if not self._textual:
            raise TypeError("memoize needs a cache whose keys are texts: zlmdb.Cache(path, str, ...)")

        def decorate(function: F) -> F:
            made: F = memoized(self, function, name, expire, tag, tuple(ignore), key, lock)
            return made

        return decorate

    # -- what memoized functions need -------------------------------------------------------------------------------

    def _begin(self, key: Any, lock: float) -> tuple[bool, Any]:
        value = self.get(key, _MISSING)
        if value is not _MISSING:
            return True, value

        def work(t: Any) -> tuple[bool, Any]:
            data = self._living(t, key)
            if data is not None:
                try:
                    return True, self._decode(data[_SIZE + _HEAD.unpack_from(data)[2] :])
                except DecodeError:  # of an older type: computed again
                    pass
            now = _clock()
            if t.pending.get(key, 0.0) > now:
                return False, "another process computes it"
            t.pending[key] = now + lock
            return False, None

        return self._do(work)

    def _end(self, key: Any, value: Any, expire: Optional[float], tag: Optional[str]) -> None:
        data = self._data(value, expire, tag)

        def work(t: Any) -> None:
            self._put(t, key, data)
            t.pending.pop(key, None)

        self._do(work)

    def _give_up(self, key: Any) -> None:
        self._do(lambda t: t.pending.pop(key, None))

    # -- entries ----------------------------------------------------------------------------------------------------

    def _do(self, work: Callable[[Any], R], *, write: bool = True) -> R:
        """The result of *work* in a transaction: that of the block of this thread, or one of its own."""
        if self._blocks:
            t = self._blocks.get(threading.get_ident())
            if t is not None:
                return work(t)
        return self._db.run(work, write=write)

    def _found(self, key: K) -> Optional[bytes]:
        """The bytes of an entry, whether or not it has expired."""
        if self._blocks:
            t = self._blocks.get(threading.get_ident())
            if t is not None:
                found: Optional[bytes] = t.entries.get(key)
                return found
        return self._find(key)

    @staticmethod
    def _living(t: Any, key: Any) -> Optional[bytes]:
        """The bytes of an entry that has not expired."""
        data: Optional[bytes] = t.entries.get(key)
        return data if data is not None and _HEAD.unpack_from(data)[0] > _clock() else None

    def _data(self, value: V, expire: Optional[float], tag: Optional[str]) -> bytes:
        label = b"" if tag is None else tag.encode()
        return _HEAD.pack(_until(expire), self._round, len(label)) + label + self._encode(value)

    def _put(self, t: Any, key: Any, data: bytes) -> None:
        old = t.entries.get(key)
        until, _, size = _HEAD.unpack_from(data)
        tag = _tag_of(data, size)
        if old is not None:
            self._unlist(t, key, old, until, tag)
        t.entries[key] = data
        if until != _NEVER:
            t.until[until, key] = b""
        if tag:
            t.tags[tag, key] = b""
        self._wrote(t, len(data))

    def _forget(self, t: Any, key: Any) -> bool:
        """Delete an entry, with all that is noted of it; whether there was one."""
        old: Optional[bytes] = t.entries.pop(key, None)
        if old is None:
            return False
        self._unlist(t, key, old, None, "")
        t.used.pop(key, None)
        return True

    @staticmethod
    def _unlist(t: Any, key: Any, old: bytes, until: Optional[float], tag: str) -> None:
        """Take the entry *old* from the lists by time and tag, unless it has these in the new entry."""
        before, _, size = _HEAD.unpack_from(old)
        if before not in (_NEVER, until):
            t.until.pop((before, key), None)
        if size:
            label = _tag_of(old, size)
            if label != tag:
                t.tags.pop((label, key), None)

    def _in_steps(self, find: Callable[[Any], list[K]]) -> int:
        """Delete the entries that *find* returns, until there are none."""

        def work(t: Any) -> tuple[int, int]:
            keys = find(t)
            return len(keys), sum([self._forget(t, key) for key in keys])

        deleted = 0
        while True:
            found, gone = self._do(work)
            deleted += gone
            if found < _PAGE:
                return deleted

    @staticmethod
    def _expired(t: Any, most: int) -> list[Any]:
        return [key for _, key in t.until.select(through=(_clock(),), limit=most).keys().all()]

    # -- size and use -----------------------------------------------------------------------------------------------

    def _wrote(self, t: Any, size: int) -> None:
        """After a write of *size* bytes: what is due from time to time."""
        self._writes += 1
        self._written += size
        if self._writes % _SWEEP_EVERY == 0:
            for key in self._expired(t, _SWEEP):
                self._forget(t, key)
        if self._writes % _MEASURE_EVERY == 0 or self._written > self._size_limit >> 6:
            t.txn.after_commit(self._measure)
            self._written = 0
        if self._excess > 0 and self._policy != "none":
            self._evict_some(t, _CULL, self._excess)

    def _measure(self) -> None:
        """Find out whether the cache is full, or will be soon."""
        volume = self.volume()
        self._excess = volume - self._size_limit
        self._marking = self._policy == "least-recently-used" and 2 * volume > self._size_limit
        self._look_at = _clock() + _MARK_SECONDS

    def _mark(self, key: K) -> None:
        self._marked.add(key)
        if len(self._marked) >= _MARKS:
            self._look()

    def _look(self) -> None:
        """Note in the file which entries were used, and look at its size."""
        self._look_at = _clock() + _MARK_SECONDS
        if self._blocks.get(threading.get_ident()) is not None:
            return
        if self._marked:
            self._db.run(self._note)
        self._measure()

    def _note(self, t: Any) -> None:
        marked, self._marked = self._marked, set()
        self._round = now = t.rounds.get(_ROUND, 1)
        for key in list(marked):
            if t.used.get(key) != now and key in t.entries:
                t.used[key] = now

    def _evict_some(self, t: Any, most: int, size: int) -> int:
        """Delete entries that were not used for a round of the hand, at most so many, until *size* bytes are free.

        Returns their number. The hand goes round over the entries, in the order of their keys. It deletes what was
        neither stored nor used in this round and the one before, so that an entry has a whole round to be used again.
        """
        now = self._round = t.rounds.get(_ROUND, 1)
        used = t.used.get if self._policy == "least-recently-used" else _unused
        hand = last = t.hand.get(_HAND)
        doomed: list[Any] = []
        looked = seen = freed = 0
        for key, data in t.entries.select(hand):
            if key == hand:
                continue
            if looked == _SCAN or seen > _SCAN_BYTES or len(doomed) == most or freed >= size:
                t.hand[_HAND] = last
                break
            last = key
            looked, seen = looked + 1, seen + len(data)
            if _HEAD.unpack_from(data)[1] < now - 1 and used(key, 0) < now - 1 and key not in self._marked:
                doomed.append(key)
                freed += len(data)
        else:
            if self._marked:
                self._note(t)
            t.rounds[_ROUND] = self._round = now + 1
            t.hand.pop(_HAND, None)
        for key in doomed:
            self._forget(t, key)
        self._excess -= freed
        return len(doomed)


def _opened_again(path: str, key: Any, value: Any, size_limit: int, policy: EvictionPolicy, keep: bool) -> Any:
    """The cache of a pickle."""
    return Cache(path, key, value, size_limit=size_limit, eviction_policy=policy, keep=keep)


def _unused(key: Any, default: int) -> int:
    return default


def _until(expire: Optional[float]) -> float:
    return _NEVER if expire is None else _clock() + expire


def _tag_of(data: bytes, size: int) -> str:
    return data[_SIZE : _SIZE + size].decode() if size else ""


def _schema(key: Any) -> type[Schema]:
    """The tables of a cache with keys of the type *key*."""
    table: Any = Table
    parts = {
        "entries": table[key, bytes],
        "until": table[tuple[float, key], bytes],
        "tags": table[tuple[str, key], bytes],
        "used": table[key, int],
        "hand": table[int, key],
        "rounds": table[str, int],
        "pending": table[key, float],
        "types": table[str, str],
    }
    return type("CacheTables", (Schema,), {"__annotations__": parts, "__module__": __name__})

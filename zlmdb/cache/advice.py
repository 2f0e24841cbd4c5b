"""Methods and options that dicts and other caches have: the error says what to write instead."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

_EACH = "write `for key in cache`, and cache.get(key)"
_QUEUE = "a queue is a table of a schema, zlmdb.Queue"
INSTEAD = {
    **dict.fromkeys(("items", "keys", "values", "scan", "iteritems"), _EACH),
    **dict.fromkeys(("get_many", "mget"), "write cache.get(key) for each key"),
    **dict.fromkeys(("set_many", "mset", "update"), "write `with cache.transact():` and in it cache.set(...) for each"),
    **dict.fromkeys(("setex", "psetex"), "write cache.set(key, value, expire=seconds)"),
    **dict.fromkeys(("setnx", "setdefault"), "write cache.add(key, value), which stores it unless there is one"),
    **dict.fromkeys(("ttl", "expire_time"), "write cache.details(key), which has expire_time"),
    **dict.fromkeys(("push", "pull", "peek", "lpush", "rpush", "lpop", "rpop"), _QUEUE),
    **dict.fromkeys(("cache", "cached"), "write @cache.memoize(expire=seconds)"),
    **dict.fromkeys(("pipeline", "multi", "transaction"), "write `with cache.transact():` around the operations"),
    **dict.fromkeys(("incrby", "decrby"), "write cache.incr(key, delta), or decr"),
    **dict.fromkeys(("publish", "subscribe"), "the changes of a table are followed: db.changes(table)"),
    **dict.fromkeys(("sadd", "smembers", "zadd", "zrange"), "sets are tables of a schema: zlmdb.SetTable, zlmdb.Index"),
    **dict.fromkeys(("remove", "delete_many"), "write cache.delete(key), or evict(tag) for those of a tag"),
    "exists": "write `key in cache`",
    "persist": "write cache.touch(key), which takes the expiry away",
    "flushall": "write cache.clear()",
    "hset": "a value may be a dict, or an object of a class: zlmdb.Cache(path, str, User)",
    "increment": "write cache.incr(key)",
    "lock": "@cache.memoize() computes a result once; a write block of a database waits for all others; "
    "cache.add('lock', 1, expire=60) is true for one caller, until cache.delete('lock')",
    "memoize_stampede": "write @cache.memoize(expire=seconds), which computes a result once",
}  # fmt: skip

_WRITTEN = "expire= is the seconds until the entry is gone, tag= a text by which evict() deletes it"
_DETAILS = "cache.details(key) has the value, and its expire_time and tag"
_TAKEN = f"{_DETAILS}: write `with cache.transact():`, and in it cache.details(key) and cache.delete(key)"
_ASKED = {
    "get": dict.fromkeys(("expire_time", "tag"), _DETAILS),
    "pop": dict.fromkeys(("expire_time", "tag"), _TAKEN),
}
_OF_OTHERS = {
    "read": "values are in the database, however large, and there are no files",
    "retry": "nothing raises Timeout, so leave it out",
}


def refuse_options(method: str, others: Iterable[str]) -> NoReturn:
    """Raise TypeError for options that *method* of a cache does not have."""
    names = [*others]
    known = {**_OF_OTHERS, **_ASKED.get(method, {})}
    advice = [*dict.fromkeys(known[name] for name in names if name in known)] or [_WRITTEN]
    raise TypeError(f"{method}() has no option {', '.join(names)}: {'; '.join(advice)}")


def refuse_asked(method: str, **asked: object) -> NoReturn:
    """As `refuse_options`, for those of diskcache that have a true value."""
    refuse_options(method, [name for name, value in asked.items() if value])

"""Methods that dicts and other caches have: the error says what to write instead."""

from __future__ import annotations

from ..elsewhere import has_no

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
    "exists": "write `key in cache`",
    "flushall": "write cache.clear()",
    "hset": "a value may be a dict, or an object of a class: zlmdb.Cache(path, str, User)",
    "increment": "write cache.incr(key)",
    "lock": "@cache.memoize() computes a result once; a write block of a database waits for all others",
    "memoize_stampede": "write @cache.memoize(expire=seconds), which computes a result once",
}  # fmt: skip


def of_cache(cache: object, name: str) -> str:
    """What to write for *name*; empty for a name that nobody has."""
    return has_no(cache, name, INSTEAD[name]) if name in INSTEAD else ""

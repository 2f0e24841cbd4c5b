"""The functions that decide how fast a table reads and writes, written out for its key and value types.

In ``table[key]`` every call of Python in between costs as much as the record itself is away. So the expression that
encodes the key stands in the generated function, and the decoder is called at once: 75 ns over the raw engine on
CPython 3.11, where the general form of `Table.__getitem__`, which they follow line by line, takes 310. Writing is the
same story; there a key that the expression does not cover, and whatever else is not the common case (an index, another
thread, a refusal), goes to the general form. PyPy inlines either.
"""

from __future__ import annotations

import linecache
import threading
from collections.abc import Iterable, Iterator
from typing import Any, Callable

from .storage import Storage

_READING = """\
def __getitem__(self, key):
    try:
        data = self._get({encode}, None, self._db)
        if data is not None:
            return load(data)
    except Exception as error:
        return self._read_again(key, error, KeyError)
    return self._missing(key, KeyError)

def get(self, key, default=None, /):
    try:
        data = self._get({encode}, None, self._db)
        if data is not None:
            return load(data)
    except Exception as error:
        return self._read_again(key, error, default)
    return self._missing(key, default)
"""

_WRITING = """\
def __setitem__(self, key, value):
    if self.writer != thread() or self.indexes or self.missing:
        return general(self, key, value)
    try:
        encoded = {encode} if {check} else encode_key(key)
        data = dump(value)
    except Exception:
        return general(self, key, value)
    {check_size}
    try:
        self._put(encoded, data, True, True, False, self._db)
    except Exception as error:
        self._write_failed(key, error)
    txn = self.txn
    if txn.stats is None:
        txn.changes += 1
        txn.puts += 1
    else:
        txn.count(1, 0)
"""

_STREAM = """\
def stream(items, last):
    count = 0
    key = None

    def rows():
        nonlocal count, key, last
        for key, value in items:
            try:
                encoded = {encode} if {check} else encode_key(key)
                data = dump(value)
            except Exception:
                encoded, data = encode_key(key), encode_value(value, key)
            {check_size}
            if last is not None:
                if encoded <= last:
                    refuse(key, last)
                last = encoded
            yield encoded, data
            count += 1

    return rows(), lambda: (count, key)
"""

Stream = Callable[[Iterable[Any], Any], tuple[Iterator[tuple[bytes, bytes]], Callable[[], tuple[int, Any]]]]


def specialised(cls: type, general: type, storage: Storage[Any, Any]) -> type:
    """A subclass of *cls* that reads the records of *storage*, by bytes, and writes them in generated functions.

    Where *cls* has a method of its own instead of that of *general*, the table class, it keeps it.
    """
    encode, names = storage.key.lookup_source(storage.prefix)
    reading = _compiled(
        "point reads", storage, _READING.format(encode=encode), {**names, "load": storage.value.bytes_decode}
    )
    more = {"general": getattr(general, "__setitem__"), "thread": threading.get_ident}  # noqa: B009 - Any, for checkers
    writing = _compiled("point writes", storage, *_writing(_WRITING, storage, more))
    methods = {
        name: made[name]
        for made, name in ((reading, "__getitem__"), (reading, "get"), (writing, "__setitem__"))
        if getattr(cls, name) is getattr(general, name)
    }
    for name, method in methods.items():
        method.__doc__ = getattr(general, name).__doc__
    facts = {"__slots__": (), "__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    found: type = type(cls)(cls.__name__, (cls,), {**facts, **methods})
    return found


def stream_of(storage: Storage[Any, Any], refuse: Callable[[Any, bytes], None]) -> Stream:
    """A function of pairs of key and value, and of the bytes that the first key must be greater than, or None.

    It gives an iterator of pairs of bytes, and a function that tells how many of them were taken and the key of the
    latest. *refuse* raises for a key, given the bytes of the one before, that does not ascend.
    """
    made: Stream = _compiled("bulk writes", storage, *_writing(_STREAM, storage, {"refuse": refuse}))["stream"]
    return made


def _writing(source: str, storage: Storage[Any, Any], more: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """*source* with the expressions for the keys of *storage* filled in, and the names in it."""
    check, encode, names = storage.key.store_source(storage.prefix)
    width, limit = storage.key.width, storage.max_key_size
    fits = width is not None and 0 < len(storage.prefix) + width <= limit
    check_size = "" if fits else f"if not 0 < len(encoded) <= {limit}: bad_size(key, len(encoded))"
    names = {
        **names,
        **more,
        "encode_key": storage.encode_key,
        "encode_value": storage.encode_value,
        "dump": storage.dump,
        "bad_size": storage.bad_size,
    }
    return source.format(check=check, encode=encode, check_size=check_size), names


def _compiled(what: str, storage: Storage[Any, Any], source: str, names: dict[str, Any]) -> dict[str, Any]:
    filename = f"<{what} of {storage.key.name} at {storage.prefix.hex() or 'no prefix'}>"
    # So that tracebacks and debuggers show the lines.
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    exec(compile(source, filename, "exec"), names)
    return names

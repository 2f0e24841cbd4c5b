"""The functions that decide how fast a table reads and writes, written out for its key and value types.

In ``table[key]`` every call of Python in between costs as much as the record itself is away. So the expression that
encodes the key stands in the generated function, and the decoder is called at once: less than 70 ns over the raw engine
on CPython 3.11 (docs/results), several times less than in the general form of `Table.__getitem__`, which they follow
line by line. Writing is the same story; there a key that the expression does not cover, and whatever else is not the
common case (another thread, a refusal), goes to the general form. PyPy inlines either. `indexwrites` does the same for
tables with indexes.
"""

from __future__ import annotations

import linecache
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Callable

from .storage import Storage

_READING = """\
def __getitem__(self, key):
    try:
        data = self._get({encode}, None, self._db)
        if data is not None:
            return load(data)
    except Exception as error:
        return self._read_again(key, error, required)
    return self._missing(key, required)

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
    if self.writer != thread():
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
        self.write_failed(key, error)
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

REQUIRED: Any = object()
"""In place of a default: a missing record raises KeyError."""

Stream = Callable[[Iterable[Any], Any], tuple[Iterator[tuple[bytes, bytes]], Callable[[], tuple[int, Any]]]]


def specialised(
    cls: type, general: type, storage: Storage[Any, Any], writing: Mapping[str, Any], **facts: Any
) -> type:  # fmt: skip
    """A subclass of *cls* that reads the records of *storage*, by bytes, in generated functions.

    *writing* are the methods that write, *facts* more attributes. Where *cls* has a method of its own instead of that
    of *general*, the table class, it keeps it.
    """
    encode, names = storage.key.lookup_source(storage.prefix)
    names = {**names, "load": storage.value.bytes_decode, "required": REQUIRED}
    reading = compiled("point reads", storage, _READING.format(encode=encode), names)
    made = {"__getitem__": reading["__getitem__"], "get": reading["get"], **writing}
    methods = {name: method for name, method in made.items() if getattr(cls, name) is getattr(general, name)}
    for name, method in methods.items():
        method.__doc__ = getattr(general, name).__doc__
    return subclass(cls, {**methods, **facts})


def subclass(cls: type, methods: Mapping[str, Any]) -> type:
    """A subclass of *cls* by the same name, with *methods*."""
    facts = {"__slots__": (), "__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    found: type = type(cls)(cls.__name__, (cls,), {**facts, **methods})
    return found


def point_writes(general: type, storage: Storage[Any, Any]) -> dict[str, Any]:
    """The methods that write records of *storage*, where it has no indexes."""
    names = {"general": vars(general)["__setitem__"]}
    source, names = writing(_WRITING, storage, names)
    return {"__setitem__": compiled("point writes", storage, source, names)["__setitem__"]}


def stream_of(storage: Storage[Any, Any], refuse: Callable[[Any, bytes], None]) -> Stream:
    """A function of pairs of key and value, and of the bytes that the first key must be greater than, or None.

    It gives an iterator of pairs of bytes, and a function that tells how many of them were taken and the key of the
    latest. *refuse* raises for a key, given the bytes of the one before, that does not ascend.
    """
    made: Stream = compiled("bulk writes", storage, *writing(_STREAM, storage, {"refuse": refuse}))["stream"]
    return made


def writing(
    source: str, storage: Storage[Any, Any], more: Mapping[str, Any], **parts: str
) -> tuple[str, dict[str, Any]]:  # fmt: skip
    """*source* with the expressions for the keys of *storage* and the *parts* filled in, and the names in it."""
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
        "load": storage.value.bytes_decode,
        "bad_size": storage.bad_size,
        "thread": threading.get_ident,
    }
    return source.format(check=check, encode=encode, check_size=check_size, **parts), names


def compiled(what: str, storage: Storage[Any, Any], source: str, names: dict[str, Any]) -> dict[str, Any]:
    """The names that the *source* defines, with *names* in it; tracebacks call it *what* of the keys of *storage*."""
    filename = f"<{what} of {storage.key.name} at {storage.prefix.hex() or 'no prefix'}>"
    # So that tracebacks and debuggers show the lines.
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    exec(compile(source, filename, "exec"), names)
    return names

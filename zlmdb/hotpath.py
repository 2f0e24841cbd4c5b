"""The two functions that decide how fast a table reads, written out for its key and value types.

In ``table[key]`` every call of Python in between costs as much as the record itself is away. So the expression that
encodes the key stands in the generated function, and the decoder is called at once: 75 ns over the raw engine on
CPython 3.11, where the general form of `Table.__getitem__`, which they follow line by line, takes 310. PyPy inlines
either.
"""

from __future__ import annotations

import linecache
from typing import Any

from .storage import Storage

_SOURCE = """\
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


def specialised(cls: type, general: type, storage: Storage[Any, Any]) -> type:
    """A subclass of *cls* that reads the records of *storage*, by bytes, in generated functions.

    Where *cls* has a method of its own instead of that of *general*, the table class, it keeps it.
    """
    encode, names = storage.key.lookup_source(storage.prefix)
    source = _SOURCE.format(encode=encode)
    filename = f"<point reads of {storage.key.name} at {storage.prefix.hex() or 'no prefix'}>"
    # So that tracebacks and debuggers show the lines.
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    names = {**names, "load": storage.value.bytes_decode}
    exec(compile(source, filename, "exec"), names)
    methods = {
        name: names[name] for name in ("__getitem__", "get") if getattr(cls, name) is getattr(general, name)
    }  # fmt: skip
    for name, method in methods.items():
        method.__doc__ = getattr(general, name).__doc__
    facts = {"__slots__": (), "__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    found: type = type(cls)(cls.__name__, (cls,), {**facts, **methods})
    return found

"""The functions that determine how fast a table reads and writes, generated for its key and value types.

In ``table[key]`` each additional Python call takes as long as reading the record itself. So the generated function
contains the expression that encodes the key, and calls the decoder directly: less than 70 ns over the raw engine on
CPython 3.11 (docs/results), several times less than the general form of `Table.__getitem__`, which it follows line by
line. Writing is similar; a key that the expression does not cover, and all other uncommon cases (another thread, a
refusal), go to the general form, and so does the first record. Whether the thread may write is asked when the value has
been encoded, since an encoder may begin a scan, and to ask twice takes a twentieth of the time. PyPy inlines both.
`indexed` does the same for tables with indexes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Callable

from ...codegen import Methods, Recipe
from ...handlers import let_through
from ...store.transaction import Transaction
from ..storage import Storage, Stream

_READER = """\
def <name>:
    try:
        get, db = self._reader
        data = get({encode}, None, db)
        if data is not None:
            return load(data)
    except Exception as error:
        return general(self, key, error, <default>)
    return self._missing(key, <default>)

"""
_READING = _READER.replace("<name>", "__getitem__(self, key)").replace("<default>", "required") + _READER.replace(
    "<name>", "get(self, key, default=None, /)"
).replace("<default>", "default")

_WRITING = """\
def __setitem__(self, key, value):
    try:
        encoded = {encode} if {check} else general_key(key)
        {check_key}
        data = dump(value)
    except Exception as error:
        let_through(error)
        return general(self, key, value)
    owner, txn, raw, db, watched, handles = self._writer
    if not owner._is_owned():
        return general(self, key, value)
    {check_size}
    try:
        if watched:
            self._tell_stored(encoded)
        raw.put(encoded, data, True, True, False, db)
    except Exception as error:
        self._write_failed(key, error)
    if txn._stats is None:
        txn._puts += 1
    else:
        txn._count(1, 0)
"""

_DELETING = """\
def __delitem__(self, key):
    owner, txn, raw, db, watched, handles = self._writer
    if not owner._is_owned():
        return general___delitem__(self, key)
    try:
        encoded = {encode} if {check} else general_key(key)
    except Exception as error:
        let_through(error)
        return general___delitem__(self, key)
    try:
        deleted = raw.delete(encoded, b"", db)
    except Exception as error:
        general_key(key)  # what does not fit raises
        self._write_failed(key, error)
    if not deleted:
        return general___delitem__(self, key)
    if txn._stats is None:
        txn._dels += 1
    else:
        txn._count(0, 1)

def _remove(self, encoded):
    owner, txn, raw, db, watched, handles = self._writer
    if not owner._is_owned():
        return general__remove(self, encoded)
    try:
        deleted = raw.delete(encoded, b"", db)
    except Exception as error:
        self._write_failed(None, error)
    if not deleted:
        return 0
    if txn._stats is None:
        txn._dels += 1
    else:
        txn._count(0, 1)
    return 1
"""

_STREAM = """\
def stream(items, last):
    count = 0
    key = None

    def rows():
        nonlocal count, key, last
        for key, value in items:
            try:
                encoded = {encode} if {check} else general_key(key)
                {check_key}
                data = dump(value)
            except Exception as error:
                let_through(error)
                encoded, data = general_key(key), general_value(value, key)
            {check_size}
            if last is not None:
                if encoded <= last:
                    refuse(key, last)
                last = encoded
            yield encoded, data
            count += 1

    return rows(), lambda: (count, key)
"""

_READS = Recipe("point reads")
_WRITES = Recipe("point writes", txn=Transaction)
_DELETIONS = Recipe("point deletions", txn=Transaction)
_STREAMS = Recipe("bulk writes")

REQUIRED: Any = object()
"""In place of a default: a missing record raises KeyError."""


def specialised(
    cls: Any, general: Any, storage: Storage[Any, Any], writing: Iterable[Methods], **attributes: Any
) -> type:  # fmt: skip
    """A subclass of *cls* that reads the records of *storage* as bytes, in generated functions.

    *writing* are the methods that write; the class has *attributes*, too. If *cls* overrides a method of *general*, the
    table class, it keeps its own.
    """
    plain = (cls.__getitem__, cls.get) == (general.__getitem__, general.get)
    kind = subclass(cls, {}, _point_reads=plain, **attributes)
    # Generated when they are taken, not when they are called: many a program takes ``table.get`` out of its loop.
    Methods(("__getitem__", "get"), lambda: _point_reads(general, storage)).put(kind, general)
    for methods in writing:
        methods.put(kind, general)
    return kind


def _point_reads(general: Any, storage: Storage[Any, Any]) -> dict[str, Any]:
    encode, names = storage.key.lookup_source(storage.prefix)
    names = {**names, "load": storage.value.bytes_decode, "required": REQUIRED, "general": general._read_again}
    return compiled(_READS, storage, _READING.format(encode=encode), names, self=general)


def subclass(cls: type, methods: Mapping[str, Any], **attributes: Any) -> type:
    """A subclass of *cls* with the same name, which overrides *methods* and has more attributes."""
    for name, method in methods.items():
        method.__doc__ = getattr(cls, name).__doc__
    named = {"__slots__": (), "__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    return type(cls)(cls.__name__, (cls,), {**named, **attributes, **methods})


def point_writes(cls: Any, general: Any, storage: Storage[Any, Any]) -> list[Methods]:
    """The methods of a subclass of *cls* that write records of *storage*, where it has no indexes."""

    def storing() -> dict[str, Any]:
        source, names = writing(_WRITING, storage, {"general": general.__setitem__})
        return compiled(_WRITES, storage, source, names, self=general)

    def deleting() -> dict[str, Any]:
        forms = {"general___delitem__": general.__delitem__, "general__remove": general._remove}
        source, names = writing(_DELETING, storage, forms)
        return compiled(_DELETIONS, storage, source, names, self=general)

    found = [Methods(("__setitem__",), storing, patient=True)]
    if cls._remove is general._remove and not storage.referrers:  # which the general `__delitem__` calls
        found.append(Methods(("__delitem__", "_remove"), deleting))
    return found


def stream_of(storage: Storage[Any, Any], refuse: Callable[[Any, bytes], None]) -> Stream:
    """A function of pairs of key and value, and of the bytes that the first key must be greater than, or None.

    It returns an iterator of pairs of bytes, and a function that returns how many of them were taken and the last key.
    *refuse* raises for a key that does not ascend, given the bytes of the previous one.
    """
    return compiled(_STREAMS, storage, *writing(_STREAM, storage, {"refuse": refuse}))["stream"]


def writing(
    source: str, storage: Storage[Any, Any], more: Mapping[str, Any], **parts: str
) -> tuple[str, dict[str, Any]]:  # fmt: skip
    """*source* with the expressions for the keys of *storage* and the *parts* filled in, and the names in it."""
    check, encode, names = storage.key.store_source(storage.prefix)
    check = storage.key.quick_check or check
    check_size = f"if not 0 < len(encoded) <= {storage.max_key_size}: bad_size(key, len(encoded))"
    if storage.fits(storage.key.width):
        check_size = ""
    names = {
        **names,
        **more,
        "general_key": storage.encode_key,
        "general_value": storage.encode_record,
        "key_field": storage.key_field,
        "dump": storage.dump,
        "load": storage.value.bytes_decode,
        "bad_size": storage.bad_size,
        "let_through": let_through,
    }
    check_key = "pass" if storage.key_field is None else storage.key_field.source
    return source.format(check=check, encode=encode, check_size=check_size, check_key=check_key, **parts), names


def compiled(
    recipe: Recipe, storage: Storage[Any, Any], source: str, names: Mapping[str, Any], **classes: Any
) -> dict[str, Any]:  # fmt: skip
    """The namespace of the functions of *source*, made by *recipe* for the keys of *storage*."""
    subject = f"{storage.key.name} at {storage.prefix.hex() or 'no prefix'}"
    return recipe.functions(subject, source, names, **{"self._txn": Transaction, **classes})

"""What to write in place of an attribute that an object does not have: a method of another library, a misspelt name.

A ``__getattr__`` would say it, but in its presence CPython up to 3.11 reads each attribute of an object in 340
instructions in place of 35, and a small transaction reads many. So a class registers a function that says it, and the
names that people are known to try: each of these is an attribute of the class that raises. Of any other name Python
raises a plain error, from which the end of the block makes that of the class (`say_more`).

An attribute that raises is not there for ``hasattr`` and ``dir`` of an object. Whatever else has its name, such as an
index of a derived class, comes first. But Python's own prompt completes what the class has as well, so there classes do
have a ``__getattr__``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any

from .typeargs import annotated_names

Says = Callable[[Any, str], str]
"""The text of the error for an object without that attribute; empty where there is nothing to say."""

_SAYS: dict[type[Any], Says] = {}
_CALLS: dict[str, str] = {}

_AT_PROMPT = hasattr(sys, "ps1") or bool(sys.flags.interactive)


class MissingAttribute:
    """In place of the attribute *name* of a class: whoever asks for it gets an `AttributeError` with what to write."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, holder: Any, owner: type[Any]) -> Any:
        name = self._name
        for base in owner.__mro__:  # a derived class may have it from its other bases, which come later
            found = vars(base).get(name, self)
            if type(found) is not MissingAttribute:
                get = getattr(found.__class__, "__get__", None)
                return found if get is None else get(found, holder, owner)
        if holder is None:
            raise AttributeError(f"type object {owner.__name__!r} has no attribute {name!r}")
        raise lacking(holder, name)


def has_no(holder: object, name: str, advice: str = "") -> str:
    """Python's words for an attribute *name* that *holder* lacks, and the *advice*, if any."""
    return f"{type(holder).__name__!r} object has no attribute {name!r}{advice and ': '}{advice}"


def tell(cls: type[Any], names: Iterable[str], says: Says) -> None:
    """Let objects of *cls* say by *says* what to write for an attribute that they lack.

    They do so at once for *names*, unless the class has something of that name.
    """
    _SAYS[cls] = says
    tell_more(cls, names)
    listed: Any = cls.__dir__

    def __dir__(holder: object) -> list[str]:
        return present(type(holder), listed(holder), getattr(holder, "__dict__", ()))

    plain: Any = cls
    plain.__dir__ = __dir__


def tell_each(cls: type[Any], advice: Mapping[str, str]) -> None:
    """As `tell`, of the names for which *advice* has what to write."""
    tell(cls, advice, lambda holder, name: has_no(holder, name, advice[name]) if name in advice else "")


def tell_more(cls: type[Any], names: Iterable[str]) -> None:
    """As `tell`, of some more *names*."""
    if _AT_PROMPT:
        plain: Any = cls
        if not hasattr(cls, "__getattr__"):
            plain.__getattr__ = _getattr
        return
    for name in names:
        if not any([name in vars(base) for base in cls.__mro__]):
            setattr(cls, name, MissingAttribute(name))


def _getattr(holder: Any, name: str) -> Any:
    """The ``__getattr__`` of classes at a prompt, where no end of a block may come that says more."""
    if not name.startswith("_") and _said(holder, name):
        raise lacking(holder, name)
    error: Any = AttributeError(has_no(holder, name))
    error.name, error.obj = name, holder  # as Python has them since 3.10
    raise error


def present(cls: type[Any], listed: Iterable[str], own: Container[str] = ()) -> list[str]:
    """Those of the *listed* names that are more than attributes of *cls* that raise. *own* are those of an object."""
    there, told = _names(cls)
    return [name for name in listed if name not in told or name in there or name in own]


def public_names(cls: type[Any]) -> list[str]:
    """The names that people may use of objects of *cls*."""
    return sorted([name for name in _names(cls)[0] if not name.startswith("_")])


def _names(cls: type[Any]) -> tuple[set[str], set[str]]:
    """The attributes that *cls* and its bases have, and the names of those that raise."""
    there: set[str] = set()
    told: set[str] = set()
    for base in cls.__mro__:
        for name, value in vars(base).copy().items():  # another thread may open a database, which tells more
            (told if type(value) is MissingAttribute else there).add(name)
    return there, told


def _said(holder: object, name: str) -> str:
    for base in type(holder).__mro__:
        if base in _SAYS:
            return _SAYS[base](holder, name)
    return ""


def _said_of_pair(pair: Any, name: str) -> str:
    """What to say if *pair* seems to be what a loop over records gives, and the record has the attribute *name*."""
    record: Any = pair[-1] if len(pair) == 2 else None
    own: Any = getattr(record, "__dict__", ())
    if record is None or not (name in own or hasattr(record.__class__, name)):
        return ""
    advice = "a loop over records gives pairs of key and record: write `for key, record in ...`, or loop over .values()"
    return has_no(pair, name, advice)


def _said_of_key(key: object, name: str, tables: Iterable[Any]) -> str:
    """What to say if *key* seems to be one of *tables*, and its records have the attribute *name*."""
    for table in tables:
        types = getattr(table, "_query_types", lambda: None)()
        record: Any = None if types is None or types.key.cls is not key.__class__ else types.value.cls
        if isinstance(record, type) and name in annotated_names(record):
            advice = "a loop over a table gives its keys, as one over a dict: loop over .items(), or over .values()"
            return has_no(key, name, advice)
    return ""


_OF_RECORDS = {
    **dict.fromkeys(
        ("commit", "insert", "put", "save", "store", "update"),
        "a record does not know its table: write table[key] = record, or `with table.edit(key) as record:`",
    ),
    **dict.fromkeys(("delete", "remove"), "a record does not know its table: write del table[key]"),
    **dict.fromkeys(
        ("_id", "id", "key", "pk"),
        'a record does not have its key: loop over .items(), or let a field be the key, class T(Table[...], key="id")',
    ),
}


def _said_of_record(record: object, name: str, tables: Iterable[Any]) -> str:
    """What to say if *record* seems to be one of *tables*, and *name* is what the objects of others have."""
    for table in tables if name in _OF_RECORDS else ():
        types = getattr(table, "_query_types", lambda: None)()
        if types is not None and types.value.cls is record.__class__:
            return has_no(record, name, _OF_RECORDS[name])
    return ""


def lacking(holder: object, name: str) -> AttributeError:
    """The error of *holder*, which has no attribute *name*."""
    text = _said(holder, name)
    error: Any = AttributeError(text or has_no(holder, name))
    if text:
        error.name = name  # else Python would add the object, and then a suggestion of its own
    return error


def tell_calls(advice: Mapping[str, str]) -> None:
    """Say at the end of a block what to write instead, where a method was called with what it does not take.

    *advice* has it by the names of methods, such as ``Table.get``, as Python names them in errors since 3.10.
    """
    _CALLS.update(advice)


def say_more(error: Any, tables: Iterable[Any] = ()) -> None:
    """Make the text of Python's own *error* that of the class, if it names the object, as it does since Python 3.10.

    The block had *tables*, of which that object may be a key.

    So it is for that of a call with other arguments than the method has.
    """
    kind: Any = error.__class__
    if kind is TypeError and len(error.args) == 1:
        called, _, rest = str(error.args[0]).partition("() ")
        advice = _CALLS.get(called, "")
        if advice and called.startswith("Table.") and rest.startswith("missing "):  # also of Users.get(1)
            advice = f"t.table.{called[6:]}(...) is asked in a transaction, not of the class, and {advice}"
        if advice and rest.startswith(("takes ", "got ", "missing ")) and not rest.endswith(advice):
            error.args = (f"{error.args[0]}; {advice}",)
        return
    holder: Any = getattr(error, "obj", None) if type(error) is AttributeError else None
    if holder is not None and error.args == (has_no(holder, name := str(error.name)),):
        text = _said_of_pair(holder, name) if holder.__class__ is tuple else _said(holder, name)
        text = text or _said_of_key(holder, name, tables) or _said_of_record(holder, name, tables)
        if text:
            error.args = (text,)
            error.obj = None  # as above

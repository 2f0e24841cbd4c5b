"""A thousand odd functions: each gives what it gives when it is called; nothing is kept of it, and nothing changed."""

from __future__ import annotations

import builtins
import gc
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import followed
import odd_functions
import pytest
from followed import User, agree, all_agree, following, users

from . import test_following_odd

Function = Callable[..., Any]
MODULES = (odd_functions, test_following_odd, followed, builtins)
COUNTED = sys.implementation.name == "cpython"


def functions() -> Iterator[Function]:
    yield from test_following_odd.ALL
    for group in odd_functions.GROUPS.values():
        yield from group


def told(function: Any) -> Any:
    """What tells one function from another: its code and its defaults; of another object, itself."""
    code = getattr(function, "__code__", None)
    if not isinstance(code, types.CodeType):
        return id(function)
    constants = tuple(one.co_code if isinstance(one, types.CodeType) else repr(one) for one in code.co_consts)
    names = code.co_names, code.co_freevars, code.co_varnames, code.co_argcount, code.co_kwonlyargcount, code.co_flags
    nested = tuple(told(types.FunctionType(one, {})) for one in code.co_consts if is_closed(one))
    cells = tuple(id(cell) for cell in function.__closure__ or ())
    return code.co_code, constants, names, nested, repr(function.__defaults__), cells


def is_closed(code: Any) -> bool:
    return isinstance(code, types.CodeType) and not code.co_freevars


def state() -> dict[Any, Any]:
    """The names of the modules of these functions, with what they stand for, and what the functions are made of."""
    found: dict[Any, Any] = {}
    for module in MODULES:
        found.update({(module.__name__, name): id(value) for name, value in vars(module).items() if name != "_"})
    for function in functions():
        if COUNTED and isinstance(function, types.FunctionType):  # elsewhere the same thing may have several numbers
            cells = [id(cell.cell_contents) if filled(cell) else None for cell in function.__closure__ or ()]
            parts = function.__code__, function.__globals__, function.__defaults__, function.__kwdefaults__
            found[id(function)] = [*map(id, parts), *cells, sorted(function.__dict__)]
    return found


def filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def test_there_are_more_than_a_thousand_different_functions() -> None:
    assert len({told(function) for function in functions()}) >= 1400


@pytest.mark.parametrize("condition", [True, False], ids=["condition", "value"])
@pytest.mark.parametrize("group", odd_functions.GROUPS)
@pytest.mark.filterwarnings("ignore")
def test_every_function_of_a_group_gives_what_it_gives_when_called(group: str, condition: bool) -> None:
    # On PyPy, which takes its time over what runs but once, each function is either a condition or a value.
    functions = odd_functions.GROUPS[group] if COUNTED else odd_functions.GROUPS[group][condition::2]
    all_agree(functions, condition=condition, times=2)  # the second time it is known


@pytest.mark.filterwarnings("ignore")
def test_nothing_is_changed_and_nothing_is_kept_when_they_are_read() -> None:
    """Reading is not to call them; what they refer to has as many references as before once the reader is gone."""
    before, every = state(), list(functions())
    counts: list[int] = []
    for _ in range(3 if COUNTED else 1):
        reader = following(User)
        for function in every:
            for read in (reader.condition, reader.value) if COUNTED else (reader.condition,):
                with suppress(TypeError):
                    repr(read(function))
        del reader, function, read
        gc.collect()
        assert state() == before
        own = [one for one in every if isinstance(one, types.FunctionType)]
        counts.append(sum(map(sys.getrefcount, own)) if COUNTED else 0)
    assert not COUNTED or counts[1] == counts[2]


@pytest.mark.filterwarnings("ignore")
def test_nothing_is_kept_of_functions_that_are_made_anew() -> None:
    """Copies of all of them, with code of their own: they are gone with the last name for them."""
    reader = following(User)
    code = compile("1", "", "eval")
    alone = sys.getrefcount(code) if COUNTED else 0  # since CPython 3.14 not every reference is counted
    for function in functions():
        if not (COUNTED and isinstance(function, types.FunctionType)):
            continue
        copy = types.FunctionType(
            function.__code__.replace(co_name="copy"), function.__globals__, "copy", function.__defaults__,
            function.__closure__,
        )  # fmt: skip
        copy.__kwdefaults__ = function.__kwdefaults__
        for read in (reader.condition, reader.value):
            with suppress(TypeError):
                read(copy)
        code = copy.__code__
        del copy, read
        kept = sys.getrefcount(code)
        if kept > alone:
            gc.collect()
            kept = sys.getrefcount(code)
        assert kept == alone, function.__code__


def test_globals_that_change_between_calls_are_followed() -> None:
    """What a name stands for when the query is made counts, for names of every kind, and back again."""
    names = ["low", "high", "none", "word", "names", "countries", "table", "limits", "switch", "frozen", "counting"]
    others: dict[str, list[Any]] = {
        "low": [3, 17.5, True, 10**30],
        "high": [0, -1.5],
        "none": ["Bea", 0],
        "word": ["B", ""],
        "names": [[], ["Cid"], ("Ann",)],
        "countries": [set(), frozenset({"DE"}), ["NO"]],
        "table": [{}, {"DE": {"tax": 1}}],
        "switch": [{True: 1, False: 0}],
        "limits": [types.SimpleNamespace(low=0, high=9, inner=types.SimpleNamespace(word="b"))],
        "frozen": [{"least": 3}],
        "counting": [odd_functions.Counting(3), lambda u: u.age],
    }
    reader = following()
    using = [
        one
        for one in odd_functions.CAPTURED
        if isinstance(one, types.FunctionType) and set(one.__code__.co_names) & {*names}
    ]
    assert len(using) > 20
    space = vars(odd_functions)
    for name in names:
        kept = space[name]
        for other in (*others[name], kept):
            space[name] = other
            try:
                for function in using:
                    if name in function.__code__.co_names:
                        for condition, read in ((True, reader.condition), (False, reader.value)):
                            try:
                                followed = read(function)
                            except TypeError:
                                continue
                            agree(followed, function, users(), condition=condition)
            finally:
                space[name] = kept

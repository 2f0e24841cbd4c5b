# ruff: noqa  # what is odd here is so on purpose
"""More odd functions of a record, in groups; `test_following_thousand` asks all of them, and counts them."""

from __future__ import annotations

import abc
import asyncio
import base64
import binascii
import bisect
import calendar
import cmath
import codecs
import collections
import contextlib
import contextvars
import copy
import dataclasses
import datetime as dt
import decimal
import difflib
import enum
import fnmatch
import fractions
import functools
import hashlib
import heapq
import html
import inspect
import io
import itertools
import json
import keyword
import math
import numbers
import operator
import os.path
import pathlib
import pickle
import queue
import random
import re
import shlex
import statistics
import string
import struct
import sys
import textwrap
import threading
import time
import types
import typing
import unicodedata
import urllib.parse
import uuid
import warnings
import weakref
import zlib
from collections.abc import Callable
from typing import Any, Optional
from unittest import mock

from followed import UTC, Address, Kind, Level, User

Function = Callable[..., Any]

low, high, none, word, half = 17, 40, None, "Ann", 0.5
names, countries, table = ["Ann", "Bob"], {"NO", "SE"}, {"NO": {"tax": 25}, "SE": {"tax": 30}}
limits = types.SimpleNamespace(low=10, high=50, inner=types.SimpleNamespace(word="A"))
switch = {True: "yes", False: "no"}
lock, context, local = threading.RLock(), contextvars.ContextVar("context", default=20), threading.local()
local.least = 20
frozen = types.MappingProxyType({"least": 30})
now = dt.datetime(2019, 6, 1, tzinfo=UTC)
Pair = collections.namedtuple("Pair", "left right", defaults=(0,))


class Colour(enum.Flag):
    RED = 1
    BLUE = 2
    BOTH = 3


class Limit(enum.IntEnum):
    YOUNG = 18
    OLD = 60

    @property
    def double(self) -> int:
        return self.value * 2

    @classmethod
    def default(cls) -> Limit:
        return cls.OLD

    def holds(self, u: User) -> bool:
        return u.age >= self


class Text(str):
    def shout(self) -> str:
        return self.upper() + "!"


class Number(int):
    def __lt__(self, other: Any) -> Any:
        return NotImplemented

    def __gt__(self, other: Any) -> bool:
        return True


class Meta(type):
    def __contains__(cls, item: Any) -> bool:
        return item == "NO"

    def __call__(cls, *args: Any) -> Any:
        return args[0].age if args else 0

    def __getitem__(cls, key: Any) -> Any:
        return key

    @property
    def least(cls) -> int:
        return 20


class Made(metaclass=Meta):
    pass


class Descriptor:
    def __get__(self, instance: Any, owner: Any) -> int:
        return 20

    def __set__(self, instance: Any, value: Any) -> None:
        raise AttributeError(value)


class Counting:
    """Has state, and every protocol."""

    least = Descriptor()
    shared: list[int] = [1, 17, 31]

    def __init__(self, number: int = 20) -> None:
        self.number, self.calls = number, 0
        self.data = {"least": number}

    def __call__(self, u: User) -> bool:
        self.calls += 1
        return u.age > self.number

    def __contains__(self, item: Any) -> bool:
        return item in self.shared

    def __iter__(self) -> Any:
        return iter(self.shared)

    def __len__(self) -> int:
        return self.number

    def __getitem__(self, key: Any) -> Any:
        return self.data[key] if isinstance(key, str) else self.shared[key]

    def __bool__(self) -> bool:
        return False

    def __index__(self) -> int:
        return 1

    def __int__(self) -> int:
        return self.number

    def __float__(self) -> float:
        return float(self.number)

    def __eq__(self, other: Any) -> bool:
        return other == self.number

    def __hash__(self) -> int:
        return hash(self.number)

    def __lt__(self, other: Any) -> bool:
        return self.number < other

    def __gt__(self, other: Any) -> bool:
        return self.number > other

    def __add__(self, other: Any) -> Any:
        return self.number + other

    def __radd__(self, other: Any) -> Any:
        return other + self.number

    def __neg__(self) -> int:
        return -self.number

    def __matmul__(self, other: Any) -> Any:
        return (self.number, other)

    def __enter__(self) -> int:
        return self.number

    def __exit__(self, *args: Any) -> bool:
        return True

    def __str__(self) -> str:
        return f"<{self.number}>"

    def __format__(self, spec: str) -> str:
        return f"{self.number}:{spec}"

    def __reversed__(self) -> Any:
        return iter([3, 2])

    def __abs__(self) -> int:
        return 7

    def __round__(self, digits: int = 0) -> int:
        return 8

    def method(self, u: User, /, more: int = 0, *, times: int = 1) -> bool:
        return u.age * times + more > self.number

    twice = functools.partialmethod(method, times=2)

    @functools.singledispatchmethod
    def kind(self, value: Any) -> str:
        return "any"

    @kind.register
    def _(self, value: int) -> str:
        return "int"

    @staticmethod
    def plain(u: User) -> int:
        return len(u.name)

    @classmethod
    def made(cls, u: User) -> Any:
        return cls(u.age).number

    @functools.cached_property
    def cached(self) -> int:
        return self.number + 1

    @property
    def failing(self) -> int:
        raise AttributeError("failing")


class Lazy:
    def __getattr__(self, name: str) -> Any:
        if name == "missing":
            raise AttributeError(name)
        return 20

    def __getattribute__(self, name: str) -> Any:
        return object.__getattribute__(self, name)


class Base(abc.ABC):
    @abc.abstractmethod
    def test(self, u: User) -> bool: ...

    def run(self, u: User) -> bool:
        return not self.test(u)


class Derived(Base):
    def test(self, u: User) -> bool:
        return u.age > 20

    def run(self, u: User) -> bool:
        return super().run(u) or u.active


@dataclasses.dataclass(frozen=True, order=True)
class Version:
    major: int
    minor: int = 0

    def bumped(self) -> Version:
        return dataclasses.replace(self, minor=self.minor + 1)


@functools.total_ordering
class Length:
    def __init__(self, text: str) -> None:
        self.text = text

    def __eq__(self, other: Any) -> bool:
        return len(self.text) == len(other.text)

    def __lt__(self, other: Any) -> bool:
        return len(self.text) < len(other.text)


counting, lazy, derived, number, text = Counting(), Lazy(), Derived(), Number(20), Text("Ann")
weak = weakref.ref(counting)
proxy = weakref.proxy(counting)


# -- functions that functions call ---------------------------------------------------------------------------------------


def doubled(function: Function) -> Function:
    @functools.wraps(function)
    def inner(*args: Any) -> Any:
        return function(*args), function(*args)

    return inner


def with_arguments(*outer: Any, **named: Any) -> Function:
    def decorate(function: Function) -> Function:
        def inner(u: User) -> Any:
            return function(u, *outer, **named)

        return inner

    return decorate


class Decorating:
    def __init__(self, function: Function) -> None:
        self.function = function

    def __call__(self, u: User) -> Any:
        return self.function(u)

    def __get__(self, instance: Any, owner: Any) -> Any:
        return functools.partial(self.function, instance)


@contextlib.contextmanager
def managed(value: int) -> Any:
    yield value + 1


def collatz(n: int) -> int:
    return 0 if n <= 1 else 1 + (collatz(n // 2) if n % 2 == 0 else collatz(3 * n + 1))


def fibonacci(n: int, cache: dict[int, int] = {0: 0, 1: 1}) -> int:
    if n not in cache:
        cache[n] = fibonacci(n - 1) + fibonacci(n - 2)
    return cache[n]


def ackermann(m: int, n: int) -> int:
    return n + 1 if m == 0 else ackermann(m - 1, 1) if n == 0 else ackermann(m - 1, ackermann(m, n - 1))


def counted(stop: int) -> Any:
    number = 0
    while number < stop:
        got = yield number
        number += 1 if got is None else got


def flattened(values: Any) -> Any:
    for value in values:
        if isinstance(value, list):
            yield from flattened(value)
        else:
            yield value


def echo() -> Any:
    received = None
    while True:
        received = yield received


def returns_in_finally(u: User) -> Any:
    try:
        return u.tags[0]
    finally:
        if u.active:
            return "finally"


def retries(u: User) -> Any:
    for attempt in range(3):
        try:
            return u.tags[attempt - 1 + len(u.tags)]
        except IndexError:
            continue
    return None


def raises_from(u: User) -> Any:
    try:
        return 1 / u.age
    except ZeroDivisionError as error:
        raise LookupError(u.name) from error


def reraises(u: User) -> Any:
    try:
        return {"a": 1}[u.name]
    except KeyError:
        raise


def nested_tries(u: User) -> Any:
    try:
        try:
            return int(u.name)
        except ValueError:
            return u.tags[0].upper()
    except IndexError as error:
        return str(error)
    finally:
        u.name


def try_else(u: User) -> Any:
    try:
        first = u.tags[0]
    except IndexError:
        return "none"
    else:
        return first * 2


def custom_error(u: User) -> Any:
    class Own(ValueError):
        pass

    if u.age < 0:
        raise Own(u.age)
    return u.age


def stop_iteration(u: User) -> Any:
    return list(next(iter(())) for _ in u.tags)


def system_exit(u: User) -> Any:
    if u.age > 10_000:
        raise SystemExit
    return u.active


def warns(u: User) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.warn("odd")
    return u.active


def suppresses(u: User) -> Any:
    with contextlib.suppress(ZeroDivisionError):
        return 10 / u.age
    return "suppressed"


def exit_stack(u: User) -> Any:
    with contextlib.ExitStack() as stack:
        found = stack.enter_context(managed(u.age))
    return found


def two_contexts(u: User) -> Any:
    with managed(1) as one, managed(u.age) as two:
        return one + two


def swallowed_by_exit(u: User) -> Any:
    with counting as least:
        return u.age // (u.age - 17) > least
    return "swallowed"


def while_else(u: User) -> Any:
    number = u.age
    while number > 0:
        number -= 7
        if number == 3:
            break
    else:
        return "else"
    return number


def for_else(u: User) -> Any:
    for tag in u.tags:
        if tag == "y":
            break
    else:
        return "none"
    return "found"


def continues(u: User) -> Any:
    found = []
    for tag in u.tags:
        if not tag:
            continue
        found.append(tag)
    return found


def nested_loops(u: User) -> Any:
    count = 0
    for home in u.homes:
        for letter in home.city:
            if letter in "aeiou":
                count += 1
    return count


def labelled(u: User) -> Any:
    for first in range(5):
        for second in range(5):
            if first * second == len(u.tags):
                return first, second
    return None


def swaps(u: User) -> Any:
    a, b = u.age, low
    a, b = b, a
    return a - b


def star_in_the_middle(u: User) -> Any:
    first, *middle, last = [u.name, *u.tags, u.country]
    return first, middle, last


def nested_unpacking(u: User) -> Any:
    (a, b), (c, *d) = u.pair, (u.name, u.age, u.active)
    return a, b, c, d


def augmented(u: User) -> Any:
    total = u.age
    total += 1
    total *= 2
    total //= 3
    total -= 4
    total %= 50
    total **= 2
    total |= 1
    total ^= 5
    total &= 63
    total <<= 1
    total >>= 2
    return total


def augmented_list(u: User) -> Any:
    own = list(u.tags)
    own += ["q"]
    own *= 2
    return own


def own_dict(u: User) -> Any:
    found: dict[str, int] = {}
    for tag in u.tags:
        found[tag] = found.get(tag, 0) + 1
    return found


def deletes_item(u: User) -> Any:
    own = dict(u.marks)
    own["z"] = 3
    del own["z"]
    return own


def slices_assigned(u: User) -> Any:
    own = list("abcdef")
    own[1:3] = u.tags
    return own


def global_statement(u: User) -> Any:
    global high
    high = 40
    return u.age < high


def nonlocal_chain(u: User) -> Any:
    total = 0

    def outer() -> None:
        nonlocal total

        def inner() -> None:
            nonlocal total
            total += u.age

        inner()
        inner()

    outer()
    return total


def closure_in_loop(u: User) -> Any:
    return [f() for f in [lambda: u.age + n for n in range(3)]]


def closure_with_defaults(u: User) -> Any:
    return [f() for f in [lambda n=n: u.age + n for n in range(3)]]


def returns_function(u: User) -> Any:
    def inner() -> int:
        return u.age

    return inner() if callable(inner) else None


def compose(u: User) -> Any:
    def composed(*functions: Function) -> Function:
        return lambda value: functools.reduce(lambda found, f: f(found), functions, value)

    return composed(str.strip, str.upper, len)(u.name)


def curried(u: User) -> Any:
    return (lambda a: lambda b: lambda c: a + b + c)(u.age)(2)(low)


def y_combinator(u: User) -> Any:
    fix = lambda f: (lambda x: x(x))(lambda x: f(lambda n: x(x)(n)))
    return fix(lambda again: lambda n: 1 if n < 2 else n * again(n - 1))(len(u.name))


def memo(u: User) -> Any:
    seen: dict[int, int] = {}

    def walk(n: int) -> int:
        if n not in seen:
            seen[n] = n if n < 2 else walk(n - 1) + walk(n - 2)
        return seen[n]

    return walk(abs(u.age) % 15)


def mutual(u: User) -> Any:
    def even(n: int) -> bool:
        return True if n == 0 else odd(n - 1)

    def odd(n: int) -> bool:
        return False if n == 0 else even(n - 1)

    return even(abs(u.age))


def sends(u: User) -> Any:
    generator = counted(10)
    next(generator)
    return generator.send(abs(u.age) % 5), list(generator)


def throws(u: User) -> Any:
    def waits() -> Any:
        try:
            yield 1
        except ValueError:
            yield u.age

    generator = waits()
    next(generator)
    return generator.throw(ValueError)


def closes(u: User) -> Any:
    closed = []

    def waits() -> Any:
        try:
            yield u.age
        finally:
            closed.append(u.name)

    generator = waits()
    next(generator)
    generator.close()
    return closed


def echoes(u: User) -> Any:
    generator = echo()
    next(generator)
    return [generator.send(tag) for tag in u.tags]


def generator_result(u: User) -> Any:
    def inner() -> Any:
        yield 1
        return u.age

    def outer() -> Any:
        found = yield from inner()
        yield found

    return list(outer())


def runs_a_coroutine(u: User) -> Any:
    async def later() -> int:
        return u.age

    coroutine = later()
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value


def runs_a_loop(u: User) -> Any:
    async def later() -> int:
        await asyncio.sleep(0)
        return u.age

    return asyncio.run(later())


def async_comprehension(u: User) -> Any:
    async def tags() -> Any:
        for tag in u.tags:
            yield tag

    async def collect() -> list[str]:
        return [tag async for tag in tags()]

    try:
        collect().send(None)
    except StopIteration as stop:
        return stop.value


def in_a_thread(u: User) -> Any:
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(u.age))
    thread.start()
    thread.join()
    return found


def by_a_queue(u: User) -> Any:
    waiting: queue.Queue[int] = queue.Queue()
    waiting.put(u.age)
    return waiting.get_nowait()


def locks(u: User) -> Any:
    with lock:
        return u.age > 20


def thread_local(u: User) -> Any:
    return u.age > local.least


def context_variable(u: User) -> Any:
    token = context.set(30)
    try:
        return u.age > context.get()
    finally:
        context.reset(token)


def patched(u: User) -> Any:
    with mock.patch.object(limits, "low", 40):
        return u.age > limits.low


def patched_dict(u: User) -> Any:
    with mock.patch.dict(table, {"NO": {"tax": 1}}):
        return table.get(u.country, {"tax": 0})["tax"]


def inner_class(u: User) -> Any:
    class Holder:
        __slots__ = ("age",)

        def __init__(self, age: int) -> None:
            self.age = age

        def __lt__(self, other: Any) -> bool:
            return self.age < other.age

    return Holder(u.age) < Holder(20)


def inner_dataclass(u: User) -> Any:
    @dataclasses.dataclass
    class Row:
        age: int
        double: int = dataclasses.field(init=False)

        def __post_init__(self) -> None:
            self.double = self.age * 2

    return Row(u.age).double


def inner_enum(u: User) -> Any:
    Answer = enum.Enum("Answer", "YES NO")
    return (Answer.YES if u.active else Answer.NO).name


def uses_type(u: User) -> Any:
    return type("Made", (), {"age": u.age, "double": lambda self: self.age * 2})().double()


def uses_locals(u: User) -> Any:
    age = u.age
    return sorted(name for name in locals() if name != "u") == ["age"] and age > 3


def uses_globals(u: User) -> Any:
    return u.age > globals()["low"]


def uses_frames(u: User) -> Any:
    return sys._getframe().f_code.co_name, u.age


def uses_inspect(u: User) -> Any:
    return list(inspect.signature(helper_with_names).parameters), u.age


def helper_with_names(u: User, /, least: int = 20, *more: Any, most: int = 60, **named: Any) -> bool:
    return least < u.age < most and not more and not named


def asserts_type(u: User) -> Any:
    assert isinstance(u.age, int)
    return u.age


def long_chain(u: User) -> Any:
    return (
        "a"
        if u.age < 0
        else "b"
        if u.age < 10
        else "c"
        if u.age < 20
        else "d"
        if u.age < 30
        else "e"
        if u.age < 40
        else "f"
        if u.age < 50
        else "g"
        if u.age < 60
        else "h"
    )


def guard_clauses(u: User) -> Any:
    if not u.active:
        return None
    if not u.tags:
        return []
    if u.address is None:
        return {}
    return u.address.city


def flag_variable(u: User) -> Any:
    found = False
    for tag in u.tags:
        found = found or tag == "x"
    return found


def only_passes(u: User) -> Any:
    pass


def only_a_docstring(u: User) -> Any:
    """Nothing else."""


def ellipsis_body(u: User) -> Any: ...


def yields_itself(u: User) -> Any:
    yield u


def early_return_in_with(u: User) -> Any:
    with contextlib.nullcontext(u.age) as age:
        if age > 20:
            return "old"
    return "young"


def state_machine(u: User) -> Any:
    state = "start"
    for letter in u.name:
        if state == "start" and letter.isupper():
            state = "upper"
        elif state == "upper" and letter.islower():
            state = "lower"
        elif state == "lower" and letter.isupper():
            return "bad"
    return state


def binary_search(u: User) -> Any:
    values, first, last = [-3, 0, 17, 31, 65], 0, 5
    while first < last:
        middle = (first + last) // 2
        if values[middle] < u.age:
            first = middle + 1
        else:
            last = middle
    return first


def sieve(u: User) -> Any:
    numbers = list(range(2, 70))
    for number in numbers:
        numbers = [one for one in numbers if one == number or one % number]
    return u.age in numbers


def roman(u: User) -> Any:
    rest, found = abs(u.age), ""
    for value, letters in ((50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")):
        while rest >= value:
            rest -= value
            found += letters
    return found


def luhn(u: User) -> Any:
    digits = [int(one) for one in str(abs(u.age) * 7919)]
    return sum(sum(divmod(2 * d, 10)) if n % 2 else d for n, d in enumerate(reversed(digits))) % 10


def caesar(u: User) -> Any:
    return "".join(chr((ord(one) - 97 + 3) % 26 + 97) if one.islower() else one for one in u.name)


def run_lengths(u: User) -> Any:
    return [(key, len(list(group))) for key, group in itertools.groupby(u.name + u.country)]


def transposes(u: User) -> Any:
    return list(zip(*[u.name, u.country]))


def histogram(u: User) -> Any:
    return sorted(collections.Counter(u.name + u.country).most_common(2))


def matrix(u: User) -> Any:
    return [[row * column + u.age for column in range(2)] for row in range(2)]


def pascal(u: User) -> Any:
    row = [1]
    for _ in range(len(u.tags)):
        row = [a + b for a, b in zip([0, *row], [*row, 0])]
    return row


@doubled
def decorated_twice(u: User) -> Any:
    return u.age


@with_arguments(3, times=2)
def decorated_with_arguments(u: User, more: int, *, times: int) -> Any:
    return u.age * times + more


@Decorating
def decorated_by_a_class(u: User) -> Any:
    return u.active


@functools.lru_cache(maxsize=2)
def squared(n: int) -> int:
    return n * n


@functools.singledispatch
def described(value: Any) -> str:
    return "any"


@described.register
def _(value: int) -> str:
    return "int"


@described.register(str)
def _(value: Any) -> str:
    return "text"


DEFINED: list[Function] = [
    returns_in_finally, retries, raises_from, reraises, nested_tries, try_else, custom_error, stop_iteration, system_exit,
    warns, suppresses, exit_stack, two_contexts, swallowed_by_exit, while_else, for_else, continues, nested_loops, labelled,
    swaps, star_in_the_middle, nested_unpacking, augmented, augmented_list, own_dict, deletes_item, slices_assigned,
    global_statement, nonlocal_chain, closure_in_loop, closure_with_defaults, returns_function, compose, curried,
    y_combinator, memo, mutual, sends, throws, closes, echoes, generator_result, runs_a_coroutine, runs_a_loop,
    async_comprehension, in_a_thread, by_a_queue, locks, thread_local, context_variable, patched, patched_dict, inner_class,
    inner_dataclass, inner_enum, uses_type, uses_locals, uses_globals, uses_frames, uses_inspect, helper_with_names,
    asserts_type, long_chain, guard_clauses, flag_variable, only_passes, only_a_docstring, ellipsis_body, early_return_in_with,
    state_machine, binary_search, sieve, roman, luhn, caesar, run_lengths, transposes, histogram, matrix, pascal,
    decorated_twice, decorated_with_arguments, decorated_by_a_class,
]  # fmt: skip

TEXTS: list[Function] = [
    lambda u: u.name.capitalize(), lambda u: u.name.swapcase(), lambda u: u.name.center(9, "*"), lambda u: u.name.ljust(5) + "|",
    lambda u: u.name.rjust(5, "."), lambda u: u.name.count("n") > 1, lambda u: u.name.endswith("n"), lambda u: u.name.endswith(("b", "d")),
    lambda u: u.name.find("n", 1), lambda u: u.name.rfind("n"), lambda u: u.name.rindex("n"), lambda u: u.name.isalpha(),
    lambda u: u.name.isascii() and u.name.isprintable(), lambda u: u.name.isidentifier(), lambda u: u.name.istitle(),
    lambda u: u.name.isspace() or u.name.isnumeric(), lambda u: u.name.lstrip("A"), lambda u: u.name.rstrip("bn"), lambda u: u.name.strip("Ann"),
    lambda u: u.name.removeprefix("A"), lambda u: u.name.removesuffix("n"), lambda u: u.name.rpartition("n"), lambda u: u.name.rsplit("n", 1),
    lambda u: u.name.splitlines(), lambda u: u.name.split(), lambda u: (u.name + " x").split(" ", 1)[1], lambda u: u.name.expandtabs(),
    lambda u: u.name.translate({65: "B", 110: None}), lambda u: u.name.translate(str.maketrans("An", "aN")), lambda u: u.name.startswith("n", 1),
    lambda u: u.name.encode("utf-16-le")[:2], lambda u: u.name.encode("ascii", "replace").hex(), lambda u: u.name.__len__() > 2,
    lambda u: u.name.__contains__("n"), lambda u: u.name.__add__("x"), lambda u: u.name.__class__ is str, lambda u: str.__lt__(u.name, "B"),
    lambda u: u.name[1:2], lambda u: u.name[::2], lambda u: u.name[-2:-1], lambda u: u.name[slice(0, 2)], lambda u: u.name[len(u.tags):],
    lambda u: u.name[low - 17 : high - 38], lambda u: (u.name * 3)[4:6], lambda u: "abc"[u.age % 3], lambda u: u.name < u.name.lower(),
    lambda u: u.name == word == "Ann", lambda u: word[0] in u.name, lambda u: u.name in word, lambda u: word in u.name + "Ann",
    lambda u: u.name.lower() in ("ann", "bob") and u.name.upper() not in {"ANN"}, lambda u: u.name.lower().upper().title(),
    lambda u: max(u.name, default="?"), lambda u: min(u.name, u.country), lambda u: sorted(u.name), lambda u: sorted(u.name, key=str.lower, reverse=True),
    lambda u: "".join(sorted(set(u.name))), lambda u: "".join(reversed(u.name)), lambda u: u.name == u.name[::-1], lambda u: len(set(u.name)) == len(u.name),
    lambda u: list(u.name), lambda u: tuple(u.name)[:1], lambda u: dict(enumerate(u.name)), lambda u: dict(zip(u.name, u.country)),
    lambda u: f"{u.name!r}", lambda u: f"{u.name:>8}", lambda u: f"{u.age:+d} {u.age:x} {u.age:,}", lambda u: f"{u.score:.2f}", lambda u: f"{u.score:e}",
    lambda u: f"{u.name:{u.age % 7}}", lambda u: f"{{{u.age}}}", lambda u: f"{u.active!s:5}", lambda u: f"{u.born:%Y-%m}", lambda u: f"{counting:x}",
    lambda u: "%s" % u.name, lambda u: "%(n)s-%(a)03d" % {"n": u.name, "a": u.age}, lambda u: "%r %x" % (u.name, abs(u.age)), lambda u: "%5.1f%%" % u.age,
    lambda u: "{0}{1}{0}".format(u.name, u.age), lambda u: "{n:>5}".format(n=u.name), lambda u: "{0.name}".format(u), lambda u: "{0[0]}".format(u.pair),
    lambda u: "{}".format(u.kind), lambda u: format(u.age, "04d"), lambda u: format(u.name), lambda u: string.Template("$x!").substitute(x=u.name),
    lambda u: string.ascii_letters.find(u.name[:1]), lambda u: textwrap.shorten(u.name + " " + u.country, 4), lambda u: textwrap.indent(u.name, "> "),
    lambda u: re.sub("[aeiou]", "", u.name), lambda u: re.split("n", u.name), lambda u: re.findall(".", u.name), lambda u: re.fullmatch("[A-Z]..", u.name) is None,
    lambda u: [found.start() for found in re.finditer("n", u.name)], lambda u: re.compile(u.name or "x").pattern, lambda u: re.escape(u.name + "."),
    lambda u: (re.search("(?P<first>.)", u.name) or {"first": ""})["first"], lambda u: re.match(r"(\w)(\w)", u.name + "zz").groups(),
    lambda u: unicodedata.name(u.name[:1] or "x"), lambda u: unicodedata.normalize("NFC", u.name), lambda u: html.escape(u.name + "<"),
    lambda u: urllib.parse.quote(u.name + "/ "), lambda u: shlex.quote(u.name), lambda u: fnmatch.fnmatch(u.name, "A*"), lambda u: keyword.iskeyword(u.name),
    lambda u: difflib.SequenceMatcher(None, u.name, "Ann").ratio() > half, lambda u: codecs.encode(u.name, "rot13"), lambda u: ascii(u.name + "é"),
    lambda u: ord(u.name[0]), lambda u: chr(abs(u.age) + 65), lambda u: text.shout() + u.name, lambda u: text == u.name, lambda u: u.name < text, lambda u: text + u.name,
    lambda u: Text(u.name).shout(), lambda u: isinstance(text, str) and u.active, lambda u: u.name.__mul__(2), lambda u: u.name.zfill(6).lstrip("0"),
    lambda u: all(one.isalpha() for one in u.name), lambda u: any(one in "xyz" for tag in u.tags for one in tag), lambda u: sum(map(ord, u.name)),
    lambda u: u.name + u.country * 2 + "".join(u.tags), lambda u: (u.name or "nobody")[0], lambda u: (u.mayor or u.name or "x")[-1:],
]  # fmt: skip

NUMBERS: list[Function] = [
    lambda u: u.age.bit_length(), lambda u: u.age.to_bytes(2, "big", signed=True), lambda u: int.from_bytes(u.blob, "big"), lambda u: u.age.real + u.age.imag,
    lambda u: u.age.numerator, lambda u: u.age.conjugate(), lambda u: u.age.as_integer_ratio(), lambda u: u.age.__add__(3), lambda u: u.age.__eq__(17),
    lambda u: u.age.__lt__("x"), lambda u: u.score.is_integer(), lambda u: u.score.hex(), lambda u: u.score.as_integer_ratio(), lambda u: u.score.__round__(),
    lambda u: u.score != u.score, lambda u: u.score == u.score, lambda u: u.score < 2 or u.score > 2, lambda u: not u.score < 2, lambda u: u.score in (1.0, 9.5),
    lambda u: u.score in [float("nan")], lambda u: u.score is u.score, lambda u: (u.score,) == (u.score,), lambda u: [u.score] == [u.score], lambda u: u.score == 0,
    lambda u: str(u.score), lambda u: repr(-u.score), lambda u: u.score + 0.0, lambda u: u.score * 0, lambda u: u.score // 1, lambda u: u.score % 2, lambda u: u.score ** half,
    lambda u: abs(u.score), lambda u: round(u.score), lambda u: int(u.score), lambda u: float(str(u.score)), lambda u: complex(u.age, 1), lambda u: complex(u.score).real,
    lambda u: math.copysign(1, u.score), lambda u: math.trunc(u.score), lambda u: math.ceil(u.score), lambda u: math.fmod(u.age, 7), lambda u: math.gcd(u.age, 34),
    lambda u: math.hypot(u.age, 4), lambda u: math.isclose(u.score, 1.0), lambda u: math.isinf(u.score), lambda u: math.log(u.age), lambda u: math.exp(u.age / 10),
    lambda u: math.factorial(u.age), lambda u: math.comb(abs(u.age), 2), lambda u: math.prod([u.age, 2, 3]), lambda u: math.fsum([u.score, 0.1, 0.1]), lambda u: math.dist([u.age], [3]),
    lambda u: math.degrees(u.age), lambda u: math.frexp(u.score), lambda u: math.modf(u.score), lambda u: math.isqrt(u.age), lambda u: math.sin(u.age) < 0, lambda u: cmath.sqrt(u.age),
    lambda u: pow(u.age, 3, 7), lambda u: pow(2, u.age), lambda u: pow(u.age, -1, 7), lambda u: divmod(u.age, 7), lambda u: divmod(u.score, 2), lambda u: u.age % -7,
    lambda u: -u.age // 7, lambda u: -(u.age // 7), lambda u: u.age / 7 * 7 == u.age, lambda u: u.age - low * 2 + 1, lambda u: (u.age - low) * (u.age + low), lambda u: u.age * half,
    lambda u: u.age & 1, lambda u: u.age | 8, lambda u: u.age ^ u.age, lambda u: ~u.age, lambda u: u.age >> 1, lambda u: 1 << abs(u.age) % 8, lambda u: u.age << u.level,
    lambda u: u.age == True, lambda u: u.age + True, lambda u: u.active + u.active, lambda u: u.active * u.age, lambda u: u.active < 1, lambda u: -u.active, lambda u: sum([u.active, True]),
    lambda u: bin(u.age), lambda u: hex(u.age), lambda u: oct(u.age), lambda u: int(hex(u.age), 16), lambda u: int("z", 36) > u.age, lambda u: float("inf") > u.age,
    lambda u: u.age > float("nan"), lambda u: u.age < 10**100, lambda u: u.age > -(10**100), lambda u: u.age == 17.0, lambda u: u.age == 17 + 0j, lambda u: u.age == decimal.Decimal(17),
    lambda u: u.age == fractions.Fraction(34, 2), lambda u: u.price == 3, lambda u: u.price == 3.0, lambda u: u.price + 1, lambda u: 1 + u.price, lambda u: u.price / 7,
    lambda u: u.price.quantize(decimal.Decimal("0.1")), lambda u: u.price.sqrt(), lambda u: u.price.as_tuple(), lambda u: round(u.price, 1), lambda u: u.price.copy_negate(),
    lambda u: u.price < decimal.Decimal("Infinity"), lambda u: u.price.compare(decimal.Decimal(4)), lambda u: str(u.price), lambda u: f"{u.price:.3f}", lambda u: int(u.price) + u.age,
    lambda u: decimal.Decimal(u.age) + u.price, lambda u: decimal.Decimal(str(u.score)), lambda u: decimal.Decimal(u.name), lambda u: fractions.Fraction(u.age, 3),
    lambda u: fractions.Fraction(u.age).limit_denominator(2), lambda u: min(u.age, u.score), lambda u: max([u.age, low, high]), lambda u: max(u.age, u.age + 1, key=lambda n: -n),
    lambda u: min((u.age, 3), (3, u.age)), lambda u: sum(range(u.age)), lambda u: sum([[u.age]], []), lambda u: sum((1, 2), u.age), lambda u: sum(n for n in range(u.age) if n % 3 == 0),
    lambda u: len(range(u.age)), lambda u: u.age in range(0, 100, 17), lambda u: range(u.age)[-1], lambda u: list(range(3, u.age, 20)), lambda u: range(u.age) == range(17),
    lambda u: statistics.median([u.age, low, high]), lambda u: statistics.pstdev([u.age, 3]), lambda u: bisect.bisect([0, 17, 31], u.age), lambda u: heapq.nlargest(2, [u.age, 3, 20]),
    lambda u: numbers.Number in type(u.age).__mro__, lambda u: isinstance(u.age, numbers.Integral), lambda u: struct.pack("<h", u.age), lambda u: struct.unpack("<h", struct.pack("<h", u.age))[0],
    lambda u: random.Random(u.age).random(), lambda u: random.Random(3).choice([u.age, 5]), lambda u: number < u.age, lambda u: u.age < number, lambda u: number == u.age, lambda u: number + u.age,
    lambda u: 1 if u.age else 0, lambda u: 0 < u.age, lambda u: 0 < u.age < 20 < high, lambda u: u.age < 5 < u.score, lambda u: u.age == u.age == 17, lambda u: u.age != u.age + 0, lambda u: not not u.age,
]  # fmt: skip

TIMES: list[Function] = [
    lambda u: u.born.toordinal(), lambda u: u.born.isocalendar()[1], lambda u: u.born.strftime("%d.%m.%Y"), lambda u: u.born.timetuple().tm_yday, lambda u: u.born.ctime(),
    lambda u: (dt.date(2020, 1, 1) - u.born).days // 365, lambda u: u.born - dt.timedelta(1), lambda u: u.born.replace(day=31, month=2), lambda u: u.born == dt.date(2000, 1, 1),
    lambda u: u.born in {dt.date(2000, 1, 1)}, lambda u: dt.date(1999, 1, 1) < u.born < dt.date(2001, 1, 1), lambda u: u.born.month == 1 == u.born.day, lambda u: u.born.isoweekday() in (6, 7),
    lambda u: dt.date.fromisoformat(u.born.isoformat()), lambda u: dt.date.fromordinal(u.born.toordinal() + 1), lambda u: dt.date(u.born.year, 12, 24), lambda u: dt.datetime.combine(u.born, dt.time(3)),
    lambda u: u.born < u.seen, lambda u: u.born == u.seen, lambda u: u.seen.timestamp(), lambda u: u.seen.tzinfo is UTC, lambda u: u.seen.utcoffset(), lambda u: u.seen.astimezone(dt.timezone(dt.timedelta(hours=5))).hour,
    lambda u: u.seen.replace(tzinfo=None) < dt.datetime(2019, 6, 1), lambda u: u.seen < now + dt.timedelta(days=low), lambda u: now - u.seen > dt.timedelta(0), lambda u: abs(now - u.seen).days,
    lambda u: u.seen.time() == dt.time(0), lambda u: u.seen.weekday(), lambda u: u.seen.isoformat(timespec="hours"), lambda u: u.seen.year == now.year, lambda u: max(u.seen, now), lambda u: sorted([u.seen, now])[0],
    lambda u: u.spent * 2, lambda u: u.spent / 2, lambda u: u.spent // dt.timedelta(hours=5), lambda u: u.spent % dt.timedelta(hours=7), lambda u: -u.spent, lambda u: bool(u.spent), lambda u: u.spent.days > 1,
    lambda u: u.spent + u.spent, lambda u: u.seen + u.spent, lambda u: sum([u.spent, u.spent], dt.timedelta()), lambda u: u.spent < dt.timedelta(days=1) or u.active, lambda u: str(u.spent), lambda u: divmod(u.spent, dt.timedelta(hours=5)),
    lambda u: dt.timedelta(days=u.age) > u.spent, lambda u: calendar.monthrange(u.born.year, u.born.month)[1], lambda u: calendar.isleap(u.born.year), lambda u: time.gmtime(0).tm_year < u.age, lambda u: time.strftime("%Y", time.gmtime(u.age * 10**7)),
]  # fmt: skip

PROTOCOLS: list[Function] = [
    lambda u: counting(u), lambda u: counting.method(u), lambda u: counting.method(u, 3, times=2), lambda u: counting.twice(u), lambda u: counting.kind(u.age), lambda u: counting.kind(u.name), lambda u: counting.plain(u),
    lambda u: counting.made(u), lambda u: Counting.made(u), lambda u: counting.cached + u.age, lambda u: counting.least < u.age, lambda u: counting.failing, lambda u: getattr(counting, "failing", u.age), lambda u: u.age in counting,
    lambda u: u.age in list(counting), lambda u: len(counting) < u.age, lambda u: counting["least"] < u.age, lambda u: counting[0] < u.age, lambda u: counting[u.age], lambda u: bool(counting) or u.active, lambda u: counting or u.age,
    lambda u: not counting, lambda u: u.tags[counting], lambda u: [1, u.age][counting], lambda u: int(counting) + u.age, lambda u: float(counting) < u.age, lambda u: counting == u.age, lambda u: u.age == counting, lambda u: counting != u.age,
    lambda u: hash(counting) == u.age, lambda u: counting < u.age, lambda u: u.age < counting, lambda u: counting + u.age, lambda u: u.age + counting, lambda u: -counting < u.age, lambda u: counting @ u.age, lambda u: u.age @ counting,
    lambda u: str(counting) + u.name, lambda u: list(reversed(counting)) + u.tags, lambda u: abs(counting) < u.age, lambda u: round(counting) < u.age, lambda u: sum(counting) + u.age, lambda u: max(counting) < u.age, lambda u: sorted(counting)[1] == u.age,
    lambda u: [*counting, u.age], lambda u: dict.fromkeys(counting, u.age), lambda u: any(one == u.age for one in counting), lambda u: [one for one in counting if one < u.age], lambda u: lazy.anything < u.age, lambda u: lazy.missing, lambda u: hasattr(lazy, "missing") or u.age,
    lambda u: derived.test(u), lambda u: derived.run(u), lambda u: Base.run(derived, u), lambda u: Derived().test(u), lambda u: isinstance(derived, Base) and u.active, lambda u: "NO" in Made, lambda u: u.country in Made, lambda u: Made(u), lambda u: Made[u.age], lambda u: Made.least < u.age,
    lambda u: Version(u.age) < Version(17, 1), lambda u: Version(1, u.age).bumped().minor, lambda u: sorted([Version(u.age), Version(3)])[0].major, lambda u: hash(Version(u.age)) == hash(Version(u.age)), lambda u: Length(u.name) <= Length("xx"), lambda u: Length(u.name) > Length(u.country),
    lambda u: Pair(u.age).right, lambda u: Pair(u.age, u.name)._asdict(), lambda u: Pair(u.name, 3)._replace(left=u.age), lambda u: Pair(1, 2) < Pair(u.age, 0), lambda u: Pair._fields + (u.name,), lambda u: Pair(*u.pair).left, lambda u: Pair(**{"left": u.age}), lambda u: Pair(u.age) == (u.age, 0),
    lambda u: Colour.RED in Colour.BOTH and u.active, lambda u: (Colour(u.age % 4) & Colour.RED) == Colour.RED, lambda u: Colour.RED | Colour.BLUE is Colour.BOTH, lambda u: Limit.YOUNG <= u.age < Limit.OLD, lambda u: Limit.OLD.holds(u), lambda u: Limit.YOUNG.double > u.age, lambda u: Limit.default() > u.age,
    lambda u: Limit(18) is Limit.YOUNG and u.active, lambda u: Limit["OLD"] > u.age, lambda u: u.age in list(Limit), lambda u: len(Kind) + u.age, lambda u: Kind(1) is u.kind, lambda u: Kind["A"] == u.kind, lambda u: u.kind.name + u.name, lambda u: u.kind.value * 2, lambda u: u.kind in Kind, lambda u: list(Kind).index(u.kind),
    lambda u: u.kind in (Kind.B, Kind.C), lambda u: u.kind not in [Kind.A], lambda u: u.kind is Kind.A or u.kind is Kind.B, lambda u: u.kind is Kind.A and u.active is True, lambda u: {Kind.A: "a", Kind.B: "b"}.get(u.kind), lambda u: {Kind.A: "a"}[u.kind], lambda u: u.level == 9, lambda u: u.level is Level.LOW, lambda u: Level.HIGH >= u.level,
    lambda u: u.level in (Level.LOW,), lambda u: u.level * 2 + u.age, lambda u: Level(u.age), lambda u: u.level.name.lower(), lambda u: isinstance(u.level, int), lambda u: isinstance(u.kind, enum.Enum), lambda u: type(u.kind) is Kind, lambda u: str(u.level.value), lambda u: weak().number < u.age, lambda u: proxy.number < u.age, lambda u: weak() is counting and u.active,
    lambda u: typing.cast("int", u.age) > 3, lambda u: typing.get_type_hints(User)["age"] is int and u.active, lambda u: dataclasses.fields(u)[1].name, lambda u: dataclasses.is_dataclass(u), lambda u: dataclasses.asdict(u)["name"], lambda u: dataclasses.replace(u, name="x", age=u.age * 2), lambda u: dataclasses.replace(u), lambda u: copy.copy(u).age, lambda u: copy.deepcopy(u) == u,
    lambda u: pickle.loads(pickle.dumps(u.pair)), lambda u: json.loads(json.dumps(u.marks)), lambda u: json.dumps({"a": u.age, "t": u.tags}, sort_keys=True), lambda u: u.__class__.__name__, lambda u: type(u)(u.name, u.age), lambda u: User(u.name, u.age) == u, lambda u: User.__eq__(u, u), lambda u: u.__eq__(3), lambda u: u != u, lambda u: u.__repr__()[:8],
]  # fmt: skip

CONTAINERS: list[Function] = [
    lambda u: u.tags + list("ab"), lambda u: u.tags * 0, lambda u: u.tags[::-1], lambda u: u.tags[-1:], lambda u: u.tags[:-1], lambda u: u.tags[5:], lambda u: u.tags == ["x"], lambda u: u.tags < ["y"], lambda u: u.tags >= [], lambda u: u.tags != u.tags[:], lambda u: not u.tags, lambda u: u.tags or "none",
    lambda u: u.tags and u.tags[0], lambda u: u.tags.count(""), lambda u: u.tags.copy(), lambda u: u.tags.index("y"), lambda u: list(u.tags) is u.tags, lambda u: len(u.tags) == len(set(u.tags)), lambda u: set(u.tags) <= {"x", "y"}, lambda u: set(u.tags) | {"q"} >= {"q"}, lambda u: {"x"}.issubset(u.tags), lambda u: {"x"}.isdisjoint(u.tags),
    lambda u: {"x", "y"}.intersection(u.tags), lambda u: set(u.tags) - {"x"}, lambda u: set(u.tags) ^ {"x"}, lambda u: frozenset(u.tags) == frozenset(["x"]), lambda u: frozenset(u.tags) in {frozenset(["x"])}, lambda u: sorted(u.tags, key=lambda tag: (len(tag), tag)), lambda u: sorted(u.marks.items()), lambda u: sorted(u.marks, key=u.marks.get),
    lambda u: max(u.marks.values(), default=0), lambda u: sum(u.marks.values(), 1), lambda u: list(u.marks.items()), lambda u: dict(u.marks, z=u.age), lambda u: u.marks | {"q": 1}, lambda u: {**u.extra, "age": u.age}["age"], lambda u: {k: v * 2 for k, v in u.marks.items()}, lambda u: {v: k for k, v in u.marks.items()},
    lambda u: [k for k in u.marks if u.marks[k] > 2], lambda u: u.marks.get("m"), lambda u: u.marks.get("m", u.age), lambda u: "m" in u.marks and u.marks["m"] > 2, lambda u: u.marks.keys() & {"m"}, lambda u: "m" in u.marks.keys(), lambda u: 3 in u.marks.values(), lambda u: ("m", 3) in u.marks.items(), lambda u: len(u.marks) or None,
    lambda u: u.marks == {"m": 3}, lambda u: u.marks != {}, lambda u: not u.marks, lambda u: next(iter(u.marks), "-"), lambda u: list(reversed(list(u.marks))), lambda u: u.extra.get("a") == 3, lambda u: u.extra.get("b", "").upper(), lambda u: u.extra["a"] or 0, lambda u: u.extra == {"a": None}, lambda u: (u.extra.get("a") or 0) > 1, lambda u: isinstance(u.extra.get("a"), float),
    lambda u: u.pair + (3,), lambda u: u.pair * 2, lambda u: u.pair[0] + u.age, lambda u: u.pair[1].upper(), lambda u: u.pair[::-1], lambda u: u.pair < (2, "a"), lambda u: (2, "y") == u.pair, lambda u: u.pair in {(1, "x"): 3}, lambda u: u.pair.index("x"), lambda u: len(u.pair), lambda u: (*u.pair, u.age), lambda u: dict([u.pair]), lambda u: list(u.pair), lambda u: max(u.pair[0], 2),
    lambda u: u.blob + b"c", lambda u: u.blob[:1], lambda u: u.blob[0], lambda u: u.blob.hex(), lambda u: u.blob.decode(), lambda u: u.blob > b"a", lambda u: b"a" + u.blob == b"aab", lambda u: list(u.blob), lambda u: 97 in u.blob, lambda u: u.blob.startswith(b"a"), lambda u: bytes(reversed(u.blob)), lambda u: bytearray(u.blob), lambda u: memoryview(u.blob).nbytes, lambda u: hashlib.md5(u.blob).hexdigest(), lambda u: zlib.crc32(u.blob), lambda u: base64.b64encode(u.blob), lambda u: binascii.hexlify(u.blob),
    lambda u: u.id.int % 2, lambda u: u.id == uuid.UUID(int=1), lambda u: u.id < uuid.UUID(int=2), lambda u: str(u.id)[-1], lambda u: u.id.bytes[-1], lambda u: u.id in {uuid.UUID(int=2)}, lambda u: u.id.version, lambda u: uuid.uuid5(u.id, "x"), lambda u: [home.city for home in u.homes if home.zip], lambda u: {home.city: home.zip for home in u.homes}, lambda u: len(u.homes) > 1,
    lambda u: u.homes[0].city, lambda u: u.homes[-1].city if u.homes else None, lambda u: (u.homes or [Address("none")])[0].city, lambda u: any(home.zip is None for home in u.homes), lambda u: all(home.city > "B" for home in u.homes), lambda u: sum(len(home.city) for home in u.homes), lambda u: max((home.city for home in u.homes), default=""), lambda u: sorted(home.city for home in u.homes), lambda u: Address("Oslo") in u.homes, lambda u: u.homes == [Address("Rome")], lambda u: u.homes.count(Address("Oslo")), lambda u: u.homes and u.homes[0].is_in("Oslo", "Rome"), lambda u: [home.is_in("Rome") for home in u.homes],
    lambda u: any(home.city == "Bonn" and home.zip == "5" for home in u.homes), lambda u: next((home for home in u.homes if home.zip), None), lambda u: [(n, home.city) for n, home in enumerate(u.homes)], lambda u: {home.city for home in u.homes}, lambda u: list(filter(lambda home: home.zip is not None, u.homes)), lambda u: list(map(lambda home: home.city.lower(), u.homes)), lambda u: functools.reduce(lambda found, home: found + home.city, u.homes, ""), lambda u: collections.Counter(home.city for home in u.homes),
]  # fmt: skip

OPTIONALS: list[Function] = [
    lambda u: u.mayor is None or len(u.mayor) > 2, lambda u: u.mayor is not None and u.mayor.startswith("A"), lambda u: (u.mayor or "").lower() == "ann", lambda u: (u.mayor if u.mayor else "?") * 2, lambda u: u.mayor and u.mayor[0], lambda u: not u.mayor, lambda u: u.mayor == u.name, lambda u: u.mayor != none, lambda u: u.mayor is none, lambda u: none is None and u.mayor is None,
    lambda u: [u.mayor, u.name][u.mayor is None], lambda u: {None: "none"}.get(u.mayor, "some"), lambda u: u.mayor in names, lambda u: u.mayor in (none, "Bea"), lambda u: (u.mayor, u.age) == (None, 31), lambda u: (u.mayor is None, u.mayor or ""), lambda u: len(u.mayor or ""), lambda u: str(u.mayor), lambda u: isinstance(u.mayor, str), lambda u: type(u.mayor) is type(None), lambda u: bool(u.mayor) is False,
    lambda u: u.mayor is None is True, lambda u: (u.mayor is None) == (u.address is None), lambda u: (u.mayor is None) != u.active, lambda u: u.mayor is None if u.active else u.mayor is not None, lambda u: 1 if u.mayor is None else 2 if u.mayor == "" else 3, lambda u: [x for x in (u.mayor, u.name) if x is not None], lambda u: sum(x is None for x in (u.mayor, u.address)), lambda u: all(x is not None for x in (u.mayor, u.address)), lambda u: any([u.mayor is None, u.address is None]),
    lambda u: next(x for x in (u.mayor, u.name) if x is not None), lambda u: u.address and u.address.city, lambda u: u.address.city if u.address else "none", lambda u: u.address is not None and u.address.zip is None, lambda u: None if u.address is None else u.address.zip and u.address.zip > "4", lambda u: getattr(u.address, "city", "none"), lambda u: u.address is not None and u.address in u.homes, lambda u: u.address == none, lambda u: (u.address or Address("x")).city, lambda u: u.address is not None and u.address.is_in(*names),
    lambda u: u.address is not None and (u.address.city, u.address.zip) == ("Bonn", "5"), lambda u: u.address is None or not u.address.city, lambda u: [] if u.address is None else list(u.address.city), lambda u: dataclasses.asdict(u.address) if u.address else {}, lambda u: u.capital == "BEA", lambda u: u.capital is None, lambda u: (u.capital or "").isupper(), lambda u: u.capital and u.capital.lower() == u.mayor, lambda u: u.first_tag or u.initial, lambda u: u.initial + u.first_tag, lambda u: u.initial == u.name[:1],
    lambda u: u.anything is None or u.anything == 3, lambda u: isinstance(u.anything, str) and u.anything.upper(), lambda u: isinstance(u.anything, list) and len(u.anything), lambda u: u.anything == u.anything, lambda u: u.anything or u.age, lambda u: u.anything and 1, lambda u: not u.anything, lambda u: bool(u.anything), lambda u: u.anything is False, lambda u: type(u.anything).__name__, lambda u: str(u.anything), lambda u: [u.anything], lambda u: {"a": u.anything}, lambda u: u.anything in (None, 3), lambda u: u.anything in [[1], True], lambda u: u.anything in {None: 1},
    lambda u: u.anything < 4 if isinstance(u.anything, int) else None, lambda u: u.anything + 1, lambda u: u.anything[0], lambda u: len(u.anything), lambda u: list(u.anything), lambda u: u.anything(), lambda u: -u.anything, lambda u: u.anything.x.y, lambda u: u.anything is u.anything, lambda u: u.anything != None, lambda u: u.age + 1 if u.anything is None else u.age - 1, lambda u: callable(u.anything), lambda u: repr(u.anything) == "3", lambda u: json.dumps(u.anything),
]  # fmt: skip

CAPTURED: list[Function] = [
    lambda u: u.age > limits.low, lambda u: limits.low < u.age < limits.high, lambda u: u.name.startswith(limits.inner.word), lambda u: table.get(u.country, {"tax": 0})["tax"], lambda u: table[u.country]["tax"], lambda u: u.country in table, lambda u: switch[u.active], lambda u: switch[u.age > 20], lambda u: names[u.age > 20], lambda u: names[0] == u.name, lambda u: u.name in names or u.country in countries,
    lambda u: countries & {u.country}, lambda u: u.country in countries - {"SE"}, lambda u: u.country in sorted(countries), lambda u: len(countries) < u.age, lambda u: [*names, u.name], lambda u: dict(zip(names, u.tags)), lambda u: frozen["least"] < u.age, lambda u: frozen.get("most", 50) > u.age, lambda u: collatz(abs(u.age)), lambda u: fibonacci(abs(u.age) % 10), lambda u: ackermann(1, len(u.tags)), lambda u: list(counted(len(u.name))),
    lambda u: list(flattened([u.age, [u.name, [u.tags]]])), lambda u: squared(u.age), lambda u: squared.__wrapped__(u.age), lambda u: described(u.age), lambda u: described(u.name), lambda u: described(u), lambda u: helper_with_names(u), lambda u: helper_with_names(u, 10), lambda u: helper_with_names(u, 10, 3), lambda u: helper_with_names(u, most=30), lambda u: helper_with_names(u, other=3), lambda u: helper_with_names(u=u), lambda u: helper_with_names(*[u, 3], **{"most": 40}),
    lambda u: functools.partial(helper_with_names, most=30)(u), lambda u: functools.partial(pow, 2)(u.age), lambda u: functools.partial(isinstance, u.age)(int), lambda u: functools.reduce(operator.mul, [u.age, 2, 3]), lambda u: functools.reduce(max, u.tags, ""), lambda u: functools.cmp_to_key(lambda a, b: a - b)(u.age) < functools.cmp_to_key(lambda a, b: a - b)(20), lambda u: sorted([u.age, 3], key=functools.cmp_to_key(lambda a, b: b - a)), lambda u: functools.lru_cache(None)(lambda n: n * 2)(u.age),
    lambda u: operator.add(u.age, 3), lambda u: operator.and_(u.age, 1), lambda u: operator.truth(u.tags), lambda u: operator.is_(u.kind, Kind.A), lambda u: operator.is_not(u.mayor, None), lambda u: operator.countOf(u.tags, "x"), lambda u: operator.indexOf(u.tags, "x"), lambda u: operator.concat(u.name, "x"), lambda u: operator.getitem(u.pair, 1), lambda u: operator.eq(u.age, 17), lambda u: operator.ge(u.name, "B"), lambda u: operator.neg(u.age), lambda u: operator.pow(u.age, 2), lambda u: operator.floordiv(u.age, 3), lambda u: operator.index(u.age), lambda u: operator.length_hint(u.tags), lambda u: operator.attrgetter("name", "age")(u), lambda u: operator.itemgetter(0, 1)(u.pair), lambda u: operator.itemgetter(slice(1))(u.name), lambda u: operator.methodcaller("upper")(u.name),
    lambda u: list(itertools.accumulate([u.age, 1, 2])), lambda u: list(itertools.chain.from_iterable([u.tags, u.name])), list and (lambda u: list(itertools.combinations(u.tags, 2))), lambda u: list(itertools.compress(u.name, [1, 0, 1])), lambda u: list(itertools.dropwhile(str.isupper, u.name)), lambda u: list(itertools.takewhile(lambda c: c != "n", u.name)), lambda u: list(itertools.filterfalse(None, u.tags)), lambda u: list(itertools.islice(itertools.count(u.age), 3)), lambda u: list(itertools.islice(itertools.cycle(u.tags or [""]), 4)), lambda u: list(itertools.permutations(u.tags)), lambda u: list(itertools.product(u.tags, "ab")), lambda u: list(itertools.repeat(u.age, 2)), lambda u: list(itertools.starmap(pow, [(u.age, 2)])), lambda u: list(itertools.zip_longest(u.tags, u.name)), lambda u: [list(one) for one in itertools.tee(u.tags)],
    lambda u: list(zip(u.tags, u.tags[1:])), lambda u: list(map(len, u.tags)), lambda u: list(map(lambda a, b: (a, b), u.tags, u.name)), lambda u: list(filter(str.isalpha, u.name)), lambda u: [tag for tag in u.tags if tag for _ in range(2)], lambda u: [[a for a in tag] for tag in u.tags], lambda u: {a: {b for b in u.name} for a in u.tags}, lambda u: [x := u.age, x + 1], lambda u: [y for tag in u.tags if (y := tag.upper())], lambda u: (z := len(u.tags)) and z * 2, lambda u: any((w := tag) == "y" for tag in u.tags) and w, lambda u: list((lambda: (yield u.age))()), lambda u: (lambda *a, **k: (a, k))(u.age, n=u.name), lambda u: (lambda a=u.age: a)(), lambda u: (lambda a, /, b, *, c: a + b + c)(1, u.age, c=3), lambda u: [f(u.age) for f in (abs, float, str, bool)], lambda u: {"age": lambda: u.age}["age"](),
    lambda u: eval("u.age + 1"), lambda u: eval("low") + u.age, lambda u: exec("x = u.age", {"u": u}), lambda u: compile("1", "x", "eval") and u.active, lambda u: types.FunctionType((lambda v: v.age).__code__, {})(u), lambda u: types.MethodType(lambda self, n: self.age + n, u)(3), lambda u: types.SimpleNamespace(age=u.age).age > 3, lambda u: types.MappingProxyType(u.marks).get("m"), lambda u: vars(limits)["low"] < u.age, lambda u: getattr(limits, "l" + "ow") < u.age, lambda u: getattr(u, "na" + "me").lower(), lambda u: getattr(u, {"a": "age"}["a"]) > 3, lambda u: u.__getattribute__("age"), lambda u: object.__getattribute__(u, "name"), lambda u: setattr(limits, "low", 10) or u.active,
    lambda u: isinstance(u, (int, User)), lambda u: issubclass(type(u), User), lambda u: callable(u.older), lambda u: u.older(limits.low), lambda u: u.older.__func__(u, 20), lambda u: User.adult.__get__(u), lambda u: User.twice(u.age), lambda u: u.limit() + u.LIMIT, lambda u: type(u).LIMIT < u.age, lambda u: dir(u)[0] < "b", lambda u: id(u.name) == id(u.name), lambda u: hash((u.name, u.age)) == hash((u.name, u.age)), lambda u: sys.intern(u.name) == u.name, lambda u: sys.version_info > (3, 8) and u.active, lambda u: os.path.join("a", u.name), lambda u: os.path.splitext(u.name + ".x")[0], lambda u: pathlib.PurePosixPath("a") / u.name, lambda u: pathlib.PurePosixPath(u.name + ".x").suffix, lambda u: io.StringIO(u.name).read(2), lambda u: io.BytesIO(u.blob).getvalue(), lambda u: inspect.isfunction(u.older), lambda u: collections.deque(u.tags, 1), lambda u: collections.OrderedDict(u.marks) == u.marks, lambda u: collections.ChainMap(u.marks, {"z": 1})["z"], lambda u: collections.defaultdict(list, a=u.tags)["a"], lambda u: collections.UserList(u.tags)[:1], lambda u: asyncio.iscoroutinefunction(u.older),
    lambda u: mock.sentinel.one is mock.sentinel.one and u.active, lambda u: mock.Mock(age=3).age < u.age, lambda u: mock.MagicMock(__len__=lambda self: 3).__len__() < u.age, lambda u: mock.call(u.age) == mock.call(17), lambda u: mock.ANY == u.age, lambda u: u.age == mock.ANY, lambda u: u.name in [mock.ANY], lambda u: (u.age, mock.ANY) == (17, "x"),
]  # fmt: skip

OBJECTS: list[Function] = [
    counting, counting.method, counting.twice, counting.plain, counting.made, Counting.made, Counting(60), derived.test, derived.run, Limit.OLD.holds, Made, squared, described, str, bool, hash, callable,
    functools.partial(helper_with_names, most=30), functools.partial(counting.method, more=3), functools.partial(functools.partial(pow, 2), mod=None), functools.partial(getattr, limits), operator.attrgetter("address"), operator.attrgetter("kind.value"), operator.attrgetter("nothing"), operator.itemgetter(0), operator.methodcaller("older", 30), operator.methodcaller("limit"), operator.methodcaller("nothing"), operator.truth, operator.not_, operator.index, repr, ascii, type, id, vars, dir, len, iter, dataclasses.asdict, dataclasses.astuple, copy.copy, json.dumps, pickle.dumps, User.limit, User.twice, User.adult.fget, User.__repr__, User.__str__,
    mock.Mock(return_value=3), mock.Mock(side_effect=ValueError), mock.MagicMock(spec=["x"]), mock.Mock(side_effect=lambda u: u.age > 20), mock.create_autospec(helper_with_names, return_value=True), types.MethodType(helper_with_names, limits), Decorating(lambda u: u.age), with_arguments(1)(lambda u, n: u.age + n), eval("lambda u: u.age > 20"), eval("lambda u, n=3: u.age > n", {}), types.FunctionType((lambda u: u.age).__code__, {"__builtins__": {}}), doubled(len), staticmethod(helper_with_names).__func__, lock.acquire, weak, proxy,
    lambda u, least=20: u.age > least, lambda u, *, least=20: u.age > least, lambda u, /: u.age, lambda u, /, least=20, *more, most=60, **named: (least, most, more, named, u.age), lambda *args: args[0].name, lambda *args, **named: len(args) + len(named), lambda u=None: u is not None and u.age, lambda value: value.name, lambda _: _.age, lambda self: self.age, lambda u, names=names: u.name in names, lambda u, cache={}: cache.setdefault("x", 3) < u.age, lambda u, f=lambda v: v.age: f(u), lambda u, f=len: f(u.tags), lambda u, n=None: n is None or u.age > n, lambda u, kinds=(Kind.A,): u.kind in kinds, lambda u, flag=True: flag and u.active, lambda u, f=None: (f or helper_with_names)(u),
]  # fmt: skip

GROUPS: dict[str, list[Function]] = {
    "defined": DEFINED, "texts": TEXTS, "numbers": NUMBERS, "times": TIMES, "protocols": PROTOCOLS, "containers": CONTAINERS, "optionals": OPTIONALS, "captured": CAPTURED, "objects": OBJECTS,
}  # fmt: skip

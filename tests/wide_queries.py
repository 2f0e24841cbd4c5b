# ruff: noqa: E501  # lists of expressions
"""Random queries of the model of `wide_records`, as source, and what they are of over a list."""

from __future__ import annotations

import collections
import enum
import functools
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from random import Random
from typing import Any
from unicodedata import normalize
from uuid import UUID

from plain_rows import ByKey, Pairs, Records, Rows
from wide_records import CITIES, DAYS, DECS, KEYS, MOMENTS, OF_OWNER, TEXTS, UIDS, Kind, Shape, Spec

from zlmdb import desc

# fmt: off
CONDITIONS = [
    "v.n == n", "v.n > n", "n <= v.n < n + 3", "v.n in ns", "v.n not in ns", "v.n != n", "v.n in (n, 4)", "not v.n < n", "n == v.n or v.n == 2", "v.n >= n - 0.5",
    "v.m is None", "v.m is not None", "v.m == n", "v.m in ns", "v.m in (None, n)", "(v.m is not None and v.m > n)", "(v.m is not None and v.m * 2 == n)", "(v.m or 0) > n", "v.m", "v.m != n",
    "v.kind is kind", "v.kind == kind", "v.kind in (Kind.A, kind)", "v.kind is not Kind.A", "v.kind.value > 'a'", "v.kind in kinds",
    "v.name == w", "v.name in ws", "v.name.startswith(w[:1])", "v.name > w", "v.name.casefold() == w.casefold()", "v.name.upper() == w.upper()", "v.name.upper().startswith(w[:1].upper())",
    "normalize('NFKC', v.name).casefold() == normalize('NFKC', w).casefold()", "fold(v.name) == fold(w)", "fold(v.name) in (fold(w), 'ab')", "v.name.lower() == w.lower()", "w <= v.name.casefold() <= 'c'",
    "v.price > 0.15", "v.price == 0.0", "v.price < 1.0", "v.price in (0.1, 1)", "v.price <= n", "(v.cost is not None and v.cost < 1.0)", "v.cost == 0.3", "v.cost is not None", "v.cost is None",
    "v.day.year < 2000", "v.day.year >= 1994 + n", "v.day.year == 1997 + n", "1999 >= v.day.year", "v.day.year == 1999 and v.day >= day", "v.day.year > 1999 or v.n == n", "v.day.year != 1999",
    "(v.day.year == 1997 + n and v.day.month == 1)", "(v.day.month == n and v.day.year == 2000)", "(v.day.year == 2000 and v.day.month == 1 and v.day.day == n)", "(v.at is not None and v.at.year == 2000 and v.at.month == n)", "(v.at is not None and v.at.year == at.year and at.month == v.at.month and v.at.day == at.day)", "v.name[:1] == w[:1]", "v.name[:n] == w", "w == v.name[0:2]", "v.name.casefold()[:1] == c[:1].casefold()", "v.name[:-1] == w[:1]",
    "(v.at is not None and v.at.date() == day)", "(v.at is not None and v.at.date() > day)", "(v.at is not None and day > v.at.date())", "(v.at is not None and v.at.year == 1997 + n)", "v.at is not None and v.at.date() <= day and v.at > at",
    "(v.n, v.m) in ((n, 2), (1, None), (2, n))", "(v.n, v.name) in {(n, w), (2, c), (3,)}", "(v.kind, v.day) in [(kind, day), (Kind.A, date(2000, 1, 2))]", "(v.m, v.n) in {(n, 2): 1}",
    "v.day == day", "v.day > day", "v.day in (day, date(2000, 1, 2))", "v.day.year == 1999", "v.at == at", "(v.at is not None and v.at > at)", "(v.at is not None and v.at <= at)", "v.at is None",
    "x in v.tags", "any(one == x for one in v.tags)", "any(one.startswith(x) for one in v.tags)", "any(one > x for one in v.tags)", "all(one != x for one in v.tags)", "len(v.tags) > 1", "v.tags", "x not in v.tags", "v.tags == [x]", "'b' in v.tags and x in v.tags", "any(one in ws for one in v.tags)",
    "v.home is None", "(v.home is not None and v.home.city == c)", "(v.home and v.home.city == c)", "(v.home is not None and v.home.city.lower() == c.lower())", "(v.home is not None and v.home.zip == n)", "(v.home is not None and v.home.zip is not None and v.home.zip > n)",
    "(v.home is not None and v.home.city.lower() == 'rome' and v.home.zip is not None and v.home.zip < n)", "(v.home.city if v.home else '') == c",
    "(v.home is not None and v.home.street is not None and v.home.street.number == n)", "(v.home is not None and v.home.street is not None and v.home.street.number is not None and v.home.street.number >= n and v.n > 1)", "(v.home is not None and v.home.street is not None)",
    "v.ref == n", "v.ref in ns", "(v.ref is not None and v.ref in t.owners)", "(v.ref is not None and v.ref in t.owners and t.owners[v.ref].country == c)", "(v.ref is not None and v.ref in t.owners and t.owners[v.ref].name.casefold() == w.casefold())",
    "(v.ref in t.owners and t.owners[v.ref].age is None if v.ref is not None else n > 2)", "(v.ref is not None and t.owners.get(v.ref) is not None)",
    "(v.ref is not None and (y := t.owners.get(v.ref)) is not None and y.country == c)", "((y := t.owners.get(v.who)) is not None and y.name == w)", "((y := t.places.get(v.place)) is None or y.country != c)", "(y.country == c if (y := t.owners.get(v.who)) else n > 2)", "(v.ref is None or (y := t.owners.get(v.ref)) is None or not (y.age is None or y.age > n))",
    "(v.ref is not None and v.ref in t.owners and t.owners[v.ref].boss is not None and t.owners[v.ref].boss in t.owners and t.owners[t.owners[v.ref].boss].country == c)",
    "v.until is None", "(v.n, v.name) > (n, w)", "(v.n, v.name) < (n, w)", "(v.day, v.n) > (day, n)", "not v.n < n", "not v.name > w", "not (v.n < n or v.day > day)", "v.name.startswith((w[:1], 'b'))", "(v.n, v.day) == pair", "pair < (v.n, v.day)", "all(one in v.tags for one in ws)", "any(one in v.tags for one in ws)", "not set(ws).isdisjoint(v.tags)", "set(ws) <= set(v.tags)", "set(v.tags) & set(ws)", "v.kind == Kind(kind.value)", "v.n in set(ns)", "v.n in sorted(ns)", "(v.n, v.name) == (n, w)", "(v.day, v.n) <= (day, n)", "(v.kind is Kind.A or v.kind is Kind.B) and v.m == n", "v.n % 2 == n % 2", "v.n + 1 == n", "True", "False", "n > 2", "loop(v)", "own.holds(v)", "v.n == own.number", "len(v.name) == n",
    "(v.n != 0 and 10 // v.n > n)", "(len(v.tags) > 0 and v.tags[0] == x)", "(v.n and 12 % v.n == 0)", "(v.tags and min(v.tags) <= x)", "(n not in (0, 1) and 9 // n > v.n)", "next((one for one in v.tags if one > x), None) is None", "max(v.tags, default='') > x",
    "(v.m if v.m is not None else v.n) == n", "(v.n == n) is (v.m == n)", "(v.n == n) == (v.m is None)", "(v.m, v.n) == (n, 2)", "(v.m, v.ref) in ((n, 1), (None, n))", "v.name in w", "w in v.name", "v.name + 'x' == w + 'x'", "not (v.n > n or v.m is None)", "v.n > n or v.n == 1 or v.m == n or x in v.tags", "n in (v.n, v.m, v.ref)", "(v.home.zip if v.home and v.home.zip else n) > 2", "v.at is not None and v.at.hour == 12", "sum(1 for one in v.tags if one == x) > 1", "v.n.__class__ is int", "isinstance(v.m, int)", "v.day < day <= date(2000, 1, 2)", "v.cost == v.price", "v.m == v.n", "v.name == v.name.casefold()", "(v.home is not None and v.home == type(v.home)(c))", "(v.n, v.m is None) in ((n, True), (2, False))",
]
LINKED = [
    "t.owners[v.who].country == c", "t.owners[v.who].country in (c, 'Oslo')", "t.owners[v.who].name.casefold() == w.casefold()", "t.owners[v.who].age is None", "t.owners[v.who].name > w", "t.places[v.place].country == c", "t.places[v.place].name == w", "t.places[v.place].name != t.owners[v.who].name", "t.owners[v.who].age == v.n", "not t.places[v.place].name", "len(t.owners[v.who].name) > n", "(t.owners[v.who].age or 0) > n", "t.places[v.place].name.startswith(w[:1])", "(v.who in t.owners and t.owners[v.who].boss == n)", "t.owners[v.who].country == t.places[v.place].country", "t.owners[v.who].country == c and v.n > n", "(t.owners[v.who].boss is not None and t.owners[t.owners[v.who].boss].country == c)",
]
CONDITIONS += [*LINKED, "v.who == n", "v.place == uid", "v.place in (uid, UUID(int=2))"]
CONDITIONS += [
    "v.n == q", "v.n > q", "v.n <= q", "v.n in (q, 3)", "v.m == q", "(v.m is not None and v.m < q)", "v.price < q", "v.price == q", "q < v.n <= 5", "v.price in (q, 1)", "v.n != q", "(v.n, v.day) >= (q, day)", "q >= v.n", "v.cost in (q, 0.1)", "k == q", "k in (q, 1)",
]
GUARDED = [
    ("v.ref is not None and v.ref in t.owners", "t.owners[v.ref].country == c"), ("v.ref is not None and v.ref in t.owners", "t.owners[v.ref].age is not None and t.owners[v.ref].age > n"), ("v.n > 0", "12 // v.n >= n"), ("len(v.tags) > 0", "v.tags[-1] == x"), ("v.name != ''", "v.name[0] == w[:1]"), ("v.n in (1, 2, 3)", "(5, 6, 7)[v.n - 1] > n + 2"), ("k is not None and v.n != n", "1 / (v.n - n) > 0"),
]
"""Conditions, and what raises of a record for which they are not true."""
CONDITIONS_LATER = [
    "v.dec > q", "v.dec == q", "v.now == q", "v.now in (q, 1)", "v.odd == q", "v.odd > q", "v.odd != v.odd", "v.odd in (q, 1.0)", "v.flag == q", "v.raw < bytes([255, 255])", "v.raw.startswith(bytes([255]))", "v.raw >= bytes([255])", "v.span in (timedelta(0), timedelta.max)", "v.span < timedelta.max", "v.span > timedelta.min",
    "v.now == n", "v.now in ns", "v.now == 2", "v.size == 'big'", "v.size is None", "v.size in ('small', None)", "(v.size is not None and v.size > 'big')", "v.dec == dec", "v.dec > dec", "v.dec in (dec, Decimal(7))", "v.span > timedelta(0)", "v.span == timedelta(0)", "v.uid == uid", "(v.uid is not None and v.uid > uid)",
    "v.raw == b'a'", "v.raw.startswith(b'a')", "v.raw >= b'a'", "v.raw[:1] == b'b'", "v.raw[:n] == b'a'", "v.raw[:n] == bytes([255])", "v.marks is None", "not v.marks", "(v.marks is not None and n in v.marks)", "any(one > n for one in v.marks or ())", "(v.marks is not None and len(v.marks) == 1)", "(v.marks is not None and any(one in ns for one in v.marks))",
    "(v.pair is not None and v.pair[0] == n)", "(v.pair is not None and v.pair > (n, 'a'))", "v.pair == (n, 'a')", "x in v.scores", "v.scores.get(x, 0) > 1", "v.scores.get(x) == n", "any(one > n for one in v.scores.values())", "any(h.city == c for h in v.homes)", "any(h.zip is not None and h.zip > n for h in v.homes)", "all(h.city != c for h in v.homes)", "len(v.homes) == 1",
    "(v.refs is not None and n in v.refs)", "any(one in t.owners and t.owners[one].country == c for one in v.refs or ())", "any(one == n for one in v.refs or [])", "v.flag", "not v.flag", "v.flag is True", "(v.flag and v.now > n)", "v.flag == (n > 2)", "v.short == w[:1]", "v.above(n)", "v.above(n, most=6)",
]
OF_KEYS = {
    "int": ["k == n", "k > n", "k in ns", "n <= k < n + 9", "k % 3 == 0", "k in (n, 2, 5)", "k != n", "-k > n"],
    "str": ["k == f'k{n}'", "k > f'k{n}'", "k.startswith('k1')", "k[:2] == 'k1'", "k in ('k1', 'k7', w)", "len(k) == 2"],
    "tuple": ["k[0] == w", "k[0] == 'a' and k[1] > n", "k > ('a', n)", "k == ('a', 1)", "k[1] == n", "k in (('', 4), ('a', n))", "k[0] in ws", "k[0].startswith('a')"],
    "uuid": ["k > UUID(int=500)", "k == UUID(int=7919 % 1009)", "k in (uid, UUID(int=7919 * n % 1009))", "k.int % 2 == 0"],
    "date": ["k.year == 1996 + n", "k.year <= 2000", "k > date(2000, 1, 9)", "k == date(2000, 1, 1 + n)", "k.month == 1", "(k.year == 2000 and k.month == n)", "k in (day, date(2000, 2, 1))"],
}
ORDERS = [
    "v.n", "desc(v.n)", "-v.n", "(v.n, v.name)", "(desc(v.n), v.name)", "(v.kind.value, desc(v.day))", "v.name", "v.name.casefold()", "desc(v.name)", "(v.day, desc(v.name))", "v.day", "desc(v.day)", "(desc(v.day), desc(v.name))", "(desc(v.day), v.name)", "v.price", "(v.m is None, v.m or 0)", "(v.m is None, desc(v.m or 0), v.n)",
    "(v.m is not None, v.n)", "fold(v.name)", "(fold(v.name), v.n)", "(v.n, k)", "(desc(v.n), desc(k))", "(desc(v.n), k)", "(v.day, k)", "(desc(v.day), desc(k))", "(v.day, v.name, k)", "k", "desc(k)", "(v.n % 3, desc(k))", "len(v.tags)", "(v.home is None, v.home.city if v.home else '')", "(v.home.city if v.home else 'z')", "v.tags", "own.key(v)", "(v.n, -v.price)", "(desc(v.n), v.price)", "(v.day, desc(v.price))", "(v.name, -v.price, k)", "desc((v.n, v.name))", "loop(v)", "(v.n, v.cost is None, v.cost or 0.0)", "(v.at is None, v.at or at)",
    "(t.owners[v.ref].name if v.ref is not None and v.ref in t.owners else '')", "(v.ref is None or v.ref not in t.owners, t.owners[v.ref].country if v.ref is not None and v.ref in t.owners else '')", "n", "(n, v.n)", "v.n if n > 2 else -v.n", "t.owners[v.who].name", "t.places[v.place].name", "desc(t.owners[v.who].name)", "(t.owners[v.who].country, v.n)", "t.places[v.place].country", "v.who", "v.place",
]
ORDERS_LATER = ["v.dec", "(v.size is None, v.size or '')", "v.span", "desc(v.span)", "v.raw", "v.now", "(v.now, desc(v.n))", "(v.flag, v.n)", "(v.flag, desc(v.n))", "desc(v.dec)", "(v.uid is None, v.uid or uid)", "(v.raw, v.n)"]
NUMBERS = ["v.n", "v.m or 0", "v.price", "len(v.tags)", "v.n * 2", "(0.0 if v.cost is None else v.cost)", "v.n + v.price", "n", "1", "v.n > n"]
NUMBERS_LATER = ["v.odd", "v.odd", "v.now", "v.dec", "len(v.homes)", "sum(v.scores.values())", "v.flag"]
GIVES = [
    "v", "k", "(k, v)", "v.name", "(k, v.n, v.m)", "(v.n, v.m)", "v.tags", "v.home", "(v.home.city if v.home else None)", "v.price", "(v.name, v.price, v.m, v.tags)", "v.kind", "(v.at, v.cost, v.home)", "v.kind.name", "{'a': v.n, 'b': v.m}", "[v.n, v.n]", "f'{v.name}-{v.n}'", "(v.ref, None if v.ref is None else t.owners.get(v.ref))", "(t.owners[v.ref].name if v.ref is not None and v.ref in t.owners else v.name)", "loop(v)", "own.key(v)", "(v.name.casefold(), v.day)", "n", "replace(v, n=n)", "(v.n, [one.upper() for one in v.tags])", "len(v.tags)", "v.m", "(v.day, v.at)",
]
GIVES += ["(v.name, t.owners[v.who].name)", "t.places[v.place].country", "(k, t.places[v.place])", "t.owners[v.who]", "(t.owners[v.who].name, t.places[v.place].age, v.home)", "v.place"]
GIVES_LATER = ["(v.size, v.n)", "(v.now, v.n)", "v.homes", "(v.scores, v.marks)", "v.dec", "(v.raw, v.uid, v.span)", "[h.city for h in v.homes]", "v.pair", "(v.flag, v.short)", "v.refs", "sorted(v.marks or ())", "{x: y for x, y in v.scores.items()}", "v.now", "v.size"]
ONCE = ["v.n", "v.m", "v.name", "v.kind", "v.day", "(v.n, v.m)", "(v.kind, v.day)", "v.name.casefold()", "v.home is None", "(v.home.city if v.home else None)", "v.ref", "v.n % 2", "tuple(v.tags)", "v.price", "(v.n,)", "k", "v.at", "(v.day, v.name)", "t.owners[v.who].country", "(t.places[v.place].country, v.kind)", "v.who", "v.place", "(v.n, v.kind)", "(v.n, v.m)", "v.day"]
ONCE_LATER = ["v.odd", "v.size", "(v.size, v.n)", "v.now", "v.flag", "(v.flag, v.n)", "v.dec", "v.raw", "v.uid", "v.span", "v.pair"]
INTO = [
    "g.count()", "g.fields(lambda v: v.n).sum()", "(g.count(), g.fields(lambda v: v.price).sum())", "g.fields(lambda v: v.n).max()", "g.fields(lambda v: v.price).mean()", "g.where(lambda v: v.n > n).count()", "(g.where(lambda v: v.m is not None).fields(lambda v: v.m).min(), g.count())", "g.keys().all()", "g.order_by(lambda v: v.name).first()", "g.order_by(lambda v: desc(v.n)).limit(2).keys().all()", "g.fields(lambda v: v.name).distinct().all()", "g.values().last()", "g.fields(lambda k, v: k).max()", "bool(g.where(lambda v: v.n == n))", "g.where(lambda v: v.ref is not None and v.ref in t.owners and t.owners[v.ref].country == c).count()",
    "g.group_by(lambda v: v.n % 2, lambda h: h.count())", "g.keys().last()", "g.limit(2, 1).fields(lambda v: v.n).sum()", "g.fields(lambda v: (v.n, v.name)).min()", "[g.count(), g.fields(lambda v: v.n).min(), g.fields(lambda v: v.n).max(), g.fields(lambda v: v.n).mean()]", "{'n': g.fields(lambda v: v.n).sum()}", "g.fields(lambda v: 0 if v.ref is None or v.ref not in t.owners else t.owners[v.ref].age or 0).sum()", "g.first()",
]


OF_OWNERS = [
    "t.owners.where(lambda k, v: items.of_owner[k])", "t.owners.where(lambda k, v: not items.of_owner[k])", "t.owners.where(lambda k, v: k in items.of_owner and v.age is not None)", "t.owners.where(lambda k, v: items.of_owner[k].count() > n)", "t.owners.where(lambda k, v: items.of_owner[k].count() == 1 or v.country == c)",
    "t.owners.where(lambda k, v: any(one.n == n for one in items.of_owner[k].values()))", "t.owners.where(lambda k, v: all(one.m is None or one.m > n for one in items.of_owner[k].values()))", "t.owners.where(lambda k, v: any(x in one.tags and one.kind is kind for one in items.of_owner[k].values()))", "t.owners.where(lambda k, v: any(one.home is not None and one.home.city == c for one in items.of_owner[k].values()))", "t.owners.where(lambda k, v: v.boss is not None and v.boss in t.owners and t.owners[v.boss].country == c)",
    "t.owners.where(lambda k, v: any(one.name.casefold() == w.casefold() for one in items.of_owner[k].values()) and not v.name)", "t.owners.where(lambda k, v: not any(one.price > 0.5 for one in items.of_owner[k].values()))", "t.owners.order_by(lambda k, v: desc(items.of_owner[k].count()))", "t.owners.order_by(lambda k, v: (items.of_owner[k].fields(lambda i: i.n).max() or 0, v.name))", "t.owners.select(2).where(lambda k, v: items.of_owner[k].where(lambda i: i.n > n).count() < 3)", "t.owners.select()",
]
OF_OWNERS_GIVES = [
    "(v.name, items.of_owner[k].count())", "items.of_owner[k].keys().all()", "items.of_owner[k].fields(lambda i: i.name).all()", "items.of_owner[k].fields(lambda i: (i.n, i.m, i.home)).first()", "items.of_owner[k].fields(lambda i: i.n).sum()", "(k, items.of_owner[k].fields(lambda i: i.price).mean())", "items.of_owner[k].where(lambda i: i.m is not None).fields(lambda i: i.m).max()", "items.of_owner[k].order_by(lambda i: (desc(i.n), i.name)).limit(2).keys().all()", "items.of_owner[k].order_by(lambda i: i.name.casefold(), reverse=True).fields(lambda i: i.name).all()", "(v.name, items.of_owner[k].limit(2, 1).values().all())", "items.of_owner[k].keys().last()", "items.of_owner[k].where(lambda i: x in i.tags).fields(lambda i: i.tags).last()", "[one.n for one in items.of_owner[k].values()]", "items.of_owner[k].where(lambda q, i: i.n > k).keys().all()", "(v, items.of_owner[k].fields(lambda i: i.kind).all())", "None if v.boss is None else t.owners.get(v.boss)", "items.of_owner[k].group_by(lambda i: i.kind, lambda g: g.count())", "items.of_owner[k].fields(lambda i: i.n).distinct().all()",
]


PARTS: dict[str, tuple[tuple[str, str], ...]] = {
    "name": (("v.name", "w"),), "fold": (("v.name.casefold()", "w.casefold()"),), "nfkc": (("fold(v.name)", "fold(w)"), ("v.n", "n")), "upper": (("v.n", "n"), ("v.name.upper()", "w.upper()")),
    "n": (("v.n", "n"),), "n_down": (("v.n", "n"),), "m": (("v.m", "n"),), "n_m": (("v.n", "n"), ("v.m", "2")), "m_n_down": (("v.m", "n"), ("v.n", "2")), "kind": (("v.kind", "kind"), ("v.day", "day")),
    "day": (("v.day", "day"),), "day_down": (("v.day", "day"), ("v.name", "w")), "at": (("v.at", "at"),), "price": (("v.price", "q"),), "cost": (("v.cost", "0.2"), ("v.n", "n")), "ref": (("v.ref", "n"),), "n_carry": (("v.n", "n"),), "kind_carry": (("v.kind", "kind"), ("v.n", "n")),
    "now": (("v.now", "2"), ("v.n", "n")), "size": (("v.size", "'big'"), ("v.n", "n")), "dec": (("v.dec", "dec"),), "span": (("v.span", "timedelta(0)"),), "uid": (("v.uid", "uid"),), "raw": (("v.raw", "b'a'"), ("v.n", "n")), "flag": (("v.flag", "True"), ("v.n", "n")), "late_carry": (("v.n", "n"),),
    "m_some": (("v.n", "n"),), "cheap": (("v.kind", "kind"), ("v.n", "n")), "flagged": (("v.now", "2"),),
}
"""What an index has, and what it may be compared with."""
OPTIONAL = ("v.m", "v.at", "v.cost", "v.ref", "v.size", "v.uid")
ALSO = {"m_some": "v.m is not None", "cheap": "v.price < 1.0", "flagged": "v.flag"}
# fmt: on


RAISED = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError)

# -- the same over a list ----------------------------------------------------------------------------------------------


ATOMS = (int, str, type(None), bool, date, bytes, datetime, UUID, timedelta)


def said(found: Any) -> Any:
    """*found* so that what differs differs: zeros by their sign, numbers by their type, objects by their fields."""
    if found.__class__ in ATOMS:
        return found.__class__.__name__, found
    if is_dataclass(found) and not isinstance(found, type):
        return (type(found).__name__, *(said(getattr(found, one.name)) for one in fields(found)))
    if isinstance(found, (list, tuple)):
        return (type(found).__name__, *(said(one) for one in found))
    if isinstance(found, (set, frozenset)):
        return ("set", *sorted(map(repr, found)))
    if isinstance(found, dict):
        return ("dict", *((said(key), said(value)) for key, value in found.items()))
    return repr(found)


class Table(Records):
    """A list of pairs with what a table has; its indexes are those of *shapes*."""

    def __init__(self, rows: list[Any], shapes: dict[str, Shape]) -> None:
        super().__init__(rows)
        self._shapes = shapes

    def __getattr__(self, name: str) -> PlainIndex:
        return PlainIndex(self.rows, OF_OWNER if name == "of_owner" else self._shapes[name.removeprefix("by_")])


class PlainIndex(ByKey):
    def __init__(self, rows: list[Any], shape: Shape) -> None:
        down = (*shape.down, False, False, False)

        def place(key: Any) -> Any:
            parts = [one.value if isinstance(one, enum.Enum) else one for one in key]
            return tuple(desc(part) if is_down else part for part, is_down in zip(parts, down))

        self.place = place
        entries = [(place(key), pk, v) for pk, v in rows for key in shape.keys(v)]
        self.entries = sorted(entries, key=lambda one: (one[0], one[1]))

    def select(self, start: Any = None, stop: Any = None, *, reverse: bool = False) -> Pairs:
        lower, upper = (
            None if one is None else self.place(one if isinstance(one, tuple) else (one,)) for one in (start, stop)
        )
        found = {
            pk: v for key, pk, v in reversed(self.entries)
            if (lower is None or not key < lower) and (upper is None or key < upper)
        }  # fmt: skip
        rows: dict[Any, Any] = {}
        for key, pk, _ in self.entries:
            if (lower is None or not key < lower) and (upper is None or key < upper):
                rows.setdefault(pk, found[pk])
        pairs = list(rows.items())
        return Pairs(pairs[::-1] if reverse else pairs)

    def __getitem__(self, key: Any) -> Pairs:
        wanted = self.place(key if isinstance(key, tuple) else (key,))
        return Pairs((pk, v) for one, pk, v in self.entries if one == wanted)


# -- queries -----------------------------------------------------------------------------------------------------------


def fold(text: str) -> str:
    return normalize("NFKC", text).casefold()


def loop(value: Any) -> int:
    found = 0
    for letter in value.name:
        while found < 3 and letter in "ab":
            found += 1
    return found


class Own:
    """An object with a method of the record, and an attribute."""

    def __init__(self, number: int) -> None:
        self.number = number

    def holds(self, value: Any) -> bool:
        return bool(value.n >= self.number)

    def key(self, value: Any) -> Any:
        return (value.n % 3, value.name)


GIVEN = ("q", "n", "w", "x", "c", "ns", "ws", "kind", "kinds", "day", "at", "dec", "uid", "own", "pair")


class Text(str):
    """A text that is none to a quick look."""

    __slots__ = ()


class Number(enum.IntEnum):
    TWO = 2
    FIVE = 5


EAST = timezone(timedelta(hours=5))
ODD: dict[str, list[Any]] = {
    "q": [2.0, 2.5, True, False, -1, 10**30, -(10**30), Decimal(2), Decimal("1.5"), float("inf"), -float("inf"), float("nan"), 0, -0.0, Number.TWO, 2**53 + 1, 0.1, None],
    "w": ["\ud800", "a\ud800", Text("a"), Text("ab"), "\U0010ffff\U0010ffff", "\uffff", "\U0001f600", "\0", "x" * 600, "stra\u1e9ee", "STRA\u1e9eE", "\u0130X", "E\u0301"],
    "x": ["\ud800", Text("b"), "x" * 600, "\0"],
    "c": [Text("Rome"), "\udfff", "ROME"],
    "n": [Number.FIVE, True, 2**63, -(2**63) - 1, -1, 2**64],
    "ns": [collections.deque([1, 2]), {1: 2, 3: 4}, {1: 2, 3: 4}.keys(), {"a": 2, "b": 3}.values(), [Number.TWO], (True, 2.0), frozenset({float("nan"), 1}), [Decimal(3), 2], [2**70, 1], list(range(1200)), [None], {0.5, 1.0}, ("a", 1), b"\1\2"],
    "ws": [[Text("a")], ["\ud800", "a"], (None, ""), {"x" * 600, "ab"}, "ab", collections.Counter("ab"), [1, "a"]],
    "day": [date.min, date.max, datetime(2000, 1, 1, 3), datetime(2000, 1, 1, tzinfo=timezone.utc)],
    "at": [MOMENTS[2].astimezone(EAST), datetime.max.replace(tzinfo=timezone.utc), datetime.min.replace(tzinfo=timezone.utc), datetime.min.replace(tzinfo=EAST), datetime(2000, 1, 1), date(2000, 1, 1)],
    "dec": [Decimal("Infinity"), Decimal("1E+400"), Decimal("NaN"), 1.5, 7, Decimal("1.5000000000000000000000000000001"), Decimal("-0")],
    "kind": ["a", None, Number.TWO],
    "pair": [(2,), (2.0, date(2000, 1, 1)), (None, date.min), (float("nan"), date.max), [2, date.min], (Number.TWO, datetime(2000, 1, 1)), ()],
    "kinds": [{"a": 1}, [Kind.A, "b"], Kind, (None, Kind.C)],
}  # fmt: skip


def given_of(chance: Random, odd: float = 0.25) -> dict[str, Any]:
    n: Any = chance.randrange(8)
    kind = chance.choice(list(Kind))
    found = {
        "n": n, "w": chance.choice(TEXTS), "x": chance.choice(TEXTS[:5]), "c": chance.choice(CITIES),
        "ns": chance.choice([(n, 1), [n, 3, 0], {n, 2}, (), frozenset({1, 4, 6}), [n, None], (n, 2.0), range(n, n + 3)]),
        "ws": chance.choice([("a", "b"), ["", "ab"], {"stra\u00dfe"}, (), {"a": 1, "": 2}]),
        "kind": kind, "kinds": chance.choice([{kind}, (Kind.B, kind), []]), "day": chance.choice(DAYS),
        "at": chance.choice(MOMENTS), "dec": chance.choice(DECS), "uid": chance.choice(UIDS), "own": Own(n), "q": chance.choice(ODD["q"]),
        "pair": (n, chance.choice(DAYS)),
    }  # fmt: skip
    if chance.random() < odd:
        name = chance.choice(list(ODD))
        found[name] = chance.choice(ODD[name])
    return found


SPACE: dict[str, Any] = {
    "desc": desc, "normalize": normalize, "fold": fold, "loop": loop, "Kind": Kind, "date": date, "UUID": UUID, "partial": functools.partial,
    "Decimal": Decimal, "timedelta": timedelta, "replace": replace,
}  # fmt: skip


class Query:
    """A query as source, and the function that makes it of tables and values."""

    def __init__(self, chance: Random, spec: Spec) -> None:
        self.chance, self.spec = chance, spec
        self.how = chance.choice(["cells", "cells", "cells", "globals", "defaults", "partial", "method"])
        self.ordered = self.grouped = self.backwards = False
        self.focus = self.focused()
        if spec.link and chance.random() < 0.2:
            self.selected = chance.choice(OF_OWNERS)
            self.ending = chance.choice(
                [
                    ".all()",
                    ".keys().all()",
                    ".count()",
                    ".first()",
                    ".last()",
                    ".limit(2).all()",
                    ".__bool__()",
                    ".__iter__()",
                    ".page",
                ]
            )
            if chance.random() < 0.5:
                self.ending = f".fields(lambda k, v: {chance.choice(OF_OWNERS_GIVES)})" + chance.choice(
                    [".all()", ".all()", ".first()", ".last()", ".page", ".__iter__()"]
                )
        elif chance.random() < (0.2 if spec.link else 0.07):
            self.selected, self.ending = self.following()
        elif chance.random() < 0.35 and any(one in PARTS for one in spec.indexes):
            self.selected, self.ending = self.aligned(chance.choice([one for one in spec.indexes if one in PARTS]))
        else:
            self.selected = self.selection()
            self.ending = self.end()
        self.source = self.selected + self.ending
        self.made = self.compiled(self.source)

    def compiled(self, source: str) -> Callable[[Any, dict[str, Any]], Any]:
        space = dict(SPACE)
        if self.how == "globals":
            text = f"def made(items, t):\n    return {source}\n"
        elif self.how == "method":
            text = f"def made(items, t, {', '.join(GIVEN)}):\n    def inner():\n        return {source}\n    return inner()\n"
        else:
            text = f"def made(items, t, {', '.join(GIVEN)}):\n    return {source}\n"
        exec(compile(text, "<wide query>", "exec"), space)
        made = space["made"]

        def ask(t: Any, given: dict[str, Any]) -> Any:
            if self.how == "globals":
                space.update(given)
                return made(t.items, t)
            return made(t.items, t, **given)

        return ask

    def function(self, body: str, keyed: bool = True) -> str:
        """A function of the record as *how* has it."""
        names = "k, v" if keyed and (self.how != "partial") else "v"
        if (
            "k"
            in body.replace("kind", "")
            .replace("k == k", "")
            .replace("Kind", "")
            .replace("marks", "")
            .replace("own.key", "")
            and names == "v"
        ):
            names = "k, v"
        if self.how == "defaults":
            return f"lambda {names}, n=n, w=w: {body}"
        if self.how == "partial" and names == "v":
            return f"partial(lambda n, w, v: {body}, n, w)"
        return f"lambda {names}: {body}"

    def focused(self) -> tuple[str, ...]:
        """Texts of which one is in all parts of a query that is about one index; none if it may be about anything."""
        chance, names = self.chance, [one for one in self.spec.indexes if one not in ("call", "pair")]
        about = chance.random()
        if about < 0.15:
            return "t.owners[v.who].", "t.places[v.place]."
        if about > 0.6 or not names:
            return ()
        fields = {
            "fold": "v.name.casefold", "nfkc": "fold(v.name)", "upper": "v.n", "n_down": "v.n", "n_m": "v.n", "m_n_down": "v.m", "day_down": "v.day",
            "tags_n": "v.tags", "city": "v.home", "city_zip": "v.home", "street": "v.home", "n_carry": "v.n", "kind_carry": "v.kind", "m_some": "v.n", "rome": "v.name",
            "cheap": "v.kind", "a_or_b": "v.m", "late_carry": "v.n", "flagged": "v.now", "no_marks": "v.name",
        }  # fmt: skip
        name = chance.choice(names)
        return (fields.get(name, f"v.{name}"),)

    def pick(self, first: list[str], later: list[str]) -> str:
        every = [*first, *(later if self.spec.later else ())]
        about = [one for one in every if any(text in one for text in self.focus)]
        return self.chance.choice(about or every)

    def condition(self, depth: int) -> str:
        chance = self.chance
        if depth > 0:
            parts = [self.condition(depth - 1) for _ in range(2)]
            return chance.choice(
                [
                    "({} and {})",
                    "({} and {})",
                    "({} or {})",
                    "(not {} and {})",
                    "({} if v.n % 2 else {})",
                    "({} and not {})",
                ]
            ).format(*parts)
        pool = OF_KEYS[self.spec.key] if chance.random() < 0.12 else [self.pick(CONDITIONS, CONDITIONS_LATER)]
        return f"({chance.choice(pool)})"

    def aligned(self, name: str) -> tuple[str, str]:
        """A query that the index may answer by itself, or give the order of."""
        chance, parts, asked = self.chance, PARTS[name], []
        if chance.random() < 0.3:
            return self.told(name)
        equal = chance.randrange(len(parts))
        asked += [f"{part} == {value}" for part, value in parts[:equal]]
        part, value = parts[equal]
        there = [f"{one} is not None" for one, _ in parts[equal:] if one in OPTIONAL]
        form = chance.random()
        if form < 0.5:
            bounds = [
                f"{part} == {value}",
                f"{part} >= {value}",
                f"{part} < {value}",
                f"{part} in ({value},)",
                f"{value} < {part}",
            ]
            if part == "v.kind":
                bounds = [bounds[0], bounds[3]]
            asked += [*there, chance.choice(bounds)]
        elif chance.random() < 0.8:
            asked += there
        if name in ALSO:
            asked.insert(chance.randrange(len(asked) + 1), ALSO[name])
        selected = "items"
        if len(asked) > 1 and not there and chance.random() < 0.3:
            selected += "".join(f".where({self.function(one)})" for one in asked)
        elif asked:
            selected += f".where({self.function(' and '.join(asked))})"
        order = [one for one, _ in parts[equal if asked else 0 :]]
        if (
            chance.random() < 0.5
            and "v.kind" not in order
            and (there or not any(one in OPTIONAL for one in order))
            and (not any(one in OPTIONAL for one in order) or all(one in asked for one in there))
        ):
            signs = [chance.choice(["{}", "desc({})"]) for _ in order]
            keys = [sign.format(one) for sign, one in zip(signs, order)]
            self.ordered, self.backwards = True, chance.random() < 0.3
            self.order = self.function(keys[0] if len(keys) == 1 else f"({', '.join(keys)})")
            selected += f".order_by({self.order}{', reverse=True' if self.backwards else ''})"
        last = ", ".join(one for one, _ in parts)
        once = parts[-1][0] if chance.random() < 0.6 else f"({last},)"
        if chance.random() < 0.4:
            once = part
        once = self.function(once, keyed=False)
        endings = [
            f".fields({once}).distinct().all()", f".fields({once}).distinct().count()", f".fields({once}).distinct().first()", f".fields({once}).distinct().__iter__()", f".group_by({once}, lambda g: g.count())", ".count()", ".keys().all()",
            f".fields({once}).all()", f".fields({once}).first()", f".fields({once}).last()", ".first()", ".last()", ".limit(3).all()", ".limit(2, 1).keys().all()", ".keys().page", f".fields({once}).page", ".values().page", f".limit(4).fields({once}).all()", ".__bool__()", ".__iter__()",
        ]  # fmt: skip
        if (there and all(one in asked for one in there)) or part not in OPTIONAL:
            given = self.function(part, keyed=False)
            if part != "v.kind":
                endings += [f".fields({given}).min()", f".fields({given}).max()", f".limit(2).fields({given}).max()"]
        return ("items.select()" if selected == "items" else selected), chance.choice(endings)

    def told(self, name: str) -> tuple[str, str]:
        """A query of which the entries of the index may tell all: what is asked is what they sort last."""
        chance, parts = self.chance, PARTS[name]
        first = chance.randrange(len(parts))
        asked = [f"{part} == {value}" for part, value in parts[:first]]
        asked += [f"{part} is not None" for part, _ in parts[first:] if part in OPTIONAL]
        if chance.random() < 0.3:
            asked.append(f"{parts[first][0]} > {parts[first][1]}" if parts[first][0] != "v.kind" else "v.kind is kind")
        asked += [ALSO[name]] if name in ALSO else []
        selected = f"items.where({self.function(' and '.join(asked))})" if asked else "items.select()"
        last = [part for part, _ in parts[first:]]
        once = self.function(last[0] if len(last) == 1 else f"({', '.join(last)})", keyed=False)
        endings = [".distinct().all()", ".distinct().count()", ".distinct().first()", ".distinct().__iter__()"]
        endings += [".min()", ".max()"] if "v.kind" not in last else []
        into = chance.choice(["g.count()", "(g.count(), g.count())"])
        ends = [f".fields({once}){one}" for one in endings] + [f".group_by({once}, lambda g: {into})"] * 3
        return selected, chance.choice([*ends, ".count()"])

    def following(self) -> tuple[str, str]:
        """A query by what the records refer to, alone: of all rows, or in that order with a limit."""
        chance = self.chance
        give = chance.choice([".all()", f".fields({self.function(self.pick(GIVES, GIVES_LATER), False)}).all()"])
        if chance.random() < 0.5:
            asked = self.function(chance.choice(LINKED), chance.random() < 0.3)
            return f"items.where({asked})", chance.choice([give, give, ".count()", ".keys().all()", ".limit(3).all()"])
        links = [
            "t.owners[v.who].name",
            "t.owners[v.who].country",
            "t.places[v.place].name",
            "t.places[v.place].country",
        ]
        self.ordered, self.backwards = True, chance.random() < 0.4
        self.order = self.function(chance.choice(links), chance.random() < 0.3)
        limit = chance.choice([".limit(1)", ".limit(3)", ".limit(5, 2)", ".limit(40)"])
        return f"items.order_by({self.order}{', reverse=True' if self.backwards else ''})", limit + give

    def selection(self) -> str:
        chance, spec = self.chance, self.spec
        made = "items"
        start = chance.random()
        bounds = [repr(KEYS[spec.key][1](chance.randrange(40))) for _ in range(2)]
        bounds = [one.replace("datetime.", "") for one in bounds]
        if self.focus and start < 0.8:
            pass
        elif start < 0.15:
            made += chance.choice(
                [
                    f".select({bounds[0]})",
                    f".select(stop={bounds[0]})",
                    f".select({', '.join(bounds)})",
                    f".select({bounds[0]}, reverse=True)",
                    f".select(through={bounds[0]})",
                ]
            )
        elif start < 0.25:
            made += ".select(reverse=True)"
        elif start < 0.37 and spec.indexes:
            made += self.of_index(chance.choice(spec.indexes))
        if chance.random() < 0.05:
            for one in chance.choice(GUARDED):
                made += f".where({self.function(one, chance.random() < 0.5)})"
        for _ in range(chance.choice([0, 1, 1, 1, 1, 2] if not self.focus else [0, 0, 1, 1])):
            made += f".where({self.function(self.condition(0 if self.focus else chance.choice([0, 0, 0, 1, 1, 2])), chance.random() < 0.5)})"
        if chance.random() < 0.4:
            self.ordered = True
            self.order = self.function(self.pick(ORDERS, ORDERS_LATER), chance.random() < 0.5)
            self.backwards = chance.random() < 0.33
            made += f".order_by({self.order}{', reverse=True' if self.backwards else ''})"
        return made + ".select()" if made == "items" else made

    def of_index(self, name: str) -> str:
        chance = self.chance
        one = {
            "n": "n", "n_down": "n", "m": "n", "name": "w", "fold": "w", "day": "day", "at": "at", "tags": "x", "ref": "n", "n_carry": "n",
            "m_some": "n", "rome": "w", "call": "n", "price": "0.2", "n_m": "(n, 2)", "m_n_down": "(n, 2)", "kind": "(kind, day)", "city": "c",
            "marks": "n", "refs": "n", "dec": "dec", "now": "(n, 2)", "late_carry": "n", "flagged": "n", "tags_n": "x", "upper": "(n, w)", "a_or_b": "n",
        }.get(name)  # fmt: skip
        reverse = chance.choice(["", "reverse=True"])
        if one is None or chance.random() < 0.3:
            return f".by_{name}.select({reverse})"
        if chance.random() < 0.4 and name != "kind":
            return f".by_{name}.select({chance.choice(['', 'stop='])}{one}{', ' + reverse if reverse else ''})"
        return f".by_{name}[{one}]"

    def end(self) -> str:
        chance = self.chance
        limit = (
            ""
            if chance.random() < 0.6
            else f".limit({chance.choice(['0', '1', '2', '3', '5', '9', '70', '4'])}{chance.choice(['', '', ', 1', ', 3', ', 6'])})"
        )
        ending = chance.random()
        keyed = chance.random() < 0.4
        if ending < 0.2:
            return limit + chance.choice(
                [
                    ".all()",
                    ".all()",
                    ".count()",
                    ".first()",
                    ".last()",
                    ".keys().all()",
                    ".values().all()",
                    ".keys().first()",
                    ".keys().last()",
                    ".values().count()",
                ]
            )
        if ending < 0.28:
            return limit + chance.choice([".__iter__()", ".__bool__()", ".keys().__iter__()", ".values().__iter__()"])
        if ending < 0.5:
            give = self.function(self.pick(GIVES, GIVES_LATER), keyed)
            return f"{limit}.fields({give})" + chance.choice(
                [".all()", ".all()", ".all()", ".first()", ".last()", ".count()", ".__iter__()"]
            )
        if ending < 0.62:
            give = self.function(self.pick(NUMBERS, NUMBERS_LATER), keyed)
            return f"{limit}.fields({give})" + chance.choice([".sum()", ".min()", ".max()", ".mean()"])
        if ending < 0.74:
            give = self.function(self.pick(ONCE, ONCE_LATER), keyed)
            return f"{limit}.fields({give}).distinct()" + chance.choice(
                [".all()", ".count()", ".first()", ".last()", ".__iter__()", ".__bool__()"]
            )
        if ending < 0.86:
            by = self.function(self.pick(ONCE, ONCE_LATER), keyed)
            self.grouped = True
            return f"{limit}.group_by({by}, lambda g: {chance.choice(INTO)})"
        self.paged = True
        return (
            chance.choice(
                ["", f".fields({self.function(self.pick(GIVES, GIVES_LATER), keyed)})", ".keys()", ".values()"]
            )
            + ".page"
        )

    def answer(self, made: Any) -> Any:
        return list(made) if hasattr(made, "__next__") else made

    def outcome(self, t: Any, given: dict[str, Any], size: int) -> Any:
        """What is found; ``("raises", ...)`` if it raises."""
        try:
            if self.ending.endswith(".page"):
                return said(self.pages(t, given, size))
            return said(self.answer(self.made(t, given)))
        except RAISED as error:
            return "raises", type(error).__name__, str(error)

    def pages(self, t: Any, given: dict[str, Any], size: int) -> Any:
        made = self.made_of(t, given)
        if isinstance(made, Rows):
            return list(made)
        found: list[Any] = []
        cursor = None
        for _ in range(1000):
            page = made.page(size, cursor)
            found += page.rows
            cursor = page.next
            if cursor is None:
                return found
            if len(page.rows) != size:
                raise AssertionError("a page in the middle is not full")
            made = self.made_of(t, given)
        raise AssertionError("pages without end")

    def made_of(self, t: Any, given: dict[str, Any]) -> Any:
        if not hasattr(self, "_paged"):
            self._paged = self.compiled(self.source[: -len(".page")])
        return self._paged(t, given)


CHANGES = [
    "lambda v: replace(v, n=v.n + 1)", "lambda v: replace(v, name=w)", "lambda v: replace(v, m=n, tags=[x])", "lambda v: replace(v, home=None) if v.n > 2 else v", "lambda v: replace(v, n=n) if v.m is None else replace(v, m=None)",
    "lambda v: replace(v, price=v.price + 1.0)", "lambda v: replace(v, tags=[*v.tags, x])", "lambda v: replace(v, day=day, at=at)", "lambda v: replace(v, kind=kind)", "lambda v: replace(v, m=v.n, n=v.m or 0)", "lambda v: replace(v, name=v.name + 'z', cost=None)",
]  # fmt: skip

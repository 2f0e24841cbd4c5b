"""The output of commands: fields, tables and JSON on standard output, progress on standard error."""

from __future__ import annotations

import base64
import dataclasses
import datetime as dt
import errno
import json
import math
import os
import sys
import unicodedata
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any, Optional

import click

import zlmdb

from ..operations.progress import Progress, Told, silent
from ..values.base import is_a
from ..values.makemodel import UNKNOWN

_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Categories of Unicode: controls (C0, C1), format characters such as bidi overrides, surrogates, line separators."""


def escaped(text: str) -> str:
    """*text* as one line that a terminal shows as it is: what it would act upon, or not show, as ``\\u009b``."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_escaped, text))


def _escaped(char: str) -> str:
    if unicodedata.category(char) not in _HIDDEN:
        return char
    return json.dumps(char)[1:-1] if char != "\x7f" else "\\u007f"


def say(text: str, *, err: bool = False) -> None:
    """Write one line of text, of whatever is in a file. Raises `DiskError`."""
    text = escaped(text)
    try:
        try:
            click.echo(text, err=err)
        except UnicodeEncodeError:  # a pipe or a terminal with a code page, as on Windows: it has got nothing yet
            click.echo("".join([one if one.isascii() else json.dumps(one)[1:-1] for one in text]), err=err)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _not_written(error) from error


@contextmanager
def raw() -> Generator[IO[bytes], None, None]:
    """A block that writes bytes to standard output, all of them before its end. Raises `DiskError`."""
    stream: Optional[IO[bytes]] = getattr(sys.stdout, "buffer", None)
    if stream is None:
        raise zlmdb.DiskError("standard output is closed: leave it open, or send it to a file")
    try:
        yield stream
        stream.flush()
    except (zlmdb.Error, BrokenPipeError):
        raise
    except OSError as error:
        raise _not_written(error) from error


def _not_written(error: OSError) -> Exception:
    discard()
    if os.name == "nt" and error.errno == errno.EINVAL:  # so Windows says that the reader of a pipe has gone
        return BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
    return zlmdb.DiskError(f"standard output could not be written: {error.strerror or error}")


def discard() -> None:
    """Give up what standard output did not take: Python would try to write it again at its end, and complain."""
    with suppress(OSError, ValueError, AttributeError):  # what stands in its place has no descriptor
        descriptor = sys.stdout.fileno()
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), descriptor)


def fields(found: Mapping[str, Any], as_json: bool) -> None:
    """Names and values, one a line, or one JSON object."""
    if as_json:
        line(dict(found))
        return
    width = max((len(name) for name in found), default=0)
    for name, fact in found.items():
        say(f"{name.replace('_', ' '):{width}}  {_text(fact)}")


def table(rows: Sequence[Mapping[str, Any]], as_json: bool) -> None:
    """Rows under their column names, numbers to the right, or a JSON list of objects."""
    if as_json:
        line([dict(row) for row in rows])
        return
    if not rows:
        return
    names = list(rows[0])
    cells = [[escaped(_text(row[name])) for name in names] for row in rows]
    widths = [max(len(name), *(len(one[column]) for one in cells)) for column, name in enumerate(names)]
    numbers = [all(type(row[name]) in (int, float) for row in rows) for name in names]
    for row in (names, *cells):
        padded = [cell.rjust(width) if right else cell.ljust(width) for cell, width, right in zip(row, widths, numbers)]
        say("  ".join(padded).rstrip())


def line(data: Any) -> None:
    """One line of JSON, which has JSON's own escapes for what `escaped` escapes: programs read what is stored."""
    say(json.dumps(to_json(data), ensure_ascii=False))


def to_json(value: Any) -> Any:
    """*value* as JSON: bytes as ``{"$bytes": base64}``, sets as lists, times by ISO 8601, other types as text."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if is_a(value, Mapping):
        return {key if isinstance(key, str) else str(key): to_json(one) for key, one in value.items()}
    if is_a(value, (bytes, bytearray, memoryview)):
        return {"$bytes": base64.b64encode(value).decode()}
    if is_a(value, (set, frozenset)):
        return [to_json(one) for one in sorted(value, key=repr)]
    if is_a(value, (list, tuple)):
        return [to_json(one) for one in value]
    if isinstance(value, (dt.date, dt.time)):
        return value.isoformat()
    if dataclasses.is_dataclass(value):  # of the fields that a file records
        named = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {name: to_json(one) for name, one in named.items() if one is not UNKNOWN}
    return str(value)


def _text(fact: Any) -> str:
    if fact is None or fact == ():
        return "-"
    if isinstance(fact, bool):
        return "yes" if fact else "no"
    if isinstance(fact, int):
        return f"{fact:,}"
    return ", ".join(map(str, fact)) if is_a(fact, (list, tuple)) else str(fact)


@contextmanager
def progress(as_json: bool) -> Generator[Told, None, None]:
    """A function that shows the progress of long work: a bar of rich's on a terminal, otherwise nothing."""
    if as_json or not sys.stderr.isatty():
        yield silent
        return
    try:
        from rich.console import Console
        from rich.markup import escape as markup
        from rich.progress import Progress as Bars
    except ModuleNotFoundError:
        yield silent
        return
    with Bars(console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, Any] = {}

        def told(one: Progress) -> None:
            if one.stage not in tasks:
                tasks[one.stage] = bars.add_task(markup(escaped(one.stage)), total=one.total)
            bars.update(tasks[one.stage], completed=one.done, total=one.total)

        yield told

"""Python source for the two hot functions of a tuple key.

Parts of fixed width that stand together are one precompiled `struct.Struct`, the raw key's prefix in front included.
Written out like this a key of a UUID and a number takes 0.36 us on CPython 3.11, in a loop over the parts 0.9 us;
leaving the type checks out would save 0.05 us more, and is not done.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from struct import Struct
from typing import Any, Callable

from ..codegen import Recipe
from ..handlers import let_through
from .base import Data
from .parts import Part

_ENCODING = Recipe("key encoding")
_DECODING = Recipe("key decoding")


def make_encoder(
    name: str, shape: str, tuples: Sequence[str], parts: Sequence[Part], prefix: bytes, checked: Callable[[Any], bytes]
) -> Callable[[Any], bytes]:
    """A function that gives *prefix* and the bytes of a key; what it cannot write at once, *checked* does or refuses.

    *shape* is the tuple with the parts named ``k0``, ``k1``, ..., *tuples* are the expressions that must be tuples.
    """
    names: dict[str, Any] = {"prefix": prefix, "general": checked, "let_through": let_through}
    terms = _terms(parts, prefix, names)
    checks = [f"type({expression}) is tuple" for expression in tuples]
    checks += [part.inline().check.format(x=f"k{i}", codec=f"c{i}") for i, part in enumerate(parts)]
    source = f"""\
def encode(key):
    try:
        {shape} = key
        if {" and ".join(check for check in checks if check != "True")}:
            return {" + ".join(terms)}
    except Exception as error:
        let_through(error)
    return prefix + general(key)
"""
    subject = f"{name} after {prefix.hex()}" if prefix else name
    return _ENCODING.functions(subject, source, names)["encode"]


def _terms(parts: Sequence[Part], prefix: bytes, names: dict[str, Any]) -> list[str]:
    """The expressions of bytes that, added up, are the key."""
    terms: list[str] = []
    formats = [f"{len(prefix)}s"] if prefix else []
    values = ["prefix"] if prefix else []

    def end_run() -> None:
        if values == ["prefix"]:
            terms.append("prefix")
        elif values:
            names[f"pack{len(terms)}"] = Struct(">" + "".join(formats)).pack
            terms.append(f"pack{len(terms)}({', '.join(values)})")
        formats.clear()
        values.clear()

    for i, part in enumerate(parts):
        inline = part.inline()
        names.update(inline.names)
        names[f"c{i}"] = part.codec
        value = inline.pack.format(x=f"k{i}", codec=f"c{i}")
        if inline.format:
            formats.append(inline.format)
            values.append(value)
        else:
            end_run()
            terms.append(value)
    end_run()
    return terms


def make_decoder(name: str, shape: str, parts: Sequence[Part]) -> Callable[[Data], Any]:
    """A function that gives the key of bytes or a memoryview, and raises anything for bytes that are none."""
    names: dict[str, Any] = {}
    lines = _reading(parts, names)
    values: dict[str, str] = {}
    for i, part in enumerate(parts):
        inline = part.inline()
        names.update(inline.names)
        names[f"c{i}"] = part.codec
        values[f"k{i}"] = inline.unpack.format(x=f"k{i}", codec=f"c{i}")
    built = re.sub(r"k\d+", lambda found: values[found[0]], shape)
    body = "\n    ".join([*lines, f"return {built}"])
    return _DECODING.functions(name, f"def decode(data):\n    {body}\n", names)["decode"]


def make_reader(
    parts: Sequence[Part], prefix: int, wanted: Sequence[int], names: dict[str, Any]
) -> tuple[list[str], list[str]]:  # fmt: skip
    """As `TupleKey.reading`."""
    inlines = [part.inline() for part in parts]
    for number, inline in enumerate(inlines):
        names.update(inline.names)
        names[f"codec{number}"] = parts[number].codec
    expressions = [inlines[i].unpack.format(x=f"k{i}", codec=f"codec{i}") for i in wanted]
    if all(part.width is not None for part in parts):  # and no more is unpacked than is wanted
        formats = [one.format if i in wanted else f"{parts[i].width}x" for i, one in enumerate(inlines)]
        names["unpack_entry"] = Struct(">" + (f"{prefix}x" if prefix else "") + "".join(formats)).unpack
        return ["".join([f"k{i}, " for i in sorted(wanted)]) + "= unpack_entry(entry)"], expressions
    begin = f"data = entry[{prefix}:]" if prefix else "data = entry"
    return [begin, *_reading(parts, names)[1:]], expressions


def _reading(parts: Sequence[Part], names: dict[str, Any]) -> list[str]:
    """The lines that put the raw parts into ``k0``, ``k1``, ..."""
    if all(part.width is not None for part in parts):
        names["unpack"] = Struct(">" + "".join(part.inline().format for part in parts)).unpack
        return [", ".join(f"k{i}" for i in range(len(parts))) + ", = unpack(data)"]
    lines = ["data = bytes(data)"]
    at = "0"  # where the next part begins: a number, or "at" behind a part without a fixed width
    run: list[int] = []
    for i, part in enumerate(parts):
        if part.width is None:
            at = _read_run(parts, run, at, lines, names, last=False)
            lines.append(part.read().format(x=f"k{i}", at=at))
            at = "at"
            run = []
        else:
            run.append(i)
    _read_run(parts, run, at, lines, names, last=True)
    return lines


def _read_run(
    parts: Sequence[Part], run: Sequence[int], at: str, lines: list[str], names: dict[str, Any], *, last: bool
) -> str:
    """Add the line that reads the parts *run* of fixed width at *at*; where the next part begins."""
    if not run:
        return at
    struct = Struct(">" + "".join(parts[i].inline().format for i in run))
    targets = ", ".join(f"k{i}" for i in run)
    reader = f"read{run[0]}"
    if last:  # unpack refuses what is left over
        names[reader] = struct.unpack
        lines.append(f"{targets}, = {reader}(data[{at}:])")
        return at
    names[reader] = struct.unpack_from
    lines.append(f"{targets}, = {reader}(data, {at})")
    if at == "at":
        lines.append(f"at += {struct.size}")
        return at
    return str(int(at) + struct.size)

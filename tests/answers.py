"""Tables in each format for tests of cached plans, and whether a plan gave an answer."""

from __future__ import annotations

from typing import Any

import pytest

from zlmdb import Cbor, FlatBuffers, Msgpack, Pickle

CODECS: dict[str, Any] = {"plain": None, "msgpack": Msgpack, "cbor": Cbor, "flat": FlatBuffers, "pickle": Pickle}
ONCE = [("plain", "classic"), ("pickle", "tables"), ("msgpack", "tables"), ("cbor", "tables")]
FLAT = ("flat", "tables")
EVERYWHERE = [(codec, "tables") for codec in CODECS if (codec, "tables") not in ONCE]
STORED = [*EVERYWHERE, *(pytest.param(stored, marks=pytest.mark.once) for stored in ONCE)]
"""The names of a format and of a layout.

A plan knows no layout; pickles are read alike by each interpreter, ``plain`` is Msgpack, and CBOR is read in the same
way. Queries of each format are asked on each interpreter in ``test_query.py``.
"""

LINKED = [FLAT, *(pytest.param(one, marks=pytest.mark.once) for one in (*EVERYWHERE, *ONCE) if one != FLAT)]
"""The same for tests of links, which a plan follows in one way whatever the format is."""


def answers(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[bool]:
    """Whether each call of the function *name* of *owner* from now on gave an answer, not None."""
    found: list[bool] = []
    original = getattr(owner, name)

    def asked(*arguments: Any) -> Any:
        answer = original(*arguments)
        found.append(answer is not None)
        return answer

    monkeypatch.setattr(owner, name, asked)
    return found

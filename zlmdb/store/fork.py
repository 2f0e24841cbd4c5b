"""What a fork asks of the open environments: the child must not use, nor close, what the parent has open."""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING

from ..engines import Transaction
from .environment import OpenEnvironment

if TYPE_CHECKING:
    from .gate import Gate

environments: weakref.WeakSet[OpenEnvironment] = weakref.WeakSet()
"""Those of this process, also suspended ones."""

_held: list[Transaction] = []
_entered: list[Gate] = []


def _before_fork() -> None:
    for one in list(environments):
        if one.env is not None:
            if one.gate is not None:  # no other thread may move the map under what is held
                one.gate.enter(_held)
                _entered.append(one.gate)
            _held.extend(one.engine.before_fork(one.env))


def _after_in_parent() -> None:
    while _held:
        _held.pop().abort()
    while _entered:
        _entered.pop().leave(_held)


def _after_in_child() -> None:
    for one in list(environments):  # also where the engine's is not open: locks, and whom they name as their holder
        one.in_child()
    _held.clear()
    _entered.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_in_parent, after_in_child=_after_in_child)

"""What a fork asks of the open environments: the child must not use, nor close, what the parent has open."""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from types import FrameType
from typing import TYPE_CHECKING, Any, Optional

from .. import locks
from ..engines import Transaction
from ..handlers import OURS
from ..locks import monotonic
from . import processlock
from .environment import OpenEnvironment

if TYPE_CHECKING:
    from .gate import Gate

environments: weakref.WeakSet[OpenEnvironment] = weakref.WeakSet()
"""Those of this process, also suspended ones."""

_held: list[Transaction] = []
_entered: list[Gate] = []
_locked: list[Any] = []

_PATIENCE = 1.0  # seconds for other threads to import what they are importing
_PAUSE = 0.001
_CFFI = os.path.join("cffi", "api.py")  # by which PyPy calls LMDB: it has a lock while it makes a type of C
_current_frames = sys._current_frames  # it has no other name


def _imports(frame: Optional[FrameType]) -> bool:
    """Whether the thread of *frame* imports something of zlmdb, or for zlmdb; or has cffi make a type of C for that."""
    importing = False
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(OURS) and (importing or frame.f_code.co_name == "<module>"):
            return True
        # There may be others between, as `importlib.import_module`, or what opens a file with an encoding.
        importing = importing or name.startswith("<frozen importlib") or name.endswith(_CFFI)
        frame = frame.f_back
    return False


def _wait_for_imports() -> None:
    """Python's lock of a module outlives the thread that has it in the child, which would wait for that for ever.

    So does that of cffi, which makes each type when it is first used.
    """
    me, end = threading.get_ident(), monotonic() + _PATIENCE
    while any([thread != me and _imports(frame) for thread, frame in _current_frames().items()]):
        if monotonic() > end:
            break
        time.sleep(_PAUSE)


def _before_fork() -> None:
    if threading.active_count() > 1:
        _wait_for_imports()
    for one in list(environments):
        env = one.present
        if env is not None:
            if one.gate is not None:  # no other thread may move the map under what is held
                one.gate.enter(_held)
                _entered.append(one.gate)
            _held.extend(one.engine.before_fork(env))
    if processlock.opening.acquire(timeout=_PATIENCE):
        _locked.append(processlock.opening)
    if threading.active_count() > 1:
        _wait_for_imports()  # again: others have gone on meanwhile


def _after_in_parent() -> None:
    while _locked:
        _locked.pop().release()
    while _held:
        _held.pop().abort()
    while _entered:
        _entered.pop().leave(_held)


def _after_in_child() -> None:
    for one in list(environments):  # also where the engine's is not open: locks, and whom they name as their holder
        one.in_child()
    _held.clear()
    _entered.clear()
    _locked.clear()
    processlock.opening = locks.rlock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_in_parent, after_in_child=_after_in_child)

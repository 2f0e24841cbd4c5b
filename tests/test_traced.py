"""Under tracers, profilers and debuggers, which hold frames, everything is as without them."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

from zlmdb.store import pool


def look(frame: FrameType, event: str, argument: object) -> Callable[..., Any]:
    """What a debugger does at every line: before Python 3.13 the frame keeps the variables in a dict from then on."""
    if "zlmdb" in frame.f_code.co_filename:
        _ = frame.f_locals
    return look


@contextmanager
def traced() -> Iterator[None]:
    before = sys.gettrace()
    sys.settrace(look)
    try:
        yield
    finally:
        sys.settrace(before)


@contextmanager
def profiled() -> Iterator[None]:
    before = sys.getprofile()
    sys.setprofile(look)
    try:
        yield
    finally:
        sys.setprofile(before)


@pytest.mark.parametrize("watched", [traced, profiled])
def test_references_are_counted_right_where_a_tracer_watches_the_import(watched: Any) -> None:
    spec = importlib.util.find_spec(pool.__name__)
    assert spec is not None and spec.loader is not None
    again: Any = importlib.util.module_from_spec(spec)
    with watched():
        spec.loader.exec_module(again)
    names = "IDLE", "_TABLE", "IN_LOOP", "_VIEW"
    assert [getattr(again, name) for name in names] == [getattr(pool, name) for name in names]

"""A function that waits to be run in a group, and what came of it."""

from __future__ import annotations

import signal
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import Context, copy_context
from opcode import opname
from typing import TYPE_CHECKING, Any, Optional, Union

from ..handlers import code_of
from ..locks import monotonic as _clock
from ..protocols import Protocol
from .results import BODIES, refuse_body
from .transaction import committed
from .waking import wake

if TYPE_CHECKING:
    from .asyncfutures import Awaited
    from .futures import Submitted


class Member:
    """A function that waits to be run, and what came of it."""

    since, begun, left = 0.0, False, False  # of the class, as those below: to give each function its own takes longer
    told: Sequence[object] = ()
    """Of its group: filled when that is stored."""
    others: Optional[deque[Member]] = None
    """Those of its group who are still to be woken."""
    result: Any = None
    error: Optional[BaseException] = None
    hooks: Sequence[Callable[[bool], object]] = ()

    def __init__(
        self, fn: Callable[[Any], Any], woken: Any, future: Union[Submitted[Any], Awaited, None] = None
    ) -> None:  # fmt: skip
        self.fn = fn
        self.context: Context = copy_context()
        self.future = future
        self.woken = woken
        if future is None:
            self.since = _clock()

    def run(self, tables: Any) -> None:
        """Call the function, and keep the result."""
        result = self.context.run(self.fn, tables)
        if type(result) in BODIES:
            refuse_body(result)
        self.result = result

    def wake(self) -> None:
        """Let it look what became of it, or lead."""
        wake(self.woken)

    def outcome(self) -> Any:
        """The result; raises what the function raised. What waits for the commit is called now."""
        error, result, hooks = self.error, self.result, self.hooks
        self.error = self.result = None
        try:
            if error is not None:
                raise error
            if hooks:
                committed(hooks)
            return result
        finally:
            del error  # which has this frame in its traceback


class Runs(Protocol):
    """A database, as far as groups know it."""

    def write(self, *, timeout: Optional[float] = None) -> Any:
        """A block with its tables."""
        ...

    def _run_alone(self, fn: Callable[[Any], Any], write: bool) -> Any:
        """The result of *fn* in a transaction of its own."""
        ...


Own = Callable[[Member, BaseException], bool]
"""Whether an exception that is no `Exception` is of the function of a member, and not for the thread that leads."""


def any_of(member: Member, error: BaseException) -> bool:
    """`Own` where no other exceptions come."""
    return True


def is_own(member: Member, error: BaseException) -> bool:
    """`Own` where signal handlers run, or other threads send exceptions.

    What another thread sends, and Ctrl-C, come at other instructions than ``raise``, and hardly ever just behind a call
    of `sys.exit`. In the main thread a signal handler may have raised it, if its frame is there. False also where
    another function in C raised it: nobody knows why.
    """
    trace = error.__traceback__
    if trace is None:
        return False
    codes = [trace.tb_frame.f_code]
    while trace.tb_next is not None:
        trace = trace.tb_next
        codes.append(trace.tb_frame.f_code)
    last = opname[codes[-1].co_code[trace.tb_lasti]]
    exits = isinstance(error, SystemExit) and "CALL" in last and "exit" in codes[-1].co_names
    if code_of(member.fn) not in codes or not (exits or last == "RAISE_VARARGS"):
        return False
    if threading.current_thread() is not threading.main_thread():
        return True
    return not {code_of(signal.getsignal(one)) for one in signal.valid_signals()}.intersection(codes)


def cancelled(_: Any) -> None:
    """In place of the function of a future that was cancelled."""

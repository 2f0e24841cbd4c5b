"""The error of a function that contains a mistake. Its traceback ends in that function, at the line of the mistake."""

from __future__ import annotations

from types import TracebackType
from typing import Optional

from ...handlers import of_program
from .trace import Refused


def mistake(refused: Refused) -> TypeError:
    """What *refused* says, as an error for the program.

    The frames that follow the function are left out of its traceback: the last line is then one of the program.
    """
    cause = refused.__cause__  # has the frames of the function if its own exception told the mistake
    trace: Optional[TracebackType] = None
    for entry in reversed([*of_program((refused if cause is None else cause).__traceback__)]):
        trace = TracebackType(trace, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return TypeError(str(refused)).with_traceback(trace)

"""What `Database.arows` returns: an asynchronous generator that says what to write where it is no such."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, NoReturn

_WRITE = (
    "rows of arows() come from a thread: write `async for row in db.arows(...)` in a coroutine; without asyncio, "
    "`with db.read() as t:` and loop over the query itself"
)


class AsyncRows(AsyncGenerator[Any, None]):
    """The generator *rows*. A loop runs in that one, without a call of this for each row."""

    __slots__ = ("_rows",)

    def __init__(self, rows: AsyncGenerator[Any, None]) -> None:
        self._rows = rows

    def __aiter__(self) -> AsyncGenerator[Any, None]:
        return self._rows

    def asend(self, value: None) -> Any:
        return self._rows.asend(value)

    def athrow(self, *error: Any) -> Any:
        return self._rows.athrow(*error)

    def aclose(self) -> Any:
        return self._rows.aclose()

    def __anext__(self) -> Any:
        return self._rows.__anext__()

    def __iter__(self) -> NoReturn:
        raise TypeError(_WRITE)

    def __await__(self) -> NoReturn:
        raise TypeError(_WRITE)

    def __repr__(self) -> str:
        return "<rows for `async for`>"

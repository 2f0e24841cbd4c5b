"""What is kept for code objects, as long as these live."""

from __future__ import annotations

import weakref
from contextlib import suppress
from types import CodeType
from typing import Any


class ByCode:
    """Values kept for code objects while these live. They are told apart by identity: equal code is not the same.

    >>> kept = ByCode(2)
    >>> code = compile("1", "", "eval")
    >>> kept.keep(code, "one")
    >>> kept.get(code)
    'one'
    >>> del code
    >>> import gc; _ = gc.collect()
    >>> len(kept)
    0
    """

    # Without a lock, which an interrupt could leave taken: each step is atomic, and at worst something is forgotten.

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept: dict[int, tuple[weakref.ref[CodeType], Any]] = {}

    def get(self, code: CodeType) -> Any:
        """What is kept for *code*, or None."""
        found = self._kept.get(id(code))
        return found[1] if found is not None and found[0]() is code else None

    def keep(self, code: CodeType, value: Any) -> None:
        """Keep *value* for *code*; beyond the limit the oldest is forgotten."""
        if type(code) is not CodeType:  # that of a function which is built into PyPy lives for ever
            return
        number = id(code)

        def forget(reference: weakref.ref[CodeType]) -> None:
            found = self._kept.get(number)
            if found is not None and found[0] is reference:
                self._kept.pop(number, None)

        self._kept[number] = weakref.ref(code, forget), value
        while len(self._kept) > self._limit:
            # Another thread may change it while the first key is looked for.
            with suppress(RuntimeError, StopIteration):
                self._kept.pop(next(iter(self._kept)), None)

    def __len__(self) -> int:
        return len(self._kept)

"""What a loop over records gives of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

_KINDS = {
    "pairs": "(load_key(key), value)", "values": "value", "keys": "load_key(key)", "engine keys": "key", "hits": "None"
}  # fmt: skip


class Want(NamedTuple):
    """What a loop gives of each record that matches.

    Its kind is ``pairs``, ``values``, ``keys``, ``engine keys``, ``hits`` (None) or ``fields``. These come as they are
    when there is *one* path, and as tuples otherwise.
    """

    kind: str
    paths: tuple[tuple[str, ...], ...] = ()
    one: bool = False

    @property
    def whole(self) -> bool:
        """Whether the value itself is asked for."""
        return self.kind in ("pairs", "values")

    @property
    def keyed(self) -> bool:
        """Whether the key is."""
        return self.kind in ("pairs", "keys", "engine keys")

    def source(self, of_path: Callable[[tuple[str, ...]], str]) -> str:
        """The expression; of whole values it uses ``value``."""
        if self.kind == "fields":
            parts = [of_path(path) for path in self.paths]
            return parts[0] if self.one else f"({', '.join(parts)},)"
        return _KINDS[self.kind]

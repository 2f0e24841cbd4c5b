"""The options of a store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Optional

from ..namedtuples import NamedTuple

if TYPE_CHECKING:
    from typing import Protocol
else:
    Protocol = object  # only type checkers ask; a class of a Protocol takes several times as long to make

Durability = Literal["full", "commit", "none"]


class Options(Protocol):
    """The options of a store that every engine knows: a named tuple, to which an engine may add its own.

    Databases share a store if their options are equal.
    """

    @property
    def readonly(self) -> bool:
        """Whether nothing can be written."""
        ...

    @property
    def maxsize(self) -> Optional[int]:
        """A hard limit in bytes; None: the store grows."""
        ...

    @property
    def durability(self) -> Durability:
        """What a commit survives; see `zlmdb.open`."""
        ...

    def _asdict(self) -> dict[str, Any]: ...


class PlainOptions(NamedTuple):
    """The options of an engine without options of its own."""

    readonly: bool = False
    maxsize: Optional[int] = None
    durability: Durability = "full"


def known_options(given: dict[str, Any], known: Sequence[str]) -> dict[str, Any]:
    """The *given* options. Raises TypeError for one that is not among the *known* options of an engine."""
    for name, value in given.items():
        if name not in known:
            raise TypeError(f"{name}={value!r}: the engine has no such option; it has {', '.join(known)}")
    return given

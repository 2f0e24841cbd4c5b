"""`typing.Protocol` for type checkers, who alone ask: a class of one takes several times as long to make as another."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Protocol as Protocol
else:
    Protocol = object

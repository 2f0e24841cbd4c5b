"""The logger ``zlmdb``. It imports `logging` with the first message, because that import takes long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import logging

    log = logging.getLogger("zlmdb")
else:

    class _Late:
        def __getattr__(self, name: str) -> Any:
            try:
                import logging
            except ImportError:  # in a jail without the library: a message is not worth an error
                return _unheard
            return getattr(logging.getLogger("zlmdb"), name)

    def _unheard(*args: Any, **kwargs: Any) -> None:
        pass

    log = _Late()

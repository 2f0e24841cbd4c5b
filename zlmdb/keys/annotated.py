"""From an annotation to its key codec. The few types that most keys have are found without the module of all types."""

from __future__ import annotations

from typing import Any

from .base import KeyCodec
from .plain import COMMON


def key_codec(annotation: Any) -> KeyCodec[Any]:
    """The codec that an annotation means: of a plain type, of ``Annotated`` with a codec in it, of a tuple of these.

    >>> from uuid import UUID
    >>> key_codec(tuple[UUID, str])
    <key codec tuple(uuid,str)>

    Raises `TypeError`, with a list of what there is, for anything else.
    """
    codec = COMMON.get(annotation) if isinstance(annotation, type) else None
    if codec is None:
        from .registry import codec_of  # late: it has UUIDs, tuples, and whatever else a key can be

        return codec_of(annotation)
    return codec

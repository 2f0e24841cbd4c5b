"""The generated functions of one type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

from ..base import Decode, Encode, is_of_depth
from ..depth import DEPTH, limited
from .layout import Layout
from .reader import make_decoder
from .runtime import Misfit
from .schema import Schema
from .view import View, make_viewer, modelled, record_of
from .writer import make_encoder

_LEAST = 8
"""The bytes that a table inside another one takes at least: its own head, and the reference that leads to it."""


class Codec:
    """The encoder and the decoders of values of one type."""

    def __init__(self, annotation: Any, localns: Optional[Mapping[str, Any]] = None) -> None:
        """Raises TypeError for a type that FlatBuffers cannot hold."""
        self.schema = Schema(annotation, localns)
        self.layouts = {table.fbs: Layout(table) for table in self.schema.tables}
        self.space: dict[str, Any] = {}
        """What the lines of the decoder have defined, once there is one."""

    def encoder(self, decode: Decode, *, checked: bool) -> Encode:
        """From values to bytes. *decode* is what reads them again, where only that tells whether they can be read."""
        encode = make_encoder(self.schema, self.layouts, checked=checked)
        if checked and any(table.recursive for table in self.schema.tables):
            encode = limited(encode, lambda data: len(data) > _LEAST * DEPTH)
        if not (checked and self.schema.recheck):
            return encode
        from ..reread import reread  # late: few models need it

        return reread(encode, decode, self.schema.label)

    def decoder(self) -> Decode:
        """From bytes to values."""
        decode, self.space = make_decoder(self.schema, self.layouts)
        return decode

    def viewer(self) -> Decode:
        """From bytes to views."""
        return make_viewer(self.schema, self.layouts)

    def misfit(self, value: Any, error: Exception) -> Optional[str]:
        """Why *value*, which raised *error*, cannot be written, with the path inside it; None if that is not known."""
        if is_of_depth(error) or (isinstance(error, Misfit) and error.args):
            return f"{self.schema.label}: {error}"  # too deep to look for it
        return self.schema.misfit(value)

    def stored_view(self, view: View) -> Optional[bytes]:
        """The bytes that *view* is of, if it is one of a whole record of this type; of a part they are too many."""
        if self.schema.boxed:
            return None
        return record_of(view, modelled(self.schema, self.schema.root))

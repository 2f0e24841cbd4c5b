"""CBOR of a model class read by libipld, in less than half of the time of cbor2, where libipld is installed.

libipld reads DAG-CBOR: the keys of maps are text, sorted and unique; there are no tags but one, no half floats, NaN,
infinities, negative zero or lengths that are left open. What `cborwriter` writes is nearly always that. All else
goes to cbor2, also what neither reads, so that errors are the same.
"""

from __future__ import annotations

from typing import Any, Callable

from ..handlers import let_through
from .base import Data, Decode
from .models import Model
from .shapes import walk

_LEAST = b"\x3b" + b"\xff" * 8
"""The least integer of CBOR, -2 ** 64. Releases of libipld before 3.1 read it as 0, and deep lists crash them."""

MOST = 1023
"""How many records are read by cbor2 at once, when one after the other was not DAG-CBOR, until the next is tried."""


def reader(model: Model, decode: Decode) -> Decode:
    """The function that reads values of *model* as *decode* does, by cbor2, but faster where it can."""
    try:
        import libipld
    except ImportError:
        return decode
    library: Any = libipld
    read: Callable[[Data], Any] = library.decode_dag_cbor
    if read(_LEAST) != -(2**64):
        return decode
    if any(bytes in part.sure for part in walk(model.shape)):  # the one tag that it reads, 42, comes as bytes
        return decode
    load = model.from_plain()
    left = pause = 0

    def decode_fast(data: Data) -> Any:
        nonlocal left, pause
        if left > 0:
            left -= 1
            return decode(data)
        try:
            plain = read(data)
        except Exception as error:  # not DAG-CBOR, not CBOR, too deep, or no bytes
            let_through(error)
            left = pause = min(2 * pause + 1, MOST)
            return decode(data)
        pause = 0
        return load(plain)

    return decode_fast

"""The encoder and decoder of pickles of one type: with checks, tuples of fields, and allowed classes."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any, Callable, NoReturn, Optional

from .base import Decode, Encode, typename
from .checks import Check
from .depth import DEPTH, MEMOIZE, SHORT_PICKLE, limited, may_be_deep, not_deep, pickle_may_be_deep
from .fieldtuples import FieldTuples, completed, fields_suffice, holds_records
from .pickle import loader, plain_dumps, read_back
from .pickleshapes import PickleReader, classes_in
from .reread import difference, settled
from .scalars import Shape
from .shapes import Record, TypedDictRecord
from .validated import holds_pydantic, validated


def typed_codec(
    annotation: Any,
    allow: Optional[tuple[type[Any], ...]],
    checked: bool,
    localns: Optional[Mapping[str, Any]],
    as_fields: bool,
) -> tuple[Encode, Decode]:
    """For values of type *annotation*; the options are those of `PickleSerializer`."""
    reader = PickleReader(localns)
    shape = reader.shape(annotation, typename(annotation))
    loads = loader(None if allow is None else [*allow, *classes_in(shape)])
    encode, decode = _plain_encoder(shape, checked), _plain_decoder(shape, loads)
    if isinstance(shape, Record) and is_of_fields(shape, reader):
        made = FieldTuples(shape, loads, checked=checked, trusting=allow is None)
        decode = made.decode
        if as_fields:
            encode = limited(made.encode, pickle_may_be_deep) if checked and may_be_deep(shape) else made.encode
    if checked and holds_pydantic(shape):
        return _as_validated(encode, decode, shape), decode
    return (encode if allow is None or not checked else read_back(encode, decode)), decode


def _as_validated(encode: Encode, decode: Decode, shape: Shape) -> Encode:
    """*encode*, but refuses what Pydantic does not accept, makes another type of, or changes each time it is read."""

    def encode_validated(value: Any) -> bytes:
        data = encode(value)
        found = decode(data)
        what = difference(value, found, shape.label, of_types=True)
        if what is not None:
            raise ValueError(what)
        if difference(value, found, shape.label) is not None:
            settled(found, decode(encode(found)), shape.label)
        return data

    return encode_validated


def is_of_fields(record: Record, reader: PickleReader) -> bool:
    """Whether objects of *record* are made of their fields, and hold none that may hold them in turn."""
    return not isinstance(record, TypedDictRecord) and record.cls not in reader.recursive and fields_suffice(record.cls)


def _plain_encoder(shape: Shape, checked: bool) -> Encode:
    """A generated check and ``pickle.dumps`` in one function: a call of Python more is felt in small values."""
    if not checked:
        return plain_dumps
    check = Check("refuse(value)", {"dumps": pickle.dumps, "refuse": _refuse(shape)})
    shape.test(check, "value")
    result = "dumps(value, 5)"
    if may_be_deep(shape):
        check.names["not_deep"] = not_deep
        short = f"len(data := dumps(value, 5)) <= {SHORT_PICKLE} or data.count({MEMOIZE!r}) < {DEPTH}"
        result = f"data if {short} else not_deep(value, data)"
    return check.made(result, f"pickling {shape.label}")


def _plain_decoder(shape: Shape, loads: Decode) -> Decode:
    check = Check("refuse(value)", {"loads": loads, "refuse": _refuse(shape)})
    check.add("value = loads(value)")
    if holds_records(shape):
        check.add(f"{check.constant(completed)}(value, {check.constant(shape)})")
    if holds_pydantic(shape):
        check.add(f"value = {check.constant(validated)}(value, {check.constant(shape)})")
    shape.test(check, "value")
    return check.made("value", f"unpickling {shape.label}")


def _refuse(shape: Shape) -> Callable[[Any], NoReturn]:
    """What raises ValueError, saying why a value does not fit *shape*."""

    def refuse(value: Any) -> NoReturn:
        raise ValueError(shape.misfit(value, shape.label))

    return refuse

"""Encoder and decoder of pickles of one type: checked, of fields only where that suffices, of allowed classes only."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Iterable, Mapping
from typing import Any, Callable, Optional

from .base import Decode, Encode, typename
from .fieldtuples import FieldTuples, completed, fields_suffice
from .leaves import Shape
from .pickleshapes import PickleReader, classes_in
from .shapes import Record, TypedDictRecord

_dumps: Encode = functools.partial(pickle.dumps, protocol=5)


def typed_codec(
    annotation: Any,
    loader: Callable[[Optional[Iterable[type[Any]]]], Decode],
    allow: Optional[tuple[type[Any], ...]],
    checked: bool,
    localns: Optional[Mapping[str, Any]],
    as_fields: bool,
) -> tuple[Encode, Decode]:
    """For values of type *annotation*; *loader* makes what reads pickles of certain classes, or of any (None)."""
    reader = PickleReader(localns)
    shape = reader.shape(annotation, typename(annotation))
    loads = loader(None if allow is None else [*allow, *classes_in(shape)])
    encode, decode = _plain_encoder(shape, checked), _plain_decoder(shape, loads)
    if isinstance(shape, Record) and is_of_fields(shape, reader):
        made = FieldTuples(shape, loads, checked=checked, trusting=allow is None)
        encode, decode = made.encode if as_fields else encode, made.decode
    if allow is None or not checked:
        return encode, decode

    def encode_reread(value: Any) -> bytes:
        data = encode(value)
        decode(data)
        return data

    return encode_reread, decode


def is_of_fields(record: Record, reader: PickleReader) -> bool:
    """Whether objects of *record* are made of their fields, and hold none that may hold them in turn."""
    return not isinstance(record, TypedDictRecord) and record.cls not in reader.recursive and fields_suffice(record.cls)


def _plain_encoder(shape: Shape, checked: bool) -> Encode:
    if not checked:
        return _dumps
    fits, misfit, label = shape.fits, shape.misfit, shape.label

    def encode(value: Any) -> bytes:
        if fits(value):
            return _dumps(value)
        raise ValueError(misfit(value, label))

    return encode


def _plain_decoder(shape: Shape, loads: Decode) -> Decode:
    fits, misfit, label = shape.fits, shape.misfit, shape.label

    def decode(data: Any) -> Any:
        value = loads(data)
        completed(value, shape)
        if fits(value):
            return value
        raise ValueError(misfit(value, label))

    return decode

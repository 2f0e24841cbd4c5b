"""CBOR of model classes is read as cbor2 reads it, whatever reads it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from random import Random
from typing import Any, Optional
from uuid import UUID

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zlmdb
from zlmdb.values import Cbor, cborreader, serializer
from zlmdb.values.cborwriter import writer
from zlmdb.values.models import Model

pytestmark = pytest.mark.twice  # encodings do not depend on the version of Python

libipld = pytest.importorskip("libipld", reason="there is no libipld for PyPy")


@dataclass
class Part:
    name: str
    size: Optional[float] = None


@dataclass
class Thing:
    id: UUID
    number: int
    real: float
    text: str
    born: date
    parts: list[Part] = field(default_factory=list)
    scores: dict[str, float] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)


MODEL = Model(Thing, "cbor", cbor2.dumps)
FLOATS = st.floats(allow_nan=False) | st.sampled_from([-0.0, 0.5, float("inf")])
THINGS = st.builds(
    Thing, st.uuids(), st.integers(-(2**63), 2**63), FLOATS, st.text(max_size=30), st.dates(),
    st.lists(st.builds(Part, st.text(max_size=3), st.none() | FLOATS), max_size=3),
    st.dictionaries(st.text(max_size=3), FLOATS, max_size=4), st.dictionaries(st.integers(), st.integers(), max_size=1),
)  # fmt: skip


def write(value: Thing) -> bytes:
    made = writer(MODEL.shape, cbor2.dumps)
    assert made is not None
    return made(value)


class Slow:
    """What reads by cbor2, and counts how often."""

    def __init__(self) -> None:
        self.calls = 0
        self.load = MODEL.from_plain()

    def __call__(self, data: Any) -> Any:
        self.calls += 1
        return self.load(cbor2.loads(data))


def read(decode: Any, data: bytes) -> Any:
    """The value, or that there is none."""
    try:
        return decode(data)
    except Exception:
        return "refused"


@given(THINGS)
def test_what_is_written_is_read_as_cbor2_does(value: Thing) -> None:
    slow = Slow()
    data = write(value)
    found = cborreader.reader(MODEL, slow)(data)
    assert repr(found) == repr(slow(data)) == repr(value)


@given(THINGS, st.randoms(use_true_random=False))
def test_damaged_bytes_are_read_as_cbor2_does(value: Thing, dice: Random) -> None:
    slow = Slow()
    for _ in range(10):
        data = bytearray(write(value))
        for _ in range(dice.randrange(1, 4)):
            data[dice.randrange(len(data))] = dice.choice(
                (0x00, 0x61, 0x80, 0xA0, 0xF6, 0xF9, 0xFF, dice.randrange(256))
            )
        del data[dice.choice((len(data), dice.randrange(len(data)))) :]
        fast = cborreader.reader(MODEL, slow)
        assert repr(read(fast, bytes(data))) == repr(read(slow, bytes(data)))


THING = Thing(UUID(int=1), 1, 0.5, "t", date(2020, 1, 1), [Part("p", 1.5)], {"a": 1.5, "b": 2.5})


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x81" * 100_000,
        b"\xa1\x61a" * 100_000,
        b"\x9b\x00\xff\xff\xff\xff\xff\xff\xff",
        b"\xbb\x00\xff\xff\xff\xff\xff\xff\xff",
        b"\x7b\x00\xff\xff\xff\xff\xff\xff\xff",
        cbor2.dumps(cbor2.CBORTag(42, b"\x00\x01\x55\x00\x02ab")),
    ],
    ids=["empty", "deep", "deep maps", "many items", "many pairs", "long text", "the tag it knows"],
)
def test_hostile_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(zlmdb.DecodeError):
        serializer(Cbor[Thing]).decode(data)


@pytest.mark.parametrize("least", [0, 2**63 - 1])
def test_a_release_that_reads_integers_wrongly_is_not_used(least: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """libipld before 3.1, which other packages may ask for: -2 ** 64 was 0, and a deep list ended the process."""
    monkeypatch.setattr(libipld, "decode_dag_cbor", lambda data: least)
    slow = Slow()
    assert cborreader.reader(MODEL, slow) is slow


def test_records_in_another_order_are_read_and_seldom_tried() -> None:
    """So an older program or another library wrote them; the fast reader is asked again after 1, 3, 7, ... of them."""
    slow = Slow()
    fast = cborreader.reader(MODEL, slow)
    ours, other = write(THING), cbor2.dumps(MODEL.shape.dump(THING))
    assert ours != other
    assert fast(ours) == THING
    assert slow.calls == 0
    for _ in range(10_000):
        assert fast(other) == THING
    assert slow.calls == 10_000
    for _ in range(2 * cborreader.MOST):
        assert fast(ours) == THING
    assert slow.calls <= 10_000 + cborreader.MOST


def test_views_of_bytes_are_read() -> None:
    assert serializer(Cbor[Thing]).decode(memoryview(write(THING))) == THING


def test_bytes_in_values_are_left_to_cbor2() -> None:
    """The tag that libipld knows comes out as bytes: a field of bytes would take it."""

    @dataclass
    class Blob:
        data: bytes

    tagged = b"\xa1\x64data" + cbor2.dumps(cbor2.CBORTag(42, b"\x00\x01\x55\x00\x02ab"))
    assert serializer(Cbor[Blob]).decode(cbor2.dumps({"data": b"x"})) == Blob(b"x")
    with pytest.raises(zlmdb.DecodeError):
        serializer(Cbor[Blob]).decode(tagged)

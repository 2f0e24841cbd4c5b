"""The text of a float that is computed in Python is that of repr, for each float."""

from __future__ import annotations

import json
import math
import random
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zlmdb.values import floattexts, jsonwriter
from zlmdb.values.floattexts import text_of_float
from zlmdb.values.jsonwriter import writer
from zlmdb.values.models import Model

pytestmark = pytest.mark.twice  # encodings do not depend on the version of Python

SHORT = st.builds(lambda digits, places: digits / 10**places, st.integers(-(10**16), 10**16), st.integers(0, 20))
"""As people write them: the digits end early."""

NEAR = st.builds(
    lambda base, exponent, steps: math.ldexp(1.0, exponent) * base + steps * math.ldexp(1.0, exponent - 52),
    st.sampled_from([1.0, 1.25, 1.5]), st.integers(-16, 56), st.integers(-9, 9),
)  # fmt: skip
"""Around powers of two, where the distance to the next float changes."""

POWERS = st.builds(
    lambda exponent, steps: float(f"1e{exponent}") * (1 + steps * 2**-52), st.integers(-6, 18), st.integers(-9, 9)
)
"""Around powers of ten, where the number of digits changes."""


@given(st.one_of(st.floats(), st.floats(1e-4, 1e16), SHORT, NEAR, POWERS, st.integers(-(2**54), 2**54).map(float)))
def test_the_text_is_that_of_repr(number: float) -> None:
    assert text_of_float(number) == repr(number)


@pytest.mark.parametrize(
    "number",
    [
        0.0, -0.0, 1.0, 0.1, 0.3, 0.1 + 0.2, 1e-4, 9.999999999999999e-05, 0.00010000000000000002, 1e15, 1e16,
        9999999999999998.0, 123456789012345.6, 5e-324, 1.7976931348623157e308, math.inf, -math.inf, math.nan,
        9007199254740993.0, 2.0**53, 0.5, 0.25, 4.35, 0.07, 100.0, 1234.5, 2.675, 0.9999999999999999,
    ],
)  # fmt: skip
def test_the_text_of_a_remarkable_number_is_that_of_repr(number: float) -> None:
    for one in (number, -number, 2 * number):
        assert text_of_float(one) == repr(one)


def test_few_of_many_numbers_are_left_to_repr(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a mistake would be right, and slow."""
    left: list[float] = []
    monkeypatch.setattr(floattexts, "repr", lambda x: left.append(x) or repr(x), raising=False)
    dice = random.Random(4)
    numbers = [dice.uniform(0.1, 1) * 10 ** dice.randrange(-2, 13) for _ in range(3000)]
    numbers += [round(dice.uniform(-1000, 1000), dice.randrange(1, 6)) for _ in range(3000)]
    assert [text_of_float(number) for number in numbers] == [repr(number) for number in numbers]
    assert len(left) < 10


@dataclass
class Row:
    one: float
    many: list[float]
    named: dict[str, float]


def test_json_is_the_same_with_either_function(monkeypatch: pytest.MonkeyPatch) -> None:
    row = Row(0.1, [1.0, 2.5e-7, 1e22], {"a": 1 / 3})
    found: list[Any] = []
    for function in (repr, text_of_float):
        monkeypatch.setattr(jsonwriter, "FLOAT_TEXT", function)
        write = writer(Model(Row, "json", lambda plain: b"").shape, json.dumps)
        assert write is not None
        found.append(write(row))
    assert found[0] == found[1] == b'{"one":0.1,"many":[1.0,2.5e-07,1e+22],"named":{"a": 0.3333333333333333}}'

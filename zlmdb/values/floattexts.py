"""The shortest text of a float, computed in Python: the same as ``repr``, which takes PyPy four times as long.

A float from 0.0001 to 10**16 times a power of ten is a number of 17 digits before the point. Two floats hold it exactly
(Dekker, A floating-point technique for extending the available precision, 1971), as the power is exact. All numbers up
to half the distance to the next float from there are read back as the float, and the shortest of them is its text: one
that ends in two zeros or more if there is one, else the nearest that ends in a zero, else the nearest. Where one of
these comparisons is closer than `CLOSE`, ``repr`` says.
"""

from __future__ import annotations

from bisect import bisect_right
from math import floor

CLOSE = 1e-6
"""The comparisons are of numbers up to 108, and right to some 1e-14."""

_SPLITTER = 134217729.0  # 2**27 + 1: what it splits a float into are halves of its digits
_LEAST = -4
_BOUNDS = tuple([float(f"1e{exponent}") for exponent in range(_LEAST, 17)])
_ZEROS = tuple(["0." + "0" * number for number in range(-_LEAST)])


def _halves(x: float) -> tuple[float, float]:
    high = _SPLITTER * x - (_SPLITTER * x - x)
    return high, x - high


_POWERS = tuple([(float(10**power), *_halves(float(10**power))) for power in range(16 - _LEAST, -1, -1)])


def text_of_float(x: float) -> str:
    """What ``repr`` gives."""
    if x < 0.0:
        return "-" + text_of_float(-x)
    if not 1e-4 <= x < 1e16:
        return repr(x)
    place = bisect_right(_BOUNDS, x) - 1
    power, power_high, power_low = _POWERS[place]
    step = x + x * 1.1102230246251565e-16 - x  # the distance to the next float; of a power of two, 0
    reach = step * 0.5 * power
    high = _SPLITTER * x - (_SPLITTER * x - x)
    low = x - high
    product = x * power
    rest = ((high * power_high - product) + high * power_low + low * power_high) + low * power_low
    whole = int(product)
    last = whole % 100
    at = last + rest
    if not (reach > 0.5 and product >= 1e16) or abs(at - reach) < CLOSE or abs(100.0 - at - reach) < CLOSE:
        return repr(x)
    if abs(at) < reach:
        found = whole - last
    elif abs(100.0 - at) < reach:
        found = whole - last + 100
    else:
        tens = floor(at * 0.1 + 0.5)
        off = abs(at - 10.0 * tens)
        if abs(off - reach) < CLOSE or off > 5.0 - CLOSE:
            return repr(x)
        if off < reach:
            found = whole - last + 10 * tens
        else:
            ones = floor(at + 0.5)
            if abs(at - ones) > 0.5 - CLOSE:
                return repr(x)
            found = whole - last + ones
    digits = str(found)
    if len(digits) != 17:
        return repr(x)
    exponent = place + _LEAST
    if exponent < 0:
        return _ZEROS[-1 - exponent] + digits.rstrip("0")
    return digits[: exponent + 1] + "." + (digits[exponent + 1 :].rstrip("0") or "0")

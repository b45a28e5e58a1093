# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""Rounding to the narrow types, to the bit and from each wider one: once, ties
to even, NaN where f8E4M3FN has no number and infinity in the others."""

import numpy as np
import pytest

import floats
from runner import function, run, tensor

# Mantissa bits, smallest exponent, and the least size that is out of range
# after rounding.
FORMATS = {
    "f8E4M3FN": (3, -6, 464.0, np.nan),
    "f8E5M2": (2, -14, 61440.0, np.inf),
    "f16": (10, -14, 65520.0, np.inf),
    "bf16": (7, -126, 2.0**128 - 2.0**119, np.inf),
}
LENGTH = 256


def nearest(kind, x):
    """float64 numbers rounded once to `kind`, by scaling and np.rint."""
    mantissa, lowest, bound, beyond = FORMATS[kind]
    _, exponent = np.frexp(x)
    exponent = np.maximum(exponent - 1, lowest) - mantissa
    finite = np.where(np.isfinite(x), x, 0.0)
    result = np.ldexp(np.rint(np.ldexp(finite, -exponent)), exponent)
    # The tie between the largest f8E4M3FN, which is even, and the next.
    size = np.abs(x)
    outside = size > bound if kind == "f8E4M3FN" else size >= bound
    result = np.where(outside, np.copysign(beyond, x), result)
    return np.where(np.isnan(x), np.nan, result)


def codes(kind):
    """All finite numbers of an 8-bit format, without -0."""
    mantissa, lowest, bound, _ = FORMATS[kind]
    steps = np.arange(128)
    exponent = np.maximum(steps >> mantissa, 1) + lowest - 1
    part = steps & (2**mantissa - 1)
    one = np.where(steps >> mantissa, 2**mantissa, 0)
    numbers = np.ldexp((one + part).astype(np.float64), exponent - mantissa)
    numbers = numbers[numbers < bound]
    return np.concatenate([numbers, -numbers])


def samples(kind, source):
    mantissa, lowest, bound, _ = FORMATS[kind]
    generator = np.random.default_rng(1)
    top = np.log2(bound) + 1
    numbers = np.exp2(generator.uniform(lowest - mantissa - 2, min(top, 127.9), 60000))
    # Ties, and what is next to them: rounding twice takes it for a tie.
    exponent = np.maximum(np.frexp(numbers)[1] - 1, lowest) - mantissa
    ties = np.ldexp(np.floor(np.ldexp(numbers, -exponent)) + 0.5, exponent)
    ties = ties[ties < 2.0**127.9]
    near = ties * (1 + 2.0**-40), ties * (1 - 2.0**-40)
    edges = [0.0, np.inf, np.nan, bound, bound * (1 + 2.0**-20), bound * 0.999999]
    edges += [480.0, 448.0, 65536.0, 57344.0, 2.0**-149, 2.0**-24]
    numbers = np.concatenate([edges, numbers, ties, *near])
    numbers = np.concatenate([numbers, -numbers])
    if kind in ("f8E4M3FN", "f8E5M2"):
        numbers = np.concatenate([numbers, codes(kind)])
    with np.errstate(over="ignore"):
        numbers = (
            numbers.astype(np.float32).astype(np.float64)
            if source == "bf16"
            else numbers
        )
        numbers = floats.round_to(source, numbers)
    if source == "f16":
        all_halves = np.arange(65536, dtype=np.uint16).view(np.float16)
        numbers = np.concatenate([numbers, all_halves.astype(np.float64)])
    padding = -numbers.size % LENGTH
    return np.concatenate([numbers, np.zeros(padding)]).reshape(-1, LENGTH)


@pytest.mark.parametrize(
    "source,kind",
    [
        (source, kind)
        for source in ("f16", "bf16", "f32", "f64")
        for kind in ("f8E4M3FN", "f8E5M2")
    ]
    + [("f64", "f16"), ("f64", "bf16"), ("f32", "bf16"), ("f32", "f16")],
)
def test_rounding(source, kind):
    wide, narrow = tensor((None, LENGTH), source), tensor((None, LENGTH), kind)
    body = [
        f"arith.truncf %x : {wide} to {narrow}",
        f"arith.extf %0 : {narrow} to {wide}",
    ]
    text = function([("x", wide)], [wide], body)
    x = samples(kind, source)
    (result,) = run(text, {"x": (source, x)}, [source])
    got, expected = floats.decode(source, result), nearest(kind, x)
    assert np.array_equal(got, expected, equal_nan=True), [
        (x[i], got[i], expected[i])
        for i in map(tuple, np.argwhere(~((got == expected) | np.isnan(got))))
    ][:8]
    known = ~np.isnan(x)
    assert np.array_equal(
        np.signbit(got[known & ~np.isnan(got)]), np.signbit(x[known & ~np.isnan(got)])
    )

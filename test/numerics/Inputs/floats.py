# Part of Bastile, under the MIT License. See LICENSE.
"""Element types in NumPy, which has neither bf16 nor floats of 8 bits."""

import numpy as np

TYPES = ("f32", "f16", "bf16", "f64")
NARROW = ("f16", "bf16")
SMALL = ("f8E4M3FN", "f8E5M2")

_NATIVE = {
    "f64": np.float64,
    "f32": np.float32,
    "f16": np.float16,
    "i8": np.int8,
    "i32": np.int32,
    "i64": np.int64,
}
_MANTISSA_BITS = {"f64": 52, "f32": 23, "f16": 10, "bf16": 7}
_MIN_EXPONENT = {"f64": -1022, "f32": -126, "f16": -14, "bf16": -126}


def _make_small(exponent_bits, first_special):
    """The values of all positive codes of an exponent and a mantissa."""
    codes = np.arange(128)
    mantissa_bits = 7 - exponent_bits
    exponent = codes >> mantissa_bits
    fraction = codes & ((1 << mantissa_bits) - 1)
    fraction = fraction + np.where(exponent > 0, 1 << mantissa_bits, 0)
    bias = (1 << (exponent_bits - 1)) - 1 + mantissa_bits
    exponent = np.maximum(exponent, 1) - bias
    values = np.ldexp(fraction.astype(np.float64), exponent)
    values[first_special:] = np.nan
    return values


_SMALL = {"f8E4M3FN": _make_small(4, 127), "f8E5M2": _make_small(5, 124)}
_SMALL["f8E5M2"][124] = np.inf
LARGEST = {kind: values[np.isfinite(values)].max() for kind, values in _SMALL.items()}


def _encode_small(kind, values):
    """Rounds to the nearest code, ties to the even one."""
    table = _SMALL[kind]
    finite = table[table <= LARGEST[kind]]
    # The value that would come next stands for an overflow.
    numbers = np.append(finite, 2 * finite[-1] - finite[-2])
    magnitude = np.abs(values.astype(np.float64))
    middles = (numbers[1:] + numbers[:-1]) / 2
    codes = np.searchsorted(middles, magnitude, side="left")
    tie = (codes < len(middles)) & (
        magnitude == middles[np.minimum(codes, len(middles) - 1)]
    )
    codes = codes + (tie & (codes % 2 == 1))
    codes = np.where(np.isnan(values), 127, codes)
    return (codes + np.where(np.signbit(values), 128, 0)).astype(np.uint8)


def encode(kind, values):
    """The array that holds `values`, of float64 or float32, rounded once."""
    values = np.asarray(values)
    if kind in SMALL:
        return _encode_small(kind, values)
    if kind != "bf16":
        with np.errstate(over="ignore"):
            return values.astype(_NATIVE[kind])
    single = values.astype(np.float32)
    # Rounding twice is not rounding once.
    assert np.array_equal(single, values, equal_nan=True)
    bits = single.view(np.uint32)
    half = np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    # For a NaN, the carry could give a number.
    rounded = np.where(np.isnan(single), np.uint32(0x7FC00000), bits + half)
    return (rounded >> np.uint32(16)).astype(np.uint16)


def decode(kind, array):
    """The float64 values of what `encode` returns or a file holds."""
    if kind in SMALL:
        values = _SMALL[kind][array & 127]
        return np.where(array & 128, -values, values)
    if kind != "bf16":
        return array.astype(np.float64)
    bits = np.ascontiguousarray(array).view(np.uint16).astype(np.uint32)
    return (bits << np.uint32(16)).view(np.float32).astype(np.float64)


def round_to(kind, values):
    return decode(kind, encode(kind, values))


def random(kind, shape, seed, scale=1):
    """Normal random numbers that `kind` holds exactly, as float64."""
    generator = np.random.default_rng(seed)
    source = np.float64 if kind == "f64" else np.float32
    numbers = generator.standard_normal(shape, dtype=source)
    return round_to(kind, source(scale) * numbers)


def ulp(kind, values):
    """The unit in the last place of each value."""
    _, exponent = np.frexp(values)
    exponent = np.maximum(exponent - 1, _MIN_EXPONENT[kind])
    return np.ldexp(1.0, exponent - _MANTISSA_BITS[kind])


def ulp_errors(kind, got, expected):
    """Distances in units in the last place of the expected value."""
    return np.abs(got - expected) / ulp(kind, expected)


def round_inside(kind, values):
    """Rounds to `kind` in the middle of a formula: first to the type in which the
    formula computes, float32 or for float64 itself."""
    computed = values if kind == "f64" else round_to("f32", values)
    return round_to(kind, computed)


def parts_of_fair(kind, got, expected, size, relative):
    """The error of each element as a part of the allowed one: half a unit for the
    rounding at the end, and `relative` parts of `size`, the sum of the absolute
    values of the element's terms."""
    fair = 0.505 * ulp(kind, expected) + relative * size
    return np.abs(got - expected) / fair

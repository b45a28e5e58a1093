# Part of Bastile, under the MIT License. See LICENSE.
"""Elementary functions in float64. Tests of float64 itself are only as exact as the
standard library."""

import math

import numpy as np

import floats

ROWS, LENGTH = 64, 4096


def _by_element(function):
    def apply(*arrays):
        result = np.empty_like(arrays[0])
        lists = [array.tolist() for array in arrays]
        result[:] = [function(*numbers) for numbers in zip(*lists)]
        return result

    return apply


def _round(x):
    """Rounds to the nearest integer, ties away from zero."""
    truncated = np.trunc(x)
    is_away = np.abs(x - truncated) >= 0.5
    return np.copysign(truncated + np.where(is_away, np.sign(x), 0), x)


# For each function: the reference and the number of operands.
FUNCTIONS = {
    "math.exp": (np.exp, 1),
    "math.exp2": (np.exp2, 1),
    "math.expm1": (np.expm1, 1),
    "math.log": (np.log, 1),
    "math.log2": (np.log2, 1),
    "math.log1p": (np.log1p, 1),
    "math.tanh": (np.tanh, 1),
    "math.sin": (np.sin, 1),
    "math.cos": (np.cos, 1),
    "math.erf": (_by_element(math.erf), 1),
    "math.erfc": (_by_element(math.erfc), 1),
    "math.log10": (np.log10, 1),
    "math.tan": (np.tan, 1),
    "math.asin": (np.arcsin, 1),
    "math.acos": (np.arccos, 1),
    "math.atan": (np.arctan, 1),
    "math.sinh": (np.sinh, 1),
    "math.cosh": (np.cosh, 1),
    "math.asinh": (np.arcsinh, 1),
    "math.acosh": (np.arccosh, 1),
    "math.atanh": (np.arctanh, 1),
    "math.sqrt": (np.sqrt, 1),
    "math.cbrt": (np.cbrt, 1),
    "math.rsqrt": (lambda x: 1 / np.sqrt(x), 1),
    "math.absf": (np.abs, 1),
    "math.floor": (np.floor, 1),
    "math.ceil": (np.ceil, 1),
    "math.round": (_round, 1),
    "math.roundeven": (np.rint, 1),
    "math.copysign": (np.copysign, 2),
    "math.atan2": (np.arctan2, 2),
    "math.powf": (np.power, 2),
    "arith.divf": (np.divide, 2),
    "arith.remf": (np.fmod, 2),
    "arith.maximumf": (np.maximum, 2),
    "arith.minimumf": (np.minimum, 2),
    "arith.maxnumf": (np.fmax, 2),
    "arith.minnumf": (np.fmin, 2),
}


SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, -0.5, 2.0, -2.0]


def spread(kind, seed):
    """Numbers of all exponents, many of moderate size, and special ones."""
    generator = np.random.default_rng(seed)
    count = ROWS * LENGTH
    if kind == "f32":
        exponents = generator.uniform(-149, 128, count // 4)
        edges = [2.0**-149, 2.0**-126, 2.0**128 - 2.0**104]
    else:
        exponents = generator.uniform(-1074, 1024, count // 4)
        edges = [2.0**-1074, 2.0**-1022, np.finfo(np.float64).max]
    parts = [
        np.exp2(exponents) * generator.choice([-1, 1], count // 4),
        generator.uniform(-110, 110, count // 4),
        generator.uniform(-4, 4, count // 4),
        1
        + generator.uniform(-1, 1, count // 8)
        * np.exp2(generator.uniform(-24, 0, count // 8)),
        # Integers and the numbers halfway between.
        np.round(generator.uniform(-64, 64, count // 8)) / 2,
    ]
    numbers = np.concatenate(parts)
    generator.shuffle(numbers)
    special = SPECIAL + edges + [-edge for edge in edges]
    # Every special value beside every other, in the first two operands.
    rows = np.repeat(special, len(special))
    columns = np.tile(special, len(special))
    numbers[: rows.size] = rows if seed == 1 else columns
    return floats.round_to(kind, numbers.reshape(ROWS, LENGTH))


def errors(kind, got, expected):
    """As `ulp_errors`, with 0 for equal results, NaNs included, and infinity where
    only one of the two is a number."""
    got, expected = got.ravel(), expected.ravel()
    alike = (got == expected) | (np.isnan(got) & np.isnan(expected))
    with np.errstate(over="ignore", invalid="ignore"):
        result = floats.ulp_errors(kind, got, expected)
        # Past the largest number, the rounding decides.
        wide = expected if kind == "f64" else expected.astype(np.float32)
        rounded = floats.round_to(kind, wide)
    alike |= np.isinf(got) & (got == rounded)
    result[np.isnan(result)] = np.inf
    result[alike] = 0
    return result

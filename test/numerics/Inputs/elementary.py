"""Elementary functions in float64, where float64 is what is tested only as good
as the standard library's."""

import math

import numpy as np


def _by_element(function):
    def apply(*arrays):
        result = np.empty_like(arrays[0])
        lists = [array.tolist() for array in arrays]
        result[:] = [function(*numbers) for numbers in zip(*lists)]
        return result

    return apply


def _round(x):
    """To the nearest, ties away from zero."""
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
    "math.sqrt": (np.sqrt, 1),
    "math.rsqrt": (lambda x: 1 / np.sqrt(x), 1),
    "math.absf": (np.abs, 1),
    "math.floor": (np.floor, 1),
    "math.ceil": (np.ceil, 1),
    "math.round": (_round, 1),
    "math.roundeven": (np.rint, 1),
    "math.copysign": (np.copysign, 2),
    "math.powf": (np.power, 2),
    "arith.divf": (np.divide, 2),
    "arith.remf": (np.fmod, 2),
    "arith.maximumf": (np.maximum, 2),
    "arith.minimumf": (np.minimum, 2),
    "arith.maxnumf": (np.fmax, 2),
    "arith.minnumf": (np.fmin, 2),
}

# Part of Bastile, under the MIT License. See LICENSE.
"""Numbers with a bound of the error of a computation in float32.

A value is computed in float64, and its bound is the sum of all errors that roundings
on the way can have caused, to first order where that is enough. So the bound follows
the size of the terms, also where the terms cancel. A bound of 0 says that the value
is exact, as sums, products and choices of numbers of few bits are; comparisons of
exact values are sure, and so are ties.
"""

import math

import numpy as np

import floats

# Roundings of ops other than sums, products and choices. A quotient may be a product
# with a reciprocal, each an approximation where a rounding to 16 bits follows.
QUOTIENT = 6
FUNCTION = 8

# The relative error of one rounding, and the type of the computation.
_unit = 2.0**-24
_type = np.float32


def compute_in(kind):
    """Chooses between f32 and f64. For f64 the reference itself rounds as much."""
    global _unit, _type
    _unit = 2.0**-24 if kind == "f32" else 2.0**-52
    _type = np.float32 if kind == "f32" else np.float64


def unit():
    return _unit


class Bounded:
    """Values, and a bound of the error of each."""

    __slots__ = ("value", "error")

    def __init__(self, value, error=0.0):
        self.value = np.asarray(value, dtype=np.float64)
        error = np.asarray(error, dtype=np.float64)
        self.error = np.broadcast_to(error, self.value.shape)

    @property
    def shape(self):
        return self.value.shape

    def is_exact(self):
        return not self.error.any()

    def map(self, move):
        """Values that are moved and repeated, but not computed on."""
        return Bounded(move(self.value), move(self.error))

    def __add__(self, other):
        other = as_bounded(other)
        return _rounded(self.value + other.value, self.error + other.error)

    def __sub__(self, other):
        return self + -as_bounded(other)

    def __rsub__(self, other):
        return as_bounded(other) + -self

    def __mul__(self, other):
        other = as_bounded(other)
        with np.errstate(all="ignore"):
            error = (
                np.abs(self.value) * other.error
                + np.abs(other.value) * self.error
                + self.error * other.error
            )
            return _rounded(self.value * other.value, error)

    def __truediv__(self, other):
        other = as_bounded(other)
        with np.errstate(all="ignore"):
            value = self.value / other.value
            least = np.abs(other.value) - other.error
            error = (self.error + np.abs(value) * other.error) / least
        error = np.where(least > 0, error, np.inf)
        return Bounded(value, error + QUOTIENT * _unit * np.abs(value))

    def __rtruediv__(self, other):
        return as_bounded(other) / self

    def __neg__(self):
        return Bounded(-self.value, self.error)

    __radd__ = __add__
    __rmul__ = __mul__


def as_bounded(number):
    return number if isinstance(number, Bounded) else Bounded(number)


def _rounded(value, error):
    """A sum or product: exact if its operands are and the type holds it."""
    with np.errstate(all="ignore"):
        is_held = (error == 0) & (value.astype(_type) == value)
        if _type is np.float64:
            is_held &= value.astype(np.float32) == value
        return Bounded(
            value, np.where(is_held, 0, error + _unit * (np.abs(value) + error))
        )


def monotone(function, x, units=FUNCTION, absolute=0.0, least=-np.inf):
    """A function that rises or falls throughout, with errors of some roundings
    of its value and of numbers as large as `absolute`."""
    with np.errstate(all="ignore"):
        value = function(x.value)
        low = x.value - x.error
        spread = np.maximum(
            np.abs(function(x.value + x.error) - value),
            np.abs(function(low) - value),
        )
    spread = np.where((low > least) | (x.error == 0), spread, np.inf)
    return Bounded(value, spread + _unit * (units * np.abs(value) + absolute))


def exp(x):
    # The exponential makes of the rounding of its argument a relative error.
    return monotone(np.exp, x, units=4 + 2 * np.abs(x.value))


def log(x):
    return monotone(np.log, x, absolute=2, least=0)


def sqrt(x):
    return monotone(np.sqrt, x, least=0)


def rsqrt(x):
    return monotone(lambda value: 1 / np.sqrt(value), x, least=0)


_erf = np.vectorize(math.erf, otypes=[float])
_erfc = np.vectorize(math.erfc, otypes=[float])


def erf(x):
    return monotone(_erf, x)


def one_plus_erf(x):
    """Computed by `erfc`, where no terms cancel."""
    return monotone(lambda value: _erfc(-value), x, units=2 * FUNCTION)


def tanh(x):
    return monotone(np.tanh, x)


def _wave(function, x):
    value = function(x.value)
    return Bounded(value, np.minimum(x.error, 2) + _unit * 4)


def sin(x):
    return _wave(np.sin, x)


def cos(x):
    return _wave(np.cos, x)


def power(x, y):
    """The power of a base that is not negative; 0 to the power of 0 is 1."""
    with np.errstate(all="ignore"):
        value = np.power(x.value, y.value)
        ends = [
            np.power(np.maximum(x.value + i * x.error, 0), y.value + j * y.error)
            for i in (-1, 1)
            for j in (-1, 1)
        ]
        turns = 8 + 4 * np.abs(y.value * np.log(x.value))
        spread = np.max([np.abs(end - value) for end in ends], axis=0)
    is_exact = (x.error == 0) & (y.error == 0)
    turns = np.where(np.isfinite(turns), turns, 8)
    return Bounded(value, np.where(is_exact, 0, spread) + turns * _unit * np.abs(value))


def total(x, axes):
    """The sum along `axes`, which stay with a size of 1. Partial sums round at
    random, the number of additions one after the other being the schedule's."""
    count = math.prod(x.shape[axis] for axis in axes)
    value = x.value.sum(axis=axes, keepdims=True)
    size = np.abs(x.value).sum(axis=axes, keepdims=True)
    error = x.error.sum(axis=axes, keepdims=True)
    scaled = x.value * 4096
    if x.is_exact() and (scaled == np.round(scaled)).all():
        error = np.where(size * 4096 < 2**24, error, _unit * size)
    elif count > 1:
        error = error + _unit * (2 + math.sqrt(count)) * (size + error)
    return Bounded(value, error)


def repeated_axes(shape, of):
    """The axes of `shape` along which NumPy's rules have repeated an array of the
    shape `of`."""
    extra = len(shape) - len(of)
    return tuple(range(max(extra, 0))) + tuple(
        axis
        for axis in range(max(extra, 0), len(shape))
        if of[axis - extra] == 1 and shape[axis] != 1
    )


def _least_bit(numbers):
    """The exponent of the last bit that any of the finite `numbers` has."""
    mantissas, exponents = np.frexp(numbers[numbers != 0])
    whole = np.ldexp(mantissas, 53).astype(np.int64)
    _, places = np.frexp((whole & -whole).astype(np.float64))
    return int((exponents - 53 + places - 1).min(initial=500))


def product(x, y, contract, shape):
    """The product of the matrices in the last two dimensions, summed over dimension
    `contract` of each, in the shape `shape`: dimensions ahead of the matrices are
    repeated as NumPy's rules have it, and added up where `shape` lacks them or is 1.
    Where neither factor has a dimension of `shape`, the product is repeated there."""

    def multiply(a, b):
        a = a if contract[0] == 1 else np.swapaxes(a, -1, -2)
        b = b if contract[1] == 0 else np.swapaxes(b, -1, -2)
        whole = np.matmul(a, b)
        axes = repeated_axes(whole.shape, shape)
        summed = whole.sum(axis=axes, keepdims=True)
        extra = max(whole.ndim - len(shape), 0)
        return np.broadcast_to(summed.reshape(summed.shape[extra:]), shape)

    with np.errstate(all="ignore"):
        value = multiply(x.value, y.value)
        size = multiply(np.abs(x.value), np.abs(y.value))
        error = multiply(np.abs(x.value), y.error) + multiply(
            x.error, np.abs(y.value) + y.error
        )
        count = multiply(np.ones(x.shape), np.ones(y.shape)).max(initial=0)
        # One product is added after the other: partial sums are larger than in `total`.
        rounded = _unit * (2 + 2 * math.sqrt(count)) * (size + error)
        if x.is_exact() and y.is_exact() and np.isfinite(size).all():
            # All sums of such products have few bits.
            bits = _least_bit(x.value) + _least_bit(y.value)
            rounded = np.where(size < math.ldexp(1, min(bits + 24, 1000)), 0, rounded)
    return Bounded(value, error + rounded)


# A half unit in the last place, and that of the smallest number.
ROUNDINGS = {
    "f64": (0.0, 0.0),
    "f32": (0.0, 0.0),
    "f16": (2.0**-11, 2.0**-25),
    "bf16": (2.0**-8, 2.0**-134),
}


def rounded(x, kind, is_alone=True):
    """Rounded to a type, if that is narrower than the computation's. If `x` is not
    alone, it may be added to another number before, and even one that the type holds
    loses what is a part of itself."""
    relative, least = ROUNDINGS[kind]
    if not relative:
        return x
    with np.errstate(all="ignore"):
        held = floats.round_to(kind, x.value.astype(np.float32))
        is_held = is_alone & (x.error == 0) & (held == x.value)
        lost = relative * (np.abs(x.value) + x.error) + least
        return Bounded(x.value, np.where(is_held, 0, x.error + lost))


class Condition:
    """Booleans, and for each whether no rounding can change it."""

    def __init__(self, value, is_sure):
        self.value = value
        self.is_sure = is_sure

    @property
    def shape(self):
        return self.value.shape

    def map(self, move):
        return Condition(move(self.value), move(self.is_sure))

    def __and__(self, other):
        # One operand that is surely false decides.
        is_sure = (self.is_sure & other.is_sure) | (
            (self.is_sure & ~self.value) | (other.is_sure & ~other.value)
        )
        return Condition(self.value & other.value, is_sure)

    def __invert__(self):
        return Condition(~self.value, self.is_sure)


def compare(predicate, x, y):
    """`predicate` is a function of NumPy."""
    far = np.abs(x.value - y.value) > x.error + y.error
    is_exact = (x.error == 0) & (y.error == 0)
    return Condition(predicate(x.value, y.value), far | is_exact)


def choose(condition, x, y):
    x, y = as_bounded(x), as_bounded(y)
    value = np.where(condition.value, x.value, y.value)
    error = np.where(condition.value, x.error, y.error)
    either = np.abs(x.value - y.value) + np.maximum(x.error, y.error)
    return Bounded(value, np.where(condition.is_sure, error, either))


def largest(x, y, sign=1):
    """The larger, or with a sign of -1 the smaller."""
    value = sign * np.maximum(sign * x.value, sign * y.value)
    is_first = sign * (x.value - y.value) > x.error + y.error
    is_second = sign * (y.value - x.value) > x.error + y.error
    error = np.maximum(x.error, y.error)
    error = np.where(is_first, x.error, np.where(is_second, y.error, error))
    return Bounded(value, error)


def extreme(x, axes, sign):
    """The largest along `axes`, or the smallest."""
    value = sign * (sign * x.value).max(axis=axes, keepdims=True)
    least = (sign * x.value - x.error).max(axis=axes, keepdims=True)
    could_be = sign * x.value + x.error >= least
    return Bounded(value, np.where(could_be, x.error, 0).max(axis=axes, keepdims=True))

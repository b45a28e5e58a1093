# Part of Bastile, under the MIT License. See LICENSE.
"""Gradients by reverse mode, of values with bounds of their errors.

Nothing here is the compiler's: rules are those of a textbook and, at corners and
ties, PyTorch's. `test/python/pytorch/test_reference_gradients.py` compares them with
autograd.
"""

import itertools

import numpy as np

import bounded
from bounded import Bounded, choose, compare

_numbers = itertools.count()


class Variable:
    """A value, with the values that it was computed from: `rule` maps its gradient
    to one for each of `parents`, or None."""

    def __init__(self, number, parents=(), rule=None):
        self.number = number
        # The result as its own derivative sees it, where that is rounded.
        self.seen = number
        self.parents = parents
        self.rule = rule
        self.order = next(_numbers)

    @property
    def shape(self):
        return self.number.shape

    @property
    def value(self):
        return self.number.value

    def __add__(self, other):
        x, y = self.number, _number(other)
        return _make(x + y, (self, other), lambda g: (g, g))

    def __sub__(self, other):
        x, y = self.number, _number(other)
        return _make(x - y, (self, other), lambda g: (g, -g))

    def __rsub__(self, other):
        return -self + other

    def __mul__(self, other):
        x, y = self.number, _number(other)
        return _make(x * y, (self, other), lambda g: (g * y, g * x))

    def __truediv__(self, other):
        x, y = self.number, _number(other)
        result = _make(x / y, (self, other), lambda g: (g / y, -(g / y * result.seen)))
        return result

    def __neg__(self):
        return _make(-self.number, (self,), lambda g: (-g,))

    __radd__ = __add__
    __rmul__ = __mul__


def _number(x):
    return x.number if isinstance(x, Variable) else bounded.as_bounded(x)


def _make(number, parents, rule):
    return Variable(number, parents, rule)


def gradients(results, seeds, arguments):
    """The gradients of the sum of all products of `results` and `seeds`, with
    zeros for arguments that no result depends on."""
    sums = {}
    pending = {}

    def add(variable, gradient):
        if not isinstance(variable, Variable) or gradient is None:
            return
        gradient = _unrepeated(gradient, variable.shape)
        before = sums.get(variable)
        sums[variable] = gradient if before is None else before + gradient
        pending[variable.order] = variable

    for result, seed in zip(results, seeds):
        add(result, Bounded(seed))
    while pending:
        variable = pending.pop(max(pending))
        if variable.rule:
            for parent, gradient in zip(
                variable.parents, variable.rule(sums[variable])
            ):
                add(parent, gradient)
    return [
        sums.get(argument, Bounded(np.zeros(argument.shape))) for argument in arguments
    ]


def _unrepeated(gradient, shape):
    """The sum over the dimensions that NumPy's rules have repeated."""
    if gradient.shape == shape:
        return gradient
    summed = bounded.total(gradient, bounded.repeated_axes(gradient.shape, shape))
    return summed.map(lambda array: array.reshape(shape))


# Functions of one number.


def _unary(function, slope):
    def apply(x):
        result = _make(
            function(x.number),
            (x,),
            lambda g: (g * slope(x.number, result.seen),),
        )
        return result

    return apply


def _bell(x):
    return bounded.exp(-(x * x)) * 1.1283791670955126


exp = _unary(bounded.exp, lambda x, y: y)
log = _unary(bounded.log, lambda x, y: 1 / x)
sqrt = _unary(bounded.sqrt, lambda x, y: 0.5 / y)
rsqrt = _unary(bounded.rsqrt, lambda x, y: -0.5 * (y * y * y))
tanh = _unary(bounded.tanh, lambda x, y: 1 - y * y)
erf = _unary(bounded.erf, lambda x, y: _bell(x))
one_plus_erf = _unary(bounded.one_plus_erf, lambda x, y: _bell(x))
sin = _unary(bounded.sin, lambda x, y: bounded.cos(x))
cos = _unary(bounded.cos, lambda x, y: -bounded.sin(x))


def absolute(x):
    number, zero = x.number, Bounded(0.0)

    def rule(g):
        rest = choose(compare(np.less, number, zero), -g, 0.0)
        return (choose(compare(np.greater, number, zero), g, rest),)

    return _make(number.map(np.abs), (x,), rule)


def power(x, y):
    """At a base of 0 as PyTorch has it: an exponent of 0 has no slope, and the
    slope of the exponent is 0 where that is not negative."""
    base, exponent = x.number, _number(y)

    def rule(g):
        flat = compare(np.equal, exponent, Bounded(0.0))
        slope = exponent * bounded.power(base, exponent - 1.0)
        at_zero = compare(np.equal, base, Bounded(0.0))
        with np.errstate(all="ignore"):
            logarithm = choose(at_zero, 0.0, bounded.log(base))
        return (
            choose(flat, 0.0, g * slope),
            choose(at_zero, 0.0, g * result.seen * logarithm),
        )

    result = _make(bounded.power(base, exponent), (x, y), rule)
    return result


def stop_gradient(x):
    return Variable(x.number)


def rounded(x, kind, is_op):
    """Rounded to a narrower type. `is_op` says that `x` comes of one op on that type,
    whose derivative sees what the op returns."""
    result = bounded.rounded(x.number, kind)
    if is_op:
        x.seen = result
    return _make(result, (x,), lambda g: (g,))


# Choices.


def select(condition, x, y):
    return _make(
        choose(condition, x.number, _number(y)),
        (x, y),
        lambda g: (choose(condition, g, 0.0), choose(condition, 0.0, g)),
    )


def largest(x, y, sign=1):
    """The larger, or smaller, of two; equal ones share the gradient."""
    first, second = x.number, _number(y)

    def rule(g):
        shared = choose(compare(np.equal, first, second), g * 0.5, 0.0)
        more = np.greater if sign > 0 else np.less
        return (
            choose(compare(more, first, second), g, shared),
            choose(compare(more, second, first), g, shared),
        )

    return _make(bounded.largest(first, second, sign), (x, y), rule)


# Reductions. Axes stay, with a size of 1.


def total(x, axes):
    return _make(
        bounded.total(x.number, axes),
        (x,),
        lambda g: (g.map(lambda array: np.broadcast_to(array, x.shape)),),
    )


def extreme(x, axes, sign):
    result = bounded.extreme(x.number, axes, sign)

    def rule(g):
        same = compare(np.equal, x.number, result)
        count = bounded.total(choose(same, 1.0, 0.0), axes)
        return (choose(same, g / count, 0.0),)

    return _make(result, (x,), rule)


def mean(x):
    return total(x, (-1,)) * (1 / x.shape[-1])


# Products of matrices.


def product(x, y, contract, shape, kind):
    """The product of the last two dimensions, summed over dimension `contract` of each.
    The dimensions ahead are repeated as NumPy's rules have it, and added up where
    `shape` lacks them. `kind` is the factors' type, to which gradients are rounded
    before they are multiplied."""
    left, right = x.number, y.number

    def rule(g):
        # The compiler merges equal products, and adds their gradients first.
        g = bounded.rounded(g, kind, is_alone=False)
        # What a factor does not have, the other one and the result do.
        if contract[0] == 1:
            gx = bounded.product(g, right, (1, 1 - contract[1]), x.shape)
        else:
            gx = bounded.product(right, g, (1 - contract[1], 1), x.shape)
        if contract[1] == 1:
            gy = bounded.product(g, left, (0, 1 - contract[0]), y.shape)
        else:
            gy = bounded.product(left, g, (1 - contract[0], 0), y.shape)
        return gx, gy

    return _make(bounded.product(left, right, contract, shape), (x, y), rule)


# Functions that move values.


def moved(x, move, back):
    """`back` moves a gradient back to the operand's places."""
    return _make(x.number.map(move), (x,), lambda g: (back(g),))


def reshape(x, shape):
    return moved(
        x,
        lambda array: array.reshape(shape),
        lambda g: g.map(lambda array: array.reshape(x.shape)),
    )


def broadcast(x, shape):
    return moved(
        x,
        lambda array: np.broadcast_to(array, shape),
        lambda g: _unrepeated(g, x.shape),
    )


def piece(x, start, step, count):
    """`count` elements of each row."""
    where = (..., slice(start, start + step * count, step))

    def back(g):
        def spread(array):
            whole = np.zeros(x.shape)
            whole[where] = array
            return whole

        return g.map(spread)

    return moved(x, lambda array: array[where], back)


def join(pieces, interleaved):
    length, count = pieces[0].shape[-1], len(pieces)

    def put(arrays):
        if not interleaved:
            return np.concatenate(arrays, axis=-1)
        stacked = np.stack(arrays, axis=-1)
        return stacked.reshape(*stacked.shape[:-2], length * count)

    def take(array, i):
        if interleaved:
            return array[..., i::count]
        return array[..., i * length : (i + 1) * length]

    numbers = [x.number for x in pieces]
    return _make(
        Bounded(put([x.value for x in numbers]), put([x.error for x in numbers])),
        tuple(pieces),
        lambda g: [g.map(lambda array, i=i: take(array, i)) for i in range(count)],
    )

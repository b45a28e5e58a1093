# Part of Bastile, under the MIT License. See LICENSE.
"""Activations of gated MLPs and of experts, of gate and up in one row or in two."""

import functools
from typing import NamedTuple

from bastile._compiler.traced_operators import TracedOperator
from bastile.functions import linear, op, split


def _swiglu(gate, up):
    return op.swiglu(gate, up)


def _geglu_tanh(gate, up):
    return op.geglu(gate, up, form="tanh")


def _geglu_erf(gate, up):
    return op.geglu(gate, up, form="erf")


@TracedOperator
def packed_swiglu(gate_up):
    """silu(gate) * up of rows that hold the gate and then up."""
    return _swiglu(*split(gate_up, 2))


@TracedOperator
def packed_geglu_tanh(gate_up):
    return _geglu_tanh(*split(gate_up, 2))


@TracedOperator
def packed_geglu_erf(gate_up):
    return _geglu_erf(*split(gate_up, 2))


def _weighted(name, activation):
    """An operator of rows that hold the gate and then up, and of a weight [rows, 1] for
    each."""

    def weighted(gate_up, weight):
        return (activation(*split(gate_up, 2)) * weight).to(gate_up.dtype)

    weighted.__name__ = name
    return TracedOperator(weighted)


def _again(name, activation):
    """An operator of the gate, up and an upstream gradient that returns the
    activation's result, which a backward needs again, and the gradients of the gate and
    up."""

    def again(gate, up, upstream):
        hidden = activation(gate, up)
        return hidden * upstream, hidden

    again.__name__ = name
    return TracedOperator(again, differentiated=("gate", "up"))


def _packed_again(name, activation):
    """As `_again`, of rows that hold the gate and then up."""

    def again(gate_up, upstream):
        hidden = activation(*split(gate_up, 2))
        return hidden * upstream, hidden

    again.__name__ = name
    return TracedOperator(again, differentiated=("gate_up",))


def _gradients(name, activation):
    """As `_again`, without the activation's result."""

    def gradients(gate, up, upstream):
        return activation(gate, up) * upstream

    gradients.__name__ = name
    return TracedOperator(gradients, differentiated=("gate", "up"))


def _packed_gradients(name, activation):
    """As `_packed_again`, without the activation's result."""

    def gradients(gate_up, upstream):
        return activation(*split(gate_up, 2)) * upstream

    gradients.__name__ = name
    return TracedOperator(gradients, differentiated=("gate_up",))


class Products(NamedTuple):
    """The activation of a gated MLP together with the products that make its gate and
    up, in one kernel, of ``x`` [rows, K] and weights with K columns. ``alone`` returns
    the result; ``kept`` returns it, and behind it what `_again` and `_gradients` take.

    Gate and up are rounded to the type of ``x`` first, as models round them, so that both
    give the same bits and a backward finds the forward's result again.
    """

    alone: TracedOperator
    kept: TracedOperator


def _products(name, activation):
    """Those of a weight [N, K] each for the gate and up, and biases [N] or None."""

    def kept(x, gate, up, gate_bias=None, up_bias=None):
        gate = linear(x, gate, gate_bias).to(x.dtype)
        up = linear(x, up, up_bias).to(x.dtype)
        return activation(gate, up), gate, up

    return _pair(name, kept)


def _packed_products(name, activation):
    """Those of one weight [2N, K] for the gate and then up, and a bias [2N] or None."""

    def kept(x, weight, bias=None):
        gate_up = linear(x, weight, bias).to(x.dtype)
        return activation(*split(gate_up, 2)), gate_up

    return _pair(name, kept)


def _pair(name, kept):
    @functools.wraps(kept)
    def alone(*operands):
        return kept(*operands)[0]

    alone.__name__, kept.__name__ = name, f"{name}_kept"
    return Products(TracedOperator(alone), TracedOperator(kept))


packed_swiglu_weighted = _weighted("packed_swiglu_weighted", _swiglu)
packed_geglu_tanh_weighted = _weighted("packed_geglu_tanh_weighted", _geglu_tanh)
packed_geglu_erf_weighted = _weighted("packed_geglu_erf_weighted", _geglu_erf)

swiglu_again = _again("swiglu_again", _swiglu)
geglu_tanh_again = _again("geglu_tanh_again", _geglu_tanh)
geglu_erf_again = _again("geglu_erf_again", _geglu_erf)
packed_swiglu_again = _packed_again("packed_swiglu_again", _swiglu)
packed_geglu_tanh_again = _packed_again("packed_geglu_tanh_again", _geglu_tanh)
packed_geglu_erf_again = _packed_again("packed_geglu_erf_again", _geglu_erf)

swiglu_gradients = _gradients("swiglu_gradients", _swiglu)
geglu_tanh_gradients = _gradients("geglu_tanh_gradients", _geglu_tanh)
geglu_erf_gradients = _gradients("geglu_erf_gradients", _geglu_erf)
packed_swiglu_gradients = _packed_gradients("packed_swiglu_gradients", _swiglu)
packed_geglu_tanh_gradients = _packed_gradients(
    "packed_geglu_tanh_gradients", _geglu_tanh
)
packed_geglu_erf_gradients = _packed_gradients("packed_geglu_erf_gradients", _geglu_erf)

swiglu_products = _products("swiglu_products", _swiglu)
geglu_tanh_products = _products("geglu_tanh_products", _geglu_tanh)
geglu_erf_products = _products("geglu_erf_products", _geglu_erf)
packed_swiglu_products = _packed_products("packed_swiglu_products", _swiglu)
packed_geglu_tanh_products = _packed_products("packed_geglu_tanh_products", _geglu_tanh)
packed_geglu_erf_products = _packed_products("packed_geglu_erf_products", _geglu_erf)


def _interleaved_geglu(gate_up, alpha, limit):
    gate, up = split(gate_up, 2, interleaved=True)
    return op.geglu(gate, up, alpha=alpha, limit=limit)


@TracedOperator
def interleaved_geglu(gate_up, alpha=1.702, limit=7.0):
    """The activation of GPT-OSS, of rows in which columns of gate and up alternate."""
    return _interleaved_geglu(gate_up, alpha, limit)


@TracedOperator
def interleaved_geglu_bias(gate_up, bias, alpha=1.702, limit=7.0):
    """As `interleaved_geglu`, of ``gate_up + bias``, a sum that is not rounded."""
    return _interleaved_geglu(gate_up + bias, alpha, limit).to(gate_up.dtype)


@TracedOperator
def interleaved_geglu_bias_weighted(gate_up, bias, weight, alpha=1.702, limit=7.0):
    """As `interleaved_geglu_bias`, times a weight [rows, 1] for each row."""
    hidden = _interleaved_geglu(gate_up + bias, alpha, limit)
    return (hidden * weight).to(gate_up.dtype)

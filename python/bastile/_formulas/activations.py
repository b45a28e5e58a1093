# Part of Bastile, under the MIT License. See LICENSE.
"""Activations of gated MLPs and of experts, of gate and up in one row or in two."""

from bastile._compiler.traced_operators import TracedOperator
from bastile.functions import op, split


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


swiglu_again = _again("swiglu_again", _swiglu)
geglu_tanh_again = _again("geglu_tanh_again", _geglu_tanh)
geglu_erf_again = _again("geglu_erf_again", _geglu_erf)
packed_swiglu_again = _packed_again("packed_swiglu_again", _swiglu)
packed_geglu_tanh_again = _packed_again("packed_geglu_tanh_again", _geglu_tanh)
packed_geglu_erf_again = _packed_again("packed_geglu_erf_again", _geglu_erf)


@TracedOperator
def interleaved_geglu(gate_up, alpha=1.702, limit=7.0):
    """The activation of GPT-OSS, of rows in which columns of gate and up alternate."""
    gate, up = split(gate_up, 2, interleaved=True)
    return op.geglu(gate, up, alpha=alpha, limit=limit)


@TracedOperator
def interleaved_geglu_bias(gate_up, bias, alpha=1.702, limit=7.0):
    """As `interleaved_geglu`, of ``gate_up + bias``, a sum that is not rounded."""
    gate, up = split(gate_up + bias, 2, interleaved=True)
    return op.geglu(gate, up, alpha=alpha, limit=limit).to(gate_up.dtype)

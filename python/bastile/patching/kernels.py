"""The kernels of the patches that no single op is: traced from formulas."""

import functools

from bastile._traced import TracedOperator
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


def _again(*gate_up):
    """For `gated`: what makes of operands of these names and an upstream gradient the
    activation's result again, and their gradients."""
    return functools.partial(TracedOperator, differentiated=gate_up)


def _times(upstream, hidden):
    return hidden * upstream, hidden


@_again("gate", "up")
def swiglu_again(gate, up, upstream):
    return _times(upstream, _swiglu(gate, up))


@_again("gate", "up")
def geglu_tanh_again(gate, up, upstream):
    return _times(upstream, _geglu_tanh(gate, up))


@_again("gate", "up")
def geglu_erf_again(gate, up, upstream):
    return _times(upstream, _geglu_erf(gate, up))


@_again("gate_up")
def packed_swiglu_again(gate_up, upstream):
    return _times(upstream, _swiglu(*split(gate_up, 2)))


@_again("gate_up")
def packed_geglu_tanh_again(gate_up, upstream):
    return _times(upstream, _geglu_tanh(*split(gate_up, 2)))


@_again("gate_up")
def packed_geglu_erf_again(gate_up, upstream):
    return _times(upstream, _geglu_erf(*split(gate_up, 2)))


@TracedOperator
def interleaved_geglu(gate_up, alpha=1.702, limit=7.0):
    """The activation of GPT-OSS, of rows that deal gate and up out in turn."""
    gate, up = split(gate_up, 2, interleaved=True)
    return op.geglu(gate, up, alpha=alpha, limit=limit)


@TracedOperator
def interleaved_geglu_bias(gate_up, bias, alpha=1.702, limit=7.0):
    """The same of ``gate_up + bias``, which is not rounded in between."""
    gate, up = split(gate_up + bias, 2, interleaved=True)
    return op.geglu(gate, up, alpha=alpha, limit=limit).to(gate_up.dtype)

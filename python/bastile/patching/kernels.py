"""The kernels of the patches that no single op is: traced from formulas."""

from bastile._traced import TracedOperator
from bastile.functions import op, split


@TracedOperator
def packed_swiglu(gate_up):
    """silu(gate) * up of rows that hold the gate and then up."""
    return op.swiglu(*split(gate_up, 2))


@TracedOperator
def packed_geglu_tanh(gate_up):
    return op.geglu(*split(gate_up, 2), form="tanh")


@TracedOperator
def packed_geglu_erf(gate_up):
    return op.geglu(*split(gate_up, 2), form="erf")


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

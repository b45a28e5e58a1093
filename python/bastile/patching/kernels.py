"""The kernels of the patches that no single op is: traced from formulas."""

from bastile._traced import TracedOperator
from bastile.functions import op, split


@TracedOperator
def rope_halves(q, k, cosine, sine):
    """Queries and keys in one call. Of the first n elements, element i turns with
    element i + n / 2; ``cosine`` and ``sine`` have n columns."""
    return tuple(op.rope(x, cosine, sine, rotary=cosine.shape[-1]) for x in (q, k))


@TracedOperator
def rope_half_angles(q, k, cosine, sine):
    """As ``rope_halves``, with n / 2 columns of angles, one for each pair."""
    return tuple(op.rope(x, cosine, sine, rotary=2 * cosine.shape[-1]) for x in (q, k))


@TracedOperator
def rope_neighbours(q, k, cosine, sine):
    """Element 2 i turns with element 2 i + 1; one angle for each pair."""
    return tuple(
        op.rope(x, cosine, sine, interleaved=True, rotary=2 * cosine.shape[-1])
        for x in (q, k)
    )


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

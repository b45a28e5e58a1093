# Part of Bastile, under the MIT License. See LICENSE.
"""RMS norms with a gate, in one launch forward and one or two backward."""

import functools

from bastile._compiler.traced_operators import TracedOperator
from bastile.functions import row_mean, rsqrt, sigmoid, silu

_ACTIVATIONS = {"silu": silu, "sigmoid": sigmoid}


@functools.cache
def gated_rms_norm(activation: str, casting: str, gates_first: bool) -> TracedOperator:
    """An operator of ``x``, ``gate`` and ``weight`` of one dtype, and of ``eps``.

    ``x`` and ``gate`` have the shape [..., N], and ``weight`` one that broadcasts to it.
    With ``n(x) = x / sqrt(mean(x^2) + eps)`` over N, the result is
    ``n(x) * weight * act(gate)`` or, where it ``gates_first``,
    ``n(x * act(gate)) * weight``. ``act`` is "silu" or "sigmoid", computed in float32
    as all is; ``casting`` says whether the norm is rounded before the weight multiplies
    it and behind that ("llama"), or the result alone ("gemma").
    """
    act = _ACTIVATIONS[activation]

    def norm(x, gate, weight, eps=1e-6):
        wide = x * act(gate) if gates_first else x
        wide = wide * rsqrt(row_mean(wide * wide) + eps)
        if casting == "llama":
            wide = (wide.to(x.dtype) * weight).to(x.dtype)
        else:
            wide = wide * weight
        return (wide if gates_first else wide * act(gate)).to(x.dtype)

    order = "gate_first" if gates_first else "norm_first"
    norm.__name__ = f"gated_rms_norm_{activation}_{casting}_{order}"
    return TracedOperator(norm)

# Part of Bastile, under the MIT License. See LICENSE.
"""RMS norms together with what stands beside them in a decoder: sums with the residual,
and the rotation of queries and keys.

The casting order of `tile.rms_norm` is part of an operator's name; epsilons and the
offset of weights are numbers that calls give.
"""

from bastile._compiler.traced_operators import TracedOperator
from bastile.functions import op

#: The orders of casting.
CASTINGS = ("llama", "gemma")


def _norm_add(casting):
    def norm_add(x, residual, weight, eps=1e-6, offset=0.0):
        normed = op.rms_norm(x, weight, casting=casting, eps=eps, offset=offset)
        return (residual + normed).to(x.dtype)

    return norm_add


def _norm_add_norm(casting):
    first = _norm_add(casting)

    def norm_add_norm(x, residual, weight, after, eps=1e-6, eps_after=1e-6, offset=0.0):
        sums = first(x, residual, weight, eps, offset)
        normed = op.rms_norm(sums, after, casting=casting, eps=eps_after, offset=offset)
        return normed, sums

    return norm_add_norm


def _norm_rope(casting):
    def norm_rope(
        q, k, q_weight, k_weight, cosine, sine, q_eps=1e-6, k_eps=1e-6, offset=0.0
    ):
        normed = (
            op.rms_norm(x, weight, casting=casting, eps=eps, offset=offset)
            for x, weight, eps in ((q, q_weight, q_eps), (k, k_weight, k_eps))
        )
        length = cosine.shape[-1]
        return tuple(op.rope(x, cosine, sine, rotary=length) for x in normed)

    return norm_rope


def _for_each_casting(make):
    found = {}
    for casting in CASTINGS:
        function = make(casting)
        function.__name__ += f"_{casting}"
        found[casting] = TracedOperator(function)
    return found


#: By casting: ``residual + rms_norm(x, weight)``.
norm_add = _for_each_casting(_norm_add)
#: By casting: the norm by ``after`` of that sum, and the sum.
norm_add_norm = _for_each_casting(_norm_add_norm)
#: By casting: queries and keys [..., D], each normed by a weight [D] and then turned as
#: `bastile._formulas.rope.rope_halves` does it.
norm_rope = _for_each_casting(_norm_rope)

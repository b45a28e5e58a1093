# Part of Bastile, under the MIT License. See LICENSE.
"""Rotary embeddings of queries and keys in one call, forward and backward.

Queries and keys have different numbers of heads and share nothing but the angles, so
that this is no op of the dialect. The compiler makes one launch of it where the rows
of the two go together.
"""

import functools

from bastile._compiler import checks, operators
from bastile._compiler.compile import compile
from bastile._compiler.definitions import definitions
from bastile._compiler.traced_operators import TracedOperator
from bastile.functions import concatenate, op, split


def _check(q, k, cosine, sine):
    """Raises what the op ``rope`` raises for its operands."""
    for heads in (q, k):
        tensors = [operators.describe(x) for x in (heads, cosine, sine)]
        checks.check(definitions()["rope"], tensors)


_rope = functools.partial(TracedOperator, check=_check)


@_rope
def rope_halves(q, k, cosine, sine):
    """Of the first n elements, element i turns with element i + n / 2; ``cosine`` and
    ``sine`` have n columns."""
    return tuple(op.rope(x, cosine, sine, rotary=cosine.shape[-1]) for x in (q, k))


@_rope
def rope_half_angles(q, k, cosine, sine):
    """As ``rope_halves``, with n / 2 columns of angles, one for each pair."""
    return tuple(op.rope(x, cosine, sine, rotary=2 * cosine.shape[-1]) for x in (q, k))


@_rope
def rope_neighbours(q, k, cosine, sine):
    """Element 2 i turns with element 2 i + 1; one angle for each pair."""
    return tuple(
        op.rope(x, cosine, sine, interleaved=True, rotary=2 * cosine.shape[-1])
        for x in (q, k)
    )


@TracedOperator
def rope_into_halves(q, k, cosine, sine):
    """As ``rope_neighbours`` of whole rows, with the first elements of all pairs ahead of
    the second ones in the results."""

    def turn(x):
        first, second = split(x, 2, interleaved=True)
        turned = first * cosine - second * sine, second * cosine + first * sine
        return concatenate(turned).to(x.dtype)

    return turn(q), turn(k)


def turn_in_place(q, cosine, sine, interleaved=False, rotary=None):
    return op.rope(q, cosine, sine, interleaved=interleaved, rotary=rotary)


def turn_both_in_place(q, k, cosine, sine, interleaved=False, rotary=None):
    return tuple(turn_in_place(x, cosine, sine, interleaved, rotary) for x in (q, k))


@functools.cache
def rope_in_place(both, interleaved, rotary):
    """What turns ``q``, or ``both`` it and ``k``, in their own memory, given them and one
    angle for each pair. It has no gradients."""
    return compile(
        turn_both_in_place if both else turn_in_place,
        in_place=("q", "k") if both else ("q",),
        interleaved=interleaved,
        rotary=rotary,
    )

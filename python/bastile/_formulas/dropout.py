# Part of Bastile, under the MIT License. See LICENSE.
"""Dropout, with the seed as an operand."""

from bastile import functions
from bastile._compiler.traced_operators import TracedOperator


@TracedOperator
def dropout(input, seed, p=0.5):
    """``input`` with elements that are 0 with probability p."""
    return functions.dropout(input, p, seed)

# Part of Bastile, under the MIT License. See LICENSE.
"""Sums of tensors."""

import functools
import inspect
import operator

from bastile._compiler.traced_operators import TracedOperator


@functools.cache
def of(count):
    """The operator that adds ``count`` tensors of one shape and type, in their order, and
    rounds the sum once."""

    def add(*operands):
        return functools.reduce(operator.add, operands)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    add.__signature__ = inspect.Signature(
        [inspect.Parameter(f"operand{i}", kind) for i in range(count)]
    )
    add.__name__ = f"sum_of_{count}"
    return TracedOperator(add)

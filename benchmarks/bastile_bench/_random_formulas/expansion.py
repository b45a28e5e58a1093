# Part of Bastile, under the MIT License. See LICENSE.
"""Functions in the terms of those that a GPU has, so that what two of them have in common
is computed, and counted, once: a silu and its derivative have one sigmoid, an erf and its
derivative one exponential."""

import math

from bastile_bench._random_formulas.nodes import Kind, visit


def expand(outputs, accurate: bool) -> dict:
    """By the nodes that ``outputs`` are computed from, the same values by functions that
    a GPU has. ``accurate`` says that its approximation of tanh is too rough."""
    expanded = {}
    for node in visit(outputs):
        inputs = [expanded[x] for x in node.inputs]
        rule = _RULES.get(node.op)
        if not inputs:
            expanded[node] = node
        elif rule and node.kind == Kind.ROWS:
            expanded[node] = rule(node.graph.apply, *inputs)
        elif accurate and node.op == "tanh":
            expanded[node] = _tanh(node.graph.apply, *inputs)
        else:
            expanded[node] = node.graph.apply(node.op, *inputs)
    return expanded


def _sigmoid(apply, x):
    return apply("reciprocal", 1 + apply("exp", 0 - x))


def _erf(apply, x):
    # A polynomial of x times the exponential.
    return apply("erf_of", x, apply("exp", 0 - x * x))


def _tanh(apply, x):
    return 1 - 2 * apply("reciprocal", apply("exp", 2 * x) + 1)


_RULES = {
    "divide": lambda apply, x, y: x * apply("reciprocal", y),
    "erf": _erf,
    "gelu": lambda apply, x: x * (0.5 + 0.5 * _erf(apply, x * math.sqrt(0.5))),
    "gelu_tanh": lambda apply, x: (
        x * _sigmoid(apply, x * (1 + 0.044715 * (x * x)) * math.sqrt(8 / math.pi))
    ),
    "sigmoid": _sigmoid,
    "silu": lambda apply, x: x * _sigmoid(apply, x),
    "softplus": lambda apply, x: x + apply("log", 1 + apply("exp", 0 - x)),
    "sqrt": lambda apply, x: x * apply("rsqrt", x),
}

# Part of Bastile, under the MIT License. See LICENSE.
"""Gradients of expressions as expressions: what a backward has to compute, whoever
derives it."""

import math

from bastile_bench._random_formulas.nodes import Kind, Node, visit


def differentiate(results, upstream, operands, columns: int) -> list:
    """The gradients of ``operands``: those of ``results`` are ``upstream``, and rows have
    ``columns`` columns."""
    graph = results[0].graph
    found: dict[Node, Node] = {}

    def add(node, gradient):
        found[node] = found[node] + gradient if node in found else gradient

    for result, gradient in zip(results, upstream):
        add(result, gradient)
    for node in reversed(visit(results)):
        rule = _RULES.get(node.op)
        if node in found and rule:
            for each, gradient in rule(graph, found[node], node, columns):
                if each.kind != Kind.NUMBER:
                    add(each, _reduce(gradient, each.kind, node.kind, columns))
    return [found[operand] for operand in operands]


def _reduce(gradient, kind, repeated, columns):
    """The sum of ``gradient`` over what a value of ``kind`` was repeated along in one of
    kind ``repeated``."""
    if kind in (repeated, Kind.ROWS):
        return gradient
    if kind == Kind.VECTOR:
        return gradient.graph.apply("sum_of_rows", gradient)
    if gradient.kind == Kind.STATISTIC:
        return gradient * columns
    return gradient.graph.apply("row_sum", gradient)


def _divide(graph, g, y, _):
    a, b = y.inputs
    inverse = graph.apply("reciprocal", b)
    return (a, g * inverse), (b, 0 - g * y * inverse)


def _row_max(graph, g, y, _):
    (x,) = y.inputs
    is_largest = graph.apply("equal", x, y)
    count = graph.apply("row_sum", is_largest)
    return ((x, is_largest * (g / count)),)


def _of_one(derivative):
    """The rule of a function of one input x, of which ``derivative(apply, x, y)`` is the
    derivative where the result is y."""

    def rule(graph, g, y, _):
        (x,) = y.inputs
        return ((x, g * derivative(graph.apply, x, y)),)

    return rule


def _gelu(apply, x, _):
    scaled = x * math.sqrt(0.5)
    density = apply("exp", 0 - scaled * scaled) * (1 / math.sqrt(2 * math.pi))
    return 0.5 + 0.5 * apply("erf", scaled) + x * density


def _gelu_tanh(apply, x, _):
    # x sigmoid(2 u) with u = sqrt(2 / pi) (x + 0.044715 x^3).
    double = x * (1 + 0.044715 * (x * x)) * math.sqrt(8 / math.pi)
    s = apply("sigmoid", double)
    slope = (1 + 0.134145 * (x * x)) * math.sqrt(8 / math.pi)
    return s + x * slope * (s * (1 - s))


def _silu(apply, x, _):
    s = apply("sigmoid", x)
    return s + x * s * (1 - s)


_RULES = {
    "add": lambda graph, g, y, _: [(x, g) for x in y.inputs],
    "subtract": lambda graph, g, y, _: ((y.inputs[0], g), (y.inputs[1], 0 - g)),
    "multiply": lambda graph, g, y, _: (
        (y.inputs[0], g * y.inputs[1]),
        (y.inputs[1], g * y.inputs[0]),
    ),
    "divide": _divide,
    "abs": _of_one(lambda apply, x, y: apply("sign", x)),
    "cos": _of_one(lambda apply, x, y: 0 - apply("sin", x)),
    "erf": _of_one(
        lambda apply, x, y: apply("exp", 0 - x * x) * (2 / math.sqrt(math.pi))
    ),
    "exp": _of_one(lambda apply, x, y: y),
    "gelu": _of_one(_gelu),
    "gelu_tanh": _of_one(_gelu_tanh),
    "log1p": _of_one(lambda apply, x, y: apply("reciprocal", 1 + x)),
    "rsqrt": _of_one(lambda apply, x, y: y * y * y * -0.5),
    "sigmoid": _of_one(lambda apply, x, y: y * (1 - y)),
    "silu": _of_one(_silu),
    "sin": _of_one(lambda apply, x, y: apply("cos", x)),
    "softplus": _of_one(lambda apply, x, y: apply("sigmoid", x)),
    "sqrt": _of_one(lambda apply, x, y: apply("rsqrt", x) * 0.5),
    "tanh": _of_one(lambda apply, x, y: 1 - y * y),
    "row_sum": lambda graph, g, y, _: ((y.inputs[0], g),),
    "row_mean": lambda graph, g, y, columns: ((y.inputs[0], g * (1 / columns)),),
    "row_max": _row_max,
}

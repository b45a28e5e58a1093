# Part of Bastile, under the MIT License. See LICENSE.
"""The steps that a random formula is grown from."""

import math

from bastile_bench._random_formulas.nodes import Kind

_ROWS = "abcde"
_VECTORS = "uvw"


def grow(graph, chance) -> tuple:
    """Operands and their kinds for ``_inputs`` by name, and results; ``chance`` draws."""
    return _Growth(graph, chance).run()


class _Growth:
    """A formula that is being put together. Values are pairs: a node, and about what its
    elements' root mean square is."""

    def __init__(self, graph, chance):
        self._graph = graph
        self._chance = chance
        self._operands = {}
        self._inputs = {}
        #: Values that no other one uses yet, and all.
        self._live = []
        self._all = []

    def run(self):
        chance = self._chance
        rows = chance.choices((1, 2, 3, 4, 5), (3, 4, 3, 2, 1))[0]
        for name in _ROWS[:rows]:
            self._put(self._declare(name, "rows", Kind.ROWS), 1.0)
        steps = self._draw_steps()
        steps += [self._merge] * (rows - 1)
        chance.shuffle(steps)
        for step in steps:
            if step != self._merge or len(self._live) > 1:
                step()
        while len(self._live) > 1 or self._live[0][0].op == "operand":
            self._merge()
        # Further results are what the first is made of, such as a residual's sum.
        ((last, _),) = self._live
        inner = [x for x, _ in self._all if x.op != "operand" and x is not last]
        count = chance.choices((1, 2, 3), (5, 3, 2))[0]
        results = last, *chance.sample(inner, min(count - 1, len(inner)))
        return self._operands, self._inputs, results

    def _draw_steps(self):
        """What happens besides merging: functions, reductions and weights."""
        chance = self._chance
        functions = chance.randrange(7)
        steps = []
        if chance.random() < 0.5:
            steps.append(chance.choice(_ONE_REDUCTION))
        else:
            both = chance.choice((None, _layer_norm, _powers))
            if both is _powers and not functions:
                both = _layer_norm
            functions -= both is _powers
            steps += [both] if both else chance.choices(_ONE_REDUCTION, k=2)
        steps += chance.choices(_FUNCTIONS, k=functions)
        vectors = chance.choices((0, 1, 2, 3), (1, 4, 3, 1))[0]
        steps += chance.choices(_WEIGHTS, k=vectors)
        if chance.random() < 0.2:
            steps.append(_plus_part)
        return [lambda step=step: self._apply(step) for step in steps]

    def _apply(self, step):
        x, size = self._take()
        self._put(*step(self, x, size))

    def _take(self):
        """A value that nothing uses yet, which the next one will."""
        return self._live.pop(self._chance.randrange(len(self._live)))

    def _put(self, node, size):
        if not 0.35 < size < 2:
            factor = float(f"{1 / size:.1g}")
            node, size = node * factor, size * factor
        self._live.append((node, size))
        self._all.append((node, size))

    def other(self, x):
        """A value beside x: another one that nothing uses yet, or any."""
        if self._live and self._chance.random() < 0.5:
            return self._take()
        others = [pair for pair in self._all if pair[0] is not x]
        return self._chance.choice(others or self._all)

    def apply(self, op, *inputs):
        return self._graph.apply(op, *inputs)

    def choice(self, values):
        return self._chance.choice(values)

    def vector(self, kind):
        """A new operand with a number for each column."""
        name = _VECTORS[sum(x in self._operands for x in _VECTORS)]
        return self._declare(name, kind, Kind.VECTOR)

    def number_of_row(self):
        return self._declare("r", "numbers", Kind.STATISTIC)

    def any_operand(self):
        """A row tensor, as it is given."""
        rows = [x for x in self._operands.values() if x.kind == Kind.ROWS]
        return self._chance.choice(rows)

    def mean_square(self, x):
        return self.apply("row_mean", x * x)

    def _declare(self, name, kind, node_kind):
        self._inputs[name] = kind
        self._operands[name] = self._graph.operand(name, node_kind)
        return self._operands[name]

    def _merge(self):
        """Puts two values together, or a value and one that others use as well."""
        (x, x_size), (y, y_size) = self._take(), (None, None)
        if self._live:
            y, y_size = self._take()
        else:
            y, y_size = self.other(x)
        way = self._chance.randrange(4)
        if way == 0:
            self._put(x + y, math.hypot(x_size, y_size))
        elif way == 1:
            factor = self.choice((0.5, 0.7, 1.5, -0.5))
            self._put(x + factor * y, math.hypot(x_size, factor * y_size))
        elif way == 2:
            self._put(x * y, x_size * y_size)
        else:
            self._put(x * (y + 1), x_size * math.hypot(1, y_size))


def _rms_norm(grown, x, size):
    return x * grown.apply("rsqrt", grown.mean_square(x) + 1e-6), 1.0


def _scale_of_other(grown, x, size):
    y, _ = grown.other(x)
    scale = grown.apply("rsqrt", grown.mean_square(y) + 0.5)
    return x * scale, size


def _dot_gate(grown, x, size):
    """Gated by a row's product with another one."""
    y, y_size = grown.other(x)
    score = 2 * grown.apply("row_mean", x * y)
    return x * grown.apply("sigmoid", score) + 0.5 * y, math.hypot(size, y_size) / 2


def _largest(grown, x, size):
    largest = grown.apply("row_max", grown.apply("abs", grown.any_operand()))
    return x * (3 / (largest + 0.5)), size


def _log_power(grown, x, size):
    scale = grown.apply("log1p", grown.mean_square(x))
    return x * scale, size * math.log1p(size * size)


def _layer_norm(grown, x, size):
    centred = x - grown.apply("row_mean", x)
    scale = grown.apply("rsqrt", grown.mean_square(centred) + 1e-5)
    return centred * scale, 1.0


def _powers(grown, x, size):
    """Weighted by the softmax of an operand, times the number of columns."""
    scores = grown.any_operand()
    largest = grown.apply("stop_gradient", grown.apply("row_max", scores))
    power = grown.apply("exp", scores - largest)
    return x * (power / grown.apply("row_mean", power)), 1.7 * size


_ONE_REDUCTION = (
    _rms_norm,
    _rms_norm,
    _scale_of_other,
    _dot_gate,
    _largest,
    _log_power,
)


def _function(op, size_of):
    return lambda grown, x, size: (grown.apply(op, x), size_of(size))


def _gate(grown, x, size):
    y, _ = grown.other(x)
    return x * grown.apply("sigmoid", y), size / 2


def _soft_cap(grown, x, size):
    cap = grown.choice((2.0, 4.0))
    return cap * grown.apply("tanh", x * (1 / cap)), size


def _gaussian(grown, x, size):
    return grown.apply("exp", x * x * -0.5), 0.75


def _log_square(grown, x, size):
    return grown.apply("log1p", x * x), math.log1p(size * size)


def _root(grown, x, size):
    return grown.apply("sqrt", 1 + x * x), math.hypot(1, size)


def _inverse_root(grown, x, size):
    return x * grown.apply("rsqrt", 1 + x * x), size / math.hypot(1, size)


def _softsign(grown, x, size):
    return x / (1 + grown.apply("abs", x)), size / (1 + size)


def _bump(grown, x, size):
    y, y_size = grown.other(x)
    return y / (1 + x * x), y_size / 2


def _wave(grown, x, size):
    return grown.apply(grown.choice(("sin", "cos")), 2 * x), 0.7


_FUNCTIONS = (
    _gate,
    _gate,
    _soft_cap,
    _function("tanh", math.tanh),
    _function("sigmoid", lambda size: 0.5),
    _function("silu", lambda size: 0.5 * size),
    _function("gelu", lambda size: 0.6 * size),
    _function("gelu_tanh", lambda size: 0.6 * size),
    _function("softplus", lambda size: 0.8),
    _function("erf", math.erf),
    _gaussian,
    _log_square,
    _root,
    _inverse_root,
    _softsign,
    _bump,
    _wave,
)


def _times_weight(grown, x, size):
    return x * grown.vector("weight"), size


def _times_offset(grown, x, size):
    return x * (1 + grown.vector("offset")), size


def _plus_bias(grown, x, size):
    return x + grown.vector("offset"), size


_WEIGHTS = (_times_weight, _times_offset, _plus_bias)


def _plus_part(grown, x, size):
    """A residual times a number for each row. (A norm would undo a factor of x itself,
    and leave a gradient of rounding errors.)"""
    y, y_size = grown.other(x)
    return x + grown.number_of_row() * y, math.hypot(size, y_size)

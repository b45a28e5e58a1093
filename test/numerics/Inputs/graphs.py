# Part of Bastile, under the MIT License. See LICENSE.
"""Random functions of primitives and values for their arguments."""

import bounded
from graph_builder import NUMBERS, Builder


class Generator(Builder):
    """Grows one graph, an op at a time."""

    def step(self):
        x = self.pick(self.values[-6:] if self.chance(0.7) else self.values)
        if x.kind != self.wide and self.chance(0.6):
            x = self.cast(x, self.wide)
            if x is None:
                return None
        return self.pick(ACTIONS)(self, x)

    def grow(self, steps):
        for _ in range(self.random.integers(1, 4)):
            self.row_argument()
        if self.chance(0.4):
            self.argument(None, (), self.length, "w")
        if self.chance(0.3):
            self.argument(self.leading, self.sizes, 1, "x")
        if self.chance(0.2):
            self.argument(None, (), 1, "w")
        for _ in range(20 * steps):
            if len(self.graph.nodes) >= steps:
                break
            new = self.step()
            if new is not None:
                self.values += new if isinstance(new, list) else [new]
        self.choose_results()
        self.remove_unused()
        return self.graph

    def choose_results(self):
        given = {value.name for value in self.graph.arguments}
        computed = [v for v in self.values if v.name not in given]
        loose = [v for v in computed if v.name not in self.used]
        results = loose[-4:] or computed[-1:] or self.graph.arguments[:1]
        if computed and self.chance(0.3):
            results.append(self.pick(computed))
        if self.chance(0.1):
            results.append(results[0])
        if self.chance(0.1):
            results.append(self.graph.arguments[0])
        self.graph.results = results

    def remove_unused(self):
        """Some dead nodes are left, for the compiler to remove."""
        needed = {value.name for value in self.graph.results}
        nodes = []
        for node in reversed(self.graph.nodes):
            is_needed = any(value.name in needed for value in node.results)
            if is_needed or self.chance(0.05):
                needed.update(value.name for value in node.operands)
                nodes.append(node)
        self.graph.nodes = nodes[::-1]
        self.graph.arguments = [
            value for value in self.graph.arguments if value.name in needed
        ]


def _unary(generator, x):
    return generator.op(
        generator.pick(
            ("math.tanh", "math.erf", "math.sin", "math.cos", "math.absf", "arith.negf")
        ),
        x,
    )


def _exponential(generator, x):
    bound = generator.op("math.tanh", x)
    return bound and generator.op("math.exp", bound)


def _of_positive(generator, x):
    base = generator.one_plus_square(x)
    op = generator.pick(("math.log", "math.sqrt", "math.rsqrt"))
    return base and generator.op(op, base)


def _binary(generator, x):
    y = generator.operand(x)
    op = generator.pick(("arith.addf", "arith.subf", "arith.mulf"))
    return y and generator.op(op, x, y)


def _divide(generator, x):
    y = generator.operand(x)
    y = y and generator.one_plus_square(y)
    return y and generator.op("arith.divf", x, y)


def _extreme(generator, x):
    op = generator.pick(("arith.maximumf", "arith.minimumf"))
    if generator.chance(0.3):
        return generator.with_number(op, x, generator.pick(NUMBERS))
    y = generator.operand(x)
    return y and generator.op(op, x, y)


def _select(generator, x):
    y = generator.operand(x)
    return y and generator.select(x, y)


def _reduce(generator, x):
    if x.leading is None:
        return None
    groups = [1, 1]
    if generator.has_groups:
        groups += [n for n in (2, 3, 4) if x.length % n == 0 and n < x.length]
    kind = generator.pick(("add", "add", "add", "max", "min"))
    return generator.reduce(x, kind, generator.pick(groups))


def _reduce_rows(generator, x):
    if x.leading is None:
        return None
    kind = generator.pick(("add", "add", "add", "add", "max"))
    return generator.reduce_rows(x, kind)


def _cast(generator, x):
    return generator.cast(x, generator.pick(("bf16", "f16", "f32")))


def _stop(generator, x):
    return generator.op("tile.stop_gradient", x)


# An op in proportion to how often it stands here.
ACTIONS = (
    [_unary] * 4
    + [_exponential] * 2
    + [_of_positive] * 2
    + [_binary] * 7
    + [_divide] * 2
    + [_extreme] * 3
    + [_select] * 4
    + [_reduce] * 4
    + [_reduce_rows] * 2
    + [_cast] * 2
    + [Generator.split] * 5
    + [Generator.join] * 4
    + [Generator.model] * 6
    + [Generator.power] * 2
    + [Generator.wave, _stop]
)


def generate(seed, is_double=False, generator=Generator, letter="f", most=24):
    """A graph and values for its arguments, which every type holds."""
    bounded.compute_in("f64" if is_double else "f32")
    growing = generator(f"{letter}{seed}", seed, is_double)
    graph = growing.grow(int(growing.random.integers(4, most)))
    return graph, {
        value.name: growing.known[value.name].value for value in graph.arguments
    }

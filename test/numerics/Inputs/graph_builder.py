# Part of Bastile, under the MIT License. See LICENSE.
"""Adds random ops of each kind to a graph, with values at hand.

An op is left out if its result would be large or known to too few digits."""

import math

import numpy as np

import bounded
import graph_ops
import tape
from graph import Graph, Node, Value

LARGEST = 16
# The largest error, as a part of the largest element, and the part of the elements that
# must keep it: where a condition is not sure, a few elements are either of two numbers.
LARGEST_ERROR = 0.03
LEAST_KNOWN = 0.9

LEADING = (
    ((None,), (5,)),
    ((None,), (5,)),
    ((None,), (9,)),
    ((None, None), (2, 3)),
    ((None, None, None), (2, 3, 2)),
    ((1, None), (1, 4)),
    ((None, 1, None), (2, 1, 3)),
    ((3, None), (3, 2)),
)
LENGTHS = (1, 2, 7, 8, 12, 24, 33, 48, 64, 96, 130, 256)
NUMBERS = (0.0, 0.25, -0.5, 1.0)


class Builder:
    """Holds a graph and its values, which are all of float64
    if `is_double`. Methods that add ops return None where they cannot."""

    leadings = LEADING
    lengths = LENGTHS

    def __init__(self, name, seed, is_double=False):
        self.random = np.random.default_rng(seed)
        self.graph = Graph(name)
        self.is_double = is_double
        self.wide = "f64" if is_double else "f32"
        self.known = {}
        self.leading, self.sizes = self.pick(self.leadings)
        self.length = self.pick(self.lengths)
        # The numbers are few different ones: many are equal, and some 0.
        self.is_coarse = self.chance(0.3)
        # Rows that are taken apart have no groups, and rarely pieces of both
        # ways.
        self.has_groups = self.chance(0.3)
        self.has_pieces = not self.has_groups
        self.interleaved = self.pick((0, 0, 0, 1, 1, 0.4, 0.4))
        self.values = []
        self.conditions = []
        self.used = set()
        self.count = 0

    def pick(self, choices):
        return choices[self.random.integers(len(choices))]

    def chance(self, probability):
        return self.random.random() < probability

    # Arguments.

    def argument(self, leading, sizes, length, prefix, kind=None, scale=1):
        kinds = ("f64",) if self.is_double else ("f32", "bf16", "bf16", "f16")
        name = f"{prefix}{len(self.graph.arguments)}"
        value = Value(name, leading, length, kind or self.pick(kinds))
        self.graph.arguments.append(value)
        numbers = self.random.standard_normal((*sizes, length))
        # Few bits, so that every type holds them.
        steps = 4 if self.is_coarse else 64
        numbers = np.clip(np.round(numbers * steps) / steps, -3.5, 3.5) * scale
        twins = [
            self.known[x.name].value
            for x in self.graph.arguments[:-1]
            if self.known[x.name].shape == numbers.shape
        ]
        if twins and self.chance(0.15):
            numbers = self.pick(twins)
        elif prefix == "w":
            numbers = 1 + np.round(numbers * 4) / 16
        self.known[name] = tape.Variable(bounded.Bounded(numbers))
        self.values.append(value)
        return value

    def row_argument(self, length=None, kind=None):
        return self.argument(self.leading, self.sizes, length or self.length, "x", kind)

    def shared_argument(self, length):
        """Leading sizes that are 1 where the rows have others."""
        keep = [self.chance(0.5) for _ in self.leading]
        if all(keep):
            keep[0] = False
        leading = tuple(s if k else 1 for s, k in zip(self.leading, keep))
        sizes = [s if k else 1 for s, k in zip(self.sizes, keep)]
        if leading == self.leading:
            return None
        return self.argument(leading, sizes, length, "c")

    # Nodes.

    def new(self, leading, length, kind):
        self.count += 1
        return Value(f"v{self.count}", leading, length, kind)

    def node(self, results, operands, lines, formula, rounds=None):
        """Adds a node if its values are benign; returns its results or None."""
        first, *rest = results if isinstance(results, list) else [results]
        node = Node([first, *rest], operands, lines, formula, rounds)
        node.apply(self.known)
        if not all(self.is_benign(value) for value in node.results):
            return None
        self.graph.nodes.append(node)
        self.used.update(value.name for value in operands)
        return results

    def is_benign(self, value):
        known = self.known[value.name]
        if value.kind == "i1":
            return known.is_sure.mean() >= LEAST_KNOWN
        numbers, error = known.number.value, known.number.error
        if not np.isfinite(numbers).all() or np.abs(numbers).max() > LARGEST:
            return False
        fine = error <= LARGEST_ERROR * np.abs(numbers).max()
        return fine.mean() >= LEAST_KNOWN

    def op(self, name, *operands):
        """Adds an op on values of one type, whose result is rounded to that type."""
        first = operands[0]
        table = graph_ops.UNARY if len(operands) == 1 else graph_ops.BINARY
        result = self.new(first.leading, first.length, first.kind)
        names = ", ".join("%" + x.name for x in operands)
        return self.node(
            result,
            list(operands),
            [f"%{result.name} = {name} {names} : {first.type()}"],
            table[name],
            rounds=Node.OP,
        )

    def constant_lines(self, name, number, like):
        """The text of a number that is repeated."""
        number = f"{float(number)!r}"
        if like.leading is None:
            return [f"%{name} = arith.constant dense<{number}> : {like.type()}"]
        return [
            f"%{name}n = arith.constant {number} : {like.kind}",
            f"%{name} = tile.broadcast %{name}n like %{like.name} : "
            f"{like.kind}, {like.type()} -> {like.type()}",
        ]

    def with_number(self, op, x, number):
        """A number that every type holds, or a rounding of it, on the right."""
        result = self.new(x.leading, x.length, x.kind)
        exact = bounded.Bounded(
            number,
            0
            if math.frexp(number)[0] in (0, 0.5)
            else abs(number)
            * {"bf16": 2.0**-8, "f16": 2.0**-11}.get(x.kind, bounded.unit()),
        )
        formula = graph_ops.BINARY[op]
        if op in ("arith.maximumf", "arith.minimumf"):
            formula = _clamp(np.greater_equal if "max" in op else np.less_equal)
        return self.node(
            result,
            [x],
            [
                *self.constant_lines(result.name + "c", number, x),
                f"%{result.name} = {op} %{x.name}, %{result.name}c : {x.type()}",
            ],
            lambda x: formula(x, exact),
            rounds=Node.OP,
        )

    def cast(self, x, kind):
        if x is None or x.kind == kind or self.is_double:
            return x
        if kind != "f32" and x.kind != "f32":
            return self.cast(self.cast(x, "f32"), kind)
        op = "arith.extf" if kind == "f32" else "arith.truncf"
        result = self.new(x.leading, x.length, kind)
        return self.node(
            result,
            [x],
            [f"%{result.name} = {op} %{x.name} : {x.type()} to {result.type()}"],
            lambda x: x,
            rounds=Node.FORMULA,
        )

    def rows(self):
        """A value with the leading sizes of all."""
        return next(x for x in self.values if x.leading == self.leading)

    def has_rows(self, x):
        """Whether `x` has rows that whole functions may be applied to."""
        return x.leading == self.leading

    def can_repeat(self, x, leading, length):
        if x.leading is None:
            return x.length in (1, length)
        return (
            leading is not None
            and (x.length in (1, length) or self.has_groups)
            and length % x.length == 0
            and all(a in (1, b) for a, b in zip(x.leading, leading))
        )

    def repeat(self, x, leading, length):
        """A value or condition in the shape of others."""
        if x is None or (x.leading == leading and x.length == length):
            return x
        if not self.can_repeat(x, leading, length):
            return None
        result = self.new(leading, length, x.kind)
        if leading is None:
            # A number along a vector has no derivative yet.
            return None
        like = next((v for v in self.values if v.leading == leading), None)
        if like is None:
            return None
        return self.node(
            result,
            [x, like],
            [
                f"%{result.name} = tile.broadcast %{x.name} like %{like.name} : "
                f"{x.type()}, {like.type()} -> {result.type()}"
            ],
            lambda x, like: graph_ops.repeat(x, (*like.shape[:-1], length)),
        )

    def reduce(self, x, kind, groups):
        x = self.cast(x, self.wide)
        if x is not None and kind == "add":
            x = self.with_number("arith.mulf", x, groups / x.length)
        if x is None:
            return None
        result = self.new(x.leading, groups, self.wide)
        return self.node(
            result,
            [x],
            [
                f"%{result.name} = tile.reduce {kind} %{x.name} : {x.type()} "
                f"-> {result.type()}"
            ],
            lambda x: graph_ops.reduce_groups(kind, x, groups),
        )

    def reduce_rows(self, x, kind):
        x = self.cast(x, self.wide)
        if x is None:
            return None
        self.graph.needs_rows |= kind != "add"
        result = self.new(None, x.length, self.wide)
        return self.node(
            result,
            [x],
            [
                f"%{result.name} = tile.reduce_rows {kind} %{x.name} : "
                f"{x.type()} -> {result.type()}"
            ],
            lambda x: graph_ops.reduce_rows(kind, x),
        )

    def one_plus_square(self, x):
        square = self.op("arith.mulf", x, x)
        return square and self.with_number("arith.addf", square, 1.0)

    # Conditions.

    def compare(self, x):
        """Compares a value with a number, or with another value."""
        predicate = self.pick(("olt", "ogt", "ole", "oge", "oeq", "une"))
        function = graph_ops.COMPARE[predicate]
        result = self.new(x.leading, x.length, "i1")
        others = [v for v in self.like(x) if v.kind == x.kind]
        if others and self.chance(0.4):
            y = self.pick(others)
            return self.node(
                result,
                [x, y],
                [
                    f"%{result.name} = arith.cmpf {predicate}, %{x.name}, "
                    f"%{y.name} : {x.type()}"
                ],
                lambda x, y: bounded.compare(function, x.number, y.number),
            )
        number = self.pick(NUMBERS)
        return self.node(
            result,
            [x],
            [
                *self.constant_lines(result.name + "c", number, x),
                f"%{result.name} = arith.cmpf {predicate}, %{x.name}, "
                f"%{result.name}c : {x.type()}",
            ],
            lambda x: bounded.compare(function, x.number, bounded.Bounded(number)),
        )

    def compare_columns(self, like):
        predicate = self.pick(("slt", "sge", "eq"))
        function = graph_ops.COMPARE[predicate]
        column = int(self.random.integers(like.length + 1))
        result = self.new(like.leading, like.length, "i1")
        name, numbers = result.name, like.type("i32")

        def formula(like):
            truth = function(np.arange(like.shape[-1]), column)
            truth = np.broadcast_to(truth, like.shape)
            return bounded.Condition(truth, np.ones(like.shape, bool))

        return self.node(
            result,
            [like],
            [
                f"%{name}a = tile.iota like %{like.name} : {numbers}, {like.type()}",
                f"%{name}b = arith.constant {column} : i32",
                f"%{name}c = tile.broadcast %{name}b like %{like.name} : i32, "
                f"{like.type()} -> {numbers}",
                f"%{name} = arith.cmpi {predicate}, %{name}a, %{name}c : {numbers}",
            ],
            formula,
        )

    def compare_rows(self, like):
        """Compares numbers of rows along some leading dimensions with a number."""
        predicate = self.pick(("slt", "sge", "eq"))
        function = graph_ops.COMPARE[predicate]
        first = int(self.random.integers(len(like.leading)))
        last = int(self.random.integers(first, len(like.leading)))
        number = int(self.random.integers(5))
        result = self.new(like.leading, 1, "i1")
        name, numbers = result.name, result.type("i32")
        over = list(range(first, last + 1))

        def formula(like):
            sizes = like.shape[:-1]
            places = np.zeros(sizes, int)
            for dimension in over:
                places = places * sizes[dimension] + np.indices(sizes)[dimension]
            truth = function(places, number)[..., None]
            return bounded.Condition(truth, np.ones(truth.shape, bool))

        return self.node(
            result,
            [like],
            [
                f"%{name}a = tile.iota over {over} like %{like.name} : {numbers}, "
                f"{like.type()}",
                f"%{name}b = arith.constant {number} : i32",
                f"%{name}c = tile.broadcast %{name}b like %{like.name} : i32, "
                f"{like.type()} -> {numbers}",
                f"%{name} = arith.cmpi {predicate}, %{name}a, %{name}c : {numbers}",
            ],
            formula,
        )

    def condition(self, x):
        """A condition in the shape of `x`: a new one, an old one, or two combined."""
        if x.leading is not None and self.chance(0.25):
            if self.chance(0.4):
                return self.repeat(self.compare_rows(x), x.leading, x.length)
            return self.compare_columns(x)
        sources = [v for v in self.values if self.can_repeat(v, x.leading, x.length)]
        had = [v for v in self.conditions if self.can_repeat(v, x.leading, x.length)]
        if had and self.chance(0.3):
            return self.repeat(self.pick(had), x.leading, x.length)
        source = self.pick(sources or [x])
        short = [v for v in sources if (v.leading, v.length) != (x.leading, x.length)]
        if short and self.chance(0.5):
            source = self.pick(short)
        if self.chance(0.5):
            source = self.repeat(source, x.leading, x.length)
        result = source and self.compare(source)
        if result is None:
            return None
        self.conditions.append(result)
        return self.repeat(result, x.leading, x.length)

    def select(self, x, y):
        condition = self.condition(x)
        if condition is None:
            return None
        others = [
            v for v in self.conditions if (v.leading, v.length) == (x.leading, x.length)
        ]
        if others and self.chance(0.2):
            other = self.pick(others)
            both = self.new(x.leading, x.length, "i1")
            condition = self.node(
                both,
                [condition, other],
                [
                    f"%{both.name} = arith.andi %{condition.name}, "
                    f"%{other.name} : {both.type()}"
                ],
                lambda a, b: a & b,
            )
            if condition is None:
                return None
        result = self.new(x.leading, x.length, x.kind)
        return self.node(
            result,
            [condition, x, y],
            [
                f"%{result.name} = arith.select %{condition.name}, %{x.name}, "
                f"%{y.name} : {condition.type()}, {x.type()}"
            ],
            tape.select,
        )

    # Pieces.

    def split(self, x):
        counts = [n for n in (2, 2, 3, 4) if x.length % n == 0]
        if not counts or x.length == 1 or not self.has_pieces:
            return None
        count = self.pick(counts)
        is_interleaved = self.chance(self.interleaved)
        length = x.length // count
        pieces = [self.new(x.leading, length, x.kind) for _ in range(count)]
        names = ", ".join("%" + piece.name for piece in pieces)
        types = ", ".join(piece.type() for piece in pieces)
        word = "interleaved " if is_interleaved else ""
        return self.node(
            pieces,
            [x],
            [f"{names} = tile.split {word}%{x.name} : {x.type()} -> {types}"],
            lambda x: [
                tape.piece(x, i, count, length)
                if is_interleaved
                else tape.piece(x, i * length, 1, length)
                for i in range(count)
            ],
        )

    def join(self, x):
        alike = [v for v in self.like(x) if v.kind == x.kind]
        count = self.pick((2, 2, 3, 4))
        if x.length * count > max(LENGTHS) or not self.has_pieces:
            return None
        pieces = [x, *(self.pick(alike or [x]) for _ in range(count - 1))]
        is_interleaved = self.chance(self.interleaved)
        result = self.new(x.leading, x.length * count, x.kind)
        names = ", ".join("%" + piece.name for piece in pieces)
        types = ", ".join(piece.type() for piece in pieces)
        word = "interleaved " if is_interleaved else ""
        return self.node(
            result,
            pieces,
            [f"%{result.name} = tile.join {word}{names} : {types} -> {result.type()}"],
            lambda *pieces: tape.join(pieces, is_interleaved),
        )

    # Functions.

    def model(self, x):
        if not self.has_rows(x) or x.length < 2:
            return None
        name = self.pick(tuple(graph_ops.MODEL))
        formula, text = graph_ops.MODEL[name]
        operands = [x]
        if name in ("rms_norm_weight", "layer_norm", "add_bias"):
            operands.append(self.argument(None, (), x.length, "w", x.kind))
        elif name in ("swiglu", "geglu"):
            operands.append(self.cast(self.pick(self.like(x)), x.kind))
        elif name.startswith("rope"):
            is_interleaved = name == "rope_interleaved"
            if (
                x.length % 2
                or not self.has_pieces
                or (self.interleaved == (0 if is_interleaved else 1))
            ):
                return None
            sizes = self.known[x.name].shape[:-1]
            operands += [
                self.argument(x.leading, sizes, x.length // 2, "x", self.wide)
                for _ in "cs"
            ]
        if None in operands:
            return None
        result = self.new(x.leading, x.length, x.kind)
        types = {f"t{i}": v.type() for i, v in enumerate(operands)}
        names = ["%" + v.name for v in operands]
        return self.node(
            result,
            operands,
            [f"%{result.name} = " + text.format(*names, **types)],
            formula,
            rounds=Node.FORMULA,
        )

    def power(self, x):
        """Powers of a base that is never negative, and often 0."""
        base = self.op("math.absf", x)
        if base is None:
            return None
        number = self.pick((0.0, 1.0, 2.0, 3.0, 1.5, None))
        if number is not None:
            return self.with_number("math.powf", base, number)
        exponents = [v for v in self.like(x) if v.kind == x.kind]
        exponent = self.op("math.absf", self.pick(exponents or [x]))
        # Exponents begin at 1: below, the derivative at 0 is infinite.
        exponent = exponent and self.with_number("arith.addf", exponent, 1.0)
        return exponent and self.op("math.powf", base, exponent)

    def wave(self, x):
        """Functions of a large angle, whose gradient would be large and is left out."""
        op = self.pick(("math.sin", "math.cos"))
        function = graph_ops.UNARY[op]
        # For float16, the angle must not be infinite.
        most = 15 - LARGEST.bit_length() if x.kind == "f16" else 28
        scale = 2.0 ** int(self.random.integers(4, most))
        result = self.new(x.leading, x.length, x.kind)
        name = result.name
        return self.node(
            result,
            [x],
            [
                *self.constant_lines(name + "c", scale, x),
                f"%{name}a = tile.stop_gradient %{x.name} : {x.type()}",
                f"%{name}b = arith.mulf %{name}a, %{name}c : {x.type()}",
                f"%{name} = {op} %{name}b : {x.type()}",
            ],
            lambda x: function(tape.stop_gradient(x) * scale),
            rounds=Node.FORMULA,
        )

    # Operands.

    def like(self, x):
        """Values in the shape of `x`."""
        alike = [
            v for v in self.values if v.leading == x.leading and v.length == x.length
        ]
        return alike or [x]

    def operand(self, x):
        """Another operand for an op on `x`, of its shape and type."""
        choices = [v for v in self.values if self.can_repeat(v, x.leading, x.length)]
        other = self.pick(choices or [x])
        if self.chance(0.08) and x.leading == self.leading:
            other = self.shared_argument(self.pick((x.length, 1))) or other
        if self.chance(0.5):
            return self.cast(self.repeat(other, x.leading, x.length), x.kind)
        return self.repeat(self.cast(other, x.kind), x.leading, x.length)


def _clamp(predicate):
    """A minimum or maximum with a number, which passes a gradient on where the
    two are equal."""

    def apply(x, number):
        condition = bounded.compare(predicate, x.number, number)
        return tape.select(condition, x, number)

    return apply

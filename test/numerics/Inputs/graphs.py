"""Random functions of primitives: their text, and their values in NumPy.

A graph is grown by one op at a time, with values at hand, so that an op whose
result would be large, or known to too few digits, is not taken at all."""

import math

import numpy as np

from graph_ops import BINARY, COMPARE, ERRORS, LARGEST, LARGEST_ERROR
from graph_ops import MODEL, REDUCE, UNARY, max_rows, to_bf16


class Value:
    """A result of a node. `leading` is None for a row vector, else a tuple of
    sizes, None where known only at launch."""

    def __init__(self, name, leading, length, kind, is_exact):
        self.name = name
        self.leading = leading
        self.length = length
        self.kind = kind
        # Whether no rounding came before, so that comparisons are sure.
        self.is_exact = is_exact
        # Whether it is computed from rows.
        self.has_rows = leading is not None

    def type(self, kind=None):
        sizes = "".join(
            f"{'?' if size is None else size}x"
            for size in (*(self.leading or ()), self.length)
        )
        return f"tensor<{sizes}{kind or self.kind}>"


class Node:
    """Some ops with one formula: `text` is a list of lines with the places of
    results, {r0}, and operands, {0}, their types, {tr0} and {t0}, and one of
    their own, {n}."""

    def __init__(self, results, operands, text, formula, is_cast=False):
        self.results = results
        self.operands = operands
        self.text = text
        self.formula = formula
        self.is_cast = is_cast


class Graph:
    def __init__(self, name):
        self.name = name
        self.arguments = []
        self.nodes = []
        self.results = []
        # Real sizes of the leading dimensions of each argument.
        self.sizes = {}

    def evaluate(self, values, errors=None):
        """All values, from a dictionary of the arguments', with random errors
        of each node if a generator is given."""
        values = dict(values)
        for node in self.nodes:
            self.apply(node, values, errors)
        return values

    @staticmethod
    def apply(node, values, errors=None):
        with np.errstate(all="ignore"):
            results = node.formula(*[values[v.name] for v in node.operands])
        if len(node.results) == 1:
            results = (results,)
        for value, result in zip(node.results, results):
            if errors and not value.is_exact:
                bound = ERRORS[value.kind]
                signs = errors.integers(0, 2, result.shape) * 2 - 1
                result = result * (1 + bound * signs)
            values[value.name] = result

    def text(self, is_float64=False):
        """The function, or the same in float64 throughout, without casts."""
        names = {}

        def find(value):
            return names.get(value.name, "%" + value.name)

        def find_type(value):
            return value.type("f64" if is_float64 else None)

        lines = []
        for number, node in enumerate(self.nodes):
            if node.is_cast and is_float64:
                names[node.results[0].name] = find(node.operands[0])
                continue
            parts = {"n": f"%n{number}"}
            for i, value in enumerate(node.results):
                parts[f"r{i}"] = find(value)
                parts[f"tr{i}"] = find_type(value)
                parts[f"e{i}"] = "f64" if is_float64 else value.kind
                parts[f"ir{i}"] = value.type("i32")
                parts[f"br{i}"] = value.type("i1")
            for i, value in enumerate(node.operands):
                parts[f"t{i}"] = find_type(value)
            operands = [find(value) for value in node.operands]
            lines += [line.format(*operands, **parts) for line in node.text]
        arguments = ", ".join(
            f"%{value.name}: {find_type(value)}" for value in self.arguments
        )
        types = ", ".join(find_type(value) for value in self.results)
        returned = ", ".join(find(value) for value in self.results)
        return "\n".join(
            [
                f"func.func @{self.name}({arguments}) -> ({types}) {{",
                *["  " + line for line in lines],
                f"  return {returned} : {types}",
                "}\n",
            ]
        )


LEADING = (
    ((None,), (5,)),
    ((None,), (9,)),
    ((None, None), (2, 3)),
    ((None, None, None), (2, 3, 2)),
    ((1, None), (1, 4)),
    ((None, 1, None), (2, 1, 3)),
    ((3, None), (3, 2)),
)
LENGTHS = (1, 2, 7, 8, 12, 24, 33, 64, 96, 130, 256)


class Generator:
    """Grows one graph."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.graph = Graph(f"f{seed}")
        self.count = 0
        self.exact = {}
        self.perturbed = []
        self.leading, self.sizes = self.pick(LEADING)
        self.length = self.pick(LENGTHS)
        # Pieces of both ways of a value cannot be had.
        self.interleaved = self.chance(0.3)
        self.values = []
        self.is_used = set()

    def pick(self, choices):
        return choices[self.random.integers(len(choices))]

    def chance(self, probability):
        return self.random.random() < probability

    # Arguments.

    def argument(self, leading, sizes, length, prefix, kind=None):
        kind = kind or self.pick(("f32", "bf16", "bf16", "f16"))
        name = f"{prefix}{len(self.graph.arguments)}"
        value = Value(name, leading, length, kind, True)
        self.graph.arguments.append(value)
        self.graph.sizes[name] = (*sizes, length)
        numbers = self.random.standard_normal((*sizes, length))
        # Few bits, so that every type holds them.
        numbers = np.round(numbers * 64) / 64
        if prefix == "w":
            numbers = 1 + numbers / 4
        numbers = numbers.astype(np.float16).astype(np.float64)
        numbers = to_bf16(numbers)
        self.exact[name] = numbers
        for values in self.perturbed:
            values[name] = numbers
        self.values.append(value)
        return value

    def row_argument(self, length=None):
        return self.argument(self.leading, self.sizes, length or self.length, "x")

    def shared_argument(self, length):
        """With leading sizes of 1, where the rows have others."""
        keep = [self.chance(0.5) for _ in self.leading]
        if all(keep):
            keep[0] = False
        leading = [size if k else 1 for size, k in zip(self.leading, keep)]
        sizes = [size if k else 1 for size, k in zip(self.sizes, keep)]
        if tuple(leading) == self.leading:
            return None
        # Gradients of what is repeated are not supported.
        return self.argument(tuple(leading), sizes, length, "c")

    # Nodes.

    def new(self, leading, length, kind, is_exact=False):
        self.count += 1
        return Value(f"v{self.count}", leading, length, kind, is_exact)

    def node(self, result, operands, text, formula, is_cast=False):
        """Adds a node if its values are benign; returns its results or None."""
        results = result if isinstance(result, list) else [result]
        node = Node(results, operands, text, formula, is_cast)
        Graph.apply(node, self.exact)
        for i, values in enumerate(self.perturbed):
            Graph.apply(node, values, np.random.default_rng(self.count + i))
        if not all(self.is_benign(value) for value in results):
            return None
        self.graph.nodes.append(node)
        for value in results:
            value.has_rows |= any(v.has_rows for v in operands)
        self.is_used.update(value.name for value in operands)
        return result

    def is_benign(self, value):
        exact = self.exact[value.name]
        if not np.isfinite(exact).all() or np.abs(exact).max() > LARGEST:
            return False
        scale = np.abs(exact).max()
        if scale < 1e-2:
            return False
        worst = max(
            np.abs(values[value.name] - exact).max()
            for values in self.perturbed
        )
        return worst <= LARGEST_ERROR * scale

    def simple(self, op, *operands, formula, exact=False):
        first = operands[0]
        names = ", ".join(f"{{{i}}}" for i in range(len(operands)))
        return self.node(
            self.new(first.leading, first.length, first.kind, exact),
            list(operands),
            [f"{{r0}} = {op} {names} : {{t0}}"],
            formula,
        )

    def unary(self, op, x):
        exact = x.is_exact and op in ("math.absf", "arith.negf")
        return self.simple(op, x, formula=UNARY[op], exact=exact)

    def binary(self, op, x, y):
        exact = op in ("arith.maximumf", "arith.minimumf") and (
            x.is_exact and y.is_exact
        )
        return self.simple(op, x, y, formula=BINARY[op], exact=exact)

    def constant(self, number, like):
        """A scalar, repeated."""
        shape = self.exact[like.name].shape
        if like.leading is None:
            text = [f"{{r0}} = arith.constant dense<{number!r}> : {{tr0}}"]
        else:
            text = [
                f"{{n}} = arith.constant {number!r} : {{e0}}",
                "{r0} = tile.broadcast {n} like {0} : {e0}, {t0} -> {tr0}",
            ]
        result = self.node(
            self.new(like.leading, like.length, like.kind, True),
            [like],
            text,
            lambda x: np.full(shape, number),
        )
        if result:
            result.has_rows = like.leading is not None
        return result

    def cast(self, x, kind):
        if x is None or x.kind == kind:
            return x
        wide = kind == "f32"
        if not wide and x.kind != "f32":
            return self.cast(self.cast(x, "f32"), kind)
        op = "arith.extf" if wide else "arith.truncf"
        return self.node(
            self.new(x.leading, x.length, kind, x.is_exact),
            [x],
            [f"{{r0}} = {op} {{0}} : {{t0}} to {{tr0}}"],
            lambda x: x,
            is_cast=True,
        )

    def broadcast(self, x, like):
        if x is None:
            return None
        if x.leading == like.leading and x.length == like.length:
            return x
        result = self.node(
            self.new(like.leading, like.length, x.kind, x.is_exact),
            [x, like],
            ["{r0} = tile.broadcast {0} like {1} : {t0}, {t1} -> {tr0}"],
            lambda x, like: np.broadcast_to(x, like.shape),
        )
        if result:
            result.has_rows = like.leading is not None or x.has_rows
        return result

    def reduce(self, kind, x):
        x = self.cast(x, "f32")
        if x is None or x.leading is None:
            return None
        # Of values that differ by less than their error, any may be the largest.
        if kind != "add" and not x.is_exact:
            return None
        if kind == "add":
            x = self.scaled(x, 1 / x.length)
        if x is None:
            return None
        return self.node(
            self.new(x.leading, 1, "f32", kind != "add"),
            [x],
            [f"{{r0}} = tile.reduce {kind} {{0}} : {{t0}} -> {{tr0}}"],
            lambda x: REDUCE[kind](x, axis=-1, keepdims=True),
        )

    def reduce_rows(self, kind, x):
        x = self.cast(x, "f32")
        if x is None or x.leading is None:
            return None
        if kind != "add" and not x.is_exact:
            return None
        return self.node(
            self.new(None, x.length, "f32", kind != "add"),
            [x],
            [f"{{r0}} = tile.reduce_rows {kind} {{0}} : {{t0}} -> {{tr0}}"],
            lambda x: max_rows(x, REDUCE[kind]),
        )

    def scaled(self, x, number):
        constant = self.constant(number, x)
        return constant and self.binary("arith.mulf", x, constant)

    def one_plus_square(self, x):
        square = self.binary("arith.mulf", x, x)
        one = self.constant(1.0, x)
        return square and one and self.binary("arith.addf", square, one)

    def select(self, x, y):
        """By a comparison of values that are known exactly."""
        sure = [v for v in self.like(x) if v.is_exact]
        if not sure:
            return None
        a = self.pick(sure)
        b = self.constant(self.pick((0.0, 0.25, -0.5)), a)
        predicate = self.pick(("olt", "ogt", "ole", "oge"))
        compare = COMPARE[predicate]
        if b is None:
            # Zeros are not benign, as any other value would not be.
            return None
        return self.node(
            self.new(x.leading, x.length, x.kind, x.is_exact and y.is_exact),
            [x, y, a, b],
            [
                f"{{n}} = arith.cmpf {predicate}, {{2}}, {{3}} : {{t2}}",
                "{r0} = arith.select {n}, {0}, {1} : {br0}, {tr0}",
            ],
            lambda x, y, a, b: np.where(compare(a, b), x, y),
        )

    def select_columns(self, x, y):
        if x.leading is None:
            return None
        predicate = self.pick(("slt", "sge", "eq"))
        compare = COMPARE[predicate]
        column = int(self.random.integers(x.length + 1))
        return self.node(
            self.new(x.leading, x.length, x.kind, x.is_exact and y.is_exact),
            [x, y],
            [
                "{n}a = tile.iota like {0} : {ir0}, {t0}",
                f"{{n}}b = arith.constant {column} : i32",
                "{n}c = tile.broadcast {n}b like {0} : i32, {t0} -> {ir0}",
                f"{{n}}d = arith.cmpi {predicate}, {{n}}a, {{n}}c : {{ir0}}",
                "{r0} = arith.select {n}d, {0}, {1} : {br0}, {tr0}",
            ],
            lambda x, y: np.where(compare(np.arange(x.shape[-1]), column), x, y),
        )

    def split(self, x):
        count = 2 if self.interleaved else self.pick((2, 4))
        if x.length % count:
            return None
        word = "interleaved " if self.interleaved else ""
        pieces = [
            self.new(x.leading, x.length // count, x.kind, x.is_exact)
            for _ in range(count)
        ]
        names = ", ".join(f"{{r{i}}}" for i in range(count))
        types = ", ".join(f"{{tr{i}}}" for i in range(count))
        interleaved = self.interleaved
        return self.node(
            pieces,
            [x],
            [f"{names} = tile.split {word}{{0}} : {{t0}} -> {types}"],
            lambda x: (
                tuple(x[..., i::count] for i in range(count))
                if interleaved
                else tuple(np.split(x, count, axis=-1))
            ),
        )

    def join(self, pieces):
        count = len(pieces)
        word = "interleaved " if self.interleaved else ""
        first = pieces[0]
        names = ", ".join(f"{{{i}}}" for i in range(count))
        types = ", ".join(f"{{t{i}}}" for i in range(count))
        interleaved = self.interleaved
        return self.node(
            self.new(
                first.leading,
                first.length * count,
                first.kind,
                all(piece.is_exact for piece in pieces),
            ),
            list(pieces),
            [f"{{r0}} = tile.join {word}{names} : {types} -> {{tr0}}"],
            lambda *pieces: (
                np.stack(pieces, axis=-1).reshape(*pieces[0].shape[:-1], -1)
                if interleaved
                else np.concatenate(pieces, axis=-1)
            ),
        )

    def model(self, x):
        if x.leading != self.leading or x.length < 2:
            return None
        name = self.pick(tuple(MODEL))
        formula, text = MODEL[name]
        operands = [x]
        if name in ("rms_norm_weight", "layer_norm", "add_bias"):
            operands.append(self.argument(None, (), x.length, "w", x.kind))
        elif name in ("swiglu", "geglu"):
            operands.append(self.cast(self.pick(self.like(x)), x.kind))
        elif name.startswith("rope"):
            if self.interleaved != (name == "rope_interleaved") or x.length % 2:
                return None
            for _ in "cs":
                operands.append(
                    self.argument(
                        x.leading, self.sizes, x.length // 2, "x", "f32"
                    )
                )
        if None in operands:
            return None
        return self.node(
            self.new(x.leading, x.length, x.kind),
            operands,
            ["{r0} = " + text],
            formula,
        )

    # Growing.

    def like(self, x):
        """Values that can be had in the shape of `x`, without a broadcast."""
        return [
            v
            for v in self.values
            if v.leading == x.leading and v.length == x.length
        ]

    def operand(self, x):
        """Another operand for an op on `x`, of its shape and type."""
        choices = self.like(x)
        if x.leading is not None:
            choices += [
                v
                for v in self.values
                if (v.leading is None or v.length == 1)
                and v.length in (1, x.length)
                and v.leading in (None, x.leading)
            ]
        other = self.pick(choices)
        if self.chance(0.1) and x.leading == self.leading:
            other = self.shared_argument(self.pick((x.length, 1))) or other
        if self.chance(0.5):
            return self.cast(self.broadcast(other, x), x.kind)
        return self.broadcast(self.cast(other, x.kind), x)

    def step(self):
        x = self.pick(self.values[-6:] if self.chance(0.7) else self.values)
        if x.kind != "f32" and self.chance(0.6):
            x = self.cast(x, "f32")
            if x is None:
                return None
        action = self.random.integers(14)
        if action <= 2:
            op = self.pick(
                ("math.tanh", "math.erf", "math.sin", "math.cos", "math.absf",
                 "arith.negf")
            )
            return self.unary(op, x)
        if action == 3:
            tanh = self.unary("math.tanh", x)
            return tanh and self.unary("math.exp", tanh)
        if action == 4:
            base = self.one_plus_square(x)
            op = self.pick(("math.log", "math.sqrt", "math.rsqrt"))
            return base and self.unary(op, base)
        if action <= 7:
            y = self.operand(x)
            op = self.pick(("arith.addf", "arith.subf", "arith.mulf"))
            return y and self.binary(op, x, y)
        if action == 8:
            y = self.operand(x)
            y = y and self.one_plus_square(y)
            return y and self.binary("arith.divf", x, y)
        if action == 9:
            y = self.operand(x)
            if y is None:
                return None
            if self.chance(0.4) and x.is_exact and y.is_exact:
                op = self.pick(("arith.maximumf", "arith.minimumf"))
                return self.binary(op, x, y)
            if self.chance(0.5):
                return self.select_columns(x, y)
            return self.select(x, y)
        if action == 10:
            return self.reduce(self.pick(("add", "add", "max", "min")), x)
        if action == 11:
            if self.chance(0.4):
                return self.reduce_rows(self.pick(("add", "add", "max")), x)
            return self.cast(x, self.pick(("bf16", "f16", "f32")))
        if action == 12:
            if self.chance(0.5):
                return self.split(x)
            short = [v for v in self.values if v.length * 2 == self.length]
            if not short:
                return None
            first = self.pick(short)
            second = self.pick(
                [v for v in self.like(first) if v.kind == first.kind]
            )
            return self.join([first, second])
        return self.model(x)

    def grow(self, steps):
        self.perturbed = [{}, {}]
        for _ in range(self.random.integers(1, 4)):
            self.row_argument()
        if self.chance(0.5):
            self.argument(None, (), self.length, "w")
        if self.chance(0.3):
            self.argument(self.leading, self.sizes, 1, "x")
        if self.chance(0.2):
            self.argument(None, (), 1, "w")
        while len(self.graph.nodes) < steps:
            new = self.step()
            if new is not None:
                self.values += new if isinstance(new, list) else [new]
        self.choose_results()
        self.remove_unused()
        return self.graph

    def choose_results(self):
        computed = [v for v in self.values if v.name not in self.exact_inputs()]
        loose = [v for v in computed if v.name not in self.is_used]
        results = loose[-4:] or computed[-1:] or self.graph.arguments[:1]
        if computed and self.chance(0.3):
            results.append(self.pick(computed))
        if self.chance(0.1):
            results.append(results[0])
        if self.chance(0.1):
            results.append(self.graph.arguments[0])
        self.graph.results = results

    def exact_inputs(self):
        return {value.name for value in self.graph.arguments}

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


def generate(seed):
    """A graph and values for its arguments, which every type holds."""
    generator = Generator(seed)
    graph = generator.grow(int(generator.random.integers(4, 24)))
    values = {
        value.name: generator.exact[value.name] for value in graph.arguments
    }
    return graph, values

# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""Products of matrices, and functions with products among other ops, against what
they mean in float64 (tile-run --check), on the host and as a GPU's code."""

import json
import random

import numpy as np
import pytest

import floats
from runner import execute, run, target, tensor

SIZES = (1, 2, 7, 8, 17, 33, 64, 130)
BATCH = (1, 2, 3)
#: What follows a product: ops on %0, of the type {t}, whose last value is %last. %v is
#: a vector along the columns, %r has the product's shape.
EPILOGUES = {
    "none": "%last = arith.negf %0 : {t}",
    "bias": """%s = tile.broadcast %v like %0 : {v}, {t} -> {t}
  %last = arith.addf %0, %s : {t}""",
    "activation": """%1 = math.tanh %0 : {t}
  %last = arith.mulf %1, %0 : {t}""",
    "residual": "%last = arith.addf %0, %r : {t}",
}


class Product:
    """A product of two random shapes, types and orders of dimensions."""

    def __init__(self, seed):
        chance = random.Random(seed)
        self.element = chance.choice(["f32", "bf16", "f16", "f64", "f8E4M3FN"])
        self.sum = "f64" if self.element == "f64" else "f32"
        self.contract = chance.choice([0, 1]), chance.choice([0, 1])
        m, n, k = (chance.choice(SIZES) for _ in range(3))
        batch = [chance.choice(BATCH) for _ in range(chance.choice([0, 0, 1, 2]))]

        def some(sizes):
            return [size if chance.random() < 0.7 else 1 for size in sizes]

        left, right = some(batch), some(batch)
        if chance.random() < 0.4:
            right = []
        padded = [1] * (len(left) - len(right)) + right
        result = some(map(max, left, padded))
        self.names = {"m": m, "n": n, "k": k}
        self.free = {x for x in ("m", "n", "k", "b0", "b1") if chance.random() < 0.5}
        self.a = self._matrices(left, "mk" if self.contract[0] else "km")
        self.b = self._matrices(right, "nk" if self.contract[1] else "kn")
        self.result = self._matrices(result, "mn")
        self.epilogue = chance.choice(sorted(EPILOGUES))
        self.output = chance.choice([self.sum, self.sum, "bf16"])

    def _matrices(self, batch, matrix):
        """Pairs of a dimension's name and its size."""
        ahead = len(batch)
        sizes = [(f"b{ahead - 1 - i}", size) for i, size in enumerate(batch)]
        return sizes + [(name, self.names[name]) for name in matrix]

    def _type(self, dimensions, element, fixed=()):
        *leading, last = dimensions
        sizes = [
            None if name in self.free and name not in fixed and size != 1 else size
            for name, size in leading
        ]
        return tensor((*sizes, last[1]), element)

    def source(self):
        # Rows of results have a static length, so that what has their columns as
        # rows has as many of them, and what has their rows as columns.
        fixed = {"n"} | {x[-1][0] for x in (self.a, self.b)}
        a, b = (self._type(x, self.element, fixed) for x in (self.a, self.b))
        t = self._type(self.result, self.sum, fixed)
        output = self._type(self.result, self.output, fixed)
        v = tensor((self.names["n"],), self.sum)
        body = EPILOGUES[self.epilogue].format(t=t, v=v)
        last = "%last"
        if self.output != self.sum:
            body += f"\n  %out = arith.truncf %last : {t} to {output}"
            last = "%out"
        return f"""
func.func @f(%a: {a}, %b: {b}, %v: {v}, %r: {t}) -> {output} {{
  %0 = tile.dot %a, %b contract {list(self.contract)} : {a}, {b} -> {t}
  {body}
  return {last} : {output}
}}
"""

    def shapes(self):
        given = {"a": self.a, "b": self.b, "r": self.result}
        shapes = {name: [s for _, s in sizes] for name, sizes in given.items()}
        shapes["v"] = [self.names["n"]]
        return [f"--shape={x}={'x'.join(map(str, s))}" for x, s in shapes.items()]


def check(source, *arguments):
    done = execute(source, "--check", *arguments)
    assert done.returncode == 0, source + done.stderr + done.stdout
    for one in json.loads(done.stdout)["runs"]:
        for output in one["outputs"]:
            assert output["pass"], (source, arguments, output)


PLACES = [(), ("--offset=1",), ("--gap=3",)]


@pytest.mark.long(every=11)
@pytest.mark.parametrize("seed", range(60))
def test_random_products(seed):
    product = Product(seed)
    emulated = seed % 2 and product.element != "f64" and target() == "host"
    check(
        product.source(),
        *product.shapes(),
        *PLACES[seed % len(PLACES)],
        *(["--grad"] if seed % 3 else []),
        *(["--emulate"] if emulated else []),
    )


X, W, V = (tensor(shape, "bf16") for shape in ((None, None, 64), (96, 64), (64, 96)))
H32, X32, H16 = (
    tensor(shape, kind)
    for shape, kind in (
        ((None, None, 96), "f32"),
        ((None, None, 64), "f32"),
        ((None, None, 96), "bf16"),
    )
)
MLP = f"""
func.func @f(%x: {X}, %n: tensor<64xbf16>, %g: {W}, %u: {W}, %d: {V}) -> {X} {{
  %xn = tile.rms_norm %x, %n {{eps = 1.0e-6}} : {X}, tensor<64xbf16>
  %0 = tile.dot %xn, %g contract [1, 1] : {X}, {W} -> {H32}
  %1 = tile.dot %xn, %u contract [1, 1] : {X}, {W} -> {H32}
  %gate = arith.truncf %0 : {H32} to {H16}
  %up = arith.truncf %1 : {H32} to {H16}
  %h = tile.swiglu %gate, %up : {H16}
  %2 = tile.dot %h, %d contract [1, 1] : {H16}, {V} -> {X32}
  %x32 = arith.extf %x : {X} to {X32}
  %3 = arith.addf %2, %x32 : {X32}
  %4 = arith.truncf %3 : {X32} to {X}
  return %4 : {X}
}}
"""

#: Gates and ups in one product, taken apart behind it, side by side or interleaved.
PACKED = """
func.func @f(%x: tensor<?x64xbf16>, %w: tensor<192x64xbf16>, %v: tensor<64x96xbf16>) -> tensor<?x64xf32> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xbf16>, tensor<192x64xbf16> -> tensor<?x192xf32>
  %g, %u = tile.split SIDE%0 : tensor<?x192xf32> -> tensor<?x96xf32>, tensor<?x96xf32>
  %h = tile.swiglu %g, %u : tensor<?x96xf32>
  %h16 = arith.truncf %h : tensor<?x96xf32> to tensor<?x96xbf16>
  %1 = tile.dot %h16, %v contract [1, 1] : tensor<?x96xbf16>, tensor<64x96xbf16> -> tensor<?x64xf32>
  return %1 : tensor<?x64xf32>
}
"""

#: A norm without a weight ahead of two products, which round what it computes.
NORMED = """
func.func @f(%x: tensor<?x40xbf16>, %w: tensor<24x40xbf16>, %v: tensor<24x40xbf16>) -> tensor<?x24xf32> {
  %x32 = arith.extf %x : tensor<?x40xbf16> to tensor<?x40xf32>
  %q = arith.mulf %x32, %x32 : tensor<?x40xf32>
  %s = tile.reduce add %q : tensor<?x40xf32> -> tensor<?x1xf32>
  %r = math.rsqrt %s : tensor<?x1xf32>
  %rb = tile.broadcast %r like %x : tensor<?x1xf32>, tensor<?x40xbf16> -> tensor<?x40xf32>
  %n = arith.mulf %x32, %rb : tensor<?x40xf32>
  %0 = tile.dot %n, %w contract [1, 1] : tensor<?x40xf32>, tensor<24x40xbf16> -> tensor<?x24xf32>
  %1 = tile.dot %n, %v contract [1, 1] : tensor<?x40xf32>, tensor<24x40xbf16> -> tensor<?x24xf32>
  %2 = math.tanh %0 : tensor<?x24xf32>
  %3 = arith.mulf %2, %1 : tensor<?x24xf32>
  return %3 : tensor<?x24xf32>
}
"""

#: Rows that are joined, and then multiplied and returned as well.
JOINED = """
func.func @f(%x: tensor<?x32xf32>, %y: tensor<?x32xf32>, %w: tensor<64x64xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
  %d = arith.subf %x, %y : tensor<?x32xf32>
  %j = tile.join %d, %x : tensor<?x32xf32>, tensor<?x32xf32> -> tensor<?x64xf32>
  %0 = tile.dot %j, %w contract [1, 1] : tensor<?x64xf32>, tensor<64x64xf32> -> tensor<?x64xf32>
  return %0, %j : tensor<?x64xf32>, tensor<?x64xf32>
}
"""

#: One operand in two parts: as both factors, and as a residual.
SHARED = """
func.func @f(%w: tensor<40x40xf32>) -> tensor<40x40xf32> {
  %0 = tile.dot %w, %w contract [1, 0] : tensor<40x40xf32>, tensor<40x40xf32> -> tensor<40x40xf32>
  %1 = tile.dot %0, %w contract [0, 1] : tensor<40x40xf32>, tensor<40x40xf32> -> tensor<40x40xf32>
  %2 = arith.addf %1, %w : tensor<40x40xf32>
  return %2 : tensor<40x40xf32>
}
"""

#: Reductions along the rows of a product, and over them.
SOFTMAX = """
func.func @f(%x: tensor<?x64xf32>, %w: tensor<64x33xf32>) -> (tensor<?x33xf32>, tensor<33xf32>) {
  %0 = tile.dot %x, %w contract [1, 0] : tensor<?x64xf32>, tensor<64x33xf32> -> tensor<?x33xf32>
  %m = tile.reduce max %0 : tensor<?x33xf32> -> tensor<?x1xf32>
  %mb = tile.broadcast %m like %0 : tensor<?x1xf32>, tensor<?x33xf32> -> tensor<?x33xf32>
  %s = arith.subf %0, %mb : tensor<?x33xf32>
  %e = math.exp %s : tensor<?x33xf32>
  %t = tile.reduce add %e : tensor<?x33xf32> -> tensor<?x1xf32>
  %tb = tile.broadcast %t like %0 : tensor<?x1xf32>, tensor<?x33xf32> -> tensor<?x33xf32>
  %p = arith.divf %e, %tb : tensor<?x33xf32>
  %sum = tile.reduce_rows add %0 : tensor<?x33xf32> -> tensor<33xf32>
  return %p, %sum : tensor<?x33xf32>, tensor<33xf32>
}
"""


@pytest.mark.long(every=37)
@pytest.mark.parametrize("options", [(), ("--emulate",)])
@pytest.mark.parametrize("grad", [(), ("--grad",), ("--value-and-grad",)])
@pytest.mark.parametrize(
    "source, shape",
    [
        (MLP, "x=2x9x64"),
        (NORMED, "x=33x40"),
        (NORMED, "x=1x40"),
        (PACKED.replace("SIDE", ""), "x=37x64"),
        (PACKED.replace("SIDE", "interleaved "), "x=37x64"),
        (JOINED, "x=37x32"),
        (SHARED, "w=40x40"),
        (SOFTMAX, "x=37x64"),
    ],
)
def test_functions(source, shape, grad, options):
    if options and target() != "host":
        pytest.skip("runs on the GPU itself")
    check(source, f"--shape={shape}", *grad, *options)


#: A product of either order of dimensions, alone and ahead of more than a thread's
#: registers have room for at once.
SCHEDULED = """
func.func @f(%x: {x}, %w: {w}, %r: tensor<130x80xf32>) -> tensor<130x80x{output}> {{
  %0 = tile.dot %x, %w contract {contract} : {x}, {w} -> tensor<130x80xf32>
  {body}
}}
"""
BODIES = {
    "bf16": """%1 = math.tanh %0 : tensor<130x80xf32>
  %2 = arith.mulf %1, %0 : tensor<130x80xf32>
  %3 = arith.addf %2, %r : tensor<130x80xf32>
  %4 = arith.truncf %3 : tensor<130x80xf32> to tensor<130x80xbf16>
  return %4 : tensor<130x80xbf16>""",
    "f32": "return %0 : tensor<130x80xf32>",
}


def make_scheduled(element, contract, output):
    return SCHEDULED.format(
        x=tensor((130, 72) if contract else (72, 130), element),
        w=tensor((80, 72) if contract else (72, 80), element),
        contract=[contract, contract],
        output=output,
        body=BODIES[output],
    )


@pytest.mark.long(every=11)
@pytest.mark.parametrize("output", BODIES)
@pytest.mark.parametrize("contract", [0, 1])
@pytest.mark.parametrize(
    "schedule",
    [
        "columns = 64",
        "rows = 32, columns = 16",
        "rows = 256, columns = 128, stages = 2",
        "depth = 16, stages = 3",
        "depth = 64",
        "rows = 64, columns = 256, depth = 128, stages = 2",
        "threads = 64, columns = 32",
        "threads = 256",
    ],
)
def test_schedules_of_products(schedule, contract, output):
    options = ["--emulate"] if target() == "host" else []
    check(
        make_scheduled("bf16", contract, output),
        f"--schedule=f_kernel: {schedule}, roles = 1",
        *options,
    )


#: Schedules of products that run on no tensor cores, and whether they are the host's.
OTHERS = [
    ("rows = 32, columns = 32", False),
    ("threads = 64", False),
    ("vector = 2, columns = 128", False),
    ("rows = 5, columns = 8", True),
    ("vector = 2, columns = 6", True),
    ("vector = 1", True),
]


@pytest.mark.long(every=3)
@pytest.mark.parametrize("contract", [0, 1])
@pytest.mark.parametrize("schedule, is_for_host", OTHERS)
def test_schedules_of_other_products(schedule, is_for_host, contract):
    if is_for_host and target() != "host":
        pytest.skip("runs on the host")
    check(
        make_scheduled("f32", contract, "bf16"),
        f"--schedule=f_kernel: {schedule}",
        *(["--emulate"] if not is_for_host and target() == "host" else []),
    )


@pytest.mark.parametrize("empty", ["m", "k"])
def test_nothing_to_multiply(empty):
    """No rows give no result; a sum of no products is 0."""
    rows = 0 if empty == "k" else 3
    source = """
func.func @f(%a: tensor<?x5xf32>, %b: tensor<?x7xf32>) -> tensor<5x7xf32> {
  %0 = tile.dot %a, %b contract [0, 0] : tensor<?x5xf32>, tensor<?x7xf32> -> tensor<5x7xf32>
  return %0 : tensor<5x7xf32>
}
"""
    inputs = {
        "a": ("f32", floats.random("f32", (rows, 5), 1)),
        "b": ("f32", floats.random("f32", (rows, 7), 2)),
    }
    if empty == "m":
        source = source.replace("tensor<5x7xf32>", "tensor<?x7xf32>")
        source = source.replace("[0, 0]", "[1, 0]").replace(
            "%b: tensor<?x", "%b: tensor<5x"
        )
        source = source.replace("tensor<?x7xf32> -> ", "tensor<5x7xf32> -> ")
        inputs["a"] = ("f32", floats.random("f32", (0, 5), 1))
        inputs["b"] = ("f32", floats.random("f32", (5, 7), 2))
    (result,) = run(source, inputs, ["f32"])
    expected = inputs["a"][1].T @ inputs["b"][1] if empty == "k" else np.zeros((0, 7))
    np.testing.assert_array_equal(result, expected)


def test_same_bits():
    """Sums have one order, however many threads share the work."""
    source = """
func.func @f(%a: tensor<?x333xf32>, %b: tensor<70x333xf32>) -> tensor<?x70xf32> {
  %0 = tile.dot %a, %b contract [1, 1] : tensor<?x333xf32>, tensor<70x333xf32> -> tensor<?x70xf32>
  return %0 : tensor<?x70xf32>
}
"""
    inputs = {
        "a": ("f32", floats.random("f32", (57, 333), 1)),
        "b": ("f32", floats.random("f32", (70, 333), 2)),
    }
    first, *others = (
        run(source, inputs, ["f32"], f"--host-threads={threads}")[0]
        for threads in (1, 2, 3)
    )
    for other in others:
        np.testing.assert_array_equal(first, other)


def test_sizes_that_differ():
    """A dimension of two operands has one size."""
    source = """
func.func @f(%a: tensor<?x8xf32>, %b: tensor<?x4xf32>) -> tensor<8x4xf32> {
  %0 = tile.dot %a, %b contract [0, 0] : tensor<?x8xf32>, tensor<?x4xf32> -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
"""
    done = execute(source, "--shape=a=5x8", "--shape=b=6x4")
    assert done.returncode != 0
    assert "'b' of shape [6, 4] has size 6 in dimension 0, which is 'k'" in done.stderr

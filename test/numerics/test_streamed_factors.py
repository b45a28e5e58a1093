# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""Products of what their kernels compute, such as softmax(q k^T) v, against what they
mean in float64 (tile-run --check), on the host and as a GPU's code: random sizes, types,
batches and formulas between the two products, with gradients."""

import random

import pytest

from runner import target, tensor
from test_dots import check

SIZES = (16, 24, 40, 64, 80, 128)
LENGTHS = (2, 5, 17, 64, 70, 129, 200)
#: Formulas from the scores %x to the left factor %p, and what follows %o, the product.
#: {s} is the type of the scores, {r} that of a statistic, {o} that of the product.
SOFTMAX = """
  %m = tile.reduce max %x : {s} -> {r}
  {larger}
  %ms = tile.broadcast %shift like %x : {r}, {s} -> {s}
  %d = arith.subf %x, %ms : {s}
  %e = math.exp %d : {s}
  %l = tile.reduce add %e : {s} -> {r}"""
MAXIMUM = "%shift = arith.maximumf %m, %m : {r}"
WITH_SINK = """%one = arith.constant 0.7 : {t}
  %sink = tile.broadcast %one like %m : {t}, {r} -> {r}
  %shift = arith.maximumf %m, %sink : {r}"""
DIVIDED = """
  %ls = tile.broadcast %l like %x : {r}, {s} -> {s}
  %p = arith.divf %e, %ls : {s}"""
BETWEEN = {
    "softmax": (
        SOFTMAX.replace("{larger}", MAXIMUM) + DIVIDED,
        "%last = arith.negf %o : {o}",
    ),
    "sink": (
        SOFTMAX.replace("{larger}", WITH_SINK) + DIVIDED,
        "%last = arith.negf %o : {o}",
    ),
    "behind": (
        SOFTMAX.replace("{larger}", MAXIMUM) + "\n  %p = arith.addf %e, %zeros : {s}",
        """%lo = tile.broadcast %l like %o : {r}, {o} -> {o}
  %last = arith.divf %o, %lo : {o}""",
    ),
    "activation": ("\n  %p = math.tanh %x : {s}", "%last = math.sin %o : {o}"),
    "sum": (
        """
  %t = math.absf %x : {s}
  %l = tile.reduce add %t : {s} -> {r}
  %p = math.tanh %x : {s}""",
        """%lo = tile.broadcast %l like %o : {r}, {o} -> {o}
  %last = arith.addf %o, %lo : {o}""",
    ),
}
MASKED = """%ci = tile.iota like %y : {i}, {s}
  %ri = tile.iota over [{row}] like %y : {ri}, {s}
  %rb = tile.broadcast %ri like %y : {ri}, {s} -> {i}
  %sees = arith.cmpi sle, %ci, %rb : {i}
  %never = arith.constant 0xFF800000 : f32
  %hidden = tile.broadcast %never like %y : f32, {s} -> {s}
  %x = arith.select %sees, %y, %hidden : {b}, {s}"""


class Case:
    def __init__(self, seed):
        chance = random.Random(seed)
        self.element = chance.choice(["bf16", "bf16", "f16", "f32", "f64"])
        wide = "f64" if self.element == "f64" else "f32"
        size, of_values = chance.choice(SIZES), chance.choice(SIZES)
        queries, keys = chance.choice(LENGTHS), chance.choice(LENGTHS)
        batch = [chance.choice([1, 2, 3]) for _ in range(chance.choice([0, 1, 2]))]
        shared = [n if chance.random() < 0.6 else 1 for n in batch]
        self.sizes = {
            "q": (*batch, queries, size),
            "k": (*shared, keys, size),
            "v": (*shared, keys, of_values),
        }
        lead = [None if n > 1 else 1 for n in batch]
        own = [None if n > 1 else 1 for n in shared]
        q = tensor((*lead, None, size), self.element)
        k = tensor((*own, None, size), self.element)
        v = tensor((*own, None, of_values), self.element)
        rows = (*lead, None)
        names = {
            "s": tensor((*rows, None), wide),
            "i": tensor((*rows, None), "i32"),
            "b": tensor((*rows, None), "i1"),
            "r": tensor((*rows, 1), wide),
            "ri": tensor((*rows, 1), "i32"),
            "o": tensor((*rows, of_values), wide),
            "t": wide,
            "row": len(batch),
        }
        between, behind = BETWEEN[chance.choice(sorted(BETWEEN))]
        is_masked = wide == "f32" and chance.random() < 0.4
        masked = MASKED if is_masked else "%x = arith.addf %y, %zeros : {s}"
        text = (masked + between).format(**names)
        self.source = f"""
func.func @f(%q: {q}, %k: {k}, %v: {v}) -> {names["o"]} {{
  %scores = tile.dot %q, %k contract [1, 1] : {q}, {k} -> {names["s"]}
  %c = arith.constant {size**-0.5} : {wide}
  %cs = tile.broadcast %c like %scores : {wide}, {names["s"]} -> {names["s"]}
  %y = arith.mulf %scores, %cs : {names["s"]}
  %zero = arith.constant 0.0 : {wide}
  %zeros = tile.broadcast %zero like %scores : {wide}, {names["s"]} -> {names["s"]}
  {text}
  %o = tile.dot %p, %v contract [1, 0] : {names["s"]}, {v} -> {names["o"]}
  {behind.format(**names)}
  return %last : {names["o"]}
}}
"""

    def shapes(self):
        return [
            f"--shape={name}={'x'.join(map(str, sizes))}"
            for name, sizes in self.sizes.items()
        ]


PLACES = [(), (), ("--offset=1",), ("--gap=3",)]


@pytest.mark.long(every=29)
@pytest.mark.parametrize("seed", range(40))
def test_random_formulas(seed):
    case = Case(seed)
    emulated = seed % 2 and case.element != "f64" and target() == "host"
    check(
        case.source,
        *case.shapes(),
        *PLACES[seed % len(PLACES)],
        *(["--grad"] if seed % 3 == 0 else []),
        *(["--emulate"] if emulated else []),
    )


#: Rows of a length that only a call knows: softmax, a norm, and a sum of powers.
ROWS = {
    "softmax": """%m = tile.reduce max %x : {s} -> {r}
  %ms = tile.broadcast %m like %x : {r}, {s} -> {s}
  %d = arith.subf %x, %ms : {s}
  %e = math.exp %d : {s}
  %l = tile.reduce add %e : {s} -> {r}
  %ls = tile.broadcast %l like %x : {r}, {s} -> {s}
  %y = arith.divf %e, %ls : {s}""",
    "norm": """%q = arith.mulf %x, %x : {s}
  %l = tile.reduce add %q : {s} -> {r}
  %rs = math.rsqrt %l : {r}
  %ls = tile.broadcast %rs like %x : {r}, {s} -> {s}
  %y = arith.mulf %x, %ls : {s}""",
    "weighted": """%m = tile.reduce max %x : {s} -> {r}
  %ms = tile.broadcast %m like %x : {r}, {s} -> {s}
  %d = arith.subf %x, %ms : {s}
  %e = math.exp %d : {s}
  %w = arith.mulf %e, %x : {s}
  %l = tile.reduce add %w : {s} -> {r}
  %ls = tile.broadcast %l like %x : {r}, {s} -> {s}
  %y = arith.addf %e, %ls : {s}""",
}


@pytest.mark.long(every=3)
@pytest.mark.parametrize("columns", [1, 5, 77, 513, 4097])
@pytest.mark.parametrize("name", ROWS)
def test_rows_of_any_length(name, columns):
    rows, statistic = (tensor((None, None, x), "f32") for x in (None, 1))
    body = ROWS[name].format(s=rows, r=statistic)
    source = f"""
func.func @f(%x: {rows}) -> {rows} {{
  {body}
  return %y : {rows}
}}
"""
    shape = f"--shape=x=2x5x{columns}"
    check(source, shape, "--grad")
    if target() == "host" and columns < 1000:
        check(source, shape, "--grad", "--emulate")


def test_numbers_that_all_rows_share():
    """The gradient of a number that multiplies rows of any length is a sum of all rows
    of all matrices."""
    source = """
func.func @f(%q: tensor<?x?x8xf32>, %k: tensor<?x?x8xf32>, %n: tensor<1xf32>)
    -> tensor<?x?x?xf32> {
  %0 = tile.dot %q, %k contract [1, 1] : tensor<?x?x8xf32>, tensor<?x?x8xf32> -> tensor<?x?x?xf32>
  %1 = math.tanh %0 : tensor<?x?x?xf32>
  %2 = tile.broadcast %n like %1 : tensor<1xf32>, tensor<?x?x?xf32> -> tensor<?x?x?xf32>
  %3 = arith.mulf %1, %2 : tensor<?x?x?xf32>
  return %3 : tensor<?x?x?xf32>
}
"""
    shapes = "--shape=q=2x17x8", "--shape=k=2x23x8"
    check(source, *shapes, "--grad")
    if target() == "host":
        check(source, *shapes, "--grad", "--emulate")

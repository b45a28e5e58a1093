# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""Products whose columns are taken apart, such as those of packed gates and ups, against
what they mean in float64 (tile-run --check), on the host and as a GPU's code: random
sizes, types and batches, with gradients."""

import random

import pytest

from runner import target, tensor
from test_dots import PLACES, check

SIZES = (1, 2, 7, 8, 17, 33, 64)
#: From the whole product %0 to what is taken apart, %h. {w} is the type of the product,
#: {n} its narrow one, {v} that of a vector along its columns.
WHOLE = {
    "plain": "%h = arith.negf %0 : {w}",
    "bias": """%s = tile.broadcast %v like %0 : {v}, {w} -> {w}
  %h = arith.addf %0, %s : {w}""",
    "residual": "%h = arith.addf %0, %r : {w}",
    "rounded": """%t = arith.truncf %0 : {w} to {n}
  %h = arith.extf %t : {n} to {w}""",
}
#: From the pieces %g and %u, of type {p}, to %y.
GATED = {
    "gated": """%a = math.tanh %g : {p}
  %y = arith.mulf %a, %u : {p}""",
    # One piece follows the other one's row, which another kernel sums.
    "row": """%t0 = tile.reduce add %g : {p} -> {s}
  %t1 = tile.broadcast %t0 like %u : {s}, {p} -> {p}
  %y = arith.mulf %t1, %u : {p}""",
    "one": "%y = math.sin %u : {p}",
    # A bias that is taken apart as the product is.
    "bias": """{bias}
  %v0 = tile.broadcast %vg like %g : {vp}, {p} -> {p}
  %v1 = tile.broadcast %vu like %u : {vp}, {p} -> {p}
  %a = arith.addf %g, %v0 : {p}
  %c = arith.addf %u, %v1 : {p}
  %y = arith.mulf %a, %c : {p}""",
}


class Case:
    def __init__(self, seed):
        chance = random.Random(seed)
        self.element = chance.choice(["f32", "bf16", "bf16", "f16"])
        self.contract = chance.choice([0, 1])
        self.interleaved = chance.choice(["", "interleaved "])
        # A kernel has the products of two pieces, and of no more.
        self.count = chance.choice([2, 2, 3])
        self.whole = chance.choice(sorted(WHOLE))
        self.gated = chance.choice(sorted(GATED))
        self.returns_whole = chance.random() < 0.2
        batch = [chance.choice([1, 2, 3]) for _ in range(chance.choice([0, 0, 1]))]
        m, self.n, k = (chance.choice(SIZES) for _ in range(3))
        rows = [*batch, m]
        shared = [n if chance.random() < 0.5 else 1 for n in batch]
        matrix = [self.count * self.n, k] if self.contract else [k, self.count * self.n]
        self.shapes = {
            "x": [*rows, k],
            "w": [*shared, *matrix],
            "v": [self.count * self.n],
            "r": [*rows, self.count * self.n],
        }

    def source(self):
        lead = [size if size == 1 else None for size in self.shapes["x"][:-2]]
        rows = [*lead, None]
        x = tensor((*rows, self.shapes["x"][-1]), self.element)
        right = [size if size == 1 else None for size in self.shapes["w"][:-2]]
        w = tensor((*right, *self.shapes["w"][-2:]), self.element)
        narrow = "bf16" if self.element == "f32" else self.element
        types = {
            "w": tensor((*rows, self.count * self.n), "f32"),
            "n": tensor((*rows, self.count * self.n), narrow),
            "p": tensor((*rows, self.n), "f32"),
            "s": tensor((*rows, 1), "f32"),
            "v": tensor((self.count * self.n,), "f32"),
            "vp": tensor((self.n,), "f32"),
        }
        types["bias"] = self.split("%vg, %vu", "%v", types["v"], types["vp"])
        whole = WHOLE[self.whole].format(**types)
        gated = GATED[self.gated].format(**types)
        results, named = [types["p"]], ["%y"]
        if self.returns_whole:
            results.append(types["w"])
            named.append("%h")
        product, piece = types["w"], types["p"]
        return f"""
func.func @f(%x: {x}, %w: {w}, %v: {types["v"]}, %r: {product}) -> ({", ".join(results)}) {{
  %0 = tile.dot %x, %w contract [1, {self.contract}] : {x}, {w} -> {product}
  {whole}
  {self.split("%g, %u", "%h", product, piece)}
  {gated}
  return {", ".join(named)} : {", ".join(results)}
}}
"""

    def split(self, first, whole, type, piece):
        """Takes ``whole`` apart, of which nothing but the ``first`` two pieces is used."""
        names = ", ".join([first, *(f"{whole}{i}" for i in range(2, self.count))])
        pieces = ", ".join([piece] * self.count)
        return f"{names} = tile.split {self.interleaved}{whole} : {type} -> {pieces}"

    def arguments(self):
        return [
            f"--shape={name}={'x'.join(map(str, sizes))}"
            for name, sizes in self.shapes.items()
        ]


@pytest.mark.long(every=67)
@pytest.mark.parametrize("seed", range(60))
def test_random_pieces(seed):
    case = Case(seed)
    emulated = seed % 2 and target() == "host"
    check(
        case.source(),
        *case.arguments(),
        *PLACES[seed % len(PLACES)],
        *(["--grad"] if seed % 4 else []),
        *(["--emulate"] if emulated else []),
    )


#: The gates and ups of an MLP in one weight, rounded as a model of 16 bits does.
MLP = """
func.func @f(%x: tensor<?x40xbf16>, %w: tensor<96x40xbf16>, %b: tensor<96xbf16>, %d: tensor<40x48xbf16>) -> tensor<?x40xbf16> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x40xbf16>, tensor<96x40xbf16> -> tensor<?x96xf32>
  %b32 = arith.extf %b : tensor<96xbf16> to tensor<96xf32>
  %bias = tile.broadcast %b32 like %x : tensor<96xf32>, tensor<?x40xbf16> -> tensor<?x96xf32>
  %1 = arith.addf %0, %bias : tensor<?x96xf32>
  %h = arith.truncf %1 : tensor<?x96xf32> to tensor<?x96xbf16>
  %g, %u = tile.split %h : tensor<?x96xbf16> -> tensor<?x48xbf16>, tensor<?x48xbf16>
  %a = tile.swiglu %g, %u : tensor<?x48xbf16>
  %2 = tile.dot %a, %d contract [1, 1] : tensor<?x48xbf16>, tensor<40x48xbf16> -> tensor<?x40xf32>
  %3 = arith.truncf %2 : tensor<?x40xf32> to tensor<?x40xbf16>
  return %3 : tensor<?x40xbf16>
}
"""


@pytest.mark.long(every=11)
@pytest.mark.parametrize("rows", [0, 1, 7, 129])
@pytest.mark.parametrize("place", [(), ("--offset=1",)])
def test_mlp_of_a_packed_weight(rows, place):
    check(MLP, f"--rows={rows}", "--grad", *place)
    if target() == "host":
        check(MLP, f"--rows={rows}", "--grad", "--emulate", *place)

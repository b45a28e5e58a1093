# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""Products whose warps have roles, where one thread copies boxes and warpgroups
multiply, against what they mean in float64 (tile-run --check): on the emulator, which
finds races and waits that are missing, or on a GPU."""

import random

import pytest
from runner import HOPPER
from test_dots import EPILOGUES, MLP, PACKED, Product, check
from test_streamed_factors import Case

#: Rows of 16 bytes or a multiple, less than a tile and more than one.
SIZES = (8, 24, 64, 72, 136, 264)
#: So many ops that they run in a loop over parts of a tile, whose sums wait in shared
#: memory.
LONG = "\n".join(
    [
        "%v0 = math.tanh %0 : {t}",
        *(f"%v{i} = arith.mulf %v{i - 1}, %0 : {{t}}" for i in range(1, 45)),
        "%last = arith.addf %v44, %r : {t}",
    ]
)
#: Several results of 16 and of 32 bits, and one a row.
SEVERAL = """
func.func @f(%x: tensor<?x72xbf16>, %w: tensor<136x72xbf16>, %u: tensor<136x72xbf16>) -> (tensor<?x136xbf16>, tensor<?x136xf32>) {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x72xbf16>, tensor<136x72xbf16> -> tensor<?x136xf32>
  %1 = tile.dot %x, %u contract [1, 1] : tensor<?x72xbf16>, tensor<136x72xbf16> -> tensor<?x136xf32>
  %2 = arith.mulf %0, %1 : tensor<?x136xf32>
  %3 = arith.truncf %2 : tensor<?x136xf32> to tensor<?x136xbf16>
  return %3, %0 : tensor<?x136xbf16>, tensor<?x136xf32>
}
"""


class Boxed(Product):
    """A product that copies of boxes take."""

    def __init__(self, seed):
        super().__init__(seed)
        chance = random.Random(seed)
        self.element, self.sum = chance.choice(["bf16", "f16"]), "f32"
        self.output = chance.choice(["f32", "bf16"])
        self.names = {name: chance.choice(SIZES) for name in "nk"}
        # Where m is no operand's last dimension, it is any number.
        self.names["m"] = chance.choice(
            SIZES if self.contract[0] == 0 else (2, 71, 300)
        )
        for operand in (self.a, self.b, self.result):
            operand[-2:] = [(name, self.names[name]) for name, _ in operand[-2:]]


@pytest.mark.long(every=17)
@pytest.mark.parametrize("seed", range(12))
def test_random_products(seed):
    product = Boxed(seed)
    grad = ["--grad"] if seed % 3 == 0 else []
    check(product.source(), *product.shapes(), *grad, *HOPPER)


@pytest.mark.parametrize("output", ["f32", "bf16"])
def test_loops_over_parts(output):
    product = Boxed(2)
    product.output, product.epilogue = output, "long"
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(EPILOGUES, "long", LONG)
        source = product.source()
    check(source, *product.shapes(), *HOPPER)


@pytest.mark.long(every=29)
@pytest.mark.parametrize(
    "source, shape",
    [
        (MLP, "x=2x9x64"),
        (PACKED.replace("SIDE", ""), "x=37x64"),
        (PACKED.replace("SIDE", "interleaved "), "x=300x64"),
        (PACKED.replace("SIDE", "interleaved "), "x=5x64"),
        (SEVERAL, "x=300x72"),
        (SEVERAL, "x=40x72"),
    ],
)
@pytest.mark.parametrize("grad", [(), ("--grad",), ("--value-and-grad",)])
def test_functions(source, shape, grad):
    check(source, f"--shape={shape}", *grad, *HOPPER)


@pytest.mark.long(every=11)
@pytest.mark.parametrize("columns", [8, 9])
@pytest.mark.parametrize("place", [(), ("--gap=8",), ("--offset=8",), ("--gap=7",)])
def test_rows_that_are_no_multiple_of_16_bytes(columns, place):
    """Copies to memory write 16 bytes at a time, and would write beyond the row."""
    source = """
func.func @f(%x: tensor<?x64xbf16>, %w: tensor<?x64xbf16>) -> tensor<?x?xbf16> {
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x64xbf16>, tensor<?x64xbf16> -> tensor<?x?xf32>
  %1 = arith.truncf %0 : tensor<?x?xf32> to tensor<?x?xbf16>
  return %1 : tensor<?x?xbf16>
}
"""
    for rows in (1, 3):
        shapes = f"--shape=x={rows}x64", f"--shape=w={columns}x64"
        check(source, *shapes, *place, *HOPPER)


#: A product whose sums of parts of k are rounded, beside one in float32.
FEW = """
func.func @f(%x: tensor<?x{k}x{type}>, %w: tensor<{n}x{k}x{type}>, %b: tensor<{n}x{type}>) -> (tensor<?x{n}x{type}>, tensor<?x{n}xf32>) {{
  %0 = tile.dot %x, %w contract [1, 1] : tensor<?x{k}x{type}>, tensor<{n}x{k}x{type}> -> tensor<?x{n}xf32>
  %1 = arith.truncf %0 : tensor<?x{n}xf32> to tensor<?x{n}x{type}>
  %rows = tile.broadcast %b like %1 : tensor<{n}x{type}>, tensor<?x{n}x{type}> -> tensor<?x{n}x{type}>
  %2 = arith.addf %1, %rows : tensor<?x{n}x{type}>
  return %2, %0 : tensor<?x{n}x{type}>, tensor<?x{n}xf32>
}}
"""


@pytest.mark.long(every=13)
@pytest.mark.parametrize("rows", [1, 16, 63, 64, 65, 257])
@pytest.mark.parametrize(
    "k, n",
    [
        (1000, 136),
        # Blocks without a step, and one with less than one.
        (200, 264),
        (24, 8),
    ],
)
def test_few_rows(rows, k, n):
    """Blocks of a cluster sum parts of k of the same tile, and tiles are smaller, as the
    number of rows says."""
    source = FEW.format(k=k, n=n, type=("bf16", "f16")[k % 16 == 0])
    check(source, f"--shape=x={rows}x{k}", *HOPPER)


def test_tiles_of_three_panels():
    source = FEW.format(k=72, n=400, type="bf16")
    pinned = "--schedule=#tile.matmul<columns = 192, cluster = 1>"
    check(source, "--shape=x=130x72", pinned, *HOPPER)


@pytest.mark.long(every=3)
@pytest.mark.parametrize("length", [3, 300, 1000])
@pytest.mark.parametrize("rows", [136, 40])
def test_gradients_of_small_weights(length, rows):
    """Their sizes are known, so that they have no variant for few tiles."""
    source = f"""
func.func @f(%dy: tensor<?x{rows}xbf16>, %x: tensor<?x200xbf16>) -> tensor<{rows}x200xbf16> {{
  %0 = tile.dot %dy, %x contract [0, 0] : tensor<?x{rows}xbf16>, tensor<?x200xbf16> -> tensor<{rows}x200xf32>
  %1 = arith.truncf %0 : tensor<{rows}x200xf32> to tensor<{rows}x200xbf16>
  return %1 : tensor<{rows}x200xbf16>
}}
"""
    shapes = f"--shape=dy={length}x{rows}", f"--shape=x={length}x200"
    check(source, *shapes, *HOPPER)


SCHEDULES = [
    "rows = 64",
    "columns = 64",
    "columns = 128, cluster = 1",
    "stages = 2",
    "depth = 128, stages = 2",
    "cluster = 4",
    "cluster = 1, split = 2",
    "rows = 64, columns = 64, cluster = 1, split = 8, stages = 2",
    "roles = 1",
]


@pytest.mark.long(every=11)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_schedules(schedule):
    pinned = f"--schedule=#tile.matmul<{schedule}>"
    check(SEVERAL, "--shape=x=300x72", pinned, *HOPPER)
    product = Boxed(5)
    check(product.source(), *product.shapes(), pinned, *HOPPER)


@pytest.mark.long(every=17)
@pytest.mark.parametrize("seed", range(16))
def test_streamed_factors(seed):
    case = Case(1000 + seed)
    if case.element not in ("bf16", "f16"):
        pytest.skip("products of 16 bits have roles")
    check(case.source, *case.shapes(), *(["--grad"] if seed % 4 == 0 else []), *HOPPER)

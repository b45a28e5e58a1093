# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""Tensors of any rank, whose rows lie apart, at any address.

tile-run fills the gaps between elements with NaN, and fails if they are written."""

import pytest

import floats
import reference
from runner import function, run, tensor

SHAPES = ((5,), (3, 4), (2, 3, 5), (4, 1, 3))
LENGTHS = (33, 128, 2880)
# Elements between rows, and from an aligned address to the first element.
PLACEMENTS = ((0, 0), (1, 0), (8, 0), (0, 1), (0, 8), (3, 5), (16, 4))


def cases():
    for leading in SHAPES:
        for length in LENGTHS:
            for gap, offset in PLACEMENTS:
                # All of the placements once, and the rest with one of them.
                if leading == (3, 4) or (gap, offset) in ((0, 0), (3, 5)):
                    yield leading, length, gap, offset


def check(leading, length, kind, *options):
    row = tensor((None,) * len(leading) + (length,), kind)
    vector = tensor((length,), kind)
    source = function(
        [("x", row), ("weight", vector), ("up", row)],
        [row, row],
        [
            f"tile.rms_norm %x, %weight casting(gemma) : {row}, {vector}",
            f"tile.geglu %x, %up : {row}",
        ],
    )
    x = floats.random(kind, (*leading, length), 1)
    weight = floats.random(kind, length, 2)
    up = floats.random(kind, (*leading, length), 3)
    values = {"x": (kind, x), "weight": (kind, weight), "up": (kind, up)}
    results = run(source, values, [kind] * 2, *options)
    bound = 0.51 if kind in floats.NARROW else 32
    for result, expected in zip(
        results, (reference.rms_norm(x, weight), reference.geglu(x, up))
    ):
        assert result.shape == x.shape
        got = floats.decode(kind, result)
        assert floats.ulp_errors(kind, got, expected).max() <= bound


@pytest.mark.long(every=5)
@pytest.mark.parametrize("kind", ("bf16", "f32"))
@pytest.mark.parametrize("leading,length,gap,offset", cases())
def test_layout(leading, length, gap, offset, kind):
    check(leading, length, kind, f"--gap={gap}", f"--offset={offset}")


@pytest.mark.parametrize("gap", (0, 3))
@pytest.mark.parametrize("leading", ((2, 3, 5), (4, 1, 3)))
def test_leading_dimensions_in_another_order(leading, gap):
    check(leading, 33, "bf16", "--reversed", f"--gap={gap}")


ATTENTION = """
func.func @attention(%q: tensor<?x?x?x64xbf16>, %k: tensor<?x?x?x64xbf16>,
                     %v: tensor<?x?x?x64xbf16>) -> tensor<?x?x?x64xbf16> {
  %s = tile.dot %q, %k contract [1, 1]
      : tensor<?x?x?x64xbf16>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x?xf32>
  %m = tile.reduce max %s : tensor<?x?x?x?xf32> -> tensor<?x?x?x1xf32>
  %largest = tile.broadcast %m like %s
      : tensor<?x?x?x1xf32>, tensor<?x?x?x?xf32> -> tensor<?x?x?x?xf32>
  %d = arith.subf %s, %largest : tensor<?x?x?x?xf32>
  %e = math.exp %d : tensor<?x?x?x?xf32>
  %l = tile.reduce add %e : tensor<?x?x?x?xf32> -> tensor<?x?x?x1xf32>
  %sum = tile.broadcast %l like %e
      : tensor<?x?x?x1xf32>, tensor<?x?x?x?xf32> -> tensor<?x?x?x?xf32>
  %p = arith.divf %e, %sum : tensor<?x?x?x?xf32>
  %0 = tile.dot %p, %v contract [1, 0]
      : tensor<?x?x?x?xf32>, tensor<?x?x?x64xbf16> -> tensor<?x?x?x64xf32>
  %1 = arith.truncf %0 : tensor<?x?x?x64xf32> to tensor<?x?x?x64xbf16>
  return %1 : tensor<?x?x?x64xbf16>
}
"""


def test_products_in_another_order():
    values = {
        x: ("bf16", floats.random("bf16", (2, 3, 70, 64), i))
        for i, x in enumerate("qkv")
    }
    plain, other = (
        run(ATTENTION, values, ["bf16"], *options) for options in ((), ("--reversed",))
    )
    assert (plain[0] == other[0]).all()

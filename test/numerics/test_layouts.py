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


@pytest.mark.long(every=5)
@pytest.mark.parametrize("kind", ("bf16", "f32"))
@pytest.mark.parametrize("leading,length,gap,offset", cases())
def test_layout(leading, length, gap, offset, kind):
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
    results = run(source, values, [kind] * 2, f"--gap={gap}", f"--offset={offset}")
    bound = 0.51 if kind in floats.NARROW else 32
    for result, expected in zip(
        results, (reference.rms_norm(x, weight), reference.geglu(x, up))
    ):
        assert result.shape == x.shape
        got = floats.decode(kind, result)
        assert floats.ulp_errors(kind, got, expected).max() <= bound

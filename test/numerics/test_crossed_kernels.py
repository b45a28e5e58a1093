# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""Gradients that one program computes for two kernels of one factor, against what they
mean in float64 (tile-run --check): on the emulator, which finds races, waits that are
missing and programs that wait for each other, or on a GPU."""

import re

import pytest

from runner import HOPPER, emit
from test_dots import check
from test_transposed_roles import attention, shapes


def emit_gradients(source, level):
    return emit(source, level, "--grad", "--target=sm_90a")


def merges(text, function):
    """Whether two kernels of `function` have one program in `text`."""
    return bool(re.search(rf'merged = \["{function}_kernel\d"\]', text))


def crosses(source):
    """Whether two kernels of the gradients of `source` have one program."""
    return merges(emit_gradients(source, "tiled"), "f_backward")


def check_crossed(source, *arguments):
    assert crosses(source)
    check(source, "--grad", *arguments, *HOPPER)


#: With heads of 64, four warps more multiply what programs add up.
of_all_sizes = pytest.mark.parametrize("size", [64, 128])


@pytest.mark.long(every=9)
@of_all_sizes
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    "lengths",
    [(139, 133), (1, 1), (128, 128), (129, 64), (63, 257), (300, 9), (9, 300)],
)
def test_lengths(lengths, masked, size):
    """Tiles and steps that are full and that are not; under the mask, steps that no tile
    has, whose sums are 0, and tiles without a step."""
    queries, keys = lengths
    check_crossed(
        attention(size, masked=masked), *shapes((queries, size), (keys, size))
    )


#: `d` is infinite where a key is 0, as those beyond the end of a tile are.
RECIPROCALS = """
!x = tensor<?x128xbf16>
!scores = tensor<?x?xf32>
!factor = tensor<?x?xbf16>
!sums = tensor<?x128xf32>
func.func @f(%q: !x, %k: !x, %v: !x, %g: !x) -> (!sums, !sums, !sums) {
  %s = tile.dot %q, %k contract [1, 1] : !x, !x -> !scores
  %one = arith.constant 1.0 : f32
  %ones = tile.broadcast %one like %s : f32, !scores -> !scores
  %t = arith.divf %ones, %s : !scores
  %dt = tile.dot %g, %v contract [1, 1] : !x, !x -> !scores
  %d = arith.mulf %t, %dt : !scores
  %p16 = arith.truncf %t : !scores to !factor
  %d16 = arith.truncf %d : !scores to !factor
  %dq = tile.dot %d16, %k contract [1, 0] : !factor, !x -> !sums
  %dk = tile.dot %d16, %q contract [0, 0] : !factor, !x -> !sums
  %dv = tile.dot %p16, %g contract [0, 0] : !factor, !x -> !sums
  return %dq, %dk, %dv : !sums, !sums, !sums
}
"""


@of_all_sizes
def test_infinities_beyond_the_last_key(size):
    """Sums over the keys have no part of rows that only a tile has."""
    source = RECIPROCALS.replace("?x128x", f"?x{size}x")
    assert merges(emit(source, "tiled", "--target=sm_90a"), "f")
    queries, keys = f"75x{size}", f"140x{size}"
    shapes = {"q": queries, "g": queries, "k": keys, "v": keys}
    arguments = [f"--shape={name}={shape}" for name, shape in shapes.items()]
    check(source, *arguments, *HOPPER)


@pytest.mark.long(every=9)
@pytest.mark.parametrize(
    "batch", [(1, 1, 1), (1, 2, 3), (3, 1, 2), (5, 1, 1), (2, 3, 1)]
)
@pytest.mark.parametrize("masked", [False, True])
@of_all_sizes
def test_heads_that_share_keys(size, batch, masked):
    """A wave with as many matrices in both halves, and with one more in the second."""
    source = attention(size, (None, None, None), (None, None, 1), masked=masked)
    heads = *batch[:2], 1
    check_crossed(source, *shapes((*batch, 140, size), (*heads, 260, size)))


@pytest.mark.long(every=5)
@of_all_sizes
@pytest.mark.parametrize("lengths", [(130, 0), (0, 130), (0, 0)])
def test_no_rows(lengths, size):
    """Sums of nothing are 0, those over queries and those over keys."""
    queries, keys = lengths
    source = attention(size, (None, None), (None, 1), between="activation")
    check_crossed(source, *shapes((2, 3, queries, size), (2, 1, keys, size)))


def test_heads_that_share_queries():
    """Both kernels would add up matrices."""
    source = attention(128, (None, None), (None, None)).replace(
        "%q: tensor<?x?x?x128xbf16>", "%q: tensor<?x1x?x128xbf16>"
    )
    source = source.replace(
        "%q, %k contract [1, 1] : tensor<?x?x?x128xbf16>",
        "%q, %k contract [1, 1] : tensor<?x1x?x128xbf16>",
    )
    assert not crosses(source)
    check(source, "--grad", *shapes((2, 1, 70, 128), (2, 3, 133, 128)), *HOPPER)


@pytest.mark.long
@of_all_sizes
def test_many_waves(size):
    """More programs than one wave has."""
    source = attention(size, (None,), (None,), masked=True)
    check_crossed(source, *shapes((261, 66, size), (261, 130, size)))


@pytest.mark.long
@pytest.mark.parametrize("matrices", [1, 2, 3])
@pytest.mark.parametrize("size, keys", [(64, 161 * 128), (128, 257 * 128 - 5)])
def test_sections(size, keys, matrices):
    """More tiles of a matrix than programs run at the same time."""
    source = attention(size, (None,), (None,), between="activation")
    check_crossed(source, *shapes((matrices, 1, size), (matrices, keys, size)))


@pytest.mark.long(every=5)
@pytest.mark.parametrize(
    "options",
    [
        {"capped": True},
        {"between": "sink"},
        {"capped": True, "masked": True},
        {"between": "sink", "masked": True},
    ],
)
@of_all_sizes
def test_formulas(size, options):
    source = attention(size, (None,), (None,), **options)
    check_crossed(source, *shapes((2, 71, size), (2, 139, size)))


@pytest.mark.long(every=5)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("place", ["--gap=3", "--offset=1"])
@of_all_sizes
def test_operands_that_boxes_do_not_take(size, place, masked):
    """Programs of both kernels run one after the other."""
    source = attention(size, (None, None), (None, 1), masked=masked)
    check_crossed(source, *shapes((2, 3, 71, size), (2, 1, 139, size)), place)


@pytest.mark.long
@pytest.mark.parametrize("size", [80, 96, 256])
def test_other_heads(size):
    """They have a program for each kernel, and round in it."""
    source = attention(size, masked=True)
    assert not crosses(source)
    assert "_end" not in emit_gradients(source, "fused")


@pytest.mark.long
@pytest.mark.parametrize(
    "pinned",
    [
        "f_backward_kernel1: rows = 64",
        "f_backward_kernel2: rows = 64",
        "f_backward_kernel2: depth = 32",
    ],
)
def test_schedules_that_do_not_fit(pinned):
    """What follows the sums is a kernel of its own all the same."""
    source = attention(128, masked=True)
    check(
        source,
        "--grad",
        *shapes((171, 128), (133, 128)),
        f"--schedule={pinned}",
        *HOPPER,
    )

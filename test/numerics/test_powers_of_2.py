# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""Powers of scores that a GPU's code has as powers of 2, of scores that are far from 0,
hidden, or as low as numbers are: beside the formula in float64, on the emulator, with
gradients."""

import numpy as np
import pytest

import floats
from runner import HOPPER, run, run_backward, target, tensor

AMPERE = ("--emulate", "--target=sm_80") if target() == "host" else ()
QUERIES, KEYS, SIZE = 20, 70, 64
NAMES = "q", "k", "v"
LOWEST = "0xFF7FFFFF"
S, R = tensor((None, None), "f32"), tensor((None, 1), "f32")
#: From the scores %y to those that count, %x.
ALL = f"%x = arith.maximumf %y, %y : {S}"
MASKED = f"""%ci = tile.iota like %y : tensor<?x?xi32>, {S}
  %ri = tile.iota over [0] like %y : tensor<?x1xi32>, {S}
  %five = arith.constant 5 : i32
  %fives = tile.broadcast %five like %ri : i32, tensor<?x1xi32> -> tensor<?x1xi32>
  %less = arith.subi %ri, %fives : tensor<?x1xi32>
  %rb = tile.broadcast %less like %y : tensor<?x1xi32>, {S} -> tensor<?x?xi32>
  %sees = arith.cmpi sle, %ci, %rb : tensor<?x?xi32>
  %never = arith.constant 0xFF800000 : f32
  %hidden = tile.broadcast %never like %y : f32, {S} -> {S}
  %x = arith.select %sees, %y, %hidden : tensor<?x?xi1>, {S}"""
#: All scores of the first rows are the lowest number, which is not minus infinity.
BIASED = f"""%bs = tile.broadcast %b like %y : {R}, {S} -> {S}
  %x = arith.addf %y, %bs : {S}"""


def attention(scale, seen, element="bf16", biased=False):
    """Attention of scores that `seen` says more of, with the lowest number as a sink."""
    q, k = tensor((None, SIZE), element), tensor((None, SIZE), element)
    o = tensor((None, SIZE), "f32")
    bias = f", %b: {R}" if biased else ""
    scores = (
        f"%cs = tile.broadcast %c like %s : f32, {S} -> {S}\n"
        f"  %y = arith.mulf %s, %cs : {S}"
        if scale != 1
        else f"%y = tile.dot %q, %k contract [1, 1] : {q}, {k} -> {S}"
    )
    return f"""
func.func @f(%q: {q}, %k: {k}, %v: {k}{bias}) -> {q} {{
  %s = tile.dot %q, %k contract [1, 1] : {q}, {k} -> {S}
  %c = arith.constant {scale:e} : f32
  {scores}
  {seen}
  %m = tile.reduce max %x : {S} -> {R}
  %lowest = arith.constant {LOWEST} : f32
  %floor = tile.broadcast %lowest like %m : f32, {R} -> {R}
  %most = arith.maximumf %m, %floor : {R}
  %shift = tile.stop_gradient %most : {R}
  %ms = tile.broadcast %shift like %x : {R}, {S} -> {S}
  %d = arith.subf %x, %ms : {S}
  %e = math.exp %d : {S}
  %sum = tile.reduce add %e : {S} -> {R}
  %rest = arith.subf %floor, %shift : {R}
  %sink = math.exp %rest : {R}
  %l = arith.addf %sum, %sink : {R}
  %ls = tile.broadcast %l like %x : {R}, {S} -> {S}
  %p = arith.divf %e, %ls : {S}
  %o = tile.dot %p, %v contract [1, 0] : {S}, {k} -> {o}
  %t = arith.truncf %o : {o} to {q}
  return %t : {q}
}}
"""


def softmax(x):
    most = np.maximum(x.max(1, keepdims=True), -3.4028234663852886e38)
    powers = np.exp(x - most)
    total = powers.sum(1, keepdims=True)
    return powers / (total + np.exp(-3.4028234663852886e38 - most))


def gradients(q, k, v, upstream, scale, x):
    """The result and the gradients of queries, keys and values, in float64."""
    weights = softmax(x)
    slopes = upstream @ v.T
    slopes = weights * (slopes - (weights * slopes).sum(1, keepdims=True)) * scale
    return weights @ v, slopes @ k, slopes.T @ q, weights.T @ upstream


def numbers(seed, spread, level):
    """Queries and keys whose products are `level` but for some `spread`, values, and
    the gradient of the result."""
    random = np.random.default_rng(seed)
    q = random.standard_normal((QUERIES, SIZE)) * spread**0.5
    k = random.standard_normal((KEYS, SIZE)) * spread**0.5 / SIZE**0.5
    q[:, 0], k[:, 0] = 32, level / 32
    v = random.standard_normal((KEYS, SIZE))
    upstream = random.standard_normal((QUERIES, SIZE))
    return [q, k, v, upstream]


def check(
    source, operands, expected, bound, *arguments, kind="bf16", bias=None, loose=()
):
    """Checks the result and the gradients, but for those that are `loose`."""
    *given, upstream = operands
    inputs = {name: (kind, x) for name, x in zip(NAMES, given)}
    if bias is not None:
        inputs["b"] = ("f32", bias)
    names = dict.fromkeys(NAMES, kind)
    cotangents = {"grad_result0": (kind, upstream)}
    results, found = run_backward(source, inputs, cotangents, [kind], names, *arguments)
    for name, got, want in zip(["o", *NAMES], [*results, *found.values()], expected):
        # What all keys have alike has a gradient of 0, but for rounding.
        first = 1 if name == "q" else 0
        error = np.linalg.norm((floats.decode(kind, got) - want)[:, first:])
        if name not in loose:
            assert error <= bound * np.linalg.norm(want[:, first:]), name


def rounded(kind, operands):
    return [floats.round_to(kind, x.astype(np.float32)) for x in operands]


def run_case(
    where, scale, level, spread, *, seen=ALL, kind="bf16", bound=6e-3, **options
):
    operands = rounded(kind, numbers(7, spread, level))
    q, k, v, upstream = operands
    x = q @ k.T * scale
    if seen is MASKED:
        hidden = np.arange(KEYS) > np.arange(QUERIES)[:, None] - 5
        x = np.where(hidden, -np.inf, x)
    expected = gradients(q, k, v, upstream, scale, x)
    source = attention(scale, seen, kind)
    check(source, operands, expected, bound, *where, kind=kind, **options)


@pytest.mark.long
@pytest.mark.parametrize("where", [HOPPER, AMPERE], ids=["hopper", "ampere"])
@pytest.mark.parametrize("level", [3000, -3000])
def test_scores_far_from_zero(level, where):
    """All scores of a row are near `level`."""
    run_case(where, 0.88, level, 2)


@pytest.mark.long
def test_spread_of_scores():
    """Scores from -3000 to 3000: most powers are 0. Gradients of scores are differences
    of numbers that are nearly the same."""
    run_case(AMPERE, 1.3, 0, 800, loose=("q", "k"))


@pytest.mark.long
@pytest.mark.parametrize("scale", [-0.4, 1, 1e-30])
def test_scales(scale):
    """A negative scale makes the largest score the smallest one."""
    run_case(AMPERE, scale, 3, 4)


@pytest.mark.long(every=2)
@pytest.mark.parametrize("where", [HOPPER, AMPERE], ids=["hopper", "ampere"])
def test_rows_that_see_nothing(where):
    """Their results and gradients are 0, where the maximum is the lowest number."""
    run_case(where, 0.5, 100, 4, seen=MASKED)


@pytest.mark.long
def test_half_precision():
    run_case(AMPERE, 0.125, 500, 40, kind="f16", bound=2e-3)


@pytest.mark.long
def test_lowest_scores():
    """Rows all of whose scores are the lowest number weigh all keys alike."""
    operands = rounded("bf16", numbers(5, 2, 0))
    q, k, v, upstream = operands
    lowest = np.float32(-3.4028234663852886e38)
    bias = np.where(np.arange(QUERIES) < 9, lowest, 0)[:, None].astype(np.float64)
    x = np.where(bias < 0, lowest, q @ k.T * 0.5)
    expected = gradients(q, k, v, upstream, 0.5, x)
    source = attention(0.5, BIASED, biased=True)
    check(source, operands, expected, 6e-3, *AMPERE, bias=bias)


ROWS, WIDE = tensor((None, SIZE), "bf16"), tensor((None, SIZE), "f32")
SUMS = f"""
func.func @f(%q: {ROWS}, %k: {ROWS}, %v: {ROWS}) -> ({ROWS}, {R}) {{
  %x = tile.dot %q, %k contract [1, 1] : {ROWS}, {ROWS} -> {S}
  %m = tile.reduce max %x : {S} -> {R}
  %ms = tile.broadcast %m like %x : {R}, {S} -> {S}
  %d = arith.subf %x, %ms : {S}
  %e = math.exp %d : {S}
  %sum = tile.reduce add %e : {S} -> {R}
  %o = tile.dot %e, %v contract [1, 0] : {S}, {ROWS} -> {WIDE}
  %t = arith.truncf %o : {WIDE} to {ROWS}
  return %t, %sum : {ROWS}, {R}
}}
"""


@pytest.mark.parametrize("level", [0, -3000])
def test_wide_sums(level):
    """Sums of powers that are results as they are: their error is that of rounding
    scores, whose sums are rounded a few times to 2^-24 of them."""
    q, k, v, _ = rounded("bf16", numbers(11, 4, level))
    inputs = {name: ("bf16", x) for name, x in zip(NAMES, (q, k, v))}
    _, sums = run(SUMS, inputs, ["bf16", "f32"], *HOPPER)
    x = q @ k.T
    expected = np.exp(x - x.max(1, keepdims=True)).sum(1, keepdims=True)
    error = np.abs(sums.astype(np.float64) / expected - 1).max()
    assert error <= 2.0**-20 * max(1, abs(level))

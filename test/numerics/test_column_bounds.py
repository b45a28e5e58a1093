# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""Masks that compare the number of a key with a number of the query, of any size, in
kernels on tensor cores: their conditions are bits of integers there."""

import numpy as np
import pytest

import floats
import masked
from runner import Files, execute, target

SOURCE = (
    """
func.func @f(%q: tensor<?x?x16xbf16>, %k: tensor<?x?x16xbf16>, %v: tensor<?x?x16xbf16>,
             %a: tensor<?x?x1xi32>, %b: tensor<?x?x1xi32>) -> tensor<?x?x16xf32> {{
  %s = tile.dot %q, %k contract [1, 1]
      : tensor<?x?x16xbf16>, tensor<?x?x16xbf16> -> tensor<?x?x?xf32>
  %key = tile.iota like %s : tensor<?x?x?xi32>, tensor<?x?x?xf32>
  %one = tile.broadcast %a like %s : tensor<?x?x1xi32>, tensor<?x?x?xf32> -> tensor<?x?x?xi32>
  %two = tile.broadcast %b like %s : tensor<?x?x1xi32>, tensor<?x?x?xf32> -> tensor<?x?x?xi32>
  {mask}
"""
    + masked.SOFTMAX
)


def compare(name, predicate, lhs, rhs):
    return f"%{name} = arith.cmpi {predicate}, %{lhs}, %{rhs} : tensor<?x?x?xi32>\n"


def join(op, lhs, rhs):
    return (
        compare("left", *lhs)
        + compare("right", *rhs)
        + f"%seen = arith.{op} %left, %right : tensor<?x?x?xi1>"
    )


MASKS = {
    "up to": (compare("seen", "sle", "key", "one"), lambda k, a, b: k <= a),
    "below": (compare("seen", "slt", "key", "one"), lambda k, a, b: k < a),
    "from": (compare("seen", "sge", "key", "one"), lambda k, a, b: k >= a),
    "behind": (compare("seen", "sgt", "key", "one"), lambda k, a, b: k > a),
    "at least": (compare("seen", "sge", "one", "key"), lambda k, a, b: k <= a),
    "more": (compare("seen", "sgt", "one", "key"), lambda k, a, b: k < a),
    "at most": (compare("seen", "sle", "one", "key"), lambda k, a, b: k >= a),
    "less": (compare("seen", "slt", "one", "key"), lambda k, a, b: k > a),
    "unsigned": (
        compare("seen", "ule", "key", "one"),
        lambda k, a, b: k <= a.astype(np.uint32),
    ),
    "equal": (compare("seen", "eq", "key", "one"), lambda k, a, b: k == a),
    "both": (
        join("andi", ("sle", "key", "one"), ("sgt", "key", "two")),
        lambda k, a, b: (k <= a) & (k > b),
    ),
    "either": (
        join("ori", ("slt", "key", "one"), ("sge", "key", "two")),
        lambda k, a, b: (k < a) | (k >= b),
    ),
    "one of them": (
        join("xori", ("slt", "key", "one"), ("slt", "key", "two")),
        lambda k, a, b: (k < a) ^ (k < b),
    ),
}
#: Where a step, an integer and a thread's columns begin and end, and what overflows.
LIMITS = [-(2**31), -(2**31) + 1, -130, -1, 0, 1, 2, 3, 7, 8, 9, 31, 32, 62, 63, 64, 65]
LIMITS += [126, 127, 128, 129, 148, 149, 150, 151, 300, 2**31 - 130, 2**31 - 1]


@pytest.mark.long(every=29)
@pytest.mark.parametrize("roles", [1, 2])
@pytest.mark.parametrize("name", MASKS)
def test_limits_of_any_size(name, roles):
    mask, sees = MASKS[name]
    queries, keys = 2 * len(LIMITS), 150
    one = np.array(LIMITS * 2)
    two = np.array(LIMITS[5:] + LIMITS[:5] + LIMITS[::-1])
    if target() == "host":
        where = ["--target=sm_90a", "--emulate"]
    else:
        where = [f"--target={target()}"]
    if roles == 1:
        where.append(
            "--schedule=#tile.matmul<rows = 32, threads = 64, depth = 128, roles = 1>"
        )
    q, k, v = (floats.random("bf16", (1, n, 16), n) for n in (queries, keys, keys + 1))
    inputs = {"q": ("bf16", q), "k": ("bf16", k), "v": ("bf16", v[:, :keys])}
    inputs |= {n: ("i32", x[None, :, None]) for n, x in (("a", one), ("b", two))}
    with Files() as files:
        output = f"--output=result0={files.path('result0')}"
        done = execute(
            SOURCE.format(t="bf16", mask=mask), *files.inputs(inputs), output, *where
        )
        assert done.returncode == 0, done.stderr
        result = floats.decode("f32", files.load("result0", "f32"))[0]
    seen = sees(np.arange(keys)[None], one[:, None], two[:, None])
    q, k, v = (x[0].astype(np.float64) for x in (q, k, v))
    scores = np.where(seen, q @ k.T, -np.inf)
    with np.errstate(invalid="ignore"):
        powers = np.exp(scores - scores.max(1, keepdims=True))
        expected = powers / powers.sum(1, keepdims=True) @ v[:keys]
    assert (np.isnan(result) == np.isnan(expected)).all()
    assert np.isnan(result).all(1).tolist() == (~seen.any(1)).tolist()
    assert np.nanmax(abs(result - expected)) < 0.02

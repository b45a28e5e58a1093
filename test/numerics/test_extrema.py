# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""Gradients of minima and maxima of values that the backward computes again: it must
find the elements equal to them, whatever else it computes of these values."""

import pytest

from runner import execute, target

NARROW = "tensor<?x64xbf16>"
ROW = "tensor<?x64xf32>"
STATISTIC = "tensor<?x1xf32>"

# The rows %v that the extremum is taken of, and %s, which reads parts of them.
FORMULAS = {
    # A product with another reader is contracted in some loops and not in others.
    "sum": f"""
  %v = arith.addf %p, %z : {ROW}
  %s = math.exp %p : {ROW}""",
    "difference": f"""
  %v = arith.subf %z, %p : {ROW}
  %s = arith.mulf %p, %p : {ROW}""",
    "negated": f"""
  %n = arith.negf %p : {ROW}
  %v = arith.subf %n, %z : {ROW}
  %s = math.exp %n : {ROW}""",
    "two_products": f"""
  %q = arith.mulf %b, %z : {ROW}
  %v = arith.addf %p, %q : {ROW}
  %t = math.exp %p : {ROW}
  %s = arith.mulf %t, %p : {ROW}""",
    # Narrow results let functions be approximate, wide ones do not.
    "function": f"""
  %t = math.exp %a : {ROW}
  %v = math.log1p %t : {ROW}
  %s = arith.mulf %t, %b : {ROW}""",
    "rounded": f"""
  %t = math.exp %p : {ROW}
  %r = arith.truncf %t : {ROW} to {NARROW}
  %v = arith.extf %r : {NARROW} to {ROW}
  %s = arith.mulf %t, %z : {ROW}""",
    # Constants become one where nothing else reads what the inner one multiplies.
    "factors": f"""
  %f = arith.constant dense<0.7> : tensor<64xf32>
  %g = arith.constant dense<9.0> : tensor<64xf32>
  %fs = tile.broadcast %f like %p : tensor<64xf32>, {ROW} -> {ROW}
  %gs = tile.broadcast %g like %p : tensor<64xf32>, {ROW} -> {ROW}
  %t = arith.mulf %p, %fs : {ROW}
  %v = arith.mulf %t, %gs : {ROW}
  %s = math.sin %t : {ROW}""",
    # A sum has the order that a schedule gives it.
    "centered": f"""
  %m = tile.reduce add %p : {ROW} -> {STATISTIC}
  %r = tile.broadcast %m like %p : {STATISTIC}, {ROW} -> {ROW}
  %v = arith.subf %p, %r : {ROW}
  %s = arith.mulf %v, %z : {ROW}""",
}
EXTREMA = {
    "max": ("tile.reduce max", STATISTIC),
    # These are of all rows, of which no program holds all.
    "min_of_rows": ("tile.reduce_rows min", "tensor<64xf32>"),
}
if target() == "host":
    RUNS = (
        ("--grad",),
        ("--value-and-grad", "--schedule=vector=1,columns=8,rows=2"),
        ("--grad", "--emulate"),
    )
else:
    RUNS = (("--grad",), ("--value-and-grad", "--schedule=threads=32,columns=64"))


def function(formula, extremum):
    op, result = EXTREMA[extremum]
    return f"""
func.func @{formula}_{extremum}(%x: {NARROW}, %y: {NARROW}, %z: {ROW})
    -> ({result}, {NARROW}) {{
  %a = arith.extf %x : {NARROW} to {ROW}
  %b = arith.extf %y : {NARROW} to {ROW}
  %p = arith.mulf %a, %b : {ROW}{FORMULAS[formula]}
  %e = {op} %v : {ROW} -> {result}
  %u = arith.truncf %s : {ROW} to {NARROW}
  return %e, %u : {result}, {NARROW}
}}
"""


@pytest.mark.long(every=3)
@pytest.mark.parametrize("arguments", RUNS, ids=" ".join)
def test_gradients(arguments):
    source = "".join(
        function(formula, extremum) for formula in FORMULAS for extremum in EXTREMA
    )
    run = execute(source, "--rows=5", "--check", *arguments)
    assert run.returncode == 0, (run.stdout, run.stderr)

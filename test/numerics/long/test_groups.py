# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""Reductions of groups of columns, of any size, on the host and as a GPU does
them, forward and backward."""

import os
import subprocess

import numpy as np
import pytest

import floats
from runner import find_tool, run, run_backward, target, tensor

MACHINES = ("", "--emulate") if target() == "host" else ("",)
ROWS = 3


def mean(x, name, groups, row):
    """Lines in which %name has the mean of each of x's groups, and %name_row it
    repeated over their columns."""
    length = row[1]
    full, few = tensor((None, length), "f32"), tensor((None, groups), "f32")
    return f"""
  %{name}_sum = tile.reduce add %{x} : {full} -> {few}
  %{name}_count = arith.constant {length / groups} : f32
  %{name}_counts = tile.broadcast %{name}_count like %{x} : f32, {full} -> {few}
  %{name} = arith.divf %{name}_sum, %{name}_counts : {few}
  %{name}_row = tile.broadcast %{name} like %{x} : {few}, {full} -> {full}"""


def numpy_mean(x, groups):
    cut = x.reshape(len(x), groups, -1).mean(axis=-1)
    return cut, np.repeat(cut, x.shape[1] // groups, axis=1)


def product_source(length, groups, kind):
    """x w m, m being the means of groups of x, and m."""
    row, weight = tensor((None, length), kind), tensor((length,), "f32")
    full, few = tensor((None, length), "f32"), tensor((None, groups), "f32")
    widen = f"%v = arith.extf %x : {row} to {full}"
    narrow = f"%y = arith.truncf %p : {full} to {row}"
    if kind == "f32":
        widen = f"%v = arith.negf %n : {full}"
        widen = f"%n = arith.negf %x : {full}\n  {widen}"
        narrow = f"%y = arith.addf %p, %p : {full}"
    return f"""
func.func @f(%x: {row}, %w: {weight}) -> ({row}, {few}) {{
  {widen}{mean("v", "m", groups, (None, length))}
  %ws = tile.broadcast %w like %x : {weight}, {row} -> {full}
  %q = arith.mulf %v, %ws : {full}
  %p = arith.mulf %q, %m_row : {full}
  {narrow}
  return %y, %m : {row}, {few}
}}
"""


# Vectors of one element, groups in a warp, in parts of several warps and in more
# than one warp reads, tiles of one group and of several.
SHAPES = (
    (64, 2, "bf16"),
    (96, 8, "f32"),
    (1000, 8, "f32"),
    (1000, 40, "bf16"),
    (768, 3, "bf16"),
    (2048, 2, "bf16"),
    (2880, 5, "bf16"),
    (3072, 12, "f32"),
    (5120, 5, "f32"),
    (11008, 2, "f32"),
)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("length,groups,kind", SHAPES)
def test_products(length, groups, kind, machine):
    x = floats.random(kind, (ROWS, length), 1)
    w = floats.random("f32", (length,), 2)
    dy = floats.random(kind, (ROWS, length), 3)
    dm = floats.random("f32", (ROWS, groups), 4)
    (y, m), got = run_backward(
        product_source(length, groups, kind),
        {"x": (kind, x), "w": ("f32", w)},
        {"grad_result0": (kind, dy), "grad_result1": ("f32", dm)},
        [kind, "f32"],
        {"x": kind, "w": "f32"},
        *filter(None, [machine]),
    )
    factor = 2 if kind == "f32" else 1
    means, spread = numpy_mean(x, groups)
    step = {"f32": 2e-6, "bf16": 2.0**-8}[kind]

    def check(array, expected, kind):
        tolerance = step if kind != "f32" else 2e-6
        np.testing.assert_allclose(
            floats.decode(kind, array),
            expected,
            rtol=2 * tolerance,
            atol=tolerance * np.abs(expected).max(),
        )

    check(m, means, "f32")
    check(y, factor * x * w * spread, kind)
    slope = factor * dy * w
    inner = np.repeat(dm, length // groups, axis=1) * groups / length
    check(
        got["x"],
        slope * spread + numpy_mean(slope * x, groups)[1] + inner,
        kind,
    )
    check(got["w"], (factor * dy * x * spread).sum(axis=0), "f32")


def with_rows_source(length, few, many):
    """x (a - b) / max(x), a and b being means of groups, and the sums of b of all
    rows."""
    row, groups = tensor((None, length), "f32"), tensor((None, many), "f32")
    one, vector = tensor((None, 1), "f32"), tensor((many,), "f32")
    shape = (None, length)
    return f"""
func.func @f(%x: {row}) -> ({row}, {vector}) {{{mean("x", "a", few, shape)}
{mean("x", "b", many, shape)}
  %d = arith.subf %a_row, %b_row : {row}
  %max = tile.reduce max %x : {row} -> {one}
  %max_row = tile.broadcast %max like %x : {one}, {row} -> {row}
  %p = arith.mulf %x, %d : {row}
  %y = arith.divf %p, %max_row : {row}
  %s = tile.reduce_rows add %b : {groups} -> {vector}
  return %y, %s : {row}, {vector}
}}
"""


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    "length,few,many",
    ((96, 2, 3), (128, 2, 8), (1000, 4, 25), (2880, 3, 16), (6144, 2, 3)),
)
def test_two_numbers_of_groups_beside_whole_rows(length, few, many, machine):
    x = floats.random("f32", (7, length), 1)
    y, s = run(
        with_rows_source(length, few, many),
        {"x": ("f32", x)},
        ["f32", "f32"],
        *filter(None, [machine]),
    )
    difference = numpy_mean(x, few)[1] - numpy_mean(x, many)[1]
    expected = x * difference / x.max(axis=1, keepdims=True)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)
    sums = numpy_mean(x, many)[0].sum(axis=0)
    np.testing.assert_allclose(s, sums, rtol=1e-4, atol=1e-5)


# Threads of several rows, in loops over them, and tiles of which the row is part.
SCHEDULES = (
    "rows=4,threads=64,vector=1,columns=192",
    "threads=32,vector=1,columns=96",
    "rows=2,threads=256,vector=4,columns=512,persistent=1",
    "threads=96,vector=4,columns=384,persistent=1",
    "threads=96,vector=1,columns=192,persistent=1",
)


@pytest.mark.skipif(len(MACHINES) == 1, reason="emulates a GPU's schedules")
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("length,groups", ((96, 8), (384, 4), (480, 10)))
def test_schedules(length, groups, schedule):
    x = floats.random("f32", (9, length), 1)
    w = floats.random("f32", (length,), 2)
    source = product_source(length, groups, "f32")
    try:
        y, m = run(
            source,
            {"x": ("f32", x), "w": ("f32", w)},
            ["f32", "f32"],
            f"--schedule={schedule}",
            "--emulate",
        )
    except AssertionError as error:
        # A schedule without room for the groups is refused with this reason.
        assert "do not divide into groups" in str(error)
        return
    means, spread = numpy_mean(x, groups)
    np.testing.assert_allclose(m, means, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(y, 2 * x * w * spread, rtol=1e-5, atol=1e-5)


LENGTHS = (64, 96, 128, 192, 256, 384, 768, 1000, 1024, 1536, 2048, 2880, 3072)
LENGTHS += (4096, 5120, 8192, 11008, 16384)
GROUPS = (2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 64, 125, 250, 512)


@pytest.mark.parametrize("kind", ("bf16", "f32", "f16"))
@pytest.mark.parametrize("machine", ("sm_90a", "sm_80", "host"))
def test_every_size_has_a_schedule(machine, kind):
    functions = [
        product_source(length, groups, kind).replace("@f", f"@f{length}_{groups}")
        for length in LENGTHS
        for groups in GROUPS
        if length % groups == 0 and groups < length
    ]
    assert len(functions) > 140
    tilec = os.path.join(os.path.dirname(find_tool()), "tilec")
    done = subprocess.run(
        [tilec, "-", "--grad", f"--target={machine}", "--emit=scheduled"],
        input="".join(functions),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[:2000]

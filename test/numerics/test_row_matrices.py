# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""Tiles that have rows of several matrices of a batch (`matrices` of `#tile.matmul`), in
attention of heads that share keys: against what it means in float64 (tile-run --check),
forward and backward, and which keys such a tile visits."""

import numpy as np
import pytest

import floats
from runner import HOPPER, Files, execute, tensor
from test_dots import check

#: A number of the head and the place, so that heads differ in more than their queries.
NUMBERED = """%places = tile.iota over [0, 1, 2] like %r : {ri}, {r}
  %fraction = arith.sitofp %places : {ri} to {r}
  %small = arith.constant 0.001 : f32
  %smalls = tile.broadcast %small like %r : f32, {r} -> {r}
  %slope = arith.mulf %fraction, %smalls : {r}
  %slopes = tile.broadcast %slope like %z : {r}, {s} -> {s}
  %y = arith.addf %z, %slopes : {s}"""
PLAIN = "%y = arith.negf %z : {s}"


def attention(heads, window=(31, 0), size=64, bend=PLAIN):
    """Attention of `heads` heads of queries for each head of keys. A query sees the keys
    from `window[0]` ahead of its place to `window[1]` behind it. There is a sink, the
    number 1."""
    before, behind = window
    scores = tensor((None, heads, None, None), "f32")
    names = {
        "s": scores,
        "i": scores.replace("f32", "i32"),
        "b": scores.replace("f32", "i1"),
        "r": tensor((None, heads, None, 1), "f32"),
        "ri": tensor((None, heads, None, 1), "i32"),
        "q": tensor((None, heads, None, size), "bf16"),
        "k": tensor((None, 1, None, size), "bf16"),
        "sinks": tensor((None, heads, 1, 1), "f32"),
        "o": tensor((None, heads, None, size), "f32"),
    }
    return f"""
func.func @f(%q: {{q}}, %k: {{k}}, %v: {{k}}, %sinks: {{sinks}}) -> {{o}} {{{{
  %scores = tile.dot %q, %k contract [1, 1] : {{q}}, {{k}} -> {{s}}
  %c = arith.constant {size**-0.5} : f32
  %cs = tile.broadcast %c like %scores : f32, {{s}} -> {{s}}
  %z = arith.mulf %scores, %cs : {{s}}
  %row = tile.iota over [2] like %z : {{ri}}, {{s}}
  %r = tile.broadcast %sinks like %row : {{sinks}}, {{ri}} -> {{r}}
  {bend}
  %key = tile.iota like %z : {{i}}, {{s}}
  %b = arith.constant {before} : i32
  %bs = tile.broadcast %b like %row : i32, {{ri}} -> {{ri}}
  %first = arith.subi %row, %bs : {{ri}}
  %e = arith.constant {behind} : i32
  %es = tile.broadcast %e like %row : i32, {{ri}} -> {{ri}}
  %last = arith.addi %row, %es : {{ri}}
  %firsts = tile.broadcast %first like %z : {{ri}}, {{s}} -> {{i}}
  %lasts = tile.broadcast %last like %z : {{ri}}, {{s}} -> {{i}}
  %from = arith.cmpi sge, %key, %firsts : {{i}}
  %to = arith.cmpi sle, %key, %lasts : {{i}}
  %seen = arith.andi %from, %to : {{b}}
  %never = arith.constant 0xFF800000 : f32
  %hidden = tile.broadcast %never like %z : f32, {{s}} -> {{s}}
  %x = arith.select %seen, %y, %hidden : {{b}}, {{s}}
  %m = tile.reduce max %x : {{s}} -> {{r}}
  %limited = arith.maximumf %m, %r : {{r}}
  %still = tile.stop_gradient %limited : {{r}}
  %ms = tile.broadcast %still like %z : {{r}}, {{s}} -> {{s}}
  %d = arith.subf %x, %ms : {{s}}
  %p = math.exp %d : {{s}}
  %sum = tile.reduce add %p : {{s}} -> {{r}}
  %of_sink = arith.subf %r, %still : {{r}}
  %sink = math.exp %of_sink : {{r}}
  %total = arith.addf %sum, %sink : {{r}}
  %totals = tile.broadcast %total like %z : {{r}}, {{s}} -> {{s}}
  %w = arith.divf %p, %totals : {{s}}
  %o = tile.dot %w, %v contract [1, 0] : {{s}}, {{k}} -> {{o}}
  return %o : {{o}}
}}}}
""".replace("{bend}", bend).format(**names)


def shapes(batch, heads, queries, keys, size=64):
    sizes = {
        "q": (batch, heads, queries, size),
        "k": (batch, 1, keys, size),
        "v": (batch, 1, keys, size),
        "sinks": (batch, heads, 1, 1),
    }
    return [f"--shape={name}={'x'.join(map(str, x))}" for name, x in sizes.items()]


def pin(forward, backward=None):
    text = f"f_kernel: {forward}; f_backward_kernel1: {backward or forward}"
    return f"--schedule={text}"


@pytest.mark.long
@pytest.mark.parametrize(
    "heads, fields",
    [
        (2, "rows = 64, matrices = 2, depth = 48, steps = 1"),
        (4, "rows = 64, matrices = 4, depth = 64, steps = 1, resident = 2"),
        (4, "rows = 64, matrices = 2, depth = 32, steps = 2, resident = 1"),
        (8, "rows = 64, matrices = 8, depth = 48, steps = 1"),
        (8, "rows = 64, matrices = 8, depth = 16, steps = 1, stages = 1"),
        (8, "rows = 128, matrices = 8, depth = 48, steps = 1, resident = 1"),
        (8, "rows = 128, matrices = 4, depth = 48, steps = 2, resident = 1"),
        (6, "rows = 128, matrices = 2, depth = 80, steps = 1, resident = 1"),
    ],
)
def test_schedules(heads, fields):
    arguments = *shapes(2, heads, 75, 75), pin(fields)
    check(attention(heads), "--grad", *arguments, *HOPPER)


@pytest.mark.long
@pytest.mark.parametrize("heads", [1, 2, 3, 5, 8])
def test_groups(heads):
    """What the compiler chooses, for groups that tiles may have and such that they may
    not have."""
    check(attention(heads), "--grad", *shapes(2, heads, 139, 139), *HOPPER)


@pytest.mark.long
@pytest.mark.parametrize("lengths", [(1, 1), (1, 9), (9, 1), (7, 200), (200, 7)])
def test_lengths(lengths):
    """Queries beyond the last key see none, but for their sink."""
    check(attention(8), "--grad", *shapes(2, 8, *lengths), *HOPPER)


@pytest.mark.long(every=17)
@pytest.mark.parametrize("window", [(0, 0), (15, 0), (20, 20), (-3, 9), (127, 0)])
def test_windows(window):
    check(attention(8, window), "--grad", *shapes(1, 8, 171, 171), *HOPPER)


@pytest.mark.long
@pytest.mark.parametrize("size", [16, 80, 128])
def test_sizes_of_heads(size):
    source = attention(8, size=size)
    check(source, "--grad", *shapes(1, 8, 101, 101, size), *HOPPER)


@pytest.mark.long
def test_numbers_of_matrices():
    """Positions are counted over heads as well."""
    fields = "rows = 64, matrices = 8, depth = 48, steps = 1"
    source = attention(8, bend=NUMBERED)
    check(source, "--grad", *shapes(2, 8, 75, 75), pin(fields), *HOPPER)


@pytest.mark.long(every=5)
@pytest.mark.parametrize(
    "fields, tile, step",
    [
        ("rows = 64, matrices = 8, depth = 16, steps = 1", 8, 16),
        ("rows = 64, matrices = 2, depth = 16, steps = 1", 32, 16),
        ("rows = 64, matrices = 8, depth = 48, steps = 1", 8, 48),
    ],
)
def test_visited_keys(fields, tile, step):
    """A tile visits steps from the first key on that one of its queries sees. A product
    of 0 and NaN is NaN: each matrix has NaN in one key's values."""
    heads, length, before = 8, 70, 20
    values = floats.random("bf16", (length, 1, length, 64), 3)
    for key in range(length):
        values[key, 0, key] = np.nan
    inputs = {
        "q": ("bf16", floats.random("bf16", (length, heads, length, 64), 1)),
        "k": ("bf16", floats.random("bf16", (length, 1, length, 64), 2)),
        "v": ("bf16", values),
        "sinks": ("f32", np.zeros((length, heads, 1, 1))),
    }
    with Files() as files:
        done = execute(
            attention(heads, (before, 0)),
            *files.inputs(inputs),
            f"--output=result0={files.path('result0')}",
            f"--schedule=f_kernel: {fields}",
            *HOPPER,
        )
        assert done.returncode == 0, done.stderr
        result = floats.decode("f32", files.load("result0", "f32"))
    visited = np.isnan(result).any((1, 3))
    assert (visited == np.isnan(result).all((1, 3))).all()
    for first in range(0, length, tile):
        origin = max(0, first - before)
        end = min(first + tile, length)
        steps = -(-(end - origin) // step)
        expected = [origin <= key < origin + steps * step for key in range(length)]
        for query in range(first, end):
            assert visited[:, query].tolist() == expected, query


def test_matrices_that_are_no_group():
    done = execute(
        attention(3),
        *shapes(1, 3, 9, 9),
        "--schedule=f_kernel: rows = 64, matrices = 2",
        "--target=sm_90a",
        "--emulate",
    )
    assert "tiles have rows of 2 matrices only where they share" in done.stderr

# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""The numbers of rows along leading dimensions, in each kind of kernel."""

import json

import numpy as np
import pytest

import floats
from runner import execute, run, tensor

LENGTH = 24
EMULATION = [(), ("--emulate",)]

# The sizes, which of them are known only at launch, and the dimensions along which
# rows are counted together.
DIMENSIONS = [
    ((7,), (True,), [0]),
    ((3, 5), (True, True), [0]),
    ((3, 5), (True, True), [1]),
    ((3, 5), (True, True), [0, 1]),
    ((3, 5), (True, False), [0]),
    ((3, 5), (False, True), [1]),
    ((3, 5), (False, False), [1]),
    ((1, 5), (True, True), [1]),
    ((2, 3, 4), (True, True, True), [0]),
    ((2, 3, 4), (True, True, True), [1]),
    ((2, 3, 4), (True, False, True), [2]),
    ((2, 3, 4), (True, True, True), [1, 2]),
    ((2, 3, 4), (True, True, False), [0, 1]),
    ((2, 1, 4), (True, True, True), [0, 1, 2]),
    ((0, 5), (True, True), [0]),
]


def count(sizes, over):
    """The numbers that rows of `sizes` have along the dimensions of `over`."""
    numbers = np.zeros(sizes, np.int32)
    for dimension in over:
        numbers = numbers * sizes[dimension] + np.indices(sizes)[dimension]
    return numbers[..., None]


def types(rank, length=LENGTH):
    free = (None,) * rank
    return (
        tensor((*free, length), "f32"),
        tensor((*free, 1), "f32"),
        tensor((*free, 1), "i32"),
    )


@pytest.mark.parametrize("arguments", EMULATION, ids=["here", "emulated"])
@pytest.mark.parametrize("sizes, isfree, over", DIMENSIONS)
def test_numbers(sizes, isfree, over, arguments):
    shape = tuple(None if free else size for size, free in zip(sizes, isfree))
    row, numbers = tensor((*shape, LENGTH), "f32"), tensor((*shape, 1), "i32")
    column = numbers.replace("i32", "f32")
    source = f"""
func.func @f(%x: {row}) -> ({row}, {numbers}) {{
  %0 = tile.iota over {over} like %x : {numbers}, {row}
  %1 = arith.sitofp %0 : {numbers} to {column}
  %2 = tile.broadcast %1 like %x : {column}, {row} -> {row}
  %3 = arith.addf %x, %2 : {row}
  return %3, %0 : {row}, {numbers}
}}
"""
    x = floats.random("f32", (*sizes, LENGTH), 1).astype(np.float32)
    y, found = run(source, {"x": ("f32", x)}, ["f32", "i32"], *arguments)
    expected = count(sizes, over)
    assert found.dtype == np.int32 and np.array_equal(found, expected)
    assert np.array_equal(y, x + expected.astype(np.float32))


# What a function does with x and with the numbers, as floats in the rows of x.
USES = {
    "rows that are summed": """
  %s = tile.reduce add %y : {row} -> {column}
  %b = tile.broadcast %s like %x : {column}, {row} -> {row}
  %r = arith.subf %y, %b : {row}""",
    "pieces of rows": """
  %a, %b = tile.split %y : {row} -> {half}, {half}
  %c = arith.mulf %a, %b : {half}
  %r = tile.join interleaved %c, %a : {half}, {half} -> {row}""",
    "groups of columns": """
  %s = tile.reduce max %y : {row} -> {groups}
  %b = tile.broadcast %s like %x : {groups}, {row} -> {row}
  %r = arith.subf %y, %b : {row}""",
    "all rows": """
  %s = tile.reduce_rows add %y : {row} -> tensor<{length}xf32>
  %b = tile.broadcast %s like %x : tensor<{length}xf32>, {row} -> {row}
  %r = arith.subf %y, %b : {row}""",
}


def check(source, *arguments):
    done = execute(source, "--check", *arguments)
    assert done.returncode == 0, done.stderr + done.stdout
    for result in json.loads(done.stdout)["runs"]:
        for output in result["outputs"]:
            assert output["pass"], (result["shapes"], output)


def make_source(rank, over, use, length):
    row, column, numbers = types(rank, length)
    half, groups = (types(rank, length // n)[0] for n in (2, 6))
    lines = use.format(row=row, column=column, half=half, groups=groups, length=length)
    return f"""
func.func @f(%x: {row}) -> {row} {{
  %n = tile.iota over {over} like %x : {numbers}, {row}
  %f = arith.sitofp %n : {numbers} to {column}
  %g = tile.broadcast %f like %x : {column}, {row} -> {row}
  %y = arith.mulf %x, %g : {row}{lines}
  return %r : {row}
}}
"""


@pytest.mark.parametrize("over", [[0], [1], [0, 1]])
def test_more_rows_than_the_evaluator_takes_at_once(over):
    check(
        make_source(2, over, USES["rows that are summed"], LENGTH),
        "--shape=x=30x40x24",
    )


@pytest.mark.parametrize("arguments", EMULATION, ids=["here", "emulated"])
@pytest.mark.parametrize("use", USES)
def test_uses(use, arguments):
    for over in ([0], [1], [0, 1]):
        check(make_source(2, over, USES[use], LENGTH), "--shape=x=3x5x24", *arguments)


SCHEDULES = {
    "rows that are summed": [
        "rows = 4, threads = 128, vector = 1, columns = 32",
        "rows = 1, threads = 64, vector = 2, columns = 128",
        "rows = 2, threads = 64, vector = 1, columns = 512, persistent = 1",
        "rows = 1, threads = 64, vector = 1, columns = 512, cluster = 2",
    ],
    "all rows": [
        "rows = 2, threads = 64, vector = 1, columns = 512, persistent = 1",
        "rows = 1, threads = 64, vector = 1, columns = 512, persistent = 1, stages = 2",
        "rows = 1, threads = 64, vector = 2, columns = 128, persistent = 2",
    ],
}


@pytest.mark.parametrize(
    "use, schedule", [(use, one) for use, some in SCHEDULES.items() for one in some]
)
def test_schedules(use, schedule):
    source = make_source(2, [1], USES[use], 510)
    check(source, "--shape=x=3x5x510", "--emulate", f"--schedule={schedule}")


@pytest.mark.parametrize("use", ["rows that are summed", "all rows"])
def test_rows_that_no_vector_divides(use):
    source = make_source(2, [1], USES[use], 511)
    check(source, "--shape=x=3x5x511", "--emulate")
    if use == "rows that are summed":
        schedule = "rows = 2, threads = 64, vector = 4, columns = 512"
        check(source, "--shape=x=3x5x511", "--emulate", f"--schedule={schedule}")


@pytest.mark.parametrize("arguments", EMULATION, ids=["here", "emulated"])
@pytest.mark.parametrize(
    "kept, over",
    [
        ("1x?x1", [0]),
        ("1x?x1", [1]),
        ("1x?x1", [2]),
        ("1x?x1", [0, 1]),
        ("1x?x1", [0, 1, 2]),
        ("?x1x?", [0]),
        ("?x1x?", [1]),
        ("?x1x?", [1, 2]),
        ("?x1x1", [0, 1, 2]),
        ("1x1x?", [1, 2]),
    ],
)
def test_rows_that_are_combined(kept, over, arguments):
    row, column, numbers = types(3)
    check(
        f"""
func.func @f(%x: {row}) -> tensor<{kept}x{LENGTH}xf32> {{
  %n = tile.iota over {over} like %x : {numbers}, {row}
  %f = arith.sitofp %n : {numbers} to {column}
  %g = tile.broadcast %f like %x : {column}, {row} -> {row}
  %y = arith.mulf %x, %g : {row}
  %r = tile.reduce_rows add %y : {row} -> tensor<{kept}x{LENGTH}xf32>
  return %r : tensor<{kept}x{LENGTH}xf32>
}}
""",
        "--shape=x=3x5x4x24",
        *arguments,
    )


@pytest.mark.parametrize("arguments", EMULATION, ids=["here", "emulated"])
def test_bands(arguments):
    row, column, numbers = types(1)
    check(
        f"""
func.func @f(%x: {row}) -> ({row}, {row}) {{
  %n = tile.iota over [0] like %x : {numbers}, {row}
  %f = arith.sitofp %n : {numbers} to {column}
  %g = tile.broadcast %f like %x : {column}, {row} -> {row}
  %y = arith.mulf %x, %g : {row}
  %m = tile.reduce_bands max %y of 8 : {row}
  %z = arith.subf %m, %y : {row}
  %p = tile.pack_bands %m of 8 : {row} -> {row}
  %np = tile.iota over [0] like %p : {numbers}, {row}
  %fp = arith.sitofp %np : {numbers} to {column}
  %gp = tile.broadcast %fp like %p : {column}, {row} -> {row}
  %q = arith.addf %p, %gp : {row}
  return %z, %q : {row}, {row}
}}
""",
        "--rows=1,8,29",
        *arguments,
    )


@pytest.mark.parametrize("arguments", EMULATION, ids=["here", "emulated"])
@pytest.mark.parametrize("over", [[0], [1], [0, 1], [2]])
def test_kernels_that_share_a_launch(over, arguments):
    """Heads of queries and of keys, with angles that both share."""
    row, column, numbers = types(3)
    angle = tensor((1, None, 1, LENGTH), "f32")

    def turn(x, name):
        return f"""
  %{name}n = tile.iota over {over} like %{x} : {numbers}, {row}
  %{name}f = arith.sitofp %{name}n : {numbers} to {column}
  %{name}g = tile.broadcast %{name}f like %{x} : {column}, {row} -> {row}
  %{name}a = tile.broadcast %t like %{x} : {angle}, {row} -> {row}
  %{name}b = arith.mulf %{name}a, %{name}g : {row}
  %{name} = arith.addf %{x}, %{name}b : {row}"""

    check(
        f"""
func.func @f(%q: {row}, %k: {row}, %t: {angle}) -> ({row}, {row}) {{{turn("q", "u")}
{turn("k", "v")}
  return %u, %v : {row}, {row}
}}
""",
        "--shape=q=2x5x4x24",
        "--shape=k=2x5x2x24",
        "--shape=t=1x5x1x24",
        *arguments,
    )


@pytest.mark.parametrize("arguments", EMULATION, ids=["here", "emulated"])
def test_gradients(arguments):
    row, column, numbers = types(2)
    check(
        f"""
func.func @f(%x: {row}, %w: tensor<{LENGTH}xf32>) -> {row} {{
  %n = tile.iota over [1] like %x : {numbers}, {row}
  %f = arith.sitofp %n : {numbers} to {column}
  %g = tile.broadcast %f like %x : {column}, {row} -> {row}
  %v = tile.broadcast %w like %x : tensor<{LENGTH}xf32>, {row} -> {row}
  %y = arith.mulf %v, %g : {row}
  %s = math.sin %x : {row}
  %r = arith.mulf %s, %y : {row}
  return %r : {row}
}}
""",
        "--grad",
        "--shape=x=3x5x24",
        *arguments,
    )

# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""Which tiles of keys the loop of softmax(mask(q k^T)) v visits: those of which a row of
the program's sees a key, and no others where a mask is made of positions.

A product of 0 and NaN is NaN. So each matrix of the batch has NaN in the values of one
tile of keys, and rows of the result are NaN where the program has visited that tile."""

import re

import numpy as np
import pytest

import floats
import masked
from runner import Files, execute, find_schedules, target

SOURCE = (
    """
func.func @f(%q: tensor<?x?x16x{t}>, %k: tensor<?x?x16x{t}>, %v: tensor<?x?x16x{t}>,
             %n: tensor<?x1x1xi32>) -> tensor<?x?x16xf32> {{
  %s = tile.dot %q, %k contract [1, 1]
      : tensor<?x?x16x{t}>, tensor<?x?x16x{t}> -> tensor<?x?x?xf32>
  %key = tile.iota like %s : tensor<?x?x?xi32>, tensor<?x?x?xf32>
  %row = tile.iota over [1] like %s : tensor<?x?x1xi32>, tensor<?x?x?xf32>
  %query = tile.broadcast %row like %s
      : tensor<?x?x1xi32>, tensor<?x?x?xf32> -> tensor<?x?x?xi32>
  %ns = tile.broadcast %n like %s : tensor<?x1x1xi32>, tensor<?x?x?xf32> -> tensor<?x?x?xi32>
  %last = arith.addi %query, %ns : tensor<?x?x?xi32>
  {mask}
"""
    + masked.SOFTMAX
)
SHIFT = """%c{name} = arith.constant {by} : i32
  %b{name} = tile.broadcast %c{name} like %s : i32, tensor<?x?x?xf32> -> tensor<?x?x?xi32>
  %{name} = arith.addi %query, %b{name} : tensor<?x?x?xi32>
"""
CAUSAL = "%seen = arith.cmpi sle, %key, %query : tensor<?x?x?xi32>"
LAST = (
    SHIFT.format(name="end", by=37)
    + "%seen = arith.cmpi sge, %end, %key : tensor<?x?x?xi32>"
)
WINDOW = (
    SHIFT.format(name="left", by=-40)
    + SHIFT.format(name="right", by=9)
    + """%after = arith.cmpi sgt, %key, %left : tensor<?x?x?xi32>
  %before = arith.cmpi slt, %key, %right : tensor<?x?x?xi32>
  %seen = arith.andi %after, %before : tensor<?x?x?xi1>"""
)
#: The first queries see all keys, of which no bound is derived.
OTHERS = """%c = arith.constant 5 : i32
  %few = tile.broadcast %c like %s : i32, tensor<?x?x?xf32> -> tensor<?x?x?xi32>
  %first = arith.cmpi slt, %query, %few : tensor<?x?x?xi32>
  %before = arith.cmpi sle, %key, %query : tensor<?x?x?xi32>
  %seen = arith.ori %first, %before : tensor<?x?x?xi1>"""
#: A number of the call, and of each matrix.
PADDED = "%seen = arith.cmpi slt, %key, %ns : tensor<?x?x?xi32>"
SHIFTED = "%seen = arith.cmpi sle, %key, %last : tensor<?x?x?xi32>"
NUMBERS = {"padded": 50, "shifted": 30, "shifted back": -20}
#: Such that what is added to it wraps around.
LARGE = 2**31 - 50
MASKS = {
    "causal": (CAUSAL, lambda query, key: key <= query),
    "aligned to the end": (LAST, lambda query, key: key <= query + 37),
    "window": (WINDOW, lambda query, key: (key > query - 40) & (key < query + 9)),
    "padded": (PADDED, lambda query, key: (key < 50) & (query >= 0)),
    "shifted": (SHIFTED, lambda query, key: key <= query + 30),
    "shifted back": (SHIFTED, lambda query, key: key <= query - 20),
    "all": (OTHERS, None),
}


def find_tiles(source, where):
    """The rows and the streamed elements of a program's tile."""
    found = find_schedules(source, *where)
    fields = dict(re.findall(r"(rows|depth) = (\d+)", found))
    return int(fields["rows"]), int(fields["depth"])


def split(length, size):
    return [slice(i, min(i + size, length)) for i in range(0, length, size)]


@pytest.mark.long(every=17)
@pytest.mark.parametrize("kind", ["f32", "bf16"])
@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("is_emulated", [False, True])
def test_visited_tiles(name, kind, is_emulated):
    if is_emulated and target() != "host":
        pytest.skip("the GPU itself runs the test")
    mask, sees = MASKS[name]
    source = SOURCE.format(t=kind, mask=mask)
    where = (f"--target={target()}",)
    if is_emulated or target() != "host":
        threads, rows = (64, 32) if kind == "bf16" else (256, 16)
        where = (
            "--target=sm_90" if is_emulated else where[0],
            f"--schedule=#tile.matmul<rows = {rows}, threads = {threads}, depth = 16, roles = 1>",
        )
    queries, keys = 90, 120
    rows, depth = find_tiles(source, where)
    tiles = split(keys, depth)
    values = floats.random(kind, (len(tiles), keys, 16), 3)
    for matrix, tile in enumerate(tiles):
        values[matrix, tile] = np.nan
    inputs = {
        "q": (kind, floats.random(kind, (len(tiles), queries, 16), 1)),
        "k": (kind, floats.random(kind, (len(tiles), keys, 16), 2)),
        "v": (kind, values),
        "n": ("i32", np.full((len(tiles), 1, 1), NUMBERS.get(name, 0))),
    }
    with Files() as files:
        done = execute(
            source,
            *files.inputs(inputs),
            f"--output=result0={files.path('result0')}",
            *(["--emulate"] if is_emulated else []),
            *where,
        )
        assert done.returncode == 0, done.stderr
        result = floats.decode("f32", files.load("result0", "f32"))
    seen = np.ones((queries, keys), bool)
    if sees:
        seen = sees(np.arange(queries)[:, None], np.arange(keys)[None])
    # A query that sees no key has NaN for its result in any case.
    rows_seen = seen.any(1)
    for part in split(queries, rows):
        shown = result[:, part][:, rows_seen[part]]
        if shown.shape[1] == 0:
            continue
        visited = np.isnan(shown).all((1, 2))
        assert (visited == np.isnan(shown).any((1, 2))).all()
        assert visited.tolist() == [seen[part, tile].any() for tile in tiles]


def test_numbers_that_wrap_around():
    """The last 40 queries have a sum below 0, and see no key."""
    source = SOURCE.format(t="f32", mask=SHIFTED)
    inputs = {
        "q": ("f32", floats.random("f32", (1, 90, 16), 1)),
        "k": ("f32", floats.random("f32", (1, 120, 16), 2)),
        "v": ("f32", floats.random("f32", (1, 120, 16), 3)),
        "n": ("i32", np.full((1, 1, 1), LARGE)),
    }
    with Files() as files:
        output = f"--output=result0={files.path('result0')}"
        done = execute(source, *files.inputs(inputs), output)
        assert done.returncode == 0, done.stderr
        result = floats.decode("f32", files.load("result0", "f32"))
    assert np.isnan(result[0]).any(1).tolist() == [query >= 50 for query in range(90)]

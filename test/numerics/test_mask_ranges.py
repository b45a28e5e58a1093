# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""Masks that numbers in memory bound: those of packed documents, of which each query has
the range of its keys, and each key that of its queries.

Each kernel of attention, forward and backward, visits the tiles from the first to the last
one in which a row of the program's sees something, and no others. A product of 0 and NaN
is NaN. So each matrix of the batch has NaN in one tile of what a kernel streams, and the
rows of a result are NaN where the program has visited that tile."""

import re
from functools import partial

import numpy as np
import pytest

import floats
from runner import HOPPER, find_schedules, run_backward, target

SIZE = 64
RANGES = [
    f"{part}_by_{by}" for by in ("query", "key") for part in ("first", "end", "rest")
]
#: The types of the formula: heads, scores, and their numbers, conditions and rows.
TYPES = {
    "s": "tensor<?x?x?xf32>",
    "i": "tensor<?x?x?xi32>",
    "b": "tensor<?x?x?xi1>",
    "r": "tensor<?x?x1xf32>",
    "query": "tensor<?x?x1xi32>",
    "key": "tensor<?x1x?xi32>",
    "o": f"tensor<?x?x{SIZE}xf32>",
}
#: Attention as `bastile._formulas` has it: with a sink for rows that see nothing.
SOURCE = """
func.func @f(%q: {h}, %k: {h}, %v: {h}, %of_queries: {query}, %of_keys: {key},
             %first_by_query: {query}, %end_by_query: {query}, %rest_by_query: {query},
             %first_by_key: {key}, %end_by_key: {key}, %rest_by_key: {key}) -> {o} {{
  %products = tile.dot %q, %k contract [1, 1] : {h}, {h} -> {s}
  %c = arith.constant 0.125 : f32
  %cs = tile.broadcast %c like %products : f32, {s} -> {s}
  %s = arith.mulf %products, %cs : {s}
  %key = tile.iota like %s : {i}, {s}
  %row = tile.iota over [1] like %s : {query}, {s}
  %query = tile.broadcast %row like %s : {query}, {s} -> {i}
  %ours = tile.broadcast %of_queries like %s : {query}, {s} -> {i}
  %theirs = tile.broadcast %of_keys like %s : {key}, {s} -> {i}
  %equal = arith.cmpi eq, %ours, %theirs : {i}
  %zero = arith.constant 0 : i32
  %zeros = tile.broadcast %zero like %s : i32, {s} -> {i}
  {by_query}
  {by_key}
  %same = arith.andi %{part}_query, %{part}_key {{tile.either}} : {b}
  %before = arith.cmpi sle, %key, %query : {i}
  %both = arith.andi %before, %same : {b}
  %never = arith.constant 0xFF800000 : f32
  %hidden = tile.broadcast %never like %s : f32, {s} -> {s}
  %x = arith.select %{seen}, %s, %hidden : {b}, {s}
  %m = tile.reduce max %x : {s} -> {r}
  %lowest = arith.constant -3.4028234663852886e38 : f32
  %sink = tile.broadcast %lowest like %m : f32, {r} -> {r}
  %more = arith.maximumf %m, %sink : {r}
  %largest = tile.stop_gradient %more : {r}
  %ms = tile.broadcast %largest like %s : {r}, {s} -> {s}
  %d = arith.subf %x, %ms : {s}
  %e = math.exp %d : {s}
  %l = tile.reduce add %e : {s} -> {r}
  %below = arith.subf %sink, %largest : {r}
  %own = math.exp %below : {r}
  %total = arith.addf %l, %own : {r}
  %ls = tile.broadcast %total like %s : {r}, {s} -> {s}
  %p = arith.divf %e, %ls : {s}
  %o = tile.dot %p, %v contract [1, 0] : {s}, {h} -> {o}
  return %o : {o}
}}
"""
#: Which elements are in the ranges by the numbers of one side, and those of them that
#: are in the mask where others lie between.
WITHIN = """%firsts_{by} = tile.broadcast %first_by_{by} like %s : {own}, {s} -> {i}
  %ends_{by} = tile.broadcast %end_by_{by} like %s : {own}, {s} -> {i}
  %rests_{by} = tile.broadcast %rest_by_{by} like %s : {own}, {s} -> {i}
  %from_{by} = arith.cmpi sge, %{place}, %firsts_{by} : {i}
  %to_{by} = arith.cmpi slt, %{place}, %ends_{by} : {i}
  %within_{by} = arith.andi %from_{by}, %to_{by} : {b}
  %alone_{by} = arith.cmpi sle, %rests_{by}, %zeros : {i}
  %so_{by} = arith.ori %alone_{by}, %equal : {b}
  %exactly_{by} = arith.andi %within_{by}, %so_{by} : {b}"""


def attention(kind, causal, says_others):
    return SOURCE.format(
        **TYPES,
        h=f"tensor<?x?x{SIZE}x{kind}>",
        by_query=WITHIN.format(by="query", place="key", own=TYPES["query"], **TYPES),
        by_key=WITHIN.format(by="key", place="query", own=TYPES["key"], **TYPES),
        part="exactly" if says_others else "within",
        seen="both" if causal else "same",
    )


def find_ranges(numbers, others):
    """For each of `numbers`, the first place in `others` of the same number, the place
    behind the last one, and whether others lie between."""
    same = numbers[:, None] == others[None]
    first = np.where(same.any(1), same.argmax(1), len(others))
    end = np.where(same.any(1), len(others) - same[:, ::-1].argmax(1), 0)
    return first, end, (end - first != same.sum(1)).astype(int)


def make_inputs(kind, queries, keys, matrices):
    """Heads, and the operands that say documents, of which `queries` and `keys` have the
    numbers."""
    lengths = {"q": len(queries), "k": len(keys), "v": len(keys)}
    inputs = {
        name: (kind, floats.random(kind, (matrices, length, SIZE), seed))
        for seed, (name, length) in enumerate(lengths.items())
    }
    by_query, by_key = find_ranges(queries, keys), find_ranges(keys, queries)
    rows = dict(zip(RANGES[:3], by_query), of_queries=queries)
    columns = dict(zip(RANGES[3:], by_key), of_keys=keys)
    for name, values in rows.items():
        inputs[name] = "i32", np.tile(values[None, :, None], (matrices, 1, 1))
    for name, values in columns.items():
        inputs[name] = "i32", np.tile(values[None, None], (matrices, 1, 1))
    return inputs


def find_tiles(source, where):
    """The rows and the streamed elements of a tile of the three kernels: forward, of the
    gradient of queries, and of those of keys and values."""
    found = {}
    text = find_schedules(source, "--grad=q,k,v", *where)
    for kernel in re.findall(r"tile\.kernel .*?\n  }", text, re.DOTALL):
        if "tile.select" in kernel or "arith.select" not in kernel:
            continue
        fields = re.search(r"rows = (\d+),.*?depth = (\d+)", kernel)
        is_transposed = re.search(r"tile\.dot %\d+, %arg\d+ contract \[0, ", kernel)
        name = "key" if is_transposed else "query" if "backward" in kernel else "result"
        found.setdefault(name, tuple(map(int, fields.groups())))
    return [found[name] for name in ("result", "query", "key")]


def split(length, size):
    return [slice(i, min(i + size, length)) for i in range(0, length, size)]


def is_nan(rows):
    """Whether rows of a tile are NaN: all of them are, or none."""
    found = np.isnan(rows).any(1)
    assert (found == found[0]).all()
    return bool(found[0])


def check_visited(result, seen, rows, tiles):
    """`result` has a matrix for each of the streamed `tiles`, which is NaN there."""
    for part in split(len(seen), rows):
        visited = [is_nan(matrix[part]) for matrix in result]
        needed = np.flatnonzero([seen[part, tile].any() for tile in tiles])
        expected = np.zeros(len(tiles), bool)
        if len(needed):
            expected[needed[0] : needed[-1] + 1] = True
        assert visited == expected.tolist(), (part, tiles)


WHERE = {
    "host": ("--target=host",),
    "sm_80": ("--emulate", "--target=sm_80"),
    "sm_90a": ("--emulate", "--target=sm_90a"),
}


def places(name):
    """The options of a target; on a GPU, its own."""
    if target() != "host" and name != "host":
        return HOPPER or (f"--target={target()}",)
    return WHERE[name]


@pytest.mark.long(every=13)
@pytest.mark.parametrize(
    "name, says_others, causal",
    [
        ("host", False, False),
        ("host", True, True),
        ("sm_80", True, True),
        ("sm_90a", False, False),
        ("sm_90a", True, True),
    ],
)
def test_visited_tiles(name, says_others, causal):
    """Documents that begin at no multiple of a tile."""
    where = places(name)
    kind = "f32" if name == "host" else "bf16"
    source = attention(kind, causal, says_others)
    documents = np.repeat([7, 2, 9, 4, 5], [97, 3, 70, 21, 66])
    length = len(documents)
    seen = documents[:, None] == documents[None]
    if causal:
        seen &= np.arange(length)[:, None] >= np.arange(length)[None]
    target_only = [x for x in where if x.startswith("--target")]
    sizes = find_tiles(source, target_only)
    tiles = [split(length, depth) for _, depth in sizes]
    ends = np.cumsum([len(x) for x in tiles])
    inputs = make_inputs(kind, documents, documents, ends[-1])
    upstream = floats.random("f32", (ends[-1], length, SIZE), 5)
    matrices = [range(end - len(x), end) for x, end in zip(tiles, ends)]
    for values, numbers, parts in zip(
        (inputs["v"][1], inputs["k"][1], upstream), matrices, tiles
    ):
        for matrix, tile in zip(numbers, parts):
            values[matrix, tile] = np.nan
    results, gradients = run_backward(
        source,
        inputs,
        {"grad_result0": ("f32", upstream)},
        ["f32"],
        dict.fromkeys("qkv", kind),
        *where,
    )
    decode = partial(floats.decode, kind)
    found = results[0], decode(gradients["q"]), decode(gradients["v"])
    for result, numbers, (rows, _), parts, sees in zip(
        found, matrices, sizes, tiles, (seen, seen, seen.T)
    ):
        check_visited(result[list(numbers)], sees, rows, parts)


def compute(q, k, v, upstream, seen):
    """The result and the gradients of masked attention in float64."""
    scores = np.where(seen, q @ k.swapaxes(1, 2) * SIZE**-0.5, -np.inf)
    largest = np.maximum(scores.max(2, keepdims=True), -1e300)
    powers = np.exp(scores - largest)
    p = powers / np.maximum(powers.sum(2, keepdims=True), 1e-300)
    result = p @ v
    dp = upstream @ v.swapaxes(1, 2)
    ds = p * (dp - (upstream * result).sum(2, keepdims=True)) * SIZE**-0.5
    return result, ds @ k, ds.swapaxes(1, 2) @ q, p.swapaxes(1, 2) @ upstream


@pytest.mark.long
@pytest.mark.parametrize(
    "name, causal", [("host", True), ("sm_80", False), ("sm_90a", True)]
)
def test_numbers_in_any_order(name, causal):
    """Documents that lie apart, of which some have only queries or only keys."""
    where = places(name)
    kind = "f32" if name == "host" else "bf16"
    generator = np.random.default_rng(3)
    queries = np.repeat(generator.integers(-3, 4, 12), 18)
    keys = np.repeat(generator.integers(-2, 9, 9), 30)
    keys[200:] = generator.integers(-3, 4, 70)
    queries[30:40], keys[50:60] = 20, 21
    inputs = make_inputs(kind, queries, keys, 1)
    upstream = floats.random("f32", (1, len(queries), SIZE), 5)
    results, gradients = run_backward(
        attention(kind, causal, True),
        inputs,
        {"grad_result0": ("f32", upstream)},
        ["f32"],
        dict.fromkeys("qkv", kind),
        *where,
    )
    seen = queries[:, None] == keys[None]
    if causal:
        seen &= np.arange(len(queries))[:, None] >= np.arange(len(keys))[None]
    assert not seen.any(1).all() and not seen.any(0).all()
    heads = [inputs[x][1].astype(np.float64) for x in "qkv"]
    wanted = compute(*heads, upstream.astype(np.float64), seen)
    decoded = [floats.decode(kind, gradients[x]) for x in "qkv"]
    bound = 1e-5 if kind == "f32" else 1e-2
    for found, want in zip((results[0], *decoded), wanted):
        error = np.linalg.norm(found.astype(np.float64) - want)
        assert error <= bound * np.linalg.norm(want)

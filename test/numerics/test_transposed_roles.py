# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""Gradients of keys and values where warps have roles, against what they mean in float64
(tile-run --check): on the emulator, which finds races and waits that are missing, or on
a GPU. Their kernels sum over the rows of the factors that they compute, the queries."""

import re

import pytest

from runner import HOPPER, emit, tensor
from test_dots import check
from test_streamed_factors import BETWEEN, MASKED

#: What bends the scores %z to %y.
CAPPED = """%t = math.tanh %z : {s}
  %limit = arith.constant 1.5 : f32
  %limits = tile.broadcast %limit like %z : f32, {s} -> {s}
  %y = arith.mulf %t, %limits : {s}"""
PLAIN = "%y = arith.negf %z : {s}"
#: As attention has it: the gradient of the maximum, which adds up to 0, would need the
#: factors in memory.
STILL = """%still = tile.stop_gradient %shift : {r}
  %ms = tile.broadcast %still like"""


def attention(size, batch=(), shared=(), masked=False, capped=False, between="softmax"):
    """Attention of heads of `size`, with dimensions `batch` ahead of the queries and
    `shared` ahead of the keys."""
    scores = tensor((*batch, None, None), "f32")
    names = {
        "s": scores,
        "i": scores.replace("f32", "i32"),
        "b": scores.replace("f32", "i1"),
        "r": tensor((*batch, None, 1), "f32"),
        "ri": tensor((*batch, None, 1), "i32"),
        "o": tensor((*batch, None, size), "f32"),
        "t": "f32",
        "row": len(batch),
    }
    softmax, behind = BETWEEN[between]
    softmax = softmax.replace("%ms = tile.broadcast %shift like", STILL)
    mask = MASKED if masked else "%x = arith.mulf %y, %y : {s}"
    q = tensor((*batch, None, size), "bf16")
    k = tensor((*shared, None, size), "bf16")
    text = ((CAPPED if capped else PLAIN) + "\n  " + mask + softmax).format(**names)
    return f"""
func.func @f(%q: {q}, %k: {k}, %v: {k}) -> {names["o"]} {{
  %scores = tile.dot %q, %k contract [1, 1] : {q}, {k} -> {scores}
  %c = arith.constant {size**-0.5} : f32
  %cs = tile.broadcast %c like %scores : f32, {scores} -> {scores}
  %z = arith.mulf %scores, %cs : {scores}
  {text}
  %o = tile.dot %p, %v contract [1, 0] : {scores}, {k} -> {names["o"]}
  {behind.format(**names)}
  return %last : {names["o"]}
}}
"""


def shapes(q, k):
    def text(sizes):
        return "x".join(map(str, sizes))

    return [f"--shape=q={text(q)}", f"--shape=k={text(k)}", f"--shape=v={text(k)}"]


def find_transposed(source):
    """The schedules of kernels that sum over the rows of factors that they compute."""
    text = emit(source, "scheduled", "--grad", "--target=sm_90a")
    kernels = re.findall(r"tile\.kernel .*?\n  }", text, re.DOTALL)
    return [
        re.search(r"{schedule = (#tile.matmul<.*?>)", kernel)[1]
        for kernel in kernels
        if re.search(r"tile\.dot %\d+, %arg\d+ contract \[0, ", kernel)
    ]


def check_roles(source, *arguments):
    schedules = find_transposed(source)
    assert schedules
    assert all("roles = 2" in schedule for schedule in schedules), schedules
    check(source, "--grad", *arguments, *HOPPER)


@pytest.mark.long(every=17)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("size", [64, 80, 128, 256])
def test_sizes_of_heads(size, masked):
    """More keys than a program has rows, and more queries than a step."""
    check_roles(attention(size, masked=masked), *shapes((139, size), (133, size)))


@pytest.mark.long(every=5)
@pytest.mark.parametrize("lengths", [(1, 9), (9, 1), (201, 5), (64, 128)])
def test_lengths(lengths):
    queries, keys = lengths
    source = attention(64, (None,), (None,), masked=True)
    check_roles(source, *shapes((2, queries, 64), (2, keys, 64)))


@pytest.mark.long
@pytest.mark.parametrize("masked", [False, True])
def test_heads_that_share_keys(masked):
    """Programs add up the products of all heads of a group."""
    batch, shared = (None, None, None), (None, None, 1)
    source = attention(64, batch, shared, masked=masked)
    check_roles(source, *shapes((2, 2, 3, 70, 64), (2, 2, 1, 133, 64)))


@pytest.mark.long(every=5)
@pytest.mark.parametrize(
    "options", [{"capped": True}, {"between": "sink"}, {"capped": True, "masked": True}]
)
def test_formulas(options):
    source = attention(64, (None,), (None,), **options)
    check_roles(source, *shapes((2, 71, 64), (2, 139, 64)))


@pytest.mark.long
@pytest.mark.parametrize("place", ["--gap=3", "--offset=1"])
def test_operands_that_boxes_do_not_take(place):
    """They have the program whose threads copy and multiply."""
    check_roles(attention(64, masked=True), *shapes((71, 64), (139, 64)), place)


def test_rows_that_boxes_do_not_take():
    source = attention(60)
    schedules = find_transposed(source)
    assert schedules
    assert all("roles" not in schedule for schedule in schedules), schedules
    check(source, "--grad", *shapes((71, 60), (139, 60)), *HOPPER)


@pytest.mark.long(every=17)
@pytest.mark.parametrize(
    "schedule",
    [
        "depth = 16",
        "depth = 48",
        "rows = 64",
        "stages = 3",
        "columns = 80, depth = 32",
        "steps = 1",
        "steps = 1, stages = 2, depth = 32",
    ],
)
def test_schedules(schedule):
    pinned = f"--schedule=#tile.matmul<{schedule}>"
    source = attention(64, masked=True)
    check(source, "--grad", *shapes((171, 64), (133, 64)), pinned, *HOPPER)


@pytest.mark.long
@pytest.mark.parametrize(
    "pinned",
    [
        "f_kernel: steps = 1",
        "f_backward_kernel1: steps = 1, depth = 128, rows = 128",
    ],
)
def test_steps_that_end(pinned):
    """The result and the gradients of queries, too, by steps that end one by one: sums
    follow their maximum, and keys are factors of both kinds of products."""
    source = attention(64, (None,), (None,), masked=True)
    arguments = *shapes((2, 71, 64), (2, 333, 64)), f"--schedule={pinned}"
    check(source, "--grad", *arguments, *HOPPER)


@pytest.mark.long(every=2)
@pytest.mark.parametrize("place", [(), ("--gap=3",)])
def test_numbers_of_rows(place):
    """Statistics that lie behind each other in memory, and such that do not."""
    q, r, s = tensor((None, 64), "bf16"), tensor((None, 1), "f32"), "tensor<?x?xf32>"
    source = f"""
func.func @f(%q: {q}, %k: {q}, %dy: {q}, %l: {r}) -> tensor<?x64xf32> {{
  %s = tile.dot %q, %k contract [1, 1] : {q}, {q} -> {s}
  %ls = tile.broadcast %l like %s : {r}, {s} -> {s}
  %d = arith.mulf %s, %ls : {s}
  %p = math.tanh %d : {s}
  %dv = tile.dot %p, %dy contract [0, 0] : {s}, {q} -> tensor<?x64xf32>
  return %dv : tensor<?x64xf32>
}}
"""
    sizes = {"q": "171x64", "k": "139x64", "dy": "171x64", "l": "171x1"}
    given = [f"--shape={name}={size}" for name, size in sizes.items()]
    check(source, *given, *place, *HOPPER)

# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""The programs for tensor cores in examples/tensor-cores, against float64.

They run on the emulator, whose two multiprocessors make each block go through
several parts of a result, or on a GPU of Hopper's kind."""

import os

import numpy as np
import pytest

import floats
from runner import HOPPER, Files, execute, target

EXAMPLES = os.path.join(os.path.dirname(__file__), *[".."] * 2, "examples")
#: How tile-run runs; test_mma_sync.py has it be another target.
WHERE = HOPPER


def read_example(name):
    with open(os.path.join(EXAMPLES, "tensor-cores", f"{name}.mlir")) as file:
        return file.read()


def run(name, inputs, outputs, *arguments, change=lambda text: text):
    """Runs an example, whose text `change` may change, on arrays of bf16 values;
    returns `outputs`, pairs of name and element type, as float64, or the message of
    a refusal."""
    with Files() as files:
        options = files.inputs({key: ("bf16", value) for key, value in inputs.items()})
        options += [f"--output={key}={files.path(key)}" for key, _ in outputs]
        text = change(read_example(name))
        where = WHERE
        if any(argument.startswith("--target=") for argument in arguments):
            where = ("--emulate",)
        done = execute(text, *options, *where, *arguments)
        if done.returncode != 0:
            return done.stderr
        return [floats.decode(kind, files.load(key, kind)) for key, kind in outputs]


def check_product(m, n, k, *arguments):
    x = floats.random("bf16", (m, k), 1)
    w = floats.random("bf16", (n, k), 2)
    bias = floats.random("bf16", (n,), 3)
    inputs = {"x": x, "w": w, "bias": bias}
    (result,) = run("product", inputs, [("result0", "bf16")], *arguments)
    assert result.shape == (m, n)
    size = np.abs(x) @ np.abs(w).T + np.abs(bias)
    # A sum of k products in float32, whose additions the tensor cores cut off.
    parts = floats.parts_of_fair(
        "bf16", result, x @ w.T + bias, size, (k + 1) * 2.0**-23
    )
    assert parts.max(initial=0) <= 1


@pytest.mark.long(every=3)
@pytest.mark.parametrize(
    "m,n,k",
    (
        (1, 8, 8),
        (3, 264, 64),
        (127, 8, 72),
        (128, 256, 256),
        (129, 248, 320),
        (257, 520, 200),
        # Sums of nothing, which copies of boxes cannot take.
        (4, 8, 0),
        # Two bands of parts; every block takes eighteen parts.
        (8 * 256 + 1, 264, 16),
    ),
)
def test_product(m, n, k):
    check_product(m, n, k)


@pytest.mark.long(every=3)
@pytest.mark.parametrize(
    "m,n,k,gap",
    (
        (130, 264, 136, 8),
        # Rows end within the 16 bytes that threads move at once.
        (130, 261, 133, 3),
        (257, 125, 21, 11),
    ),
)
def test_product_of_rows_that_lie_apart(m, n, k, gap):
    check_product(m, n, k, f"--gap={gap}", "--offset=8")


# Rows and addresses that copies of 16 bytes cannot take, first with elements in
# pairs and then one by one.
@pytest.mark.long(every=3)
@pytest.mark.parametrize(
    "m,n,k,arguments",
    (
        (130, 12, 70, ()),
        (3, 13, 7, ("--gap=1", "--offset=2")),
        (131, 140, 34, ("--gap=2", "--offset=4")),
        (258, 131, 97, ()),
        (40, 136, 72, ("--gap=8", "--offset=1")),
        (33, 8, 40, ("--gap=1",)),
    ),
)
def test_product_of_any_alignment(m, n, k, arguments):
    check_product(m, n, k, *arguments)


@pytest.mark.parametrize("m,n", ((0, 8), (5, 0)))
def test_product_without_elements(m, n):
    check_product(m, n, 8)


def check_gated_product(m, n, k, *arguments):
    shapes = {"x": (m, k), "gate": (n, k), "up": (n, k), "gate_bias": n, "up_bias": n}
    inputs = {
        name: floats.random("bf16", shape, seed)
        for seed, (name, shape) in enumerate(shapes.items())
    }
    (result,) = run("gated_product", inputs, [("result0", "bf16")], *arguments)
    assert result.shape == (m, n)
    x, gate, up, gate_bias, up_bias = inputs.values()
    g, u = x @ gate.T + gate_bias, x @ up.T + up_bias
    sigmoid = 1 / (1 + np.exp(-g))
    # What the sums in float32 lose, times the slope of what is computed of them.
    lost = (k + 1) * 2.0**-23 * (np.abs(x) @ np.abs(gate).T + np.abs(gate_bias))
    slope = np.abs(sigmoid * (1 + g * (1 - sigmoid)))
    lost_up = (k + 1) * 2.0**-23 * (np.abs(x) @ np.abs(up).T + np.abs(up_bias))
    expected = g * sigmoid * u
    # The approximate power of 2 is of a product that is rounded by itself.
    rough = (4 + np.abs(g)) * 2.0**-22 * np.abs(expected)
    lost = slope * np.abs(u) * lost + np.abs(g * sigmoid) * lost_up + rough
    fair = 0.505 * floats.ulp("bf16", np.abs(expected) + lost) + lost
    assert (np.abs(result - expected) <= fair).all()


@pytest.mark.long(every=11)
@pytest.mark.parametrize(
    "m,n,k",
    (
        (1, 8, 8),
        (100, 136, 72),
        (257, 264, 200),
        (513, 8, 64),
        (4, 8, 0),
        (0, 8, 8),
        (5, 0, 8),
    ),
)
def test_gated_product(m, n, k):
    check_gated_product(m, n, k)


@pytest.mark.long(every=3)
@pytest.mark.parametrize(
    "m,n,k,arguments",
    (
        (130, 76, 38, ()),
        (259, 67, 45, ()),
        (5, 9, 15, ("--gap=1", "--offset=2")),
        (40, 72, 40, ("--gap=8", "--offset=1")),
    ),
)
def test_gated_product_of_any_alignment(m, n, k, arguments):
    check_gated_product(m, n, k, *arguments)


def split_product(m, n, k, part, *arguments):
    """The product of random operands whose k is cut into parts of `part`, and the
    operands."""
    x = floats.random("bf16", (m, k), 1)
    w = floats.random("bf16", (n, k), 2)
    (result,) = run(
        "split_product",
        {"x": x, "w": w},
        [("result0", "f32")],
        *arguments,
        change=lambda text: text.replace("2048", str(part)),
    )
    assert result.shape == (m, n)
    return result, x, w


def check_split_product(m, n, k, part, *arguments):
    result, x, w = split_product(m, n, k, part, *arguments)
    size = np.abs(x) @ np.abs(w).T
    assert (np.abs(result - x @ w.T) <= (k + 1) * 2.0**-23 * size).all()


@pytest.mark.long(every=3)
@pytest.mark.parametrize(
    "m,n,k,part",
    (
        (1, 1, 8, 2048),
        (37, 131, 2056, 2048),
        # Nothing divides the last part, of one step; y has an odd number of columns.
        (130, 257, 136, 128),
        (129, 5, 1096, 128),
        # As many programs of one tile as there are parts.
        (128, 128, 1024, 64),
        # Sums of nothing, which the second variant takes.
        (200, 3, 0, 128),
    ),
)
def test_split_product(m, n, k, part):
    check_split_product(m, n, k, part)


def test_split_product_of_rows_that_lie_apart():
    check_split_product(130, 136, 392, 128, "--gap=8", "--offset=8")


@pytest.mark.parametrize("k,arguments", ((390, ()), (261, ("--offset=1",))))
def test_split_product_of_any_alignment(k, arguments):
    check_split_product(130, 37, k, 128, *arguments)


@pytest.mark.long(every=3)
@pytest.mark.skipif(target() != "host", reason="other GPUs do not run this one's code")
@pytest.mark.parametrize("m,n,k", ((130, 257, 136), (5, 3, 520), (4, 8, 0)))
def test_split_product_on_other_gpus(m, n, k):
    check_split_product(m, n, k, 128, "--target=sm_80")


@pytest.mark.parametrize("m,n", ((0, 8), (5, 0)))
def test_split_product_without_elements(m, n):
    check_split_product(m, n, 256, 128)


def test_parts_of_a_split_product_are_added_in_order():
    """Each part adds 2^24 or 1 by turns, and 1 is lost beside the larger number: the
    sum says in which order they came."""
    parts, part = 6, 64
    x = np.zeros((3, parts * part))
    x[:, ::part] = np.array([1, 2.0**24, 1, 1, -(2.0**24), 1])
    w = np.ones((2, parts * part))
    (result,) = run(
        "split_product",
        {"x": x, "w": w},
        [("result0", "f32")],
        change=lambda text: text.replace("2048", str(part)),
    )
    expected = np.float32(0)
    for value in x[0, ::part].astype(np.float32):
        expected = np.float32(expected + value)
    assert expected == 1
    assert (result == expected).all()


def attend(q, k, v):
    """The result of causal attention, its log-sum-exp, and the sums of the
    absolute values of the result's terms. The last query sees all keys."""
    groups = q.shape[1] // k.shape[1]
    k, v = (np.repeat(operand, groups, axis=1) for operand in (k, v))
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    queries, keys = scores.shape[-2:]
    seen = np.arange(keys) <= np.arange(queries)[:, None] + keys - queries
    scores = np.where(seen, scores, -np.inf)
    largest = scores.max(axis=-1, keepdims=True)
    largest = np.where(np.isinf(largest), 0, largest)
    powers = np.exp(scores - largest)
    total = powers.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore"):
        lse = np.log(total) + largest
    weights = powers / np.where(total == 0, 1, total)
    return weights @ v, lse, weights @ np.abs(v)


def check_flash(batch, heads, groups, queries, keys, size, *arguments):
    q = floats.random("bf16", (batch, heads, queries, size), 1)
    k = floats.random("bf16", (batch, groups, keys, size), 2)
    v = floats.random("bf16", (batch, groups, keys, size), 3)
    result, lse = run(
        f"flash_{size}",
        {"q": q, "k": k, "v": v},
        [("result0", "bf16"), ("result1", "f32")],
        *arguments,
    )
    expected, expected_lse, terms = attend(q, k, v)
    assert result.shape == expected.shape
    # Powers are rounded to bf16 for the second product, by 2^-8 at most; the sum,
    # perhaps beyond a power of two then, by half a unit.
    lost = 1.01 * 2.0**-8 * terms
    fair = lost + 0.505 * floats.ulp("bf16", np.abs(expected) + lost)
    assert (np.abs(result - expected) <= fair).all()
    # A row that sees no key.
    is_empty = np.isinf(expected_lse)
    assert np.array_equal(np.isneginf(lse), is_empty)
    assert not result[np.broadcast_to(is_empty, result.shape)].any()
    errors = np.abs(lse[~is_empty] - expected_lse[~is_empty])
    largest = np.abs(expected_lse[~is_empty]).max(initial=1)
    assert errors.max(initial=0) <= 2e-6 * largest


@pytest.mark.long(every=11)
@pytest.mark.parametrize("size", (64, 128))
@pytest.mark.parametrize(
    "batch,heads,groups,queries,keys",
    (
        (1, 1, 1, 1, 1),
        # One query of a decoder, whose heads share their keys.
        (2, 4, 2, 1, 259),
        (2, 3, 1, 129, 129),
        (1, 2, 2, 100, 333),
        # The last part of queries begins within the keys' first part.
        (1, 1, 1, 257, 511),
        # Most rows see nothing, whole parts of them among these.
        (1, 2, 1, 300, 70),
    ),
)
def test_flash(batch, heads, groups, queries, keys, size):
    check_flash(batch, heads, groups, queries, keys, size)


def test_flash_of_rows_that_lie_apart():
    check_flash(1, 2, 1, 70, 130, 64, "--gap=8", "--offset=8")


@pytest.mark.long(every=3)
@pytest.mark.parametrize("size", (64, 128))
@pytest.mark.parametrize("arguments", (("--gap=2", "--offset=4"), ("--offset=1",)))
def test_flash_of_any_alignment(size, arguments):
    check_flash(1, 2, 1, 133, 70, size, *arguments)


def test_flash_without_queries():
    check_flash(1, 2, 1, 0, 130, 64)


def test_flash_of_equal_scores():
    """Each query's result is the mean of the values that it sees."""
    queries = keys = 200
    q = np.zeros((1, 1, queries, 128))
    k = floats.random("bf16", (1, 1, keys, 128), 1)
    v = np.repeat(np.arange(keys) % 128, 128).reshape(1, 1, keys, 128)
    outputs = [("result0", "bf16"), ("result1", "f32")]
    result, lse = run("flash_128", {"q": q, "k": k, "v": v}, outputs)
    seen = np.arange(1, keys + 1)[:, None]
    expected = np.cumsum(v, axis=2) / seen
    assert floats.ulp_errors("bf16", result, expected).max() <= 0.51
    # The GPU's approximate logarithm is exact to some units.
    assert np.abs(lse - np.log(seen)).max() <= 3e-6

# RUN: %pytest %s
"""The gradients of the model ops against formulas derived by hand."""

import numpy as np
import pytest

import floats
from bounds import assert_within, check_gradients
from cases import CASES, REDUCTIONS
from runner import run, run_backward, target


def make(case, rows, length, kind):
    """Random inputs, and gradients of the results."""
    values = case.values(rows, length, kind)
    cotangents = [
        floats.random(kind, (rows, length), 7 * length + i)
        for i in range(len(case.results))
    ]
    return values, cotangents


def short():
    for name in CASES:
        for length in (1, 2, 7, 33):
            if length in (1, 33) or name in REDUCTIONS:
                yield name, length


@pytest.mark.parametrize("name,length", short())
def test_together(name, length):
    """In float64, with the result, which is a sum of products with what then is
    the gradient."""
    case = CASES[name]
    values, cotangents = make(case, 3, length, "f64")
    weights = {f"grad_result{i}": dy for i, dy in enumerate(cotangents)}
    result, *got = run(
        case.source(length, "f64", weighted=True),
        {one: ("f64", array) for one, array in {**values, **weights}.items()},
        {one: "f64" for one in ["result0", *("grad_" + one for one in values)]},
        "--value-and-grad=" + ",".join(values),
    )
    products = [
        dy * y for dy, y in zip(cotangents, case.expected(values, "f64"))
    ]
    size = 1 + sum(map(np.abs, products))
    assert_within("f64", result, sum(products), size, "result")
    check_gradients(case, dict(zip(values, got)), cotangents, values, "f64")


LENGTHS = {
    "f32": (1, 31, 128),
    "bf16": (2, 33, 2880, 16384),
    "f16": (33,),
}
# Those that differ from others in more than attributes.
MAIN = ("rms_norm", "add_rms_norm", "layer_norm", "softmax", "log_softmax")
# What takes long to compile, once for each way of reducing.
LONG = {"layer_norm": 4097, "rms_norm": 65537, "softmax": 65537}


def grid():
    for name in MAIN:
        for kind, lengths in LENGTHS.items():
            for length in lengths:
                yield name, kind, 127 if length <= 2880 else 3, length
    for name, length in LONG.items():
        yield name, "f32", 3, length
    for name in CASES:
        yield name, "bf16", 127, 160
        yield name, "f32", 3, 33
    # No rows, and one.
    for name in ("geglu", "add_bias", "layer_norm", "add_rms_norm"):
        yield name, "bf16", 0, 33
        yield name, "f32", 1, 128


@pytest.mark.parametrize("name,kind,rows,length", grid())
def test_backward(name, kind, rows, length):
    """The results, and the gradients that another function computes later from
    what the first one saved."""
    case = CASES[name]
    values, cotangents = make(case, rows, length, kind)
    kinds = case.kinds(kind)
    results, got = run_backward(
        case.source(length, kind),
        {one: (kinds[one], array) for one, array in values.items()},
        {f"grad_result{i}": (kind, dy) for i, dy in enumerate(cotangents)},
        [kind] * len(cotangents),
        kinds,
    )
    for result, expected in zip(results, case.expected(values, kind)):
        is_shifted = name in REDUCTIONS and name != "softmax"
        size = np.abs(expected) + is_shifted
        lost = kind if case.seen else None
        assert_within(kind, result, expected, size, "result", lost)
    check_gradients(case, got, cotangents, values, kind)


HOST = (
    "rows=2,columns=64,vector=4",
    "vector=1,columns=1",
    "rows=3,columns=256,persistent=1",
)
GPU = (
    "rows=1,threads=32,vector=1,columns=32",
    "rows=2,threads=64,vector=4,columns=256,persistent=2",
    "threads=128,persistent=1",
)


@pytest.mark.parametrize("schedule", HOST if target() == "host" else GPU)
@pytest.mark.parametrize(
    "name",
    (
        "rms_norm",
        "layer_norm",
        "softmax",
        "geglu, interleaved, bias",
    ),
)
def test_schedule(name, schedule):
    """Rows walked in one or several passes, and summed by few programs."""
    case = CASES[name]
    values, cotangents = make(case, 31, 160, "f32")
    kinds = case.kinds("f32")
    _, got = run_backward(
        case.source(160, "f32"),
        {one: ("f32", array) for one, array in values.items()},
        {"grad_result0": ("f32", cotangents[0])},
        ["f32"],
        kinds,
        f"--schedule={schedule}",
    )
    check_gradients(case, got, cotangents, values, "f32")


def run_in_place(name, length, only=None):
    """Gradients of the inputs that are `only`, or of all, in their memory."""
    case = CASES[name]
    values, cotangents = make(case, 7, length, "bf16")
    kinds = case.kinds("bf16")
    inputs = {one: (kinds[one], array) for one, array in values.items()}
    for i, dy in enumerate(cotangents):
        inputs[f"grad_result{i}"] = "bf16", dy
    names = [one for one, what in case.inputs.items() if only in (None, what)]
    got = run(
        case.source(length, "bf16", weighted=True),
        inputs,
        {"grad_" + one: kinds[one] for one in names},
        "--value-and-grad=" + ",".join(names),
        "--in-place",
    )
    got = dict(zip(names, got))
    check_gradients(case, got, cotangents, values, "bf16")


@pytest.mark.parametrize("name", CASES)
def test_in_place(name):
    inputs = CASES[name].inputs.values()
    run_in_place(name, 160, "wide" if "wide" in inputs else "row")


WITH_VECTORS = [
    name for name, case in CASES.items() if "vector" in case.inputs.values()
]


@pytest.mark.xfail(reason="the gradient of a vector is allowed its memory")
@pytest.mark.parametrize("name", WITH_VECTORS)
def test_vectors_beside_in_place(name):
    """A gradient that sums rows has memory of its own."""
    run_in_place(name, 33)

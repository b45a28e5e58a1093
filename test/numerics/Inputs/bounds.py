# Part of Bastile, under the MIT License. See LICENSE.
"""Whether gradients are as near to their formulas as can be asked of them."""

import numpy as np

import floats
from cases import CASES, REDUCTIONS, make
from runner import run_backward

# Roundings of the type computed in, each of the size of a gradient's terms: the
# exponential turns the rounding of its argument, which reaches some thirty, into
# as many roundings of the result, and sums of tens of thousands lose some.
UNITS = 64


def assert_within(kind, got, expected, size, what, lost=None):
    """`size` is the sum of the absolute values of what each element is the sum
    of; `lost` a narrow type that a factor of these was rounded to."""
    got = floats.decode(kind, got)
    assert got.shape == expected.shape, what
    if expected.size == 0:
        return
    relative = UNITS * floats.ulp("f64" if kind == "f64" else "f32", 0.5)
    if lost in floats.NARROW:
        relative += floats.ulp(lost, 0.5)
    parts = floats.parts_of_fair(kind, got, expected, size, relative)
    parts[np.isnan(parts)] = np.inf
    worst = np.unravel_index(np.argmax(parts), parts.shape)
    assert parts[worst] <= 1, (
        what,
        parts[worst],
        worst,
        got[worst],
        expected[worst],
    )


def check_gradients(case, got, cotangents, values, kind):
    """Compares some gradients of a case with its formulas."""
    expected = case.gradients(cotangents, values, kind)
    kinds = case.kinds(kind)
    for name, array in got.items():
        gradient, size = expected[name]
        lost = kind if name in case.seen else None
        assert_within(kinds[name], array, gradient, size, name, lost)


def check_backward(name, kind, rows, length):
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

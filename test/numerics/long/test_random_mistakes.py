# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""Mistakes that the test of random graphs must not miss: a text that differs
from the reference in one place is compiled in its place."""

import itertools
import re

import pytest

from batch import Batch, Case, Options

COUNT = 8


def _operands(op):
    return (
        rf"  %(?P<name>v\d+) = {op} %(?P<x>\w+)(?:, %(?P<y>\w+))? : "
        r"(?P<type>tensor<\S+xf(?:32|64)>)$"
    )


def another_op(match):
    return [match.string.replace("arith.addf", "arith.subf")]


def rounding(match):
    """To half of the bits and back."""
    name, kind = match["name"], match["type"]
    narrow = kind.replace("f32>", "f16>").replace("f64>", "f32>")
    return [
        match.string.replace(f"%{name} =", f"%{name}p ="),
        f"  %{name}q = arith.truncf %{name}p : {kind} to {narrow}",
        f"  %{name} = arith.extf %{name}q : {narrow} to {kind}",
    ]


def lost_gradient(match):
    name, kind = match["name"], match["type"]
    operation, operands = match.string.split(" %", 2)[1:]
    return [
        f"  %{name}p = tile.stop_gradient %{match['x']} : {kind}",
        f"  %{operation} %" + operands.replace(match["x"], name + "p", 1),
    ]


def first_of_equal(match):
    """Gives all of the gradient to one of two equal numbers."""
    name, x, y, kind = (match[key] for key in ("name", "x", "y", "type"))
    condition = re.sub(r"f\d+>", "i1>", kind)
    return [
        f"  %{name}p = arith.cmpf oge, %{x}, %{y} : {kind}",
        f"  %{name} = arith.select %{name}p, %{x}, %{y} : {condition}, {kind}",
    ]


def at_the_corner(match):
    return [match.string.replace("cmpf oge", "cmpf ogt")]


def pieces_swapped(match):
    return [match.string.replace(match[0], f"  {match['y']}, {match['x']}", 1)]


def next_column(match):
    column = int(match["column"])
    return [match.string.replace(f"constant {column}", f"constant {column + 1}")]


def another_sum(match):
    return [match.string.replace(" add ", " max ")]


def _has_ties(case, match):
    x, y = (known(case).get(match[key]) for key in ("x", "y"))
    is_number = y is None
    return not is_number and x is not y and (x.value == y.value).any()


def _is_at_corner(case, match):
    x = known(case)[match["x"]]
    y = known(case).get(match["y"])
    number = re.search(
        rf"%{match['y']}n? = arith.constant (?:dense<)?([-\d.]+)", case.text
    )
    other = float(number[1]) if number else y.value
    return (x.value == other).any()


def known(case):
    if not hasattr(case, "known"):
        case.known = case.graph.evaluate(case.values)
    return case.known


# A line with the mistake's place, what stands there then, where that differs,
# and how many of eight texts must fail: in the others, no result depends on the
# mistake, or only after a rounding.
MISTAKES = {
    "another op": (_operands("arith.addf"), another_op, None, 6),
    "rounding": (
        _operands(r"(?:math.tanh|math.exp|math.log|arith.divf)"),
        rounding,
        None,
        4,
    ),
    "lost gradient": (
        _operands(r"(?:arith.mulf|math.tanh|math.exp)"),
        lost_gradient,
        None,
        4,
    ),
    "tie": (_operands("arith.maximumf"), first_of_equal, _has_ties, 4),
    "corner": (
        r"  %\w+ = arith.cmpf oge, %(?P<x>\w+), %(?P<y>\w+) : \S+$",
        at_the_corner,
        _is_at_corner,
        3,
    ),
    "pieces": (
        r"  (?P<x>%\w+), (?P<y>%\w+)(?=(?:, %\w+)* = tile.split)",
        pieces_swapped,
        None,
        4,
    ),
    "column": (
        r"  %\w+ = arith.constant (?P<column>\d+) : i32$",
        next_column,
        None,
        3,
    ),
    "sum": (r"  %\w+ = tile.reduce(?:_rows)? add .*$", another_sum, None, 4),
}


def plant(case, pattern, replace, differs):
    """Changes the last place in the case's text; says whether there is one."""
    lines = case.text.splitlines()
    for i in reversed(range(len(lines))):
        match = re.match(pattern, lines[i])
        if match and (differs is None or differs(case, match)):
            lines[i : i + 1] = replace(match)
            case.text = "\n".join(lines) + "\n"
            return True
    return False


def check(case):
    """Whether a mistake is noticed; None where the compiler refuses the text."""
    problems, _, _ = Batch([case], Options(firstVariants=True)).check()
    if any(text.startswith("refused") for text in problems.values()):
        return None
    return any("are wrong" in text for text in problems.values())


@pytest.mark.parametrize("mistake", MISTAKES)
def test_is_noticed(mistake):
    pattern, replace, differs, least = MISTAKES[mistake]
    results = (
        check(case)
        for case in (Case(seed, seed % 2 == 1) for seed in itertools.count(1000))
        if plant(case, pattern, replace, differs)
    )
    compiled = (noticed for noticed in results if noticed is not None)
    assert sum(itertools.islice(compiled, COUNT)) >= least

# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""Sums that follow a maximum: a loop along a long row scales them as it finds larger
numbers. They are those of the formula, also in rows whose maximum is no number."""

import numpy as np
import pytest

from runner import Files, emit, execute, target

LENGTH = 1336
ROW = f"tensor<?x{LENGTH}xf32>"
ONE = "tensor<?x1xf32>"
CONDITIONS = f"tensor<?x{LENGTH}xi1>"
HALF = f"tensor<?x{LENGTH}xbf16>"

# Each has a loop, in which a thread meets several tiles and the last one is cut off.
SCHEDULES = (
    "rows=1,threads=64,columns=256,vector=4",
    "rows=2,threads=64,columns=128,vector=2,persistent=1",
    "rows=1,cluster=2,threads=32,columns=512,vector=4",
)


def wide(statistic):
    return f"tile.broadcast {statistic} like %x : {ONE}, {ROW} -> {ROW}"


def number(name, value):
    return [
        f"%{name}_one = arith.constant {value} : f32",
        f"%{name} = tile.broadcast %{name}_one like %x : f32, {ROW} -> {ROW}",
    ]


def powers(x="%x", sink=None):
    """The lines that compute exp(x - m) as %e, and its sum as %l."""
    larger = [f"%m = arith.maximumf %max, {sink} : {ONE}"] if sink else []
    return [
        f"%max = tile.reduce max {x} : {ROW} -> {ONE}",
        *larger,
        f"%ms = {wide('%m' if sink else '%max')}",
        f"%d = arith.subf {x}, %ms : {ROW}",
        f"%e = math.exp %d : {ROW}",
        f"%l = tile.reduce add %e : {ROW} -> {ONE}",
    ]


RECIPROCAL = [
    "%unit = arith.constant 1.0 : f32",
    f"%ones = tile.broadcast %unit like %max : f32, {ONE} -> {ONE}",
    f"%r = arith.divf %ones, %l : {ONE}",
    f"%rs = {wide('%r')}",
    f"%p = arith.mulf %e, %rs : {ROW}",
]
QUOTIENT = [f"%ls = {wide('%l')}", f"%p = arith.divf %e, %ls : {ROW}"]
WEIGHTED = [f"%t = arith.mulf %p, %w : {ROW}"]
CONDITION = [*number("zero", 0.0), f"%c = arith.cmpf ogt, %v, %zero : {ROW}"]
MASKED_X = [
    *CONDITION,
    *number("none", "0xFF800000"),
    f"%y = arith.select %c, %x, %none : {CONDITIONS}, {ROW}",
    f"%max = tile.reduce max %y : {ROW} -> {ONE}",
    f"%ms = {wide('%max')}",
    f"%d = arith.subf %x, %ms : {ROW}",
    f"%e0 = math.exp %d : {ROW}",
    f"%e = arith.select %c, %e0, %zero : {CONDITIONS}, {ROW}",
    f"%l = tile.reduce add %e : {ROW} -> {ONE}",
]


def shares_with(sink):
    """The lines that compute exp(x - m) / l as %p, where the sink has a share, too."""
    return [
        *powers(sink=sink),
        f"%sd = arith.subf {sink}, %m : {ONE}",
        f"%se = math.exp %sd : {ONE}",
        f"%whole = arith.addf %l, %se : {ONE}",
        f"%ls = {wide('%whole')}",
        f"%p = arith.divf %e, %ls : {ROW}",
    ]


# The lines that compute the terms %t, and how many sweeps their sum takes.
FORMULAS = {
    "weighted": ([*powers(), f"%t = arith.mulf %w, %e : {ROW}"], 1),
    "difference": (
        [
            *powers(),
            f"%a = arith.mulf %w, %e : {ROW}",
            f"%b = arith.divf %e, %v : {ROW}",
            f"%t = arith.subf %a, %b : {ROW}",
        ],
        1,
    ),
    "narrow_weights": (
        [
            f"%h = arith.truncf %w : {ROW} to {HALF}",
            f"%g = arith.extf %h : {HALF} to {ROW}",
            *powers(),
            f"%n = arith.negf %e : {ROW}",
            f"%t = arith.mulf %n, %g : {ROW}",
        ],
        1,
    ),
    "chosen": (
        [
            *CONDITION,
            *powers(),
            f"%t = arith.select %c, %e, %zero : {CONDITIONS}, {ROW}",
        ],
        1,
    ),
    "left_out": (
        [
            *CONDITION,
            *powers(),
            f"%a = arith.mulf %w, %e : {ROW}",
            f"%t = arith.select %c, %zero, %a : {CONDITIONS}, {ROW}",
        ],
        1,
    ),
    "capped": (
        [
            *number("cap", 30.0),
            f"%q = arith.divf %x, %cap : {ROW}",
            f"%h = math.tanh %q : {ROW}",
            f"%z = arith.mulf %h, %cap : {ROW}",
            *powers("%z"),
            *QUOTIENT,
            *WEIGHTED,
        ],
        1,
    ),
    "quotient": ([*powers(), *QUOTIENT, *WEIGHTED], 1),
    "product": ([*powers(), *RECIPROCAL, *WEIGHTED], 1),
    "logarithm": (
        [
            *powers(),
            f"%log = math.log %l : {ONE}",
            f"%logs = {wide('%log')}",
            f"%dl = arith.subf %d, %logs : {ROW}",
            f"%p = math.exp %dl : {ROW}",
            *WEIGHTED,
        ],
        1,
    ),
    "lse": (
        [
            *powers(),
            f"%log = math.log %l : {ONE}",
            f"%lse = arith.addf %max, %log : {ONE}",
            f"%lses = {wide('%lse')}",
            f"%dl = arith.subf %x, %lses : {ROW}",
            f"%p = math.exp %dl : {ROW}",
            *WEIGHTED,
        ],
        1,
    ),
    "sink": ([*shares_with("%s"), *WEIGHTED], 1),
    "sink_alone": ([*powers(sink="%s"), f"%t = arith.negf %e : {ROW}"], 1),
    "masked": ([*MASKED_X, *QUOTIENT, *WEIGHTED], 1),
    "masked_weights": (
        [
            *MASKED_X,
            f"%q = arith.mulf %e, %w : {ROW}",
            f"%t = arith.select %c, %q, %zero : {CONDITIONS}, {ROW}",
        ],
        1,
    ),
    "chosen_both_ways": (
        [
            *CONDITION,
            *powers(),
            *QUOTIENT,
            f"%a = arith.select %c, %p, %zero : {CONDITIONS}, {ROW}",
            f"%b = arith.select %c, %zero, %e : {CONDITIONS}, {ROW}",
            f"%ls2 = {wide('%l')}",
            f"%bl = arith.divf %b, %ls2 : {ROW}",
            f"%bw = arith.mulf %bl, %w : {ROW}",
            f"%t = arith.subf %a, %bw : {ROW}",
        ],
        1,
    ),
    "chosen_share": (
        [
            *CONDITION,
            *powers(),
            *QUOTIENT,
            f"%a = arith.mulf %p, %w : {ROW}",
            f"%t = arith.select %c, %a, %zero : {CONDITIONS}, {ROW}",
        ],
        1,
    ),
    "sink_of_zero": (
        [
            "%never = arith.constant 0.0 : f32",
            f"%none = tile.broadcast %never like %s : f32, {ONE} -> {ONE}",
            *shares_with("%none"),
            *WEIGHTED,
        ],
        1,
    ),
    # What follows nothing, as it is not linear or its coefficients wait for m.
    "square": ([*powers(), f"%t = arith.mulf %e, %e : {ROW}"], 2),
    "entropy": ([*powers(), f"%t = arith.mulf %e, %d : {ROW}"], 2),
    "condition_of_maximum": (
        [
            *number("zero", 0.0),
            *powers(),
            f"%c = arith.cmpf oeq, %x, %ms : {ROW}",
            f"%t = arith.select %c, %e, %zero : {CONDITIONS}, {ROW}",
        ],
        2,
    ),
    "rounded": (
        [
            *powers(),
            f"%h = arith.truncf %e : {ROW} to {HALF}",
            f"%p = arith.extf %h : {HALF} to {ROW}",
            *WEIGHTED,
        ],
        2,
    ),
    "centered": (
        [
            *powers(),
            *QUOTIENT,
            f"%mean = tile.reduce add %p : {ROW} -> {ONE}",
            f"%means = {wide('%mean')}",
            f"%a = arith.subf %w, %means : {ROW}",
            f"%t = arith.mulf %p, %a : {ROW}",
        ],
        2,
    ),
    "masked_twice": (
        [
            *MASKED_X,
            *QUOTIENT,
            f"%t = arith.select %c, %p, %zero : {CONDITIONS}, {ROW}",
        ],
        2,
    ),
    "mixed": ([*powers(), *QUOTIENT, f"%t = arith.addf %p, %e : {ROW}"], 2),
    "other_maximum": (
        [
            *powers(),
            f"%dv = arith.subf %w, %ms : {ROW}",
            f"%t = math.exp %dv : {ROW}",
        ],
        2,
    ),
}


def get_source(lines):
    body = "\n".join(
        ["  " + line for line in lines]
        + [f"  %sum = tile.reduce add %t : {ROW} -> {ONE}"]
    )
    return f"""
func.func @f(%x: {ROW}, %w: {ROW}, %v: {ROW}, %s: {ONE}) -> ({ONE}, {ONE}) {{
{body}
  return %sum, %l : {ONE}, {ONE}
}}
"""


def get_operands():
    """Rows of numbers of all kinds. %v, whose sign says which terms count, is never 0;
    %s is larger and smaller than the row's largest number."""
    random = np.random.default_rng(1)
    kinds = []

    def add(x=None, w=None, v=None, s=0.0):
        row = [random.normal(size=LENGTH) * 3, random.normal(size=LENGTH)]
        signs = random.choice([-1.0, 1.0], LENGTH)
        row.append(signs * random.uniform(0.5, 2, LENGTH))
        for numbers, change in zip(row, (x, w, v)):
            if change:
                change(numbers)
        kinds.append((*row, s))

    def put(values, where=slice(None)):
        def change(numbers):
            numbers[where] = values

        return change

    def scale(factor, offset=0.0):
        def change(numbers):
            numbers *= factor
            numbers += offset

        return change

    rise = put(np.linspace(-200, 200, LENGTH))
    nan, inf = np.nan, np.inf
    add()
    add(s=100.0)
    add(s=-100.0)
    add(s=inf)
    add(s=-inf)
    add(x=rise)
    add(x=put(np.linspace(200, -200, LENGTH)))
    add(x=scale(1e3, 1e4), s=1e4)
    add(x=scale(1e37))
    add(x=scale(1e-30))
    add(x=put(2.0), w=put(3e38), s=-inf)
    add(x=put(2.0), w=put(np.linspace(1e37, 1e38, LENGTH)), s=3.0)
    add(x=rise, w=put(5e37))
    add(w=scale(1e-25))
    add(w=put(inf, slice(5, 6)))
    add(w=put(nan, slice(5, 6)))
    add(x=put(-inf, slice(0, 900)))
    add(x=put(-inf, slice(3, None)))
    for sink in (-inf, 0.0, inf, nan):
        add(x=put(-inf), s=sink)
    add(x=put(-inf), v=put(-1.0))
    add(x=put(-inf), v=put(1.0))
    add(x=put(inf, slice(700, 701)))
    add(x=put(inf, slice(700, 701)), v=put(-1.0, slice(700, 701)))
    add(x=put(inf, slice(700, 701)), v=put(1.0, slice(700, 701)))
    add(x=put(inf))
    add(x=put(nan, slice(3, 4)), v=put(-1.0))
    add(x=put(nan, slice(3, 4)), v=put(1.0))
    add(x=put(nan, slice(LENGTH - 1, None)))
    add(v=put(-1.0))
    add(v=put(1.0))
    x, w, v, s = (np.stack(numbers) for numbers in zip(*kinds))
    names = {"x": x, "w": w, "v": v, "s": s[:, None]}
    return {
        name: ("f32", numbers.astype(np.float32)) for name, numbers in names.items()
    }


def count_sweeps(source, schedule):
    text = emit(source, "tiled", f"--schedule={schedule}", "--target=sm_90")
    first = text.split("tile.program @")[1]
    return first.count("scf.for") - ("persistent" in schedule)


@pytest.mark.long(every=17)
@pytest.mark.parametrize("formula", FORMULAS)
def test_sums(formula):
    lines, sweeps = FORMULAS[formula]
    source = get_source(lines)
    for schedule in SCHEDULES:
        assert count_sweeps(source, schedule) == sweeps
        with Files() as files:
            options = files.inputs(get_operands())
            where = [] if target() == "gpu" else ["--emulate"]
            done = execute(
                source, "--check", f"--schedule={schedule}", *where, *options
            )
        assert done.returncode == 0, done.stderr + done.stdout


@pytest.mark.long(every=3)
@pytest.mark.parametrize("formula", ("weighted", "quotient", "lse", "sink", "masked"))
def test_gradients(formula):
    """The gradients together with the value, and those of the backward alone."""
    source = get_source(FORMULAS[formula][0])
    where = [] if target() == "gpu" else ["--emulate"]
    for flag in ("--value-and-grad=x,w,s", "--grad=x,w,s"):
        for schedule in SCHEDULES:
            done = execute(
                source, "--check", "--rows=5", f"--schedule={schedule}", flag, *where
            )
            assert done.returncode == 0, done.stderr + done.stdout

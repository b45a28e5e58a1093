# Part of Bastile, under the MIT License. See LICENSE.
"""Which random graphs are run, and how they are compiled.

BASTILE_RANDOM_GRAPHS sets how many, BASTILE_RANDOM_GRAPHS_FIRST the seed of the first
(docs/testing.md)."""

import concurrent.futures
import functools
import os
import re

import graphs
from batch import Batch, Case, Options
from runner import target

COUNT = int(os.environ.get("BASTILE_RANDOM_GRAPHS", "48"))
FIRST = int(os.environ.get("BASTILE_RANDOM_GRAPHS_FIRST", "0"))
CHUNK = 10

HOST = (
    "",
    "rows=1,threads=1,vector=1,columns=4",
    "rows=4,columns=16",
    "rows=3,columns=32",
    "columns=16,persistent=1",
    "rows=2,vector=1,columns=8,persistent=2",
    "vector=1,columns=1",
)
GPU = (
    "",
    "threads=128",
    "rows=1,threads=32,vector=1,columns=32",
    "rows=4,threads=64,columns=256",
    "persistent=1",
    "rows=2,threads=64,vector=1,columns=64,persistent=2",
)
SOME = ("x0", "w1", "x2", "c3")

# The refusals of the compiler that are allowed. A pinned schedule may be one that
# groups do not allow, or a tile too large for a graph of many functions.
REFUSED = (
    r"pieces of rows .* do not fit the other pieces they are computed with",
    r"needs whole rows .* which are split",
    r"chains of different row lengths that need each other's values both ways",
    r"do not divide into groups",
    r"vectors is more than the \d+ that the host unrolls",
    # This is a function of constants alone, whose row no argument has.
    r"depends on no row tensor among the arguments",
)


def options_of(number, fits_first):
    """Of the chunk of that number: some are of float64, some emulated, some
    functions return their gradients, and some have not all of them. Operands fit the
    first variant of each kernel if ``fits_first``."""
    on_host = target() == "host"
    is_double = on_host and number % 10 == 9
    is_emulated = on_host and not is_double and number % 3 == 1
    schedules = HOST if on_host and not is_emulated else GPU
    others = {"emulate": True} if is_emulated else {"threads": 1 + number % 4}
    if number % 4 == 3:
        others["together"] = True
    if number % 2 and fits_first:
        others["firstVariants"] = True
    return is_double, Options(
        target="sm_90" if is_emulated else target(),
        schedule=schedules[number // 3 % len(schedules)],
        gradients=SOME if number % 5 == 2 else ("all",),
        **others,
    )


def is_refused(message):
    return message.startswith("refused") and any(
        re.search(pattern, message) for pattern in REFUSED
    )


def seeds_of(number):
    return range(number * CHUNK, (number + 1) * CHUNK)


def check_chunk(generate, end, number):
    """Of the graphs whose seeds are below `end`: what is wrong, how many functions
    were refused, and how many numbers there were and were checked."""
    # The rows of factors have any length, and so any alignment.
    is_double, options = options_of(number, generate is graphs.generate)
    cases = [
        Case(seed, is_double, generate)
        for seed in seeds_of(number)
        if FIRST <= seed < end
    ]
    empty = [case for case in cases if not case.graph.needs_rows][::2]
    problems, count, checked = Batch(cases, options, empty).check()
    refused = [name for name, text in problems.items() if is_refused(text)]
    for name in refused:
        del problems[name]
    return problems, len(refused), count, checked


def check_graphs(generate=graphs.generate, count=COUNT):
    """Checks the graphs that `generate` makes of `count` seeds."""
    end = FIRST + count
    numbers = range(FIRST // CHUNK, (end - 1) // CHUNK + 1)
    check = functools.partial(check_chunk, generate, end)
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        results = list(pool.map(check, numbers))
    problems = {k: v for result in results for k, v in result[0].items()}
    assert not problems, "\n".join(f"{k}: {v}" for k, v in problems.items())
    refused, elements, checked = (sum(x[i] for x in results) for i in (1, 2, 3))
    if count < 100:
        return
    # Functions that are refused, and numbers without digits, are not tested.
    assert refused <= 0.05 * count
    assert checked >= 0.95 * elements

# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""Random functions with their gradients, under several schedules, on the host
and as a GPU's code on an emulator; on a GPU where the tests run on one.

BASTILE_RANDOM_GRAPHS sets how many, BASTILE_RANDOM_GRAPHS_FIRST the seed of the
first (docs/testing.md). A function takes a core a fifth of a second."""

import concurrent.futures
import copy
import os
import re
import subprocess

import numpy as np
import pytest

from batch import Batch, Case, Options
from runner import find_tool, target

COUNT = int(os.environ.get("BASTILE_RANDOM_GRAPHS", "300"))
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


def options_of(number):
    """Of the chunk of that number: some are of float64, some emulated, some
    functions return their gradients, and some have not all of them."""
    on_host = target() == "host"
    is_double = on_host and number % 10 == 9
    is_emulated = on_host and not is_double and number % 3 == 1
    schedules = HOST if on_host and not is_emulated else GPU
    others = {"emulate": True} if is_emulated else {"threads": 1 + number % 4}
    if number % 4 == 3:
        others["together"] = True
    if number % 2:
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


def check_chunk(number):
    """What is wrong, how many functions were refused, and how many numbers
    there were and were checked."""
    is_double, options = options_of(number)
    cases = [
        Case(seed, is_double)
        for seed in seeds_of(number)
        if FIRST <= seed < FIRST + COUNT
    ]
    empty = [case for case in cases if not case.graph.needs_rows][::2]
    problems, count, checked = Batch(cases, options, empty).check()
    refused = [name for name, text in problems.items() if is_refused(text)]
    for name in refused:
        del problems[name]
    return problems, len(refused), count, checked


def test_random_graphs():
    numbers = range(FIRST // CHUNK, (FIRST + COUNT - 1) // CHUNK + 1)
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        results = list(pool.map(check_chunk, numbers))
    problems = {k: v for result in results for k, v in result[0].items()}
    assert not problems, "\n".join(f"{k}: {v}" for k, v in problems.items())
    refused, count, checked = (sum(x[i] for x in results) for i in (1, 2, 3))
    if COUNT < 100:
        return
    # Functions that are refused, and numbers without digits, are not tested.
    assert refused <= 0.05 * COUNT
    assert checked >= 0.95 * count


def returned(case, options, folder):
    """The contents of all files that a call writes, None if it is refused."""
    folder.mkdir()
    answer = Batch([case], options).run(str(folder))
    if isinstance(answer, str):
        assert is_refused(answer), answer
        return None
    assert not any(answer.values()), answer
    return {path.name: np.load(path) for path in folder.glob("*.npy")}


def assert_same(first, second):
    for name, array in second.items():
        assert array.tobytes() == first[name].tobytes(), name


@pytest.mark.parametrize("seed", range(0, 40, 4))
def test_same_bits(seed, tmp_path):
    """Neither threads nor another run changes a bit."""
    case = Case(seed)
    runs = [
        returned(
            case,
            Options(target(), threads=threads, schedule="columns=16"),
            tmp_path / str(i),
        )
        for i, threads in enumerate((1, 4, 4))
    ]
    if runs[0] is not None:
        assert_same(runs[0], runs[1])
        assert_same(runs[0], runs[2])


def walks_rows(graph):
    """Whether a row of a result needs only the rows of the same number."""
    tensors = graph.arguments + graph.results
    return (
        all(x.leading in (None, (None,)) for x in tensors)
        and any(x.leading for x in graph.arguments)
        and "reduce_rows" not in graph.text()
    )


def test_fewer_rows(tmp_path):
    """A row's result does not depend on the number of other rows."""
    cases = [Case(seed) for seed in range(60)]
    cases = [case for case in cases if walks_rows(case.graph)]
    assert len(cases) > 5
    for case in cases:
        fewer = copy.copy(case)
        fewer.values = {
            name: array[:2] if array.ndim == 2 else array
            for name, array in case.values.items()
        }
        schedule = "rows=3,columns=32" if target() == "host" else ""
        options = Options(target(), gradients=(), schedule=schedule)
        whole = returned(case, options, tmp_path / f"{case.seed}")
        part = returned(fewer, options, tmp_path / f"{case.seed}-part")
        if whole is not None:
            results = range(len(case.graph.results))
            names = [f"{case.graph.name}.result{i}.npy" for i in results]
            names = [name for name in names if whole[name].ndim == 2]
            assert_same(
                {name: whole[name][:2] for name in names},
                {name: part[name] for name in names},
            )


@pytest.mark.parametrize("number", range(0, 60, 10))
def test_compiles_for_gpu(number):
    """Functions compile to PTX, which the emulator does not need."""
    cases = [Case(seed) for seed in seeds_of(number)]
    for case in cases:
        done = subprocess.run(
            [
                os.path.join(os.path.dirname(find_tool()), "tilec"),
                "-",
                "--target=sm_90",
                "--grad",
                *(["--schedule=persistent=1"] if number % 20 else []),
            ],
            input=case.text,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            assert is_refused("refused: " + done.stderr), done.stderr

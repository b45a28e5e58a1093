# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""Random functions with their gradients, under several schedules, on the host
and as a GPU's code on an emulator; on a GPU where the tests run on one. A function
takes a core a fifth of a second."""

import copy
import os
import subprocess

import numpy as np
import pytest

from batch import Batch, Case, Options
from random_graphs import check_graphs, is_refused, seeds_of
from runner import find_tool, target


def test_random_graphs():
    check_graphs()


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


@pytest.mark.long(every=4)
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


@pytest.mark.long
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


@pytest.mark.long(every=5)
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

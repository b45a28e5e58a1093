# RUN: %pytest %s
"""Random functions, forward and backward, under several schedules. A graph takes
a core about a second.

BASTILE_RANDOM_GRAPHS sets how many, BASTILE_RANDOM_GRAPHS_FIRST the first."""

import concurrent.futures
import os
import re
import subprocess

import numpy as np
import pytest

import floats
import graphs
from runner import Files, execute, find_tool, target

COUNT = int(os.environ.get("BASTILE_RANDOM_GRAPHS", "200"))
FIRST = int(os.environ.get("BASTILE_RANDOM_GRAPHS_FIRST", "0"))
CHUNK = 20

HOST = (
    "rows=1,threads=1,vector=1,columns=4",
    "rows=4,columns=16",
    "rows=3,columns=32",
    "columns=16,persistent=1",
    "rows=2,vector=1,columns=8,persistent=2",
    "vector=1,columns=1",
)
GPU = (
    "threads=128",
    "rows=1,threads=32,vector=1,columns=32",
    "rows=4,threads=64,columns=256",
    "persistent=1",
    "rows=2,threads=64,vector=1,columns=64,persistent=2",
    "cluster=2",
)
# Quick to compile: a tile on the host is code of its length.
REFERENCE = "--schedule=columns=16"
# Parts of a row's, or for gradients of a tensor's, largest element: what a few
# roundings of each type make of values as benign as these.
TOLERANCES = {"f32": 4e-4, "f16": 0.1, "bf16": 0.1}
STEP = 1e-5


class Function:
    """A function as the compiler writes it, with names and types."""

    def __init__(self, name, text):
        self.name = name
        head = re.search(rf"func\.func @{name}\((.*)", text).group(1)
        head = head.split(" attributes ")[0]
        arguments, _, results = head.partition(" -> ")
        self.inputs = self._tensors(arguments)
        self.outputs = [
            (named or f"result{i}", kind)
            for i, (named, kind) in enumerate(self._tensors(results))
        ]

    @staticmethod
    def _tensors(text):
        marks = r'(?: \{(?:tile\.approximate, )?tile\.name = "(\w+)"\})?'
        pattern = rf"tensor<[\dx?]*?([bf]+\d+)>{marks}"
        return [(name, kind) for kind, name in re.findall(pattern, text)]


def differentiate(graph, is_float64=False):
    """The text of the graph with its backward, and both functions."""
    names = [v.name for v in graph.arguments if not v.name.startswith("c")]
    done = subprocess.run(
        [
            os.path.join(os.path.dirname(find_tool()), "tilec"),
            "-",
            "--target=host",
            "--emit=decomposed",
            f"--grad={','.join(names)}",
        ],
        input=graph.text(is_float64),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    text = re.sub(r"attributes \{tile\.backward = .*\} \{\n", "{\n", done.stdout)
    functions = [Function(graph.name, text)]
    if f"@{graph.name}_backward(" in text:
        functions.append(Function(graph.name + "_backward", text))
    return text, functions


def call(text, function, values, *options):
    """The outputs by name, encoded."""
    with Files() as files:
        arguments = files.inputs(
            {name: (kind, values[name]) for name, kind in function.inputs}
        )
        arguments += [
            f"--output={name}={files.path(name)}"
            for name, _ in function.outputs
        ]
        done = execute(
            text, f"--function={function.name}", *arguments, *options
        )
        assert done.returncode == 0, (options, done.stderr + done.stdout)
        return {
            name: np.load(files.path(name)) for name, _ in function.outputs
        }


def decoded(function, outputs):
    return {
        name: floats.decode(kind, outputs[name])
        for name, kind in function.outputs
    }


def compare(what, got, expected, tolerance, is_by_row):
    assert got.shape == expected.shape, what
    if not got.size:
        return
    if is_by_row and got.shape[-1] > 1:
        scale = np.abs(expected).max(axis=-1, keepdims=True)
        scale = np.maximum(scale, np.abs(expected).max() / 16)
    else:
        scale = np.abs(expected).max()
    error = np.abs(got - expected)
    bound = tolerance * scale + 1e-6
    assert (error <= bound).all(), (
        what,
        "error",
        float(np.nanmax(error)) if not np.isnan(error).all() else "nan",
        "of",
        float(np.max(scale)),
        "nan" if np.isnan(got).any() else "",
        f"{int((~(error <= bound)).sum())} of {error.size}",
    )


def tolerance_of(graph):
    kinds = {v.kind for node in graph.nodes for v in node.results}
    kinds |= {v.kind for v in graph.arguments}
    return max(TOLERANCES[kind] for kind in kinds)


def assert_same(first, second, what):
    for name, array in first.items():
        same = np.array_equal(
            array.view(np.uint8), second[name].view(np.uint8)
        )
        assert same, (what, name)


def check_derivative(graph, values, seeds, gradients, random):
    """A change of the arguments changes the results as the gradients say."""

    def project(x):
        evaluated = graph.evaluate(x)
        return sum(
            np.sum(evaluated[value.name] * seed)
            for value, seed in zip(graph.results, seeds)
        )

    for name, gradient in gradients.items():
        direction = random.standard_normal(gradient.shape)

        def slope(step):
            return (
                project({**values, name: values[name] + step * direction})
                - project({**values, name: values[name] - step * direction})
            ) / (2 * step)

        def one_sided(step):
            moved = {**values, name: values[name] + step * direction}
            return (project(moved) - project(values)) / step

        coarse, fine = slope(STEP), slope(STEP / 4)
        scale = np.sqrt(np.sum(gradient**2)) + 1e-3
        # Not where a corner or a step is in between, or right here: values of
        # few bits are often equal.
        if abs(coarse - fine) > 1e-6 * scale:
            continue
        if abs(one_sided(STEP) - one_sided(-STEP)) > 1e-3 * scale:
            continue
        got = np.sum(gradient * direction)
        assert abs(got - fine) <= 1e-5 * scale, (
            "derivative",
            name,
            got,
            fine,
        )


def check_graph(seed):
    graph, values = graphs.generate(seed)
    random = np.random.default_rng(seed)
    schedules = HOST if target() == "host" else GPU
    first, second = random.permutation(len(schedules))[:2]
    options = (
        (f"--schedule={schedules[first]}", "--host-threads=4"),
        (f"--schedule={schedules[second]}",) if seed % 8 else (),
    )
    text, functions = differentiate(graph)
    evaluated = graph.evaluate(values)
    expected = [evaluated[value.name] for value in graph.results]
    tolerance = tolerance_of(graph)

    forward = functions[0]
    for choice in options:
        outputs = call(text, forward, values, *choice)
        got = decoded(forward, outputs)
        for i, array in enumerate(expected):
            compare(
                (choice, f"result{i}"), got[f"result{i}"], array, tolerance, True
            )
        if seed % 8 == 0 and choice:
            assert_same(outputs, call(text, forward, values, *choice), choice)
        if seed % 4 == 0 and walks_rows(graph):
            fewer = call(text, forward, values, *choice, "--rows=2")
            # A vector of arguments that have no rows stays as it is.
            assert_same(
                {
                    name: outputs[name][: len(array)].copy()
                    for name, array in fewer.items()
                },
                fewer,
                (choice, "with fewer rows"),
            )
    if len(functions) == 1:
        return
    seeds = [
        floats.round_to(value.kind, random.standard_normal(array.shape, np.float32))
        for value, array in zip(graph.results, expected)
    ]
    backward = functions[1]

    given = {f"grad_result{i}": array for i, array in enumerate(seeds)}
    given.update(values)
    if not backward.outputs:
        return
    text64, functions64 = differentiate(graph, is_float64=True)
    known64 = decoded(functions64[0], call(text64, functions64[0], values, REFERENCE))
    for i, array in enumerate(expected):
        compare(("f64", f"result{i}"), known64[f"result{i}"], array, 1e-9, True)
    if len(functions64) == 1:
        return
    gradients = decoded(
        functions64[1],
        call(text64, functions64[1], {**known64, **given}, REFERENCE),
    )
    check_derivative(
        graph,
        values,
        seeds,
        {
            name[len("grad_") :]: array
            for name, array in gradients.items()
        },
        random,
    )
    known = {**decoded(forward, outputs), **given}
    for choice in options[seed % 4 // 2 :][:1]:
        outputs = call(text, backward, known, *choice)
        got = decoded(backward, outputs)
        for name, array in gradients.items():
            if name in got:
                compare((choice, name), got[name], array, 2 * tolerance, False)
        if seed % 8 == 0 and choice:
            assert_same(outputs, call(text, backward, known, *choice), choice)


def walks_rows(graph):
    """Whether a row of a result needs only the rows of the same number."""
    return all(
        value.leading == (None,)
        for value in graph.results + graph.arguments
        if value.leading is not None
    ) and all(
        value.leading is not None
        for node in graph.nodes
        for value in node.results
        if value.has_rows
    )


def attempt(seed):
    try:
        check_graph(seed)
    except AssertionError as error:
        return f"graph {seed}: {error}"
    return None


@pytest.mark.parametrize("first", range(FIRST, FIRST + COUNT, CHUNK))
def test_random_graphs(first):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        seeds = range(first, min(first + CHUNK, FIRST + COUNT))
        failures = [failure for failure in pool.map(attempt, seeds) if failure]
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("first", range(FIRST, FIRST + COUNT, CHUNK))
def test_compiles_for_gpu(first):
    schedule = "" if first // CHUNK % 2 else "persistent=1"
    chosen = [
        graphs.generate(seed)[0]
        for seed in range(first, min(first + CHUNK, FIRST + COUNT))
    ]
    names = {
        value.name
        for graph in chosen
        for value in graph.arguments
        if not value.name.startswith("c")
    }
    done = subprocess.run(
        [
            os.path.join(os.path.dirname(find_tool()), "tilec"),
            "-",
            "--target=sm_90",
            f"--grad={','.join(sorted(names))}",
            *([f"--schedule={schedule}"] if schedule else []),
        ],
        input="".join(graph.text() for graph in chosen),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]

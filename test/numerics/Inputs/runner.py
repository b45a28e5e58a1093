"""Runs functions with tile-run."""

import json
import os
import subprocess
import tempfile

import numpy as np
import pytest

import floats

ROWS = (0, 1, 3, 127)
LENGTHS = (1, 2, 7, 31, 33, 128, 2880, 4096, 4097, 16384, 65537)


def find_tool():
    root = os.path.abspath(os.path.join(os.path.dirname(__file__), *[".."] * 3))
    build = os.environ.get("BASTILE_BUILD", os.path.join(root, "build"))
    return os.path.join(build, "bin", "tile-run")


def target():
    """Where the tests run; scripts/gpu-test.sh sets it to gpu."""
    return os.environ.get("BASTILE_TEST_TARGET", "host")


def execute(source, *arguments):
    # A GPU computes no float64.
    if target() != "host" and "f64>" in source:
        pytest.skip("float64 is computed on the host only")
    return subprocess.run(
        [
            find_tool(),
            "-",
            "--json",
            "--repeat=0",
            f"--target={target()}",
            *arguments,
        ],
        input=source,
        capture_output=True,
        text=True,
        check=False,
    )


def tensor(shape, kind):
    """The type of a tensor; None is a size known only at launch."""
    sizes = "".join(f"{'?' if size is None else size}x" for size in shape)
    return f"tensor<{sizes}{kind}>"


def function(inputs, outputs, body):
    """The text of a function that returns the last values of `body`, given as
    a list of formulas. Inputs are pairs of name and type."""
    arguments = ", ".join(f"%{name}: {type}" for name, type in inputs)
    first = len(body) - len(outputs)
    lines = [f"  %{i} = {formula}" for i, formula in enumerate(body)]
    names = ", ".join(f"%{first + i}" for i in range(len(outputs)))
    return "\n".join(
        [
            f"func.func @f({arguments}) -> ({', '.join(outputs)}) {{",
            *lines,
            f"  return {names} : {', '.join(outputs)}",
            "}\n",
        ]
    )


class Files:
    """The files of one test, gone when it ends: some are large."""

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory()
        return self

    def __exit__(self, *_):
        self._folder.cleanup()

    def path(self, name):
        return os.path.join(self._folder.name, name + ".npy")

    def save(self, name, array):
        np.save(self.path(name), array)
        return self.path(name)

    def inputs(self, values):
        """Options for inputs, from a dictionary of names to pairs of an element
        type and values."""
        return [
            f"--input={name}={self.save(name, floats.encode(kind, numbers))}"
            for name, (kind, numbers) in values.items()
        ]


def run(source, inputs, outputs, *arguments):
    """Runs once and returns the outputs as arrays of their types.

    `inputs` is as for `Files.inputs`, `outputs` a list of element types."""
    with Files() as files:
        options = files.inputs(inputs)
        names = [f"result{i}" for i in range(len(outputs))]
        options += [f"--output={name}={files.path(name)}" for name in names]
        done = execute(source, *options, *arguments)
        assert done.returncode == 0, done.stderr + done.stdout
        arrays = [np.load(files.path(name)) for name in names]
    return [
        array.view(np.uint16) if kind == "bf16" else array
        for kind, array in zip(outputs, arrays)
    ]


def check_rows(source, inputs, expected, bound, *arguments):
    """Runs with each number of rows of the grid, and checks that the results
    are within `bound` units in the last place of `expected`, which holds the
    rows of the largest run: float64, or elements to be equalled."""
    with Files() as files:
        options = files.inputs(inputs)
        for i, array in enumerate(expected):
            name = f"result{i}"
            options.append(f"--expect={name}={files.save(name, array)}")
        rows = ",".join(map(str, ROWS))
        done = execute(
            source,
            f"--rows={rows}",
            f"--tolerance={bound}",
            *options,
            *arguments,
        )
    assert done.returncode == 0, done.stderr + done.stdout
    runs = json.loads(done.stdout)["runs"]
    assert len(runs) == len(ROWS)
    for run_result in runs:
        assert len(run_result["outputs"]) == len(expected)
        for output in run_result["outputs"]:
            assert output["pass"], (run_result["shapes"], output)

# Part of Bastile, under the MIT License. See LICENSE.
"""Runs functions with tile-run."""

import json
import os
import re
import subprocess
import tempfile
from functools import partial

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


def emit(source, level, *options):
    """The text that tilec emits of ``source`` at a level of ``--emit``."""
    tilec = os.path.join(os.path.dirname(find_tool()), "tilec")
    done = subprocess.run(
        [tilec, "-", f"--emit={level}", "-o", "-", *options],
        input=source,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def find_schedules(source, *arguments):
    """The text of the scheduled kernels, of the options of tile-run. What tile-run calls
    `gpu`, the machine's own, tilec has no name for."""
    if "--target=gpu" in arguments:
        query = "nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"
        found = subprocess.run(query, capture_output=True, text=True, check=True).stdout
        number = found.split()[0].replace(".", "")
        name = f"sm_{number}a" if number in ("90", "100") else f"sm_{number}"
        arguments = [x.replace("=gpu", f"={name}") for x in arguments]
    return emit(source, "scheduled", *arguments)


#: How tests of what only Hopper has run tile-run.
HOPPER = ("--emulate", "--target=sm_90a") if target() == "host" else ()


def skip_wide_tiles(done, arguments):
    """Skips a test whose schedule is for hosts with longer vectors than this one's: a
    tile of the same columns has more of short ones."""
    is_pinned = any(argument.startswith("--schedule=") for argument in arguments)
    if is_pinned and "that the host unrolls of this kernel" in done.stderr:
        pytest.skip("the tile has more vectors than this host unrolls")


def execute(source, *arguments):
    # A GPU computes no float64.
    if target() != "host" and "f64>" in source:
        pytest.skip("float64 is computed on the host only")
    if not any(argument.startswith("--target=") for argument in arguments):
        where = "sm_90" if "--emulate" in arguments else target()
        arguments = (f"--target={where}", *arguments)
    done = subprocess.run(
        [find_tool(), "-", "--json", "--repeat=0", *arguments],
        input=source,
        capture_output=True,
        text=True,
        check=False,
    )
    skip_wide_tiles(done, arguments)
    return done


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

    def load(self, name, kind):
        """The array of a file that tile-run wrote."""
        array = np.load(self.path(name))
        return array.view(np.uint16) if kind == "bf16" else array

    def inputs(self, values):
        """Options for inputs, from a dictionary of names to pairs of an element
        type and values."""
        return [
            f"--input={name}={self.save(name, floats.encode(kind, numbers))}"
            for name, (kind, numbers) in values.items()
        ]


def run(source, inputs, outputs, *arguments):
    """Runs once and returns the outputs as arrays of their types.

    `inputs` is as for `Files.inputs`, `outputs` a list of element types, or a
    dictionary of names to such."""
    if not isinstance(outputs, dict):
        outputs = {f"result{i}": kind for i, kind in enumerate(outputs)}
    with Files() as files:
        options = files.inputs(inputs)
        options += [f"--output={name}={files.path(name)}" for name in outputs]
        done = execute(source, *options, *arguments)
        assert done.returncode == 0, done.stderr + done.stdout
        return [files.load(name, kind) for name, kind in outputs.items()]


def check_rows(source, inputs, expected, bound, *arguments):
    """Runs with each number of rows of the grid, and checks that the results
    are within `bound` units in the last place of `expected`, the rows of the
    largest run: float64, or elements that results must equal."""
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


class _Backward:
    """The values that f saves, the inputs of f_backward, and its gradients."""

    def __init__(self, source, flag):
        tilec = os.path.join(os.path.dirname(find_tool()), "tilec")
        done = subprocess.run(
            [tilec, "-", "--emit=decomposed", flag, "-o", "-"],
            input=source,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        forward, backward = re.findall(r"func\.func @f.*", done.stdout)
        taken, returned = backward.split("->")
        name = r'tile\.name = "(\w+)"'
        self.saved = re.findall(r'"(saved\d+)"', forward)
        self.taken = re.findall(name, taken)
        self.returned = re.findall(name, returned)
        gradients = re.search(r" gradients = \{(.*?)\}\}", forward).group(1)
        self.gradients = re.findall(r"(\w+) = \{(\w+) = (\d+)", gradients)

    def where(self):
        """For each argument, the name of the tensor that holds its gradient,
        which others may share."""
        return {
            name: f"grad_result{i}" if kind == "grad" else self.returned[int(i)]
            for name, kind, i in self.gradients
        }


def run_backward(source, inputs, cotangents, outputs, names, *arguments):
    """Runs f, and then f_backward on what f saved.

    `inputs` and `cotangents` are as for `Files.inputs`, the latter named
    grad_result<i>; `outputs` are the element types of f's results, `names` maps
    the inputs whose gradients are wanted to their element types. Returns the
    results and a dictionary of the gradients."""
    flag = "--grad=" + ",".join(names)
    kinds = {f"result{i}": kind for i, kind in enumerate(outputs)}
    backward = _Backward(source, flag)
    kept = [*kinds, *backward.saved]
    with Files() as files:
        call = partial(execute, source, flag)
        given = files.inputs(inputs)
        to_save = [f"--output={name}={files.path(name)}" for name in kept]
        done = call("--function=f", *given, *to_save, *arguments)
        assert done.returncode == 0, done.stderr + done.stdout
        results = [files.load(name, kind) for name, kind in kinds.items()]

        given += files.inputs(cotangents)
        given += [f"--input={name}={files.path(name)}" for name in kept]
        given = [option for option in given if option.split("=")[1] in backward.taken]
        to_save = [f"--output={name}={files.path(name)}" for name in backward.returned]
        done = call("--function=f_backward", *given, *to_save, *arguments)
        assert done.returncode == 0, done.stderr + done.stdout
        where = backward.where()
        return results, {
            name: files.load(where[name], kind) for name, kind in names.items()
        }

# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""Elements so far from the first that their number needs more than 32 bits: on a
GPU, which has the memory for it. The host goes through the same steps with small
tensors."""

import numpy as np
import pytest

import floats
import reference
from runner import Files, execute, function, target, tensor

# 2.3e9 elements; row 65536 begins at element 2^31.
FAR = ((70000, 32768), (0, 65535, 65536, 69998, 69999))
NEAR = ((300, 128), (0, 127, 128, 298, 299))


OPS = {
    "add": ("arith.addf %x, %y : {row}", lambda x, y, w: x + y),
    "rms_norm": (
        "tile.rms_norm %x, %w casting(gemma) : {row}, {vector}",
        lambda x, y, w: reference.rms_norm(x, w),
    ),
    "softmax": ("tile.softmax %x : {row}", lambda x, y, w: reference.softmax(x)),
}


def fill(path, shape, seed):
    """Writes bfloat16 rows, no two of which are alike."""
    rows, length = shape
    first = floats.encode("bf16", floats.random("bf16", (length,), seed))
    array = np.lib.format.open_memmap(path, "w+", np.uint16, shape)
    for row in range(rows):
        array[row] = np.roll(first, row)
        array[row, row % length] ^= row // length + 1
    array.flush()
    return array


@pytest.mark.parametrize("shape,rows", (FAR if target() == "gpu" else NEAR,))
@pytest.mark.parametrize("op", OPS)
def test_far_elements(op, shape, rows):
    formula, expected = OPS[op]
    length = shape[-1]
    row, vector = tensor((None, length), "bf16"), tensor((length,), "bf16")
    types = {"x": row, "y": row, "w": vector}
    used = {name: kind for name, kind in types.items() if f"%{name}" in formula}
    source = function(used.items(), [row], [formula.format(row=row, vector=vector)])
    with Files() as files:
        tensors = {
            name: fill(files.path(name), shape, seed)
            for seed, name in enumerate("xy")
            if name in used
        }
        options = [f"--input={name}={files.path(name)}" for name in tensors]
        values = {"y": None, "w": None}
        for name, array in tensors.items():
            values[name] = floats.decode("bf16", array[list(rows)])
        tensors.clear()
        if "w" in used:
            values["w"] = floats.random("bf16", (length,), 7)
            options += files.inputs({"w": ("bf16", values["w"])})
        done = execute(source, *options, f"--output=result0={files.path('result0')}")
        assert done.returncode == 0, done.stderr + done.stdout
        result = np.load(files.path("result0"), mmap_mode="r")
        assert result.shape == shape
        got = floats.decode("bf16", np.array(result[list(rows)]))
        want = expected(**values)
    bound = floats.ulp("bf16", want) + np.abs(want) * 2.0**-20
    worst = np.max(np.abs(got - want) / bound, axis=-1)
    assert np.all(worst <= 1), dict(zip(rows, worst))

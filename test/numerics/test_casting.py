# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""The roundings of tile.rms_norm, to the bit."""

import numpy as np
import pytest

import floats
from runner import function, run, tensor

ROWS, LENGTH = 64, 128


def emulate(kind, casting, x, weight, offset, rstd):
    """The float32 arithmetic of the op after `rstd`, step by step."""
    normalized = x * rstd
    if casting == "llama":
        normalized = floats.round_to(kind, normalized).astype(np.float32)
    return floats.encode(kind, normalized * (weight + np.float32(offset)))


@pytest.mark.parametrize("offset", (0.0, 1.0))
@pytest.mark.parametrize("kind", floats.NARROW)
def test_castings_to_the_bit(kind, offset):
    # Small integers, whose squares float32 adds without rounding, in any order.
    generator = np.random.default_rng(1)
    x = generator.integers(-15, 16, (ROWS, LENGTH)).astype(np.float32)
    weight = floats.random(kind, LENGTH, 2).astype(np.float32)
    mean = np.mean(x * x, axis=-1, keepdims=True)
    rstd = np.float32(1) / np.sqrt(mean)
    row, vector = tensor((None, LENGTH), kind), tensor((LENGTH,), kind)

    stored = {}
    for casting in ("llama", "gemma"):
        source = function(
            [("x", row), ("weight", vector)],
            [row],
            [
                f"tile.rms_norm %x, %weight casting({casting})"
                f" {{eps = 0.0, offset = {offset}}} : {row}, {vector}"
            ],
        )
        values = {"x": (kind, x), "weight": (kind, weight)}
        (result,) = run(source, values, [kind])
        stored[casting] = result.view(np.uint16)

        # A GPU's reciprocal square root may be off by a unit or two, so only
        # what does not depend on that counts; it is nearly all.
        near = [rstd]
        for direction in (0, np.inf):
            one = np.nextafter(rstd, np.float32(direction))
            near += [one, np.nextafter(one, np.float32(direction))]
        expected, *others = (
            emulate(kind, casting, x, weight, offset, value).view(np.uint16)
            for value in near
        )
        certain = np.all([other == expected for other in others], axis=0)
        assert certain.mean() > 0.99
        assert np.array_equal(stored[casting][certain], expected[certain])

    different = stored["llama"] != stored["gemma"]
    assert 0.1 < different.mean() < 0.9


def test_castings_agree_without_narrow_types():
    row, vector = tensor((None, LENGTH), "f32"), tensor((LENGTH,), "f32")
    values = {
        "x": ("f32", floats.random("f32", (ROWS, LENGTH), 1)),
        "weight": ("f32", floats.random("f32", LENGTH, 2)),
    }
    results = []
    for casting in ("llama", "gemma"):
        body = [f"tile.rms_norm %x, %weight casting({casting}) : {row}, {vector}"]
        source = function([("x", row), ("weight", vector)], [row], body)
        results += run(source, values, ["f32"])
    assert np.array_equal(*results)

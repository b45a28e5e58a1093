# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""tile.rms_norm against its formula, over the grid of types and shapes."""

import pytest

import floats
import reference
from runner import LENGTHS, ROWS, check_rows, function, tensor

# Attributes, the type of the weight if not the input's (none for no weight),
# and the arguments of the reference.
VARIANTS = {
    "llama": ("", True, {}),
    "gemma": (
        " casting(gemma) {eps = 1.0e-5, offset = 1.0}",
        True,
        {"eps": 1e-5, "offset": 1.0},
    ),
    "plain": (" {eps = 1.0e-3}", None, {"eps": 1e-3}),
    "llama, f32 weight": ("", "f32", {}),
    "gemma, f32 weight": (" casting(gemma)", "f32", {}),
}

# Bounds in units in the last place: half a unit is the rounding at the end, where the
# type is narrower than that of sums. A sum of tens of thousands of squares, one after
# the other, has lost a few bits.
BOUNDS = {"f16": 0.51, "bf16": 0.51, "f32": 64, "f64": 64}
# A number that is rounded before the weight multiplies it has lost half a unit, which is
# up to a whole unit of the product.
LLAMA_BOUND = 1.51

CASES = [
    (variant, kind)
    for variant, (_, weight, _) in VARIANTS.items()
    for kind in floats.TYPES
    # Every type has the variants with a weight of its own type.
    if weight != "f32" or kind in floats.NARROW
]


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("variant,kind", CASES)
def test_rms_norm(variant, kind, length):
    attributes, weight_type, arguments = VARIANTS[variant]
    row = tensor((None, length), kind)
    x = floats.random(kind, (max(ROWS), length), length)
    inputs, values = [("x", row)], {"x": (kind, x)}
    operands, types, weight = "%x", row, None
    if weight_type:
        weight_kind = kind if weight_type is True else weight_type
        vector = tensor((length,), weight_kind)
        weight = floats.random(weight_kind, length, length + 1)
        inputs.append(("weight", vector))
        values["weight"] = (weight_kind, weight)
        operands += ", %weight"
        types += ", " + vector
    source = function(
        inputs, [row], [f"tile.rms_norm {operands}{attributes} : {types}"]
    )
    bound = BOUNDS[kind]
    if variant.startswith("llama") and kind in floats.NARROW:
        bound = LLAMA_BOUND
    check_rows(source, values, [reference.rms_norm(x, weight, **arguments)], bound)

# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""tile.geglu against its formulas, over the grid of types and shapes."""

import pytest

import floats
import reference
from runner import LENGTHS, ROWS, check_rows, function, tensor

FORMS = {
    "gpt_oss": ("", reference.geglu),
    "narrow": (
        " {alpha = 1.25, limit = 1.5}",
        lambda gate, up: reference.geglu(gate, up, alpha=1.25, limit=1.5),
    ),
    "unlimited": (
        " {unlimited}",
        lambda gate, up: reference.geglu(gate, up, limit=None),
    ),
    "tanh": (" form(tanh)", reference.geglu_tanh),
    "erf": (" form(erf)", reference.geglu_erf),
}

# In units in the last place. Of 16 bits, half a unit is the rounding at the
# end. Of 24 and 53 bits, the exponential turns the rounding of its argument,
# which reaches some thirty in these tests, into as many roundings of the
# result; in float64 the reference is no better.
BOUNDS = {"f16": 0.51, "bf16": 0.51, "f32": 64, "f64": 128}

# The whole grid for each form, and less for what differs in constants only.
CASES = [
    (form, length)
    for form in FORMS
    for length in LENGTHS
    if form in ("gpt_oss", "tanh", "erf") or length in (7, 2880)
]


@pytest.mark.long(every=37)
@pytest.mark.parametrize("kind", floats.TYPES)
@pytest.mark.parametrize("form,length", CASES)
def test_geglu(form, kind, length):
    attributes, formula = FORMS[form]
    row = tensor((None, length), kind)
    source = function(
        [("gate", row), ("up", row)],
        [row],
        [f"tile.geglu %gate, %up{attributes} : {row}"],
    )
    shape = (max(ROWS), length)
    # Wide enough to meet the clamps.
    gate = floats.random(kind, shape, length, scale=1.5)
    up = floats.random(kind, shape, length + 1, scale=3)
    check_rows(
        source,
        {"gate": (kind, gate), "up": (kind, up)},
        [formula(gate, up)],
        BOUNDS[kind],
    )

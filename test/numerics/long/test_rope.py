# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""Rotary embeddings and their gradients against formulas derived by hand."""

import numpy as np
import pytest

import floats
import gradients
import reference
from bounds import assert_within
from runner import run_backward, tensor

BATCH, SEQUENCE, HEADS, KEY_HEADS = 2, 5, 3, 1
# Where the angles have sizes, of (batch, sequence, heads) or (batch, heads,
# sequence).
SHARED = {
    "sequence, heads": ((1, SEQUENCE, 1), (BATCH, SEQUENCE, HEADS)),
    "heads, sequence": ((1, 1, SEQUENCE), (BATCH, HEADS, SEQUENCE)),
    "for each batch": ((BATCH, SEQUENCE, 1), (BATCH, SEQUENCE, HEADS)),
    "for each batch, heads first": (
        (BATCH, 1, SEQUENCE),
        (BATCH, HEADS, SEQUENCE),
    ),
    "for each row": ((BATCH, SEQUENCE, HEADS), (BATCH, SEQUENCE, HEADS)),
}


def angle_type(shape, length, kind):
    return tensor([None if size != 1 else 1 for size in shape] + [length], kind)


def attributes(interleaved, rotary):
    words = " interleaved" if interleaved else ""
    return words + (f" {{rotary = {rotary}}}" if rotary else "")


def check(kind, angle_kind, layout, size, full, interleaved, rotary, *arguments):
    """Query and key, the latter with fewer heads, in one function."""
    angle_shape, shape = SHARED[layout]
    key_shape = shape
    if "row" not in layout:
        key_shape = tuple(KEY_HEADS if n == HEADS else n for n in shape)
    length = (rotary or size) // (1 if full else 2)
    # These are any numbers, so that the two angles of a pair differ.
    cosine = floats.random(angle_kind, (*angle_shape, length), 1)
    sine = floats.random(angle_kind, (*angle_shape, length), 2)
    q = floats.random(kind, (*shape, size), 3)
    k = floats.random(kind, (*key_shape, size), 4)
    dq = floats.random(kind, q.shape, 5)
    dk = floats.random(kind, k.shape, 6)

    row = tensor((None, None, None, size), kind)
    angles = angle_type(angle_shape, length, angle_kind)
    words = attributes(interleaved, rotary)
    source = (
        f"func.func @f(%q: {row}, %k: {row}, %c: {angles}, %s: {angles}) "
        f"-> ({row}, {row}) {{\n"
        f"  %0 = tile.rope %q, %c, %s{words} : {row}, {angles}\n"
        f"  %1 = tile.rope %k, %c, %s{words} : {row}, {angles}\n"
        f"  return %0, %1 : {row}, {row}\n}}\n"
    )
    results, got = run_backward(
        source,
        {
            "q": (kind, q),
            "k": (kind, k),
            "c": (angle_kind, cosine),
            "s": (angle_kind, sine),
        },
        {"grad_result0": (kind, dq), "grad_result1": (kind, dk)},
        [kind, kind],
        {"q": kind, "k": kind},
        *arguments,
    )
    options = {"rotary": rotary, "interleaved": interleaved}
    for x, dx, result, gradient in (
        (q, dq, results[0], got["q"]),
        (k, dk, results[1], got["k"]),
    ):
        expected = reference.rope(x, cosine, sine, **options)
        # A rotation by minus the angle has the same terms.
        size = np.abs(expected) + np.abs(x).max() * (
            np.abs(cosine).max() + np.abs(sine).max()
        )
        assert_within(kind, result, expected, size, "result")
        assert_within(
            kind,
            gradient,
            *gradients.rope(dx, cosine, sine, **options),
            "gradient",
        )


@pytest.mark.parametrize(
    "size,rotary",
    (
        (64, None),
        (64, 16),
        (64, 32),
        (96, 64),
        (8, 2),
        (12, 8),
        # Half of what turns does not divide the head; the first is Phi-4-mini's.
        (128, 96),
        (10, 6),
    ),
)
@pytest.mark.parametrize("interleaved", (False, True))
@pytest.mark.parametrize("full", (False, True))
@pytest.mark.parametrize("kind", ("f64", "bf16"))
def test_forms(kind, full, interleaved, size, rotary):
    angle_kind = "f64" if kind == "f64" else "f32"
    check(kind, angle_kind, "sequence, heads", size, full, interleaved, rotary)


@pytest.mark.parametrize("angle_kind", ("f32", "bf16"))
@pytest.mark.parametrize("kind", ("f32", "bf16", "f16"))
def test_types(kind, angle_kind):
    check(kind, angle_kind, "sequence, heads", 64, False, False, None)


@pytest.mark.parametrize("interleaved,rotary", ((False, None), (True, 32)))
@pytest.mark.parametrize("gap,offset", ((0, 0), (3, 5)))
@pytest.mark.parametrize("layout", SHARED)
def test_layouts(layout, gap, offset, interleaved, rotary):
    """Angles shared by heads, by the batch or by none, and rows that lie apart."""
    check(
        "bf16",
        "f32",
        layout,
        64,
        gap != 0,
        interleaved,
        rotary,
        f"--gap={gap}",
        f"--offset={offset}",
    )


@pytest.mark.parametrize("interleaved", (False, True))
@pytest.mark.parametrize("size", (2, 6, 80, 128))
def test_sizes(size, interleaved):
    check("f32", "f32", "sequence, heads", size, True, interleaved, None)

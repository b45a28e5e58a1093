# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""Gradients of ops that reduce rows, over the grid of types and lengths."""

import pytest

from bounds import check_backward

LENGTHS = {
    "f32": (1, 31, 128),
    "bf16": (2, 33, 2880, 16384),
    "f16": (33,),
}
# One of each kind; others differ in attributes.
MAIN = ("rms_norm", "add_rms_norm", "layer_norm", "softmax", "log_softmax")
# Lengths that take long to compile, once for each way of reducing.
LONG = {"layer_norm": 4097, "rms_norm": 65537, "softmax": 65537}
# Rows that shared memory keeps, by one block and by several, aligned and not.
KEPT = {
    "rms_norm": (32771,),
    "layer_norm": (20480, 50257),
    "softmax": (32768, 50257, 65536),
}


def grid():
    for name in MAIN:
        for kind, lengths in LENGTHS.items():
            for length in lengths:
                yield name, kind, 127 if length <= 2880 else 3, length
    for name, length in LONG.items():
        yield name, "f32", 3, length
    for name, lengths in KEPT.items():
        for length in lengths:
            yield name, "bf16", 3, length


@pytest.mark.parametrize("name,kind,rows,length", grid())
def test_backward(name, kind, rows, length):
    check_backward(name, kind, rows, length)

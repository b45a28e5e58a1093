# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %pytest %s
"""Tiles of which a mask leaves some longer than others come in one order where the cache
holds all keys, and in another one elsewhere. Keys that no query sees change nothing but
the order."""

import numpy as np
from runner import HOPPER, run
from test_transposed_roles import attention

#: More keys than the cache holds, of which the causal mask shows as many as there are
#: queries.
KEYS = 70_000
MATRICES, QUERIES, SIZE = 2, 700, 64


def test_both_orders():
    chance = np.random.default_rng(0)

    def draw(rows):
        return chance.standard_normal((MATRICES, rows, SIZE), np.float32)

    q, k, v = draw(QUERIES), draw(KEYS), draw(KEYS)
    source = attention(SIZE, (None,), (None,), masked=True)

    def result(keys):
        inputs = {"q": q, "k": k[:, :keys], "v": v[:, :keys]}
        inputs = {name: ("bf16", values) for name, values in inputs.items()}
        return run(source, inputs, ["f32"], *HOPPER)[0]

    expected = result(QUERIES)
    assert np.isfinite(expected).all() and expected.any(axis=-1).all()
    assert np.array_equal(result(KEYS), expected)

# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""Rotations of heads that few models have, beside Transformers' own."""

import importlib

import bastile
import pytest
import torch
from bastile._patching import table
from bastile._patching.kinds import rotations


def modeling(name):
    return importlib.import_module(f"transformers.models.{name}.modeling_{name}")


def run(turn, angles, q, k):
    q, k = (x.clone().requires_grad_() for x in (q, k))
    results = turn(q, k, angles.cos(), angles.sin())
    (results[0].square().sum() + results[1].pow(3).sum()).backward()
    return [x.detach() for x in results] + [q.grad, k.grad]


@pytest.mark.parametrize("name, size, turned", [
    ("llama", 2, 2),
    ("llama", 6, 6),
    ("llama", 80, 80),
    # Heads of an odd size, of which an even part turns.
    ("phi3", 7, 2),
    ("phi3", 15, 6),
    ("phi3", 17, 16),
])  # fmt: skip
def test_heads_of_any_size(name, size, turned):
    q, k = torch.randn(2, 3, 5, size), torch.randn(2, 1, 5, size)
    half = torch.randn(2, 5, turned // 2)
    operands = torch.cat((half, half), -1), q, k
    expected = run(modeling(name).apply_rotary_pos_emb, *operands)
    with bastile.apply(name):
        found = run(modeling(name).apply_rotary_pos_emb, *operands)
    for result, original in zip(found, expected):
        assert (result - original).abs().max() < 1e-5


@pytest.mark.parametrize("name, size, turned", [("llama", 7, 7), ("phi3", 9, 5)])
def test_an_odd_part_turns_as_it_does_in_transformers(name, size, turned):
    """It has no pairs: the op refuses it, and a patch runs the original."""
    q, k = torch.randn(2, 3, 5, size), torch.randn(2, 1, 5, size)
    angles = torch.randn(2, 5, turned)
    expected = run(modeling(name).apply_rotary_pos_emb, angles, q, k)
    with bastile.apply(name):
        found = run(modeling(name).apply_rotary_pos_emb, angles, q, k)
    assert all(torch.equal(*pair) for pair in zip(found, expected))
    with pytest.raises(
        bastile.CompileError, match=f"rotary size of {turned} must be even"
    ):
        bastile.ops.rope(q, angles[:, None], angles[:, None], rotary=turned)


def test_queries_alone():
    """As Qwen4-Exp's indexer has them."""
    turn = modeling("qwen4_exp").apply_rotary_pos_emb
    q, angles = torch.randn(2, 3, 5, 8), torch.randn(2, 5, 8)
    named = {"cos": angles.cos(), "sin": angles.sin()}
    expected = turn(q, **named)
    with bastile.apply("qwen4_exp"):
        found = modeling("qwen4_exp").apply_rotary_pos_emb(q, **named)
    assert (found - expected).abs().max() < 1e-5


def test_angles_of_pictures_do_not_count_for_text(monkeypatch):
    """Those of GLM-4V's pictures are in halves, those of its text in turn. Were the
    latter in halves, the function would turn other pairs."""
    module = modeling("glm4v")
    patch = table.Rope("neighbours_in_turn")
    rotations._prove_angles(module, 3)
    assert patch in list(rotations._find(module))

    def in_halves(self, freq):
        return torch.cat((freq[0], freq[0]), -1)

    cls = module.Glm4vTextRotaryEmbedding
    monkeypatch.setattr(cls, "recomposition_frequencies", in_halves)
    with pytest.raises(rotations.probes.Mismatch, match="are not in pairs"):
        rotations._prove_angles(module, 3)

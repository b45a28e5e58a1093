# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""A few model types as `scripts/try-types.py` tries all of them, and what it finds."""

import contextlib
import importlib

import any_type
import bastile
import pytest
import torch
import try_types
from transformers.models.qwen3 import modeling_qwen3

#: Each has something that few others have.
NAMES = [
    "deepseek_v3",
    "gemma4",
    "internlm3",
    "kimi_linear",
    "qwen2_5_vl",
    "qwen4_exp_text",
]


@pytest.mark.parametrize("name", NAMES)
def test_type(name):
    tried = try_types.try_type(name)
    assert tried.ran
    assert not tried.towers


def test_a_wrong_patch_is_found(monkeypatch):
    apply, mlp = bastile.apply, modeling_qwen3.Qwen3MLP

    @contextlib.contextmanager
    def wrong(model_type):
        with apply(model_type, swiglu=False), monkeypatch.context() as patch:
            forward = mlp.forward
            patch.setattr(mlp, "forward", lambda self, x: 1.001 * forward(self, x))
            yield

    monkeypatch.setattr(try_types.bastile, "apply", wrong)
    with pytest.raises(try_types.Wrong, match="qwen3"):
        try_types.try_type("qwen3")


def test_a_wrong_gradient_is_found():
    right = torch.ones(()), {"weight": torch.ones(3), "other": torch.full((3,), 9.0)}
    wrong = torch.ones(()), {**right[1], "weight": torch.tensor([1.0, 1.0, 1.01])}
    try_types._compare(right, right)
    with pytest.raises(try_types.Wrong, match="gradient of weight is off by 0.01"):
        try_types._compare(wrong, right)
    with pytest.raises(try_types.Wrong, match="missing or new: other"):
        try_types._compare((wrong[0], {"weight": right[1]["weight"]}), right)


def test_types_that_change_the_list():
    """One that can be tried though it is listed, and one that cannot and is not."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(try_types.type_settings.NOT_TRIED, "llama", "no reason")
        patch.setitem(try_types.type_settings.SETTINGS, "qwen3", {"hidden_act": "no"})
        found = try_types.report(["llama", "qwen3", "reformer"])
    assert found["problems"] == [
        "llama can be tried, but is listed with: no reason",
        "qwen3 cannot be tried any more: KeyError: 'no'",
    ]
    assert found["not_tried"].keys() == {"qwen3", "reformer"}
    assert found["modules"]["llama"]["rope"]["apply_rotary_pos_emb"]["ran"]


def test_norms_that_are_made_in_another_way_run_as_they_are():
    """Of Qwen4-Exp some are norms of groups, of the class whose others are of rows."""
    module = importlib.import_module("transformers.models.qwen4_exp.modeling_qwen4_exp")
    x = torch.randn(2, 3, 16)
    for options in ({}, {"group_size": 8}):
        norm = module.Qwen4ExpTextRMSNorm(16, **options)
        expected = norm(x)
        with bastile.apply("qwen4_exp") as patched:
            assert "qwen4_exp.rms_norm" in patched.ops
            assert (norm(x) - expected).abs().max() < 1e-5, options


def test_a_model_is_small():
    model = try_types.make("llama4:pictures")
    assert sum(x.numel() for x in model.parameters()) < 5e7
    assert model.config.text_config.vocab_size == any_type.VOCABULARY

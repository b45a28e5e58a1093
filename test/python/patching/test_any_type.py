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
from bastile import patching
from bastile._patching import code, probes, table
from bastile._patching.kinds import norms
from transformers.models.qwen3 import modeling_qwen3

#: Each has something that few others have: targets that are patched and run.
TYPES = {
    "deepseek_v3": ["DeepseekV3MLP.forward", "apply_rotary_pos_emb_interleave"],
    "falcon_mamba": ["FalconMambaWeightlessRMSNorm.forward"],
    "gemma4": ["Gemma4RMSNorm.forward", "apply_rotary_pos_emb"],
    "glm4v": ["apply_rotary_pos_emb", "apply_rotary_pos_emb_vision"],
    "hunyuan_vl": ["HunYuanVLForConditionalGeneration.forward"],
    "internlm3": ["LlamaForCausalLM.forward"],
    "llama4": ["Llama4TextExperts.forward", "Llama4TextL2Norm.forward"],
    "kimi_linear": ["KimiLinearRMSNormGated.forward"],
    "mistral3": ["Mistral3ForConditionalGeneration.forward"],
    "qwen2_5_vl": ["Qwen2_5_VLForConditionalGeneration.forward"],
    "qwen4_exp_text": ["Qwen4ExpTextRMSNorm.forward", "apply_rotary_pos_emb"],
}


@pytest.mark.long(every=3)
@pytest.mark.parametrize("name", TYPES)
def test_type(name):
    tried = try_types.try_type(name)
    ran = {x.target for x in tried.ran}
    assert ran.issuperset(TYPES[name])
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
    uniform = [x.cls for x in norms.find_uniform(module)]
    assert "Qwen4ExpTextRMSNorm" not in uniform
    llama = importlib.import_module("transformers.models.llama.modeling_llama")
    assert [x.cls for x in norms.find_uniform(llama)] == ["LlamaRMSNorm"]


class Weightless(torch.nn.Module):
    """A norm without a weight, which multiplies by a buffer where ``USED`` is true."""

    USED = False

    def __init__(self, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.register_buffer("weight", torch.ones(()))

    def forward(self, x):
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return (wide * self.weight if self.USED else wide).type_as(x)


def test_a_buffer_is_no_weight_of_a_norm(monkeypatch):
    entry = patching.Norm("Weightless", "gemma", eps="eps", weight=False)
    patching.register_patch("weightless", __name__, entry)
    monkeypatch.setattr(Weightless, "__module__", __name__)
    try:
        norm, x = Weightless(0.5), torch.randn(3, 16)
        expected = norm(x)
        with bastile.apply("weightless") as patched:
            assert "weightless.rms_norm" in patched.ops
            assert (norm(x) - expected).abs().max() < 1e-6
    finally:
        del table.MODELS["weightless"]
    Used = type("Weightless", (Weightless,), {"USED": True})
    with pytest.raises(probes.Mismatch, match="those of no RMS norm"):
        norms._measure(Used.forward, Used)


def test_parameters_that_nothing_reads():
    def outer(self, read, unread, inner, handed=None, **named):
        def of_inner():
            return inner

        return self.unread(read, of_inner, unread_name=handed, unread=named)

    assert code.unused_parameters(outer) == {"unread"}


def test_hidden_states_of_another_type_than_the_weights():
    """Mamba 2 adds residuals in float32, whatever its weights are."""
    model = try_types.make("mamba2").bfloat16()
    inputs = any_type.inputs("mamba2", model)
    expected = model(**inputs)
    with bastile.apply("mamba2"):
        outputs = model(**inputs)
        assert torch.allclose(outputs.loss, expected.loss, rtol=1e-2)
        assert not isinstance(dict(outputs.items())["logits"], torch.Tensor)
        error = (outputs.logits.float() - expected.logits).abs().max()
    assert error < 2e-2 * expected.logits.abs().max()


def test_a_model_is_small():
    model = try_types.make("llama4:pictures")
    assert sum(x.numel() for x in model.parameters()) < 5e7
    assert model.config.text_config.vocab_size == any_type.VOCABULARY

# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""RMS norms with a gate, of each kind that models have."""

import importlib

import bastile
import pytest
import torch
from bastile import patching
from bastile._patching import table

#: By model, the class, what its norms are made with, and what is found.
CLASSES = [
    ("qwen3_next", "Qwen3NextRMSNormGated", {}, ("silu", "llama", "norm")),
    ("kimi_linear", "KimiLinearRMSNormGated", {}, ("sigmoid", "gemma", "norm")),
    ("mamba2", "MambaRMSNormGated", {"group_size": 16}, ("silu", "llama", "gate")),
    ("mamba2", "MambaRMSNormGated", {"group_size": 48}, ("silu", "llama", "gate")),
    *(
        (
            "falcon_h1",
            "FalconH1RMSNormGated",
            {"n_groups": groups, "norm_before_gate": order},
            ("silu", "gemma", "norm_before_gate"),
        )
        for groups in (1, 3)
        for order in (True, False)
    ),
]


def cls_of(name, cls):
    module = importlib.import_module(f"transformers.models.{name}.modeling_{name}")
    return getattr(module, cls)


def run(norm, x, gate, upstream):
    operands = [t.detach().clone().requires_grad_() for t in (x, gate)]
    norm.zero_grad()
    result = norm(*operands)
    result.backward(upstream)
    return [result.detach(), *(t.grad for t in operands), norm.weight.grad.clone()]


@pytest.mark.long(every=5)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(2, 5, 48), (7, 48)])
@pytest.mark.parametrize("name, cls, options, form", CLASSES)
def test_numbers(name, cls, options, form, shape, dtype):
    generator = torch.Generator().manual_seed(0)
    norm = cls_of(name, cls)(48, eps=1e-5, **options).to(dtype)
    tensors = [torch.randn(shape, generator=generator).to(dtype) for _ in range(3)]
    with torch.no_grad():
        norm.weight += torch.randn(48, generator=generator).to(dtype)
    expected = run(norm, *tensors)
    with bastile.apply(name) as patched:
        assert f"{name}.rms_norm" in patched.ops
        found = run(norm, *tensors)
    bound = 1e-5 if dtype == torch.float32 else 2e-2
    for result, original in zip(found, expected):
        assert result.dtype == original.dtype and result.shape == original.shape
        scale = original.abs().max()
        assert (result.float() - original.float()).abs().max() <= bound * scale


@pytest.mark.parametrize("name, cls, options, form", CLASSES)
def test_what_is_found(name, cls, options, form):
    entry = table.GatedNorm(cls, *form)
    module = cls_of(name, cls).__module__
    bastile.register_patch("gated", module, entry)
    try:
        with bastile.apply("gated") as patched:
            assert "gated.rms_norm" in patched.ops
        other = "gemma" if form[1] == "llama" else "llama"
        wrong = table.GatedNorm(cls, form[0], other, form[2])
        bastile.register_patch("gated", module, wrong)
        with pytest.raises(patching.PatchError, match="but its numbers are those of"):
            bastile.apply("gated")
    finally:
        del table.MODELS["gated"]


def test_other_operands_run_as_they_are():
    """Without a gate, with a weight of another dtype, and with another activation."""
    x, gate = torch.randn(3, 8), torch.randn(3, 8)
    mamba = cls_of("mamba2", "MambaRMSNormGated")(8, group_size=4)
    expected = mamba(x), mamba(x.bfloat16(), gate.bfloat16())
    qwen4 = cls_of("qwen4_exp", "Qwen4ExpTextRMSNormGated")(8, activation="tanh")
    by_tanh = qwen4(x, gate)
    with bastile.apply("mamba2"), bastile.apply("qwen4_exp"):
        assert torch.equal(mamba(x), expected[0])
        result = mamba(x.bfloat16(), gate.bfloat16())
        assert result.dtype == torch.float32 and torch.equal(result, expected[1])
        assert torch.equal(qwen4(x, gate), by_tanh)

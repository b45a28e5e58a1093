# Part of Bastile, under the MIT License. See LICENSE.
"""Tests that are known not to pass, and why (docs/peers-tests.md)."""

from peers_tests.selection import find

_LEAF = "PyTorch refuses to overwrite a leaf that requires gradients in one graph"
_COUNTS = "counts kernels, and wants the upstream gradient overwritten"
_NEAR = "on the CPU, PyTorch's own rounding is as large as what is allowed"

_QUACK = (
    ("*_tuned_*", "a configuration or the autotuner of QuACK's kernels"),
    ("*_requires_config", "a configuration of QuACK's kernels"),
    ("*_degenerate_cluster_config_*", "a configuration of QuACK's kernels"),
    ("*::test_rmsnorm_compile_cache", "counts entries of QuACK's cache"),
    ("*_input_validation", "refuses what Bastile computes"),
    ("*_multiple_of_8_validation", "refuses what Bastile computes"),
    ("*::test_rotary_emb_qkv[*-True-dtype?]", _LEAF),
    ("*::test_rotary_emb_qkv_compile_packed_then_gqa[True]", _LEAF),
    ("*::test_rotary_emb_inplace_backward_no_copy[True]", _LEAF),
    ("*::test_rotary_emb_inplace_backward_no_copy[False]", _COUNTS),
    ("*::test_rotary_emb_qkv_inplace_kernel_count*", _COUNTS),
    ("*::test_rotary_emb_qkv_packed_reshape_backward_no_copy*", _COUNTS),
    ("*::test_cross_entropy[*-True-289-192-input_dtype0]", _NEAR),
    ("*::test_layernorm_forward_masks_oob_variance_lanes", _NEAR),
)
_VISION = "layer norms of a vision tower stay PyTorch's"
_HEADLESS = "Liger replaces the forward of a model without a head"
_UNWEIGHTED = "wants norms without a weight left alone, which Bastile patches"
_ON_CPU = "beside eager, which adds a weight's gradient in bfloat16 on the CPU"
_ROTATION = "wants to find Liger's own rotation"
_LAST_BIT = "eager rounds the activation twice; the test allows less than that moves"
_SCALED = "eager rounds each row's product, and a weight's gradient adds them"

_LIGER = (
    *(
        (f"*::test_apply_liger_kernel_to_instance_for_{model}", _VISION)
        for model in (
            "mllama_for_conditional_generation",
            "llama4_for_conditional_generation",
            "paligemma",
            "gemma3_conditional_generation",
            "smolvlm2",
            "qwen2_vl_for_conditional_generation",
        )
    ),
    *(
        (f"*::test_apply_liger_kernel_to_instance_for_{model}", _HEADLESS)
        for model in ("qwen3_vl", "qwen3_vl_moe", "qwen2_vl", "qwen2_5_vl")
    ),
    ("*::test_apply_liger_kernel_to_instance_for_gemma4_*", _UNWEIGHTED),
    ("*::test_apply_liger_kernel_to_instance_for_nemotron", "its squared ReLU"),
    ("*::test_qwen3_vl*_rope_hooks_applied", _ROTATION),
    (
        "*/test_rope.py::test_functional_correctness[*-9-7-41-41-41]",
        "heads of 41 elements, which are no pairs",
    ),
    ("*::test_liger_layer_norm[dtype1-0.02-0.02-4-16-128]", _ON_CPU),
    ("*::test_liger_layer_norm[dtype1-0.02-0.02-3-7-256]", _ON_CPU),
    ("*/test_geglu.py::test_correctness[dtype1-*", _LAST_BIT),
    *(
        (
            f"*/test_modulated_rms_norm.py::test_correctness[True-*-{mode}-dtype1-*",
            _SCALED,
        )
        for mode in ("batch-0.0-llama", "batch-1.0-gemma")
    ),
    ("*::test_routing_metadata_invariants*", "tables of Liger's experts"),
    ("*::test_float32_internal*", "launches Liger's Triton kernel by itself"),
)
_ROUTED = "a rounding sends a token to another expert, in eager as well"
_SATURATED = "eager differs from itself as much with a batch's rows in another order"
_SUM = "a sum of all outputs, which Bastile has more exactly than eager"

_CONVERGENCE = (
    ("*/bf16/test_mini_models*::test_mini_model[mini_gemma4_text-*", _SATURATED),
    ("*/test_mini_models.py::test_mini_model[mini_gpt_oss-*", _ROUTED),
    ("*/bf16/test_mini_models.py::test_mini_model[mini_qwen3_5_moe-*", _ROUTED),
    ("*/bf16/test_mini_models*::test_mini_model[mini_qwen3_vl_moe-*", _ROUTED),
    ("*/bf16/*::test_mini_model_vision[mini_pixtral-*", _SUM),
)
MISSES = {"quack": _QUACK, "liger": _LIGER, "liger-convergence": _CONVERGENCE}


def why(suite: str, test: str) -> str | None:
    """Why a test is known not to pass; None where it is not."""
    return find(MISSES[suite], test)

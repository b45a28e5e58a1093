# Part of Bastile, under the MIT License. See LICENSE.
"""Which tests of a peer count: those of what both libraries have."""

import fnmatch

#: The files of tests, relative to a checkout.
FILES = {
    "quack": (
        "tests/test_rmsnorm.py",
        "tests/test_layernorm.py",
        "tests/test_softmax.py",
        "tests/test_cross_entropy.py",
        "tests/test_rotary.py",
    ),
    "liger": ("test/transformers",),
    "liger-convergence": ("test/convergence",),
}

#: Patterns of tests that do not count, and why.
NOT_COUNTED = {
    "quack": (),
    "liger": (
        ("*/test_*cutedsl*", "another backend of Liger's"),
        ("*/test_*cutile*", "another backend of Liger's"),
        ("*/test_cute_moe_*", "another backend of Liger's"),
        ("*/test_moe.py*", "another backend of Liger's"),
        ("*/test_fused_linear_scaled_cross_entropy.py*", "another backend of Liger's"),
        ("*/test_utils.py*", "Liger's detection of devices"),
        ("*/test_fused_neighborhood_attention.py*", "no such function here"),
        ("*/test_multi_token_attention.py*", "no such function here"),
        ("*/test_flex_attention.py*", "PyTorch's attention, without Liger"),
        ("*/test_sparsemax.py*", "no such function here"),
        ("*/test_mhc.py*", "no such function here"),
        ("*/test_embedding.py*", "no such function here"),
        ("*/test_mm_int8int2.py*", "no such function here"),
        ("*/test_tiled_mlp.py*", "no such function here"),
        ("*/test_grpo_loss.py*", "Liger's kernel on logits; ours is of hidden states"),
        ("*::test_swiglu_blackwell_*", "compares two kernels of Liger's"),
    ),
    "liger-convergence": (),
}


def why_not_counted(suite: str, test: str) -> str | None:
    """Why a test, by its id in pytest, does not count; None where it does."""
    return find(NOT_COUNTED[suite], test)


def find(patterns: tuple[tuple[str, str], ...], test: str) -> str | None:
    """The reason beside the first pattern of a test's id. A bracket is itself."""
    for pattern, reason in patterns:
        if fnmatch.fnmatchcase(test, pattern.replace("[", "[[]")):
            return reason
    return None

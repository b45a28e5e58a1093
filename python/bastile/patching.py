# Part of Bastile, under the MIT License. See LICENSE.
"""Patches of Hugging Face Transformers with Bastile's kernels (docs/models.md).

Nothing of Transformers is imported before the first call of `apply`.
"""

from bastile._patching.api import (
    OPS,
    apply,
    apply_to_model,
    get_patched_ops,
    list_patches,
    register_attention,
    register_patch,
    reset,
)
from bastile._patching.registry import Patched
from bastile._patching.table import (
    CausalLoss,
    Experts,
    Heads,
    GatedNorm,
    Masks,
    Mlp,
    Norm,
    PatchError,
    PatchInfo,
    Residual,
    Rope,
)

__all__ = [
    "OPS",
    "CausalLoss",
    "Experts",
    "Heads",
    "GatedNorm",
    "Masks",
    "Mlp",
    "Norm",
    "PatchError",
    "PatchInfo",
    "Patched",
    "Residual",
    "Rope",
    "apply",
    "apply_to_model",
    "get_patched_ops",
    "list_patches",
    "register_attention",
    "register_patch",
    "reset",
]

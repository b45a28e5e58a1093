# Part of Bastile, under the MIT License. See LICENSE.
"""Categories of kernels, by their names and by the part of the model that ran them."""

import re

#: From the bottom of the stacked bar to its top.
CATEGORIES = (
    "matmul",
    "attention",
    "optimizer",
    "norm",
    "rope",
    "activation",
    "loss",
    "routing",
    "embedding",
    "elementwise",
    "copy",
    "other",
    "idle",
)
#: What the kernels of this package take no part in.
NOT_OURS = ("matmul", "attention", "optimizer", "routing", "embedding", "idle")

# What a name says whoever ran it.
_ALWAYS = (
    ("optimizer", r"multi_tensor_apply|fused_?adam|_foreach_|_adamw_kernel"),
    ("copy", r"^memcpy|^memset"),
    ("attention", r"flash|fmha|scaled_dot_product|sdpa"),
    (
        "matmul",
        r"gemm(?!a)|cutlass|nvjet|xmma|cublas|gemv|splitk|grouped_?mm"
        r"|^aten::(mm|bmm|addmm|baddbmm|_grouped_mm|mv)$|mkldnn|^mm_|^bmm_",
    ),
)
# The kernels of torch.compile are named for the operations that are in them. One
# that holds several counts for the first of these.
_COMPILED = (
    ("matmul", r"_tem_fused"),
    ("loss", r"nll_loss|log_softmax|logsumexp|cross_entropy"),
    ("norm", r"rsqrt|norm"),
    ("activation", r"silu|gelu|sigmoid|swiglu|geglu"),
    ("attention", r"_softmax"),
    ("rope", r"neg.*cat|cat.*neg|_cos|_sin|rope"),
    ("routing", r"topk|sort|scatter|index_put|index_add|histc"),
    ("embedding", r"embedding"),
)
_COMPILED_NAME = re.compile(r"^(triton_(poi|red|per|tem)_|cpp_)?fused_|^triton_|^cpp_")
# Kernels made for one thing, as libraries name them.
_MADE_FOR = (
    ("loss", r"cross_entropy|nll_loss|linear_loss"),
    ("norm", r"rms_?norm|layer_?norm|norm_(add|rope)"),
    ("rope", r"rope_|_rope|rotary"),
    ("activation", r"swiglu|geglu|reglu|silu|gelu"),
)
# What a name says where no part of the model is known.
_NAMED = (
    ("loss", r"log_?softmax"),
    ("norm", r"rsqrt"),
    ("activation", r"sigmoid"),
    ("routing", r"topk|sort|scatter|histogram|index_add|bincount"),
    ("embedding", r"embedding"),
    ("copy", r"copy|catarray|transpose|aten::(cat|clone|contiguous|repeat)"),
    (
        "elementwise",
        r"elementwise|reduce_kernel|softmax|fill"
        r"|aten::(add|sub|mul|div|neg|pow|mean|sum|exp|fill|zero|where|clamp|max)",
    ),
)
# Which part of the model a class is, by its name.
_CLASSES = (
    ("norm", r"Norm"),
    ("rope", r"Rotary|Rope"),
    ("routing", r"Expert|Router|Gate$|Moe|MoE|TopK"),
    ("activation", r"MLP|FeedForward|Activation|GLU"),
    ("matmul", r"Linear"),
    ("embedding", r"Embedding"),
)


def _first(rules, text):
    for category, pattern in rules:
        if re.search(pattern, text, re.IGNORECASE):
            return category
    return None


def of_class(name: str) -> "str | None":
    """The category of what a module computes itself, by the name of its class."""
    for category, pattern in _CLASSES:
        if re.search(pattern, name):
            return category
    return None


def of_kernel(name: str, scope: "str | None") -> str:
    """The category of a kernel that ``scope``, the category of the innermost part of
    the model that is known, ran; ``scope`` is None where none is."""
    # The products in an attention that is not one kernel are part of it.
    if scope in ("attention", "optimizer"):
        return scope
    category = _first(_ALWAYS, name)
    if category is not None:
        return category
    if _COMPILED_NAME.search(name):
        return _first(_COMPILED, name) or "elementwise"
    return _first(_MADE_FOR, name) or scope or _first(_NAMED, name) or "other"

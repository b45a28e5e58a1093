# Part of Bastile, under the MIT License. See LICENSE.
"""What published models of every patched type have that kernels may depend on: the
size of a head and how much of it turns, the shares of heads, epsilon, biases, tied
embeddings, and what is done to logits. Widths, depths and vocabularies, which do not
matter here, are those of `tiny_models`."""

#: By name: the model type, how many heads of queries and keys and of what size, and the
#: rest of the configuration.
CONFIGURATIONS = {
    "gemma-2-2b": (
        "gemma2",
        (2, 1, 256),
        dict(
            rms_norm_eps=1e-6,
            final_logit_softcapping=30.0,
            attn_logit_softcapping=50.0,
            query_pre_attn_scalar=256,
            tie_word_embeddings=True,
        ),
    ),
    "gemma-3-1b": (
        "gemma3",
        (4, 1, 256),
        dict(
            rms_norm_eps=1e-6,
            final_logit_softcapping=None,
            query_pre_attn_scalar=256,
            tie_word_embeddings=True,
        ),
    ),
    "GLM-4-9B-0414": (
        "glm4",
        (4, 1, 128),
        dict(rms_norm_eps=1e-5, partial_rotary_factor=0.5, attention_bias=False),
    ),
    "GLM-Z1-9B": (
        "glm4",
        (4, 1, 128),
        dict(rms_norm_eps=1e-5, partial_rotary_factor=0.5, attention_bias=True),
    ),
    "gpt-oss-20b": (
        "gpt_oss",
        (8, 1, 64),
        dict(rms_norm_eps=1e-5, num_local_experts=4, num_experts_per_tok=2),
    ),
    "granite-3.3-8b": (
        "granite",
        (4, 1, 128),
        dict(
            rms_norm_eps=1e-5,
            attention_multiplier=0.0078125,
            embedding_multiplier=12.0,
            residual_multiplier=0.22,
            logits_scaling=16.0,
            tie_word_embeddings=True,
        ),
    ),
    "Llama-2-7b": ("llama", (2, 2, 128), dict(rms_norm_eps=1e-5)),
    "Llama-3.2-1B": (
        "llama",
        (4, 1, 64),
        dict(rms_norm_eps=1e-5, tie_word_embeddings=True),
    ),
    "Mistral-Nemo-12B": ("mistral", (4, 1, 128), dict(rms_norm_eps=1e-5)),
    "Mixtral-8x7B": (
        "mixtral",
        (4, 1, 128),
        dict(rms_norm_eps=1e-5, num_local_experts=8, num_experts_per_tok=2),
    ),
    "OLMo-2-1B": ("olmo2", (2, 2, 128), dict(rms_norm_eps=1e-6)),
    "Phi-3-mini": ("phi3", (2, 2, 96), dict(rms_norm_eps=1e-5)),
    "Phi-4": ("phi3", (4, 1, 128), dict(rms_norm_eps=1e-5)),
    # Of 128 elements 96 turn, and half of these does not divide the head.
    "Phi-4-mini": (
        "phi3",
        (3, 1, 128),
        dict(rms_norm_eps=1e-5, partial_rotary_factor=0.75, tie_word_embeddings=True),
    ),
    "Qwen2.5-0.5B": (
        "qwen2",
        (7, 1, 64),
        dict(rms_norm_eps=1e-6, tie_word_embeddings=True),
    ),
    "Qwen3-0.6B": (
        "qwen3",
        (2, 1, 128),
        dict(rms_norm_eps=1e-6, tie_word_embeddings=True),
    ),
    "Qwen3-8B": (
        "qwen3",
        (4, 1, 128),
        dict(rms_norm_eps=1e-6, tie_word_embeddings=False),
    ),
    "Qwen3-30B-A3B": (
        "qwen3_moe",
        (8, 1, 128),
        dict(
            rms_norm_eps=1e-6,
            num_experts=8,
            num_experts_per_tok=4,
            norm_topk_prob=True,
            moe_intermediate_size=48,
        ),
    ),
}


def configuration(name):
    """The model type and the changes to the tiny configuration of that type."""
    model_type, (queries, keys, size), fields = CONFIGURATIONS[name]
    heads = {
        "num_attention_heads": queries,
        "num_key_value_heads": keys,
        "head_dim": size,
    }
    if model_type in ("phi3", "olmo2", "qwen2", "granite", "mixtral"):
        # Their heads fill the width.
        heads["hidden_size"] = queries * size
    if model_type == "phi3":
        # Where the tiny one is another.
        fields = {"partial_rotary_factor": 1.0, **fields}
    return model_type, {"num_hidden_layers": 1, **heads, **fields}

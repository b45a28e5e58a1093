# Part of Bastile, under the MIT License. See LICENSE.
"""Configurations of the models that steps are measured on, as their makers publish
them, some with fewer layers or experts."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Model:
    """A configuration, and the shape of a step that suits one GPU."""

    name: str
    #: Transformers' name of the architecture.
    model_type: str
    #: What it is, for people.
    title: str
    settings: dict
    batch: int
    seq: int
    #: Settings of other parts than the language model, such as the one that reads
    #: images: a configuration of such a model holds one of each part.
    parts: "dict | None" = None


def _rope(theta, **more):
    return {"rope_theta": theta, "rope_type": "default", **more}


_LLAMA_ROPE = _rope(
    500000.0,
    rope_type="llama3",
    factor=32.0,
    low_freq_factor=1.0,
    high_freq_factor=4.0,
    original_max_position_embeddings=8192,
)

_MODELS = (
    Model(
        "qwen3",
        "qwen3",
        "Qwen3 0.6B",
        {
            "hidden_size": 1024,
            "intermediate_size": 3072,
            "num_hidden_layers": 28,
            "num_attention_heads": 16,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "vocab_size": 151936,
            "max_position_embeddings": 40960,
            "rms_norm_eps": 1e-6,
            "rope_parameters": _rope(1000000.0),
            "tie_word_embeddings": True,
        },
        4,
        2048,
    ),
    Model(
        "llama",
        "llama",
        "Llama 3.2 1.2B",
        {
            "hidden_size": 2048,
            "intermediate_size": 8192,
            "num_hidden_layers": 16,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "head_dim": 64,
            "vocab_size": 128256,
            "max_position_embeddings": 131072,
            "rms_norm_eps": 1e-5,
            "rope_parameters": _LLAMA_ROPE,
            "tie_word_embeddings": True,
        },
        4,
        2048,
    ),
    Model(
        "gpt_oss",
        "gpt_oss",
        "GPT-OSS, 4 layers of 8 experts",
        {
            "hidden_size": 2880,
            "intermediate_size": 2880,
            "num_hidden_layers": 4,
            "num_attention_heads": 64,
            "num_key_value_heads": 8,
            "head_dim": 64,
            "vocab_size": 201088,
            "num_local_experts": 8,
            "num_experts_per_tok": 4,
            "sliding_window": 128,
            "tie_word_embeddings": False,
        },
        2,
        2048,
    ),
    Model(
        "qwen2",
        "qwen2",
        "Qwen2.5 0.5B",
        {
            "hidden_size": 896,
            "intermediate_size": 4864,
            "num_hidden_layers": 24,
            "num_attention_heads": 14,
            "num_key_value_heads": 2,
            "vocab_size": 151936,
            "max_position_embeddings": 32768,
            "rms_norm_eps": 1e-6,
            "rope_parameters": _rope(1000000.0),
            "tie_word_embeddings": True,
        },
        4,
        2048,
    ),
    Model(
        "qwen3_moe",
        "qwen3_moe",
        "Qwen3 30B-A3B, 4 layers of 16 experts",
        {
            "hidden_size": 2048,
            "intermediate_size": 6144,
            "moe_intermediate_size": 768,
            "num_hidden_layers": 4,
            "num_attention_heads": 32,
            "num_key_value_heads": 4,
            "head_dim": 128,
            "vocab_size": 151936,
            "num_experts": 16,
            "num_experts_per_tok": 8,
            "max_position_embeddings": 40960,
            "rms_norm_eps": 1e-6,
            "rope_parameters": _rope(1000000.0),
            "tie_word_embeddings": False,
        },
        2,
        2048,
    ),
    Model(
        "mistral",
        "mistral",
        "Mistral 7B, 4 layers",
        {
            "hidden_size": 4096,
            "intermediate_size": 14336,
            "num_hidden_layers": 4,
            "num_attention_heads": 32,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "vocab_size": 32768,
            "max_position_embeddings": 32768,
            "rms_norm_eps": 1e-5,
            "rope_parameters": _rope(1000000.0),
            "sliding_window": None,
        },
        4,
        2048,
    ),
    Model(
        "gemma2",
        "gemma2",
        "Gemma 2 2B, 8 layers",
        {
            "hidden_size": 2304,
            "intermediate_size": 9216,
            "num_hidden_layers": 8,
            "num_attention_heads": 8,
            "num_key_value_heads": 4,
            "head_dim": 256,
            "vocab_size": 256000,
        },
        2,
        2048,
    ),
    Model(
        "gemma3",
        "gemma3_text",
        "Gemma 3 1B",
        {
            "hidden_size": 1152,
            "intermediate_size": 6912,
            "num_hidden_layers": 26,
            "num_attention_heads": 4,
            "num_key_value_heads": 1,
            "head_dim": 256,
            "vocab_size": 262144,
            "max_position_embeddings": 32768,
            "sliding_window": 512,
        },
        4,
        2048,
    ),
    # Its layers' own sizes follow from their number, which is a pattern of six.
    Model(
        "gemma4",
        "gemma4_text",
        "Gemma 4, 6 layers",
        {
            "hidden_size": 2304,
            "intermediate_size": 9216,
            "num_hidden_layers": 6,
            "num_attention_heads": 8,
            "num_key_value_heads": 4,
            "head_dim": 256,
            "vocab_size": 262144,
            "sliding_window": 512,
        },
        2,
        2048,
    ),
    Model(
        "olmo3",
        "olmo3",
        "OLMo 3 7B, 4 layers",
        {
            "hidden_size": 4096,
            "intermediate_size": 11008,
            "num_hidden_layers": 4,
            "num_attention_heads": 32,
            "num_key_value_heads": 32,
            "vocab_size": 100278,
            "max_position_embeddings": 65536,
            "sliding_window": 4096,
            "rms_norm_eps": 1e-6,
        },
        4,
        2048,
    ),
    Model(
        "qwen3_vl",
        "qwen3_vl",
        "Qwen3-VL 2B on text, 8 layers",
        {
            "hidden_size": 2048,
            "intermediate_size": 6144,
            "num_hidden_layers": 8,
            "num_attention_heads": 16,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "vocab_size": 151936,
            "max_position_embeddings": 262144,
            "rms_norm_eps": 1e-6,
            "rope_parameters": _rope(
                5000000.0, mrope_section=[24, 20, 20], mrope_interleaved=True
            ),
        },
        4,
        2048,
        parts={
            "vision_config": {
                "depth": 2,
                "hidden_size": 1024,
                "intermediate_size": 4096,
                "num_heads": 16,
                "out_hidden_size": 2048,
                "deepstack_visual_indexes": [0, 1],
            },
            "tie_word_embeddings": True,
        },
    ),
)
#: By name.
MODELS = {model.name: model for model in _MODELS}

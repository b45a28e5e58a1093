# Part of Bastile, under the MIT License. See LICENSE.
"""What small models of a type need beyond what `any_type` makes of every type's
configuration, and the types that cannot be tried."""

import torch
import transformers

_MROPE = {
    "rope_parameters": {
        "rope_type": "default",
        "rope_theta": 10000.0,
        "mrope_section": [2, 3, 3],
    }
}
_MROPE_4 = {"rope_scaling": {"rope_type": "default", "mrope_section": [2, 3, 3]}}
_AS_MANY_HEADS = {"num_key_value_heads": 4}
_TWO_OF_FOUR = {
    "n_routed_experts": 4,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
}
_KINDS = ["linear_attention", "full_attention"]

_MOE_OF_PICTURES = {"num_experts": 4, "moe_intermediate_size": 48, "top_k_experts": 2}
_INDEXER = {
    "indexer_n_heads": 4,
    "indexer_kv_heads": 1,
    "indexer_head_dim": 16,
    "indexer_budget": 8,
    "indexer_compress_ratio": 4,
}
_ANGLES = {"rope_type": "default", "rope_theta": 10000.0}

#: By name (`try_types.types`), changes of the configuration.
SETTINGS = {
    "axk2": _AS_MANY_HEADS,
    "bamba": {"attn_layer_indices": [1]},
    "big_bird": {"attention_type": "original_full"},
    "blt": {
        "num_hidden_layers": 2,
        "encoder_config": {"hidden_size_global": 64},
        "decoder_config": {"hidden_size_global": 64},
    },
    "codegen": {"rotary_dim": 8},
    "deepseek_v2": _TWO_OF_FOUR,
    "deepseek_v32": _AS_MANY_HEADS,
    "dots1": {**_TWO_OF_FOUR, "first_k_dense_replace": 1},
    "dots3_note_text": _AS_MANY_HEADS,
    "gemma3n_text": {"num_kv_shared_layers": 0},
    "gemma4_assistant": {
        "text_config": {"hidden_size_per_layer_input": 0, "num_kv_shared_layers": 0}
    },
    "glm4v": {"text_config": _MROPE},
    "glm46v": {"text_config": _MROPE},
    "glm5_next": {"text_config": _AS_MANY_HEADS},
    "glm_moe_dsa": _AS_MANY_HEADS,
    "glm_ocr": {"text_config": _MROPE},
    "glmga": {"text_config": _MROPE},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]]},
    "gptj": {"rotary_dim": 8},
    "granitemoehybrid": {"layer_types": _KINDS},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1},
    "llama4:pictures": {"vision_config": {"intermediate_size": 256}},
    "longcat_flash": {**_AS_MANY_HEADS, "head_dim": 8},
    "mistral_large4": {"text_config": _AS_MANY_HEADS},
    "paddleocr_vl": {"text_config": _MROPE},
    "qwen2_5_omni_thinker": {"text_config": _MROPE},
    "qwen2_5_vl": {"text_config": _MROPE},
    "qwen2_vl": {"text_config": _MROPE},
    "recurrent_gemma": {"block_types": ["recurrent", "attention"]},
    "reformer": {
        "is_decoder": True,
        "axial_pos_embds": False,
        "attn_layers": ["local", "local"],
    },
    "xmod": {"default_language": "en_XX"},
    "chameleon": {"vocabulary_map": {"<image>": 100}},
    "emu3:pictures": {
        "vocabulary_map": {"<image>": 100},
        "vq_config": {"base_channels": 32},
    },
    "cohere_compass": {
        "text_config": {
            "rope_parameters": dict.fromkeys(
                ["full_attention", "sliding_attention"],
                {**_ANGLES, "mrope_section": [2, 3, 3]},
            )
        }
    },
    "cohere_compass_text": {
        "rope_parameters": dict.fromkeys(
            ["full_attention", "sliding_attention"],
            {**_ANGLES, "mrope_section": [2, 3, 3]},
        )
    },
    "dbrx": {"attn_config": {"rope_theta": 10000.0, "clip_qkv": 8.0}},
    "deepseek_ocr2": {
        "text_config": {**_TWO_OF_FOUR, "mlp_layer_types": ["dense", "sparse"]}
    },
    "diffusion_gemma": {"text_config": _MOE_OF_PICTURES},
    "ernie4_5_vl_moe": {
        "text_config": {
            "rope_parameters": {**_ANGLES, "mrope_section": [3, 3, 2]},
            "moe_intermediate_size": [48, 48],
        }
    },
    "gemma4_unified_assistant": {"text_config": {"num_kv_shared_layers": 0}},
    "glm4v_moe": {
        "text_config": {
            "rope_parameters": {
                **_ANGLES,
                "partial_rotary_factor": 0.5,
                "mrope_section": [2, 1, 1],
            }
        }
    },
    "granite4_vision": {"deepstack_layer_map": [[0, 1]], "downsample_rate": "4/8"},
    "hunyuan_vl": {"text_config": _MROPE},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"]},
    "mamba2": {"num_heads": 8},
    "molmo2": {"adapter_config": {"vision_feature_layer": [0, 1]}},
    "musicgen": {},
    "nemotron": {"num_key_value_heads": 2},
    "nemotron_h": {"n_groups": 2},
    "nemotron_h_omni": {
        "text_config": {"n_groups": 2},
        "vision_config": {"video_temporal_patch_size": 2},
    },
    "qwen4_exp": {"text_config": _INDEXER},
    "qwen4_exp:pictures": {"text_config": _INDEXER},
    "qwen4_exp_text": _INDEXER,
    "step3p7": {"text_config": {"sliding_window": 8}},
    "udop": {"decoder_start_token_id": 1},
    "zamba": {
        "num_hidden_layers": 4,
        "layers_block_type": [
            "linear_attention",
            "hybrid",
            "linear_attention",
            "hybrid",
        ],
    },
    "xlstm": {"qk_dim_factor": 1.0},
    "blip": {"vision_config": {"image_size": 32}},
    "blip-2": {
        "vision_config": {"image_size": 28},
        "num_query_tokens": 2,
        "image_token_index": 100,
    },
    "instructblip": {
        "vision_config": {"image_size": 28},
        "num_query_tokens": 2,
        "image_token_index": 100,
    },
    "instructblipvideo": {
        "vision_config": {"image_size": 28},
        "num_query_tokens": 2,
        "video_token_index": 100,
    },
    "git": {"vision_config": {"image_size": 32}},
    "idefics": {"vision_config": {"image_size": 28}},
    "kosmos-2": {"vision_config": {"image_size": 28}, "latent_query_num": 2},
}
#: The same, where Transformers 4 needs something else.
SETTINGS_4 = {
    "glm4v": {"text_config": _MROPE_4},
    "glm4v_moe": {
        "text_config": {
            "partial_rotary_factor": 0.5,
            "rope_scaling": {"rope_type": "default", "mrope_section": [2, 1, 1]},
        }
    },
    "granitemoehybrid": {"layer_types": ["mamba", "attention"]},
    "jamba": {
        "attn_layer_period": 2,
        "attn_layer_offset": 1,
        "use_mamba_kernels": False,
    },
    "mllama": {"text_config": {"rope_scaling": {"rope_type": "default"}}},
    "mllama:pictures": {"text_config": {"rope_scaling": {"rope_type": "default"}}},
    "qwen2_5_vl": {"text_config": _MROPE_4},
    "qwen2_vl": {"text_config": _MROPE_4},
    "qwen3_vl": {"text_config": _MROPE_4},
    "qwen3_vl_moe": {"text_config": _MROPE_4},
    "transfo-xl": {"cutoffs": [32, 64]},
    "zamba": {"num_hidden_layers": 6, "attn_layer_period": 3, "attn_layer_offset": 1},
}
if transformers.__version__.startswith("4."):
    SETTINGS = {**SETTINGS, **SETTINGS_4}


def _picture(config, *ahead):
    size = config.vision_config.image_size
    return {"pixel_values": torch.randn(*ahead, 3, size, size)}


def _seen(config, tokens, count):
    """Tokens of which the first ones stand for a picture."""
    tokens = tokens.clone()
    tokens[:, :count] = 100
    return tokens


#: By name, further inputs for a configuration and tokens.
INPUTS = {
    "blip": lambda config, tokens: _picture(config, 2),
    "blip-2": lambda config, tokens: {
        **_picture(config, 2),
        "input_ids": _seen(config, tokens, 2),
    },
    "git": lambda config, tokens: _picture(config, 2),
    "idefics": lambda config, tokens: {
        **_picture(config, 2, 1),
        "image_attention_mask": torch.ones(2, 12, 1),
        "attention_mask": torch.ones(2, 12, dtype=torch.long),
    },
    "instructblip": lambda config, tokens: {
        **_picture(config, 2),
        "input_ids": _seen(config, tokens, 2),
        "qformer_input_ids": tokens,
    },
    "instructblipvideo": lambda config, tokens: {
        **_picture(config, 2, 4),
        "input_ids": _seen(config, tokens, 8),
        "qformer_input_ids": tokens,
    },
    "kosmos-2": lambda config, tokens: {
        **_picture(config, 2),
        "image_embeds_position_mask": torch.arange(12).expand(2, 12) < 2,
    },
    "molmo2": lambda config, tokens: {"mm_token_type_ids": torch.zeros_like(tokens)},
    "pix2struct": lambda config, tokens: {
        "flattened_patches": torch.cat(
            (torch.ones(2, 4, 2), torch.randn(2, 4, 768)), dim=-1
        ),
        "input_ids": None,
    },
    "udop": lambda config, tokens: {"bbox": torch.rand(2, 12, 4)},
}

_NEEDS_TIMM = "its pictures need the package timm"
_OF_ANOTHER = "it drafts tokens from the cache of another model, which its loss needs"
_FITS = "its parts fit each other in no smaller sizes that are known here"
_OF_PARTS = (
    "its configuration is that of all parts, and the causal model has one of them"
)
#: By name, why a type cannot be tried.
NOT_TRIED = {
    "diffusion_gemma": "it computes no loss",
    "dots3_note": _FITS,
    "dots3_note:pictures": _FITS,
    "evolla": "Transformers gives AutoModelForImageTextToText no class of it",
    "fast_vlm": _NEEDS_TIMM,
    "gemma3n": _NEEDS_TIMM,
    "gemma4_assistant": _OF_ANOTHER,
    "gemma4_unified_assistant": _OF_ANOTHER,
    "inkling_mm_model": "it needs the package scipy",
    "musicgen": _OF_PARTS,
    "musicgen_melody": _OF_PARTS,
    "perception_lm": _NEEDS_TIMM,
    "pi0": "it learns the motions of robots and takes no labels",
    "pp_formulanet": "it reads formulas of pictures and takes no tokens",
    "reformer": "its results are random, whatever the seed",
    "vision-encoder-decoder": "it has no parts by default",
}
#: The same in Transformers 4.
_NOT_TRIED_4 = {
    "dbrx": "its configuration cannot be made of parts",
    "emu3": _OF_PARTS,
    "gemma3n": _NEEDS_TIMM,
    "llama4": _OF_PARTS,
    "musicgen": _OF_PARTS,
    "musicgen_melody": _OF_PARTS,
    "perception_lm": _NEEDS_TIMM,
    "phi4_multimodal": "it has no parts by default",
    "pixtral": "Transformers has the model of its pictures alone",
    "qdqbert": "it needs the package pytorch-quantization",
    "reformer": "its results are random, whatever the seed",
    "speech_to_text_2": "Transformers' own model of it cannot be made",
    "transfo-xl": "Transformers' own model of it fails",
    "vision-encoder-decoder": "it has no parts by default",
    "zamba": "Transformers' own model of few layers cannot be made",
}
if transformers.__version__.startswith("4."):
    NOT_TRIED = _NOT_TRIED_4

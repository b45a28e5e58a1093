# Part of Bastile, under the MIT License. See LICENSE.
"""A small model of any type of Transformers, from the type's default configuration."""

import inspect

import torch
import transformers
import type_settings
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

# Threads cost more than they bring at these sizes.
torch.set_num_threads(1)

VOCABULARY = 128
#: Tokens from here on mean pictures, sounds and the like.
_SPECIAL = 96

_SIZES = {
    64: (
        "adapter_in_dim adapter_input_size projector_input_dim projector_output_dim "
        "vision_output_dim attention_hidden_size cross_attention_hidden_size d_model dim "
        "decoder_hidden_size embed_dim embedding_size encoder_hidden_size "
        "encoder_stack_hidden_size hidden_dim hidden_size "
        "lm_embed_dim lru_width n_embd out_hidden_size proj_dim project_dim "
        "projection_dim text_hidden_size vision_hidden_size vocab_hidden_size "
        "word_embed_proj_dim max_position_embeddings n_positions n_ctx "
        "max_sequence_length model_max_length output_dim mm_hidden_size "
        "qformer_hidden_size d_embed resampler_dim input_hidden_size"
    ),
    96: (
        "d_ff dff decoder_ffn_dim encoder_ffn_dim ffn_dim ffn_hidden_size "
        "intermediate_size n_inner dense_intermediate_size inner_dim mlp_dim "
        "shared_expert_intermediate_size shared_intermediate_size "
        "intermediate_size_mlp block_ff_dim prefix_intermediate_size "
        "mlp_hidden_size"
    ),
    48: "moe_intermediate_size expert_ffn_hidden_size moe_latent_size",
    16: (
        "head_dim attention_head_dim d_kv global_head_dim kv_channels kv_lora_rank "
        "linear_key_head_dim linear_value_head_dim q_lora_rank v_head_dim "
        "mamba_d_state mamba_d_head ssm_state_size state_size mamba_head_dim "
        "mamba_headdim attention_head_size d_head hidden_size_per_layer_input "
        "swa_head_dim swa_v_head_dim o_lora_rank index_head_dim time_step_rank "
        "mamba_dt_rank sliding_window attention_chunk_size chunk_size "
        "mamba_chunk_size qk_dim"
    ),
    8: "qk_nope_head_dim qk_rope_head_dim",
    4: (
        "attention_heads decoder_attention_heads encoder_attention_heads n_head "
        "n_heads num_attention_heads num_heads num_decoder_attention_heads "
        "num_encoder_attention_heads num_query_heads linear_num_value_heads "
        "moe_num_experts n_routed_experts num_experts num_local_experts "
        "num_routed_experts mamba_n_heads mamba_num_heads index_n_heads "
        "swa_num_attention_heads"
    ),
    2: (
        "decoder_layers depth encoder_layers n_layer n_layers num_decoder_layers "
        "num_encoder_layers num_hidden_layers num_key_value_heads num_kv_heads "
        "num_layers layers moe_topk moe_k num_experts_per_tok num_experts_per_token "
        "num_selected_experts top_k_experts linear_num_key_heads top_k "
        "num_global_key_value_heads decoder_layerdrop_layers swa_num_key_value_heads "
        "num_resampler_layers num_blocks n_block"
    ),
    1: "n_group topk_group n_shared_experts num_nextn_predict_layers first_k_dense_replace",
}
_SMALL = {name: size for size, names in _SIZES.items() for name in names.split()}
_SMALL["vocab_size"] = _SMALL["vocab_size_per_layer_input"] = VOCABULARY
_SMALL["text_vocab_size"] = _SMALL["encoder_hash_byte_group_vocab"] = VOCABULARY
_TOKENS = {"pad": 0, "bos": 1, "eos": 2, "decoder_start": 1}


def configuration(name, **changes):
    """The configuration of a small model."""
    model_type, _, _ = name.partition(":")
    changes = {**type_settings.SETTINGS.get(name, {}), **changes}
    tokens = iter(range(_SPECIAL, VOCABULARY))
    return _shrunk(CONFIG_MAPPING[model_type], tokens, changes)


def _fields(cls):
    """What the class's instances are made of, with default values."""
    found = {}
    for parent in reversed(cls.__mro__):
        if parent in transformers.PretrainedConfig.__mro__:
            continue
        for name, default in list(vars(parent).items()):
            if name in getattr(parent, "__annotations__", {}):
                found[name] = default
        own = vars(parent).get("__init__")
        if own is not None:
            for x in inspect.signature(own).parameters.values():
                if x.default is not x.empty:
                    found[x.name] = x.default
    return found


def _shrunk(cls, tokens, changes):
    fields = {}
    for name, default in _fields(cls).items():
        small = _small(name, default, tokens)
        if small is not None:
            fields[name] = small
        elif name == "head_dim" and default is None:
            fields[name] = _SMALL[name]
    for name in ("pad_token_id", "bos_token_id", "eos_token_id"):
        if cls.model_type:
            fields[name] = _TOKENS[name.partition("_")[0]]
    made = cls()
    fields |= _layers(made)
    for name in getattr(cls, "sub_configs", {}):
        part = getattr(made, name, None)
        if isinstance(part, transformers.PretrainedConfig):
            own = changes.pop(name, {})
            fields[name] = _shrunk(type(part), tokens, dict(own)).to_dict()
    fields |= _angles(made, {**fields, **changes})
    return cls(**{**fields, **changes})


#: What configurations call the number of layers.
_LAYERS = ("num_hidden_layers", "num_layers", "n_layer", "n_layers", "depth")


def _layers(made):
    """Of lists with an entry a layer, those entries that have every value, and the
    number of layers."""
    own = vars(made)
    for count in _LAYERS:
        lists = {
            name: value
            for name, value in own.items()
            if isinstance(value, (list, tuple)) and len(value) == own.get(count)
        }
        if not lists:
            continue
        chosen = set()
        for value in lists.values():
            chosen |= {value.index(x) for x in value}
        others = (i for i in range(own[count]) if i not in chosen)
        chosen = sorted(chosen | {next(others)} if len(chosen) < 2 else chosen)
        fields = {name: [x[i] for i in chosen] for name, x in lists.items()}
        return {**fields, count: len(chosen)}
    return {}


def _angles(made, fields):
    """The sections of angles, for heads of another size."""
    found = {}
    for name in ("rope_parameters", "rope_scaling"):
        value = getattr(made, name, None)
        if isinstance(value, dict) and value.get("mrope_section"):
            size = fields.get("head_dim", 16) * value.get("partial_rotary_factor", 1)
            half = int(size) // 2
            third = 3 * half // 8
            sections = [half - 2 * third, third, third]
            found[name] = {**value, "mrope_section": sections}
    return found


def _small(name, default, tokens):
    if isinstance(default, bool):
        return None
    if isinstance(default, int) and name in _SMALL:
        return min(default, _SMALL[name]) or None
    stem, _, last = name.rpartition("_")
    if last in ("id", "index") and stem.endswith("token") and isinstance(default, int):
        stem = stem.removesuffix("_token")
        return _TOKENS[stem] if stem in _TOKENS else next(tokens)
    return None


def make(config, auto):
    """A model in training mode, in float32, all of whose parameters are random."""
    transformers.set_seed(0)
    model = auto.from_config(config).float().train()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.is_floating_point():
                noise = torch.randn(parameter.shape, generator=generator)
                parameter.nan_to_num_(0.0, 0.0, 0.0).add_(0.05 * noise)
    return model


def inputs(name, model, seed=0, shape=(2, 12)):
    """Inputs and labels, of which some do not count."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(3, _SPECIAL, shape, generator=generator)
    labels = tokens.clone()
    labels[:, :2] = -100
    made = {"input_ids": tokens, "labels": labels}
    if name in type_settings.INPUTS:
        torch.manual_seed(3)
        made |= type_settings.INPUTS[name](model.config, tokens)
    return {key: value for key, value in made.items() if value is not None}


def pictures(model):
    """Inputs for a model of pictures; None for any other."""
    parameters = inspect.signature(type(model).forward).parameters
    config = model.config
    generator = torch.Generator().manual_seed(2)
    if "grid_thw" in parameters:
        side = config.patch_size
        size = getattr(config, "in_channels", getattr(config, "in_chans", 3)) * side**2
        size *= getattr(
            config, "temporal_patch_size", getattr(config, "patch_temporal", 1)
        )
        first = list(parameters)[1]
        patches = torch.randn(16, size, generator=generator)
        return {first: patches, "grid_thw": torch.tensor([[1, 4, 4]])}
    if "pixel_values" in parameters and "input_ids" not in parameters:
        side = getattr(config, "image_size", 32)
        sides = side if isinstance(side, (list, tuple)) else (side, side)
        channels = getattr(config, "num_channels", 3)
        return {"pixel_values": torch.randn(1, channels, *sides, generator=generator)}
    return None

# Part of Bastile, under the MIT License. See LICENSE.
"""The models that steps are measured on: configurations, random weights, data.

Nothing is downloaded. A model is what Transformers builds from the configuration
below; its weights are drawn at random.
"""

import dataclasses
import zlib

#: What ``tiny-NAME`` makes of a model: seconds on a CPU.
_TINY = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 256,
}
_TINY_EXPERTS = {"num_experts_per_tok": 2, "moe_intermediate_size": 48}
_TINY_BATCH, _TINY_SEQ = 2, 32

# The settings of a model's own tokenizer, which there is none of here: a token
# that ends a text would cut a generation short, and one that pads would count less.
_NO_SPECIAL_TOKENS = {
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
}


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
)
#: By name.
MODELS = {model.name: model for model in _MODELS}


def find(name: str) -> Model:
    """The model of a name; ``tiny-NAME`` is one of the same architecture for tests.

    Raises ``ValueError`` with the names there are.
    """
    base = name.removeprefix("tiny-")
    if base not in MODELS:
        known = ", ".join(MODELS)
        raise ValueError(
            f"there is no model '{name}': name one of {known}, or tiny- and one of them"
        )
    model = MODELS[base]
    if base == name:
        return model
    settings = {**model.settings, **_TINY}
    settings.update(
        {key: value for key, value in _TINY_EXPERTS.items() if key in settings}
    )
    for key in ("num_experts", "num_local_experts"):
        if key in settings:
            settings[key] = 4
    if settings.get("sliding_window"):
        settings["sliding_window"] = 8
    return Model(
        name, model.model_type, f"tiny {base}", settings, _TINY_BATCH, _TINY_SEQ
    )


def build(
    model: Model,
    *,
    device: str,
    dtype: str = "bfloat16",
    layers: "int | None" = None,
    attention: "str | None" = None,
    seed: int = 0,
):
    """A causal language model of Transformers with random weights.

    ``layers`` replaces the configuration's number; ``attention`` is Transformers'
    ``attn_implementation``, its own choice where None. The weights depend on their
    names, shapes and ``seed`` alone, so that two libraries that build other modules
    of the same names start alike.
    """
    import torch
    import transformers

    settings = {**model.settings, **_NO_SPECIAL_TOKENS}
    if layers is not None:
        settings["num_hidden_layers"] = layers
    config = transformers.AutoConfig.for_model(model.model_type, **settings)
    chosen = {} if attention is None else {"attn_implementation": attention}
    torch.manual_seed(seed)
    with torch.device(device):
        built = transformers.AutoModelForCausalLM.from_config(
            config, dtype=getattr(torch, dtype), **chosen
        )
    _draw_weights(built, seed)
    return built


def _draw_weights(built, seed):
    """Draws again what the model drew, each parameter by a generator of its own;
    what is constant, as the weights of norms are, stays."""
    import torch

    deviation = getattr(built.config, "initializer_range", 0.02)
    for name, parameter in built.named_parameters():
        # One number of two is enough to see that they were drawn.
        if parameter.numel() < 2 or (parameter == parameter.flatten()[0]).all():
            continue
        generator = torch.Generator(parameter.device)
        generator.manual_seed(zlib.crc32(name.encode()) + seed)
        with torch.no_grad():
            parameter.normal_(0.0, deviation, generator=generator)


def fingerprint(built) -> float:
    """A number that two models share if their weights are the same: the sum of the
    absolute values."""
    import torch

    with torch.no_grad():
        sums = [
            parameter.abs().sum(dtype=torch.float64) for parameter in built.parameters()
        ]
        return torch.stack(sums).sum().item()


def draw_tokens(vocabulary: int, shape: tuple, seed: int):
    """Tokens of the given shape, int64, on the CPU.

    Their frequencies fall as in a text (Zipf's law: the k-th token's is
    proportional to 1/k), so that there is something to learn and losses move.
    """
    import torch

    weights = 1.0 / torch.arange(1, vocabulary + 1, dtype=torch.float64)
    # Frequent tokens all over the vocabulary, the same ones for every seed.
    order = torch.randperm(vocabulary, generator=torch.Generator().manual_seed(1))
    generator = torch.Generator().manual_seed(seed)
    count = 1
    for size in shape:
        count *= size
    uniform = torch.rand(count, dtype=torch.float64, generator=generator)
    places = torch.searchsorted(weights.cumsum(0) / weights.sum(), uniform)
    return order[places.clamp_(max=vocabulary - 1)].reshape(shape)

# Part of Bastile, under the MIT License. See LICENSE.
"""The models that steps are measured on: random weights, and data.

Nothing is downloaded. A model is what Transformers builds from its configuration
(``configurations.py``); its weights are drawn at random.
"""

import dataclasses
import zlib

from bastile_bench._end_to_end.configurations import MODELS, Model

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
_TINY_VISION = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_heads": 2,
    "out_hidden_size": _TINY["hidden_size"],
}
#: How many pairs of a head of 16 elements turn by time, height and width.
_TINY_SECTION = [4, 2, 2]

# The settings of a model's own tokenizer, which there is none of here: a token
# that ends a text would cut a generation short, and one that pads would count less.
_NO_SPECIAL_TOKENS = {
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
}


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
    parts = None
    if model.parts:
        parts = {
            **model.parts,
            "vision_config": {
                **model.parts["vision_config"],
                **_TINY_VISION,
            },
        }
        settings["rope_parameters"] = {
            **settings["rope_parameters"],
            "mrope_section": _TINY_SECTION,
        }
    return dataclasses.replace(
        model,
        name=name,
        title=f"tiny {base}",
        settings=settings,
        batch=_TINY_BATCH,
        seq=_TINY_SEQ,
        parts=parts,
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
    """A causal language model of Transformers with random weights; one that reads
    images as well where its configuration has a part for them.

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
    auto = transformers.AutoModelForCausalLM
    if model.parts is not None:
        settings = {"text_config": settings, **model.parts}
        auto = transformers.AutoModelForImageTextToText
    config = transformers.AutoConfig.for_model(model.model_type, **settings)
    chosen = {} if attention is None else {"attn_implementation": attention}
    torch.manual_seed(seed)
    with torch.device(device):
        built = auto.from_config(config, dtype=getattr(torch, dtype), **chosen)
    _draw_weights(built, seed)
    return built


def _draw_weights(built, seed):
    """Draws again what the model drew, each parameter by a generator of its own;
    what is constant, as the weights of norms are, stays."""
    import torch

    deviation = getattr(built.config.get_text_config(), "initializer_range", 0.02)
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

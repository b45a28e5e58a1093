# Part of Bastile, under the MIT License. See LICENSE.
"""The table of models: which classes of Transformers compute what.

An entry names classes and says what they compute. Whether they do is checked with
numbers before anything is patched (``probes.py``), so that an entry that no longer
fits is refused and not believed.
"""

import dataclasses
from typing import ClassVar


class PatchError(RuntimeError):
    """Transformers is not as the table has it; nothing was patched."""

    # As users import it, and as tracebacks name it.
    __module__ = "bastile.patching"


def _expect(entry, field, value, known):
    if value not in known:
        raise ValueError(
            f"{entry}: {field!r} must be one of {', '.join(known)}, but is {value!r}"
        )


@dataclasses.dataclass(frozen=True)
class Norm:
    """A class ``cls(size, eps)`` with ``weight`` that computes an RMS norm.

    ``casting`` and ``offset`` are those of `bastile.ops.rms_norm`; ``eps`` is the
    attribute that holds epsilon. Where the class takes ``with_scale``, as Gemma 4's
    does, there may be norms without a weight; those of other classes run as they are.
    """

    cls: str
    casting: str = "llama"
    offset: float = 0.0
    eps: str = "variance_epsilon"

    ops: ClassVar[tuple[str, ...]] = ("rms_norm",)

    def __post_init__(self) -> None:
        _expect("Norm", "casting", self.casting, ("llama", "gemma"))

    @property
    def target(self) -> str:
        return f"{self.cls}.forward"


@dataclasses.dataclass(frozen=True)
class Rope:
    """A function ``function(q, k, cos, sin)`` of the module.

    ``kind``: "halves" pairs element i with element i + n / 2, and ``cos`` has n
    columns; "half_angles" is the same with n / 2 columns; "neighbours" pairs
    elements 2 i and 2 i + 1, and the first half of the columns of ``cos`` counts.
    Elements beyond n are copied.
    """

    kind: str = "halves"
    function: str = "apply_rotary_pos_emb"

    ops: ClassVar[tuple[str, ...]] = ("rope",)

    def __post_init__(self) -> None:
        kinds = "halves", "half_angles", "neighbours"
        _expect("Rope", "kind", self.kind, kinds)

    @property
    def target(self) -> str:
        return self.function


@dataclasses.dataclass(frozen=True)
class Mlp:
    """A class that computes ``down(act(gate(x)) * up(x))`` with projections and an
    activation of these names; with ``packed``, ``gate`` gives the gate and up in
    one row.

    The activation is what the configuration says; Bastile's ``op`` is "swiglu" for
    SiLU and "geglu" for both forms of GELU, and any other is left alone.
    """

    cls: str
    op: str = "swiglu"
    gate: str = "gate_proj"
    up: str = "up_proj"
    down: str = "down_proj"
    act: str = "act_fn"
    packed: bool = False
    optional: bool = False

    @property
    def ops(self) -> tuple[str, ...]:
        return (self.op,)

    @property
    def target(self) -> str:
        return f"{self.cls}.forward"


@dataclasses.dataclass(frozen=True)
class Experts:
    """A class that holds the weights of all experts of a layer.

    ``kind``: "packed" for a projection to the gate and then up, whose activation is
    ``act_fn``; "gpt_oss" for one with a bias to gate and up in turn, and the
    activation of GPT-OSS with ``alpha`` and ``limit``.
    """

    cls: str
    kind: str = "packed"
    optional: bool = False

    ops: ClassVar[tuple[str, ...]] = ("moe",)

    def __post_init__(self) -> None:
        _expect("Experts", "kind", self.kind, ("packed", "gpt_oss"))

    @property
    def target(self) -> str:
        return self.cls


@dataclasses.dataclass(frozen=True)
class CausalLoss:
    """The class of the causal language model, for both losses.

    ``soft_cap`` and ``divisor`` name what the configuration says of the logits:
    ``cap * tanh(logits / cap)`` and ``logits / divisor``. ``router`` says that the
    loss of the router is added to the loss.
    """

    cls: str
    soft_cap: str | None = None
    divisor: str | None = None
    router: bool = False

    ops: ClassVar[tuple[str, ...]] = ("cross_entropy", "fused_linear_cross_entropy")

    @property
    def target(self) -> str:
        return self.cls


KINDS = (Norm, Rope, Mlp, Experts, CausalLoss)

#: What a model's entry is made of.
Patch = Norm | Rope | Mlp | Experts | CausalLoss


@dataclasses.dataclass(frozen=True)
class Model:
    """The patches of one model type, and the module that has the classes."""

    module: str
    patches: tuple[Patch, ...]
    #: Other values of ``config.model_type`` that the same classes serve.
    aliases: tuple[str, ...] = ()


def _model(name, prefix, *patches, **arguments):
    """A model of Transformers with its causal loss."""
    module = f"transformers.models.{name}.modeling_{name}"
    loss = CausalLoss(f"{prefix}ForCausalLM", **arguments.pop("loss", {}))
    return Model(module, (*patches, loss), **arguments)


MODELS = {
    "gemma2": _model(
        "gemma2",
        "Gemma2",
        Norm("Gemma2RMSNorm", casting="gemma", offset=1.0, eps="eps"),
        Rope(),
        Mlp("Gemma2MLP", "geglu"),
        loss={"soft_cap": "final_logit_softcapping"},
    ),
    "gemma3": _model(
        "gemma3",
        "Gemma3",
        Norm("Gemma3RMSNorm", casting="gemma", offset=1.0, eps="eps"),
        Rope(),
        Mlp("Gemma3MLP", "geglu"),
        loss={"soft_cap": "final_logit_softcapping"},
        aliases=("gemma3_text",),
    ),
    "glm4": _model(
        "glm4",
        "Glm4",
        Norm("Glm4RMSNorm"),
        Rope("neighbours"),
        Mlp("Glm4MLP", gate="gate_up_proj", act="activation_fn", packed=True),
    ),
    "gpt_oss": _model(
        "gpt_oss",
        "GptOss",
        Norm("GptOssRMSNorm", casting="gemma"),
        Rope("half_angles"),
        Experts("GptOssExperts", "gpt_oss"),
        loss={"router": True},
    ),
    "granite": _model(
        "granite",
        "Granite",
        Norm("GraniteRMSNorm"),
        Rope(),
        Mlp("GraniteMLP"),
        loss={"divisor": "logits_scaling"},
    ),
    "llama": _model("llama", "Llama", Norm("LlamaRMSNorm"), Rope(), Mlp("LlamaMLP")),
    "mistral": _model(
        "mistral", "Mistral", Norm("MistralRMSNorm"), Rope(), Mlp("MistralMLP")
    ),
    "mixtral": _model(
        "mixtral",
        "Mixtral",
        Norm("MixtralRMSNorm"),
        Rope(),
        # Transformers 5 and 4.
        Experts("MixtralExperts", optional=True),
        Mlp(
            "MixtralBlockSparseTop2MLP",
            "moe",
            gate="w1",
            up="w3",
            down="w2",
            optional=True,
        ),
        loss={"router": True},
    ),
    "olmo2": _model(
        "olmo2",
        "Olmo2",
        Norm("Olmo2RMSNorm", casting="gemma"),
        Rope(),
        Mlp("Olmo2MLP"),
    ),
    "phi3": _model(
        "phi3",
        "Phi3",
        Norm("Phi3RMSNorm"),
        Rope(),
        Mlp("Phi3MLP", gate="gate_up_proj", act="activation_fn", packed=True),
    ),
    "qwen2": _model("qwen2", "Qwen2", Norm("Qwen2RMSNorm"), Rope(), Mlp("Qwen2MLP")),
    "qwen3": _model("qwen3", "Qwen3", Norm("Qwen3RMSNorm"), Rope(), Mlp("Qwen3MLP")),
    "qwen3_moe": _model(
        "qwen3_moe",
        "Qwen3Moe",
        Norm("Qwen3MoeRMSNorm"),
        Rope(),
        Mlp("Qwen3MoeMLP"),
        # Transformers 4 has a Qwen3MoeMLP for each expert.
        Experts("Qwen3MoeExperts", optional=True),
        loss={"router": True},
    ),
}

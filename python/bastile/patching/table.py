"""Which classes of Transformers compute what: all that Bastile knows of a model.

An entry names classes and says what they compute. Whether they do is checked with
numbers before anything is patched (``probes.py``), so that an entry that no longer
fits is refused and not believed.
"""

import dataclasses


class PatchError(RuntimeError):
    """Transformers is not as the table has it; nothing was patched."""


@dataclasses.dataclass(frozen=True)
class Norm:
    """A class ``cls(size, eps)`` with ``weight`` that computes an RMS norm.

    ``casting`` and ``offset`` are those of `bastile.ops.rms_norm`; ``eps`` is the
    attribute that holds epsilon.
    """

    cls: str
    casting: str = "llama"
    offset: float = 0.0
    eps: str = "variance_epsilon"

    ops = ("rms_norm",)

    @property
    def target(self):
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

    ops = ("rope",)

    @property
    def target(self):
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
    def ops(self):
        return (self.op,)

    @property
    def target(self):
        return f"{self.cls}.forward"


@dataclasses.dataclass(frozen=True)
class Experts:
    """A class whose method ``_apply_gate(gate_up)`` is the activation of its
    experts, in every way in which Transformers runs them.

    ``kind``: "packed" for the gate and then up, with the activation ``act_fn``;
    "gpt_oss" for interleaved rows with ``alpha``, ``limit`` and a bias.
    """

    cls: str
    kind: str = "packed"
    optional: bool = True

    ops = ("moe",)

    @property
    def target(self):
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

    ops = ("cross_entropy", "fused_linear_cross_entropy")

    @property
    def target(self):
        return self.cls


KINDS = (Norm, Rope, Mlp, Experts, CausalLoss)


@dataclasses.dataclass(frozen=True)
class Model:
    """The patches of one model type, and the module that has the classes."""

    module: str
    patches: tuple
    #: Other values of ``config.model_type`` that the same classes serve.
    aliases: tuple = ()


def _model(name, prefix, *patches, **arguments):
    """A model of Transformers with its causal loss."""
    module = f"transformers.models.{name}.modeling_{name}"
    loss = CausalLoss(
        f"{prefix}ForCausalLM", **arguments.pop("loss", {})
    )
    return Model(module, (*patches, loss), **arguments)


MODELS = {
    "gpt_oss": _model(
        "gpt_oss",
        "GptOss",
        Norm("GptOssRMSNorm", casting="gemma"),
        Rope("half_angles"),
        Experts("GptOssExperts", "gpt_oss"),
        loss={"router": True},
    ),
    "qwen3": _model(
        "qwen3", "Qwen3", Norm("Qwen3RMSNorm"), Rope(), Mlp("Qwen3MLP")
    ),
    "llama": _model(
        "llama", "Llama", Norm("LlamaRMSNorm"), Rope(), Mlp("LlamaMLP")
    ),
}

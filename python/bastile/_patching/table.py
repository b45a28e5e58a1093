# Part of Bastile, under the MIT License. See LICENSE.
"""Entries, which name classes and say what they compute, and the table of models that
somebody has registered.

Whether a class computes what its entry says is checked with numbers before anything is
patched, so that an entry that does not fit is refused and not believed.
"""

import dataclasses
from typing import ClassVar


class PatchError(RuntimeError):
    """Classes compute something else than patches of them would; nothing was
    patched."""

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
    ``weight`` is False for a class whose norms have none, which need take no size.
    """

    cls: str
    casting: str = "llama"
    offset: float = 0.0
    eps: str = "variance_epsilon"
    weight: bool = True

    ops: ClassVar[tuple[str, ...]] = ("rms_norm",)

    def __post_init__(self) -> None:
        _expect("Norm", "casting", self.casting, ("llama", "gemma"))

    @property
    def target(self) -> str:
        return f"{self.cls}.forward"


@dataclasses.dataclass(frozen=True)
class GatedNorm:
    """A class ``cls(size, eps)`` with ``weight`` whose forward takes a tensor and a gate.

    ``activation`` is that of the gate, "silu" or "sigmoid". ``order`` says which comes
    first: "norm" for ``norm(x) * weight * act(gate)``, "gate" for
    ``norm(x * act(gate)) * weight``, and "norm_before_gate" where an attribute of this
    name says it. ``casting`` and ``eps`` are as in `Norm`. Where a norm has ``n_groups``
    or ``group_size``, each group of a row has a norm of its own.
    """

    cls: str
    activation: str = "silu"
    casting: str = "llama"
    order: str = "norm"
    eps: str = "variance_epsilon"

    ops: ClassVar[tuple[str, ...]] = ("rms_norm",)

    def __post_init__(self) -> None:
        _expect("GatedNorm", "activation", self.activation, ("silu", "sigmoid"))
        _expect("GatedNorm", "casting", self.casting, ("llama", "gemma"))
        known = "norm", "gate", "norm_before_gate"
        _expect("GatedNorm", "order", self.order, known)

    @property
    def target(self) -> str:
        return f"{self.cls}.forward"


@dataclasses.dataclass(frozen=True)
class Rope:
    """A function of the module that turns queries and keys.

    ``kind`` says which elements turn together: "halves" pairs element i with element
    i + n / 2, and ``cos`` has n columns; "half_angles" is the same with n / 2 columns;
    "neighbours" pairs elements 2 i and 2 i + 1, and the first half of the columns of
    ``cos`` counts; for "neighbours_in_turn" columns 2 i and 2 i + 1 are the same;
    "into_halves" is as "neighbours", and the result has the first elements of all pairs
    ahead of the second ones. Elements beyond n are copied.

    ``operands`` says what the function takes: "heads" for ``(q, k, cos, sin)`` with
    heads of shape [B, H, S, D] and angles of [B, S, n]; "one" for ``(x, cos, sin)`` of
    these; "tokens" for ``(q, k, cos, sin)`` of [T, H, D] and [T, n]; "sections" for
    ``(q, k, cos, sin, sections)`` where columns of angles are chosen from three tables
    [3, B, S, n]; "complex" for ``(q, k, angles)`` of [B, S, H, D] and complex numbers
    [B, S, n / 2].
    """

    kind: str = "halves"
    function: str = "apply_rotary_pos_emb"
    operands: str = "heads"

    ops: ClassVar[tuple[str, ...]] = ("rope",)

    def __post_init__(self) -> None:
        kinds = (
            "halves",
            "half_angles",
            "neighbours",
            "neighbours_in_turn",
            "into_halves",
        )
        _expect("Rope", "kind", self.kind, kinds)
        known = "heads", "one", "tokens", "sections", "complex"
        _expect("Rope", "operands", self.operands, known)

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
    act: str | None = "act_fn"
    packed: bool = False
    optional: bool = False
    #: Transformers' name of the activation where the forward calls it as a function,
    #: "silu", "gelu" or "gelu_pytorch_tanh"; ``act`` says nothing then.
    function: str | None = None

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
    ``act_fn``; "sorted" for the same whose forward takes the tokens of all experts in
    their order, as many each, as Llama 4's does; "gpt_oss" for one with a bias to gate
    and up in turn, and the activation of GPT-OSS with ``alpha`` and ``limit``.
    """

    cls: str
    kind: str = "packed"
    optional: bool = False

    ops: ClassVar[tuple[str, ...]] = ("moe",)

    def __post_init__(self) -> None:
        _expect("Experts", "kind", self.kind, ("packed", "sorted", "gpt_oss"))

    @property
    def target(self) -> str:
        return self.cls


@dataclasses.dataclass(frozen=True)
class CausalLoss:
    """The class of the causal language model, for both losses.

    ``decoder`` and ``head`` are the attributes of the model that give hidden states and
    make logits of these. ``soft_cap``, ``divisor`` and ``factor`` name what the
    configuration says of the logits: ``cap * tanh(logits / cap)``, ``logits / divisor``
    and ``factor * logits``; with dots where it stands in a part of the configuration, as
    in "text_config.final_logit_softcapping". ``router`` says that the loss of the router
    is added to the loss; it may be the three attributes of the model that have the
    number of experts, that of the chosen ones and what the router's loss is multiplied
    by, in place of those of `ROUTER`.
    """

    cls: str
    soft_cap: str | None = None
    divisor: str | None = None
    router: bool | tuple[str, str, str] = False
    factor: str | None = None
    decoder: str = "model"
    head: str = "lm_head"

    ops: ClassVar[tuple[str, ...]] = ("cross_entropy", "fused_linear_cross_entropy")

    @property
    def target(self) -> str:
        return self.cls


@dataclasses.dataclass(frozen=True)
class Residual:
    """A class of layers that adds a residual beside norms of the module, in statements
    as ``x = residual + x; residual = x; x = self.norm(x)``."""

    cls: str

    ops: ClassVar[tuple[str, ...]] = ("add_rms_norm",)

    @property
    def target(self) -> str:
        return f"{self.cls}.forward"


@dataclasses.dataclass(frozen=True)
class Heads:
    """A class of attention that norms queries and keys, head by head, and then turns
    them by a function of the kind "halves" (`Rope`)."""

    cls: str

    ops: ClassVar[tuple[str, ...]] = ("norm_rope",)

    @property
    def target(self) -> str:
        return f"{self.cls}.forward"


@dataclasses.dataclass(frozen=True)
class Masks:
    """A class of decoders whose forward makes masks of attention by Transformers'
    functions.

    Where none of the parameters ``positions`` is given, the tokens of each sequence have
    consecutive positions.
    """

    cls: str
    positions: tuple[str, ...] = ("position_ids",)

    ops: ClassVar[tuple[str, ...]] = ("attention",)

    @property
    def target(self) -> str:
        return f"{self.cls}.forward"


#: What models call the numbers that a router's loss depends on.
ROUTER = ("num_experts", "num_experts_per_tok", "router_aux_loss_coef")


@dataclasses.dataclass(frozen=True)
class PatchInfo:
    """A patch that there is, or something that was left alone: of which model, op and
    class, and whether it is applied to all models of the type.

    ``reason`` says why something was left alone that looks as if it could be patched;
    None for a patch.
    """

    model_type: str
    op: str
    target: str
    applied: bool
    reason: str | None = None

    __module__ = "bastile.patching"


KINDS = (Norm, GatedNorm, Heads, Rope, Mlp, Experts, Residual, Masks, CausalLoss)

#: What a model's entry is made of.
Patch = Norm | GatedNorm | Heads | Rope | Mlp | Experts | Residual | Masks | CausalLoss


@dataclasses.dataclass(frozen=True)
class Model:
    """The patches of one model type, and the module that has the classes."""

    module: str
    patches: tuple[Patch, ...]
    #: Other values of ``config.model_type`` that the same classes serve.
    aliases: tuple[str, ...] = ()


#: By model type, the models that `register_patch` has added. Those of Transformers need
#: no entry: what their classes compute is found (`bastile._patching.kinds`).
MODELS: dict[str, Model] = {}

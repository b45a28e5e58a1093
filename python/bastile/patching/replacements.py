"""From entries of the table to what is set on which class, checked beforehand."""

import dataclasses
import importlib
import importlib.util
import inspect

import torch
from bastile.patching import experts, forwards, probes, table


@dataclasses.dataclass(frozen=True)
class Replacement:
    """``owner.name`` is to be ``value``; of a class, ``value`` is a method unless
    ``is_static``."""

    model_type: str
    op: str
    owner: object
    name: str
    value: object
    is_static: bool = False

    @property
    def target(self):
        owner = getattr(self.owner, "__qualname__", None)
        return f"{owner}.{self.name}" if owner else self.name


def of_model(model_type, model, ops):
    """The replacements for the ops that are wanted, and what does not match as
    lines of text."""
    module = importlib.import_module(model.module)
    found, problems = [], []
    for patch in model.patches:
        if ops.isdisjoint(patch.ops):
            continue
        try:
            # Whatever device a model is being made on.
            with torch.device("cpu"), torch.no_grad():
                built = list(_BUILDERS[type(patch)](patch, module, ops))
        except probes.Mismatch as problem:
            problems.append(f"{model.module}: {patch.target}: {problem}")
            continue
        for op, owner, name, value, *static in built:
            found.append(
                Replacement(model_type, op, owner, name, value, bool(static))
            )
    return found, problems


def is_there(model):
    """Whether this version of Transformers has the model at all."""
    try:
        return importlib.util.find_spec(model.module) is not None
    except ModuleNotFoundError:
        return False


def _find(module, name):
    found = getattr(module, name, None)
    if found is None:
        raise probes.Mismatch("there is no such name in this version")
    return found


def original_of(owner, name):
    """What ``owner`` has, or had before Bastile replaced it."""
    value = inspect.getattr_static(owner, name)
    return getattr(value, "bastile_original", value)


def _mark(value, original):
    value.bastile_original = original
    return value


def _norm(patch, module, ops):
    cls = _find(module, patch.cls)
    original = original_of(cls, "forward")
    probes.norm(original, patch, cls)
    yield patch.ops[0], cls, "forward", _mark(forwards.norm(original, patch), original)


def _rope(patch, module, ops):
    _find(module, patch.function)
    original = original_of(module, patch.function)
    probes.rope(original, patch)
    yield patch.ops[0], module, patch.function, _mark(forwards.rope(original, patch), original)


def _mlp(patch, module, ops):
    if patch.optional and not hasattr(module, patch.cls):
        return
    cls = _find(module, patch.cls)
    original = original_of(cls, "forward")
    probes.mlp(original, patch, cls)
    yield patch.ops[0], cls, "forward", _mark(forwards.mlp(original, patch), original)


_EXPERTS = {
    "packed": (probes.packed_gate, experts.packed_gate, experts.packed_forward),
    "gpt_oss": (probes.gpt_oss_gate, experts.gpt_oss_gate, experts.gpt_oss_forward),
}


def _experts(patch, module, ops):
    if patch.optional and not hasattr(module, patch.cls):
        return
    cls = _find(module, patch.cls)
    forward = original_of(cls, "forward")
    if not hasattr(cls, "_apply_gate"):
        yield from _experts_4(patch, cls, forward)
        return
    probe, make_gate, make_forward = _EXPERTS[patch.kind]
    gate = original_of(cls, "_apply_gate")
    probe(gate, patch, cls)
    yield patch.ops[0], cls, "_apply_gate", _mark(make_gate(gate, patch), gate)
    yield patch.ops[0], cls, "forward", _mark(make_forward(forward, patch), forward)


def _experts_4(patch, cls, forward):
    """Those of Transformers 4, where the activation is within the forward."""
    if patch.kind != "gpt_oss":
        raise probes.Mismatch("it has no method '_apply_gate'")
    probes.gpt_oss_experts(forward, patch, cls)
    made = experts.gpt_oss_forward_4(forward, patch)
    yield patch.ops[0], cls, "forward", _mark(made, forward)


def _causal_loss(patch, module, ops):
    from bastile.patching import losses

    cls = _find(module, patch.cls)
    original = original_of(cls, "forward")
    probes.causal_loss(original, patch, cls)
    if "cross_entropy" in ops:
        yield "cross_entropy", cls, "_loss_function", losses.cross_entropy, True
    if "fused_linear_cross_entropy" in ops:
        forward = _mark(losses.fused(original, patch), original)
        yield "fused_linear_cross_entropy", cls, "forward", forward


_BUILDERS = {
    table.Norm: _norm,
    table.Rope: _rope,
    table.Mlp: _mlp,
    table.Experts: _experts,
    table.CausalLoss: _causal_loss,
}

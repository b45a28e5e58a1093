# Part of Bastile, under the MIT License. See LICENSE.
"""Replacements for entries of the table: the functions that are set, and on what,
once the originals were checked."""

import contextlib
import dataclasses
import importlib
import importlib.util
import inspect
import sys
import weakref

import torch
from bastile._patching import experts, forwards, probes, table


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
    #: The name of the module of Python that has the model.
    module: str | None = None

    @property
    def target(self):
        owner = getattr(self.owner, "__qualname__", None)
        return f"{owner}.{self.name}" if owner else self.name


def of_model(model_type, model, ops):
    """The replacements in ``model`` for the ops in ``ops``, and a line of text for each
    entry that is not what this version of Transformers has."""
    if not is_there(model):
        return [], [f"{model.module}: there is no such module"]
    module = importlib.import_module(model.module)
    found, problems = [], []
    for patch in model.patches:
        if ops.isdisjoint(patch.ops):
            continue
        try:
            with _on_the_cpu(), torch.no_grad():
                built = list(_BUILDERS[type(patch)](patch, module, ops))
        except probes.Mismatch as problem:
            problems.append(f"{model.module}: {patch.target}: {problem}")
            continue
        for op, owner, name, value, *static in built:
            found.append(
                Replacement(
                    model_type, op, owner, name, value, bool(static), model.module
                )
            )
    return found, problems


def _on_the_cpu():
    """A context in which tensors are made on the CPU, whatever device the user makes a
    model on. It is an empty one where that is the CPU, since a context of PyTorch's
    costs time with each call."""
    if torch.get_default_device().type == "cpu":
        return contextlib.nullcontext()
    return torch.device("cpu")


def is_there(model):
    """Whether this version of Transformers has the model at all."""
    if model.module in sys.modules:
        return True
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
    # A wrapper has the attributes of what it wraps, so an attribute alone says nothing.
    return value.bastile_original if value in _ours else value


def _method(patch, cls, name, make, probe):
    """The replacement of a method, made of the original and checked with it."""
    original = original_of(cls, name)
    probe(original, patch, cls)
    return patch.ops[0], cls, name, _made(make, original, patch)


#: The functions that were made to replace others.
_ours = weakref.WeakSet()


def _made(make, original, patch):
    value = make(original, patch)
    value.bastile_original = original
    _ours.add(value)
    return value


def _norm(patch, module, ops):
    cls = _find(module, patch.cls)
    yield _method(patch, cls, "forward", forwards.norm, probes.norm)


def _rope(patch, module, ops):
    _find(module, patch.function)
    yield _method(patch, module, patch.function, forwards.rope, probes.rope)


def _mlp(patch, module, ops):
    if patch.optional and not hasattr(module, patch.cls):
        return
    cls = _find(module, patch.cls)
    yield _method(patch, cls, "forward", forwards.mlp, probes.mlp)


_EXPERTS = {
    "packed": (
        experts.packed_gate,
        probes.packed_gate,
        experts.packed_forward,
        probes.packed_experts,
    ),
    "gpt_oss": (
        experts.gpt_oss_gate,
        probes.gpt_oss_gate,
        experts.gpt_oss_forward,
        probes.gpt_oss_experts,
    ),
}


def _experts(patch, module, ops):
    if patch.optional and not hasattr(module, patch.cls):
        return
    cls = _find(module, patch.cls)
    if hasattr(cls, "_apply_gate"):
        make_gate, probe, make_forward, probe_forward = _EXPERTS[patch.kind]
        yield _method(patch, cls, "_apply_gate", make_gate, probe)
        yield _method(patch, cls, "forward", make_forward, probe_forward)
        return
    # Transformers 4 has the activation within the forward.
    if patch.kind != "gpt_oss":
        raise probes.Mismatch("it has no method '_apply_gate'")
    make = experts.gpt_oss_forward_4
    yield _method(patch, cls, "forward", make, probes.gpt_oss_experts)


def _causal_loss(patch, module, ops):
    from bastile._patching import loss_probes, losses

    cls = _find(module, patch.cls)
    original = original_of(cls, "forward")
    loss_probes.causal_loss(original, patch, cls)
    if "cross_entropy" in ops:
        yield "cross_entropy", cls, "_loss_function", losses.cross_entropy, True
    if "fused_linear_cross_entropy" in ops:
        forward = _made(losses.fused, original, patch)
        yield "fused_linear_cross_entropy", cls, "forward", forward


_BUILDERS = {
    table.Norm: _norm,
    table.Rope: _rope,
    table.Mlp: _mlp,
    table.Experts: _experts,
    table.CausalLoss: _causal_loss,
}

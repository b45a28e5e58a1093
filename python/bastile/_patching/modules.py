# Part of Bastile, under the MIT License. See LICENSE.
"""Layers that somebody has changed: hooks, and functions set in place of their own."""

import torch
from torch.nn.modules.module import _has_any_global_hook as has_global_hooks

from bastile._compiler import capture

#: The forward of a linear layer, unless somebody has put something in its place.
LINEAR = torch.nn.Linear.forward


def has_hooks(module):
    """Whether something of its own runs with each call of ``module``."""
    own = vars(module)
    return bool(
        own["_forward_hooks"]
        or own["_forward_pre_hooks"]
        or own["_backward_hooks"]
        or own["_backward_pre_hooks"]
    )


def is_changed(module):
    """Whether calls of ``module`` run something beside the forward of its class, or in its
    place; hooks of all modules aside."""
    return has_hooks(module) or "forward" in vars(module)


def are_plain_linear(layers, dtype):
    """Whether calls of ``layers`` on tensors of ``dtype`` are products with weights that
    lie here, and no more. Whatever else a layer may be (an adapter, quantized,
    partitioned, watched by hooks), it has to be called as it is."""
    return (
        torch.nn.Linear.forward is LINEAR
        and not has_global_hooks()
        and all(_is_plain_linear(layer, dtype) for layer in layers)
    )


def _is_plain_linear(layer, dtype):
    if type(layer) is not torch.nn.Linear or is_changed(layer):
        return False
    # FSDP that flattens parameters leaves none here, but a view of another one.
    weight = layer._parameters.get("weight")
    return type(weight) is torch.nn.Parameter and weight.dtype == dtype


def why_not_plain(layer):
    """What `are_plain_linear` would not have of a layer, in words that follow its name;
    None where it is a plain one."""
    kind = type(layer)
    if kind is not torch.nn.Linear:
        return f"is a {kind.__module__}.{kind.__qualname__}"
    if torch.nn.Linear.forward is not LINEAR or "forward" in vars(layer):
        return "has another forward"
    if has_global_hooks() or has_hooks(layer):
        return "has hooks"
    weight = type(layer._parameters.get("weight", layer.weight))
    if weight is not torch.nn.Parameter:
        return f"has a weight of type {weight.__module__}.{weight.__qualname__}"
    return None


def is_recorded_plainly(tensors):
    """Whether autograd records calls on ``tensors`` that it has gradients of, and nobody
    else sees these calls: a compiler, autocast or a transformation."""
    first = tensors[0]
    return (
        torch.is_grad_enabled()
        and all(type(x) is torch.Tensor and x.requires_grad for x in tensors)
        and first.device.type in ("cpu", "cuda")
        and not torch.is_autocast_enabled(first.device.type)
        and not torch._C._are_functorch_transforms_active()
        and not capture.is_compiling()
    )

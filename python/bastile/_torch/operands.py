# Part of Bastile, under the MIT License. See LICENSE.
"""PyTorch's tensors as operands: which are refused, cast and differentiated."""

import sys

import torch
from bastile._compiler import adapter
from bastile._compiler.definitions import definitions


#: By op, which operands have to be of the same type.
SAME_TYPES = {
    name: [
        [i for i, operand in enumerate(op.operands) if operand.name in group]
        for group in op.same_types + op.same_elements
    ]
    for name, op in definitions().items()
}


def is_distributed(tensor):
    """Whether ``tensor`` is a DTensor. Nothing is imported to know that."""
    distributed = sys.modules.get("torch.distributed.tensor")
    return distributed is not None and isinstance(tensor, distributed.DTensor)


def reshape_result(tensor, shape):
    """A result that nothing else holds in another shape: no view, so that it may be
    detached in place, as PyTorch's results may."""
    if tensor.shape == shape:
        return tensor
    return torch.ops.aten._unsafe_view.default(tensor, shape)


def refuse_unusual(name, operands):
    """Raises for tensors of PyTorch whose memory is not what sizes and strides say."""
    for x in operands:
        kind = None if x is None else adapter.unusual_kind(x)
        if kind:
            raise TypeError(f"{name}: a kernel takes dense tensors, but got {kind}")


def forbid_leaves(name, operands):
    """Raises for operands that gradients are collected in, as PyTorch does for
    operations in place."""
    if torch.is_grad_enabled():
        for operand in operands:
            if (
                isinstance(operand, torch.Tensor)
                and operand.requires_grad
                and operand.is_leaf
                and operand.dim() > 1
            ):
                raise RuntimeError(
                    f"{name}: 'in_place' would overwrite a leaf that requires gradients"
                )


def refuse_recorded(name, overwritten):
    """Raises ``RuntimeError`` where autograd records what happens to a tensor that a
    call overwrites: it would not see the change."""
    if torch.is_grad_enabled() and any(x.requires_grad for x in overwritten):
        raise RuntimeError(
            f"{name}: overwrites an operand that requires gradients, which autograd "
            "does not record; call it in torch.no_grad()"
        )


def overwrite(name, operands):
    """Prepares tensors of PyTorch for a call that overwrites them.

    Raises as `refuse_recorded`.
    """
    tensors = [x for x in operands if isinstance(x, torch.Tensor)]
    refuse_recorded(name, tensors)
    # Whoever has kept one of them for a backward finds out by its version.
    torch.autograd.graph.increment_version(tensors)


def find_wanted(operands):
    """For each operand, whether autograd records its gradient; None where it records
    none."""
    if not torch.is_grad_enabled():
        return None
    wanted = [x is not None and x.requires_grad for x in operands]
    return wanted if True in wanted else None


def promote(name, operands):
    """The operands of op ``name`` as autocast wants them: those that have to be of one
    type are cast to the widest among them, as for PyTorch's own ops of several
    tensors."""
    device = next(x.device.type for x in operands if x is not None)
    # PyTorch has no autocast for other devices, such as "meta", and cannot be asked.
    if device not in ("cpu", "cuda") or not torch.is_autocast_enabled(device):
        return operands
    operands = list(operands)
    for group in SAME_TYPES[name]:
        present = [i for i in group if operands[i] is not None]
        if len(present) < 2:
            continue
        widest = operands[present[0]].dtype
        for i in present[1:]:
            widest = torch.promote_types(widest, operands[i].dtype)
        for i in present:
            operands[i] = operands[i].to(widest)
    return operands

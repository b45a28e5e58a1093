# Part of Bastile, under the MIT License. See LICENSE.
"""What calls of `bastile.functional` ask of a loss by PyTorch's names, and their answers:
shapes as PyTorch has them, and results that follow from others."""

import torch
from bastile._compiler import capture
from bastile._losses import each
from bastile._losses.options import Options, Settings


def take_logits(input, target):
    """Logits as rows and targets as a column, by PyTorch's rules of shapes."""
    if target.is_floating_point():
        raise TypeError(
            "cross_entropy: 'target' has elements of type "
            f"{target.dtype}, but takes indices of classes"
        )
    if input.dim() == 0 or target.dim() != max(input.dim() - 1, 0):
        _disagree(input, target)
    if input.dim() == 1:
        return input.unsqueeze(0), target.reshape(1, 1)
    # Classes are dimension 1; a view whose rows are apart is copied.
    logits = input if input.dim() == 2 else input.movedim(1, -1)
    if logits.shape[:-1] != target.shape:
        _disagree(input, target)
    return logits, target.unsqueeze(-1)


def _disagree(input, target):
    shape = list(input.shape)
    expected = [shape[0], *shape[2:]] if len(shape) > 1 else []
    raise ValueError(
        f"cross_entropy: 'target' has shape {list(target.shape)}, but for "
        f"'input' of shape {shape}, whose classes are dimension 1, it must be "
        f"{expected}"
    )


def names_of(lse, correct, predicted, z_loss):
    """The results of the op that what a call returns is made of."""
    wanted = {"lse": lse or z_loss, "correct": correct, "predicted": predicted}
    return ("loss", *(name for name in wanted if wanted[name]))


def answer(made, others, target, attributes, reduction, num_items=None):
    """The loss, or a tuple of it and those of ``others`` that are wanted."""
    if others["z_loss"]:
        if attributes["token_scaling"]:
            raise ValueError(
                "cross_entropy: 'return_z_loss' is not for losses with 'token_scaling'"
            )
        counts = target != attributes["ignore_index"]
        squares = made["lse"].detach().square() * attributes["z_loss"]
        total = torch.where(counts, squares, 0.0)
        if reduction != "none":
            total = total.sum()
        if reduction == "mean":
            total = total / (counts.sum().clamp(1) if num_items is None else num_items)
        made["z_loss"] = total
    names = [name for name, is_wanted in others.items() if is_wanted]
    if "correct" in names:
        made["correct"] = made["correct"].view(torch.bool)
    if "predicted" in names:
        made["predicted"] = made["predicted"].long()
    if not names:
        return made["loss"]
    return (made["loss"], *(made[name] for name in names))


def losses_and_gradient(input, logits, columns, weight, attributes, names, in_place):
    """The results of each token that are named, and the gradient in the shape of
    ``input``."""
    if in_place:
        capture.forbid_leaves("cross_entropy", [input])
    rows = logits.detach().reshape(-1, logits.shape[-1])
    options = Options(Settings("none", **attributes), names)
    weight = None if weight is None else weight.detach()
    own = in_place and input.dim() == 2
    *results, gradient = each.compute(rows, columns.flatten(), weight, options, own)
    if own:
        return *results, input
    gradient = gradient.reshape(logits.shape)
    if input.dim() < 2:
        gradient = gradient[0]
    elif input.dim() > 2:
        gradient = gradient.movedim(-1, 1)
    if in_place:
        gradient = input.detach().copy_(gradient)
    return *results, gradient


def check_targets(name, target, classes, ignore_index):
    outside = (target != ignore_index) & ((target < 0) | (target >= classes))
    if outside.any():
        first = int(target[outside].flatten()[0])
        raise ValueError(
            f"{name}: 'target' has {int(outside.sum())} elements that are neither one "
            f"of the {classes} classes nor 'ignore_index', {ignore_index}: the first "
            f"is {first}"
        )

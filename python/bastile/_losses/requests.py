# Part of Bastile, under the MIT License. See LICENSE.
"""What calls of `bastile.functional` ask of a loss by PyTorch's names, and their answers:
shapes as PyTorch has them, and results that follow from others."""

import torch
from bastile._compiler import capture
from bastile._losses import checks, each, products
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


#: How many tokens' rows of a weight are looked up at a time.
_TOKENS = 4096


def logits_of_targets(logits, columns):
    """The logit of each token's target, any for one that is no class: [...], detached."""
    places = columns.long().clamp(0, logits.shape[-1] - 1)
    return logits.detach().gather(-1, places).squeeze(-1)


def linear_logits_of_targets(hidden, weight, bias, target):
    """As `logits_of_targets`, of hidden states [..., H] and the weight [V, H] of a linear
    layer, rounded as the layer's logits are."""
    hidden, weight = hidden.detach(), weight.detach()
    rows = hidden.reshape(-1, hidden.shape[-1])
    narrow = checks.cast(rows[:0])[0].dtype
    wide = products.wide_type(narrow)
    places = target.reshape(-1).long().clamp(0, weight.shape[0] - 1)
    found = [
        (part.to(narrow).to(wide) * weight[of_part].to(narrow).to(wide)).sum(-1)
        for part, of_part in zip(rows.split(_TOKENS), places.split(_TOKENS))
    ]
    logits = torch.cat(found)
    if bias is not None:
        logits = logits + bias.detach()[places].to(narrow)
    return logits.to(narrow).reshape(target.shape)


def _probability(of_target, lse, attributes):
    z = of_target.to(lse.dtype)
    cap = attributes["soft_cap"]
    if cap:
        z = cap * torch.tanh(z / cap)
    return torch.exp(z / attributes["temperature"] - lse)


def answer(made, others, target, attributes, reduction, num_items=None, of_target=None):
    """The loss, or a tuple of it and those of ``others`` that are wanted. With
    ``of_target``, the targets' logits, z-losses are multiplied by the targets'
    probabilities, as losses with ``token_scaling`` are."""
    if others["z_loss"]:
        counts = target != attributes["ignore_index"]
        lse = made["lse"].detach()
        squares = lse.square() * attributes["z_loss"]
        if of_target is not None:
            squares = squares * _probability(of_target, lse, attributes)
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

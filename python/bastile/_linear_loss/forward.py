"""The loss chunk by chunk, with the gradients in the logits' memory."""

import torch
from bastile._linear_loss import kernels, plan
from bastile._linear_loss.products import (
    add_product,
    logits_of,
    multiply,
    wide_type,
)


class Gradients:
    """Those of hidden states, weight and bias that are wanted, as they grow.

    That of the weight is a sum over chunks: in float32, unless there is one chunk
    alone. They are kept as ``kept``, the type that they are returned in or wider.
    """

    def __init__(self, hidden, weight, wanted, kept, single):
        self._inputs = hidden, weight
        self._kept = kept
        self._single = single
        wide = wide_type(hidden.dtype)
        self._hidden = self._weight = self._bias = None
        if wanted[0]:
            self._hidden = hidden.new_empty(hidden.shape, dtype=kept)
        if wanted[1]:
            make = weight.new_empty if len(hidden) else weight.new_zeros
            self._weight = make(weight.shape, dtype=kept if single else wide)
        if wanted[2]:
            self._bias = weight.new_zeros(len(weight), dtype=wide)
        self._is_first = True

    def add(self, rows, logits):
        """Takes the gradient of the logits of the tokens in ``rows``."""
        hidden, weight = self._inputs
        if self._hidden is not None:
            multiply(logits, weight, self._hidden[rows])
        if self._weight is not None:
            add = multiply if self._is_first else add_product
            add(logits.t(), hidden[rows], self._weight)
        if self._bias is not None:
            self._bias += logits.sum(0, dtype=self._bias.dtype)
        self._is_first = False

    def finish(self):
        """The gradients that are wanted."""
        found = self._hidden, self._weight, self._bias
        return [x.to(self._kept) for x in found if x is not None]


def token_scale(targets, class_weights, divisor, options, dtype):
    """What a token's loss counts for in the total: a number on the device."""
    one = torch.ones((), dtype=dtype, device=targets.device)
    if options.reduction != "mean":
        return one
    if divisor is not None:
        return one / divisor.to(targets.device)
    counted = targets != options.ignore_index
    if class_weights is None:
        count = counted.sum(dtype=dtype)
    else:
        last = len(class_weights) - 1
        of_targets = class_weights[targets.clamp(0, last)].to(dtype)
        count = torch.where(counted, of_targets, 0).sum()
    # Without any token, losses and gradients are 0.
    return torch.where(count == 0, 0, one / count)


def kept_type(dtype):
    """float16 has no range for gradients that are still to be scaled."""
    return torch.float32 if dtype == torch.float16 else dtype


def run(hidden, weight, targets, bias, class_weights, scale, options, wanted, budget):
    """The results for rows of hidden states [T, H], and the gradients of the sum
    of the losses times ``scale`` [T, 1].

    With ``scale`` None, the loss is that of each token.
    """
    tokens, classes = len(hidden), len(weight)
    rows = plan.rows_of_chunk(tokens, classes, hidden.element_size(), budget)
    parts = plan.chunks(tokens, rows)
    gradients = None
    if any(wanted):
        kept = kept_type(hidden.dtype)
        gradients = Gradients(hidden, weight, wanted, kept, len(parts) < 2)

    def take(part, memory):
        rows = memory[: part.stop - part.start]
        logits = logits_of(hidden[part], weight, bias, rows)
        operands = logits, targets[part, None], class_weights
        if scale is None:
            return kernels.losses(*operands, options)
        if gradients is None:
            return kernels.total(*operands, scale[part], options)
        *made, logits = kernels.total_and_gradient(*operands, scale[part], options)
        gradients.add(part, logits)
        return made

    memory = hidden.new_empty(min(rows, tokens), classes)
    found = [take(part, memory) for part in parts]
    # What follows takes no more than it leaves.
    del memory
    results = _combine(found, hidden, options, scale is None)
    return results, gradients.finish() if gradients else []


def _combine(found, hidden, options, is_apart):
    """The results of all tokens from those of each chunk."""
    if not found:
        return empty_results(hidden, options, is_apart)
    names = ("loss", *options.others)
    combined = []
    for name, pieces in zip(names, zip(*found)):
        pieces = [piece.flatten() for piece in pieces]
        if name == "invalid" or (name == "loss" and not is_apart):
            combined.append(torch.cat(pieces).sum())
        else:
            combined.append(torch.cat(pieces))
    return combined


def empty_results(hidden, options, is_apart):
    """Zeros of the shapes and types of the results."""
    wide = wide_type(hidden.dtype)
    tokens = hidden.shape[0]
    shapes = {
        "loss": ((tokens,) if is_apart else (), wide),
        "lse": ((tokens,), wide),
        "correct": ((tokens,), torch.int8),
        "invalid": ((), wide),
    }
    return [
        hidden.new_zeros(shapes[name][0], dtype=shapes[name][1])
        for name in ("loss", *options.others)
    ]

# Part of Bastile, under the MIT License. See LICENSE.
"""Statistics and gradients by pieces of the logits, which are computed for the first and
again for the second."""

from typing import NamedTuple

import torch
from bastile._losses import plan
from bastile._losses.gradients import ChunkGradients, SlabGradients
from bastile._losses.log_probs import distribution, kernels
from bastile._losses.products import logits_of, memory_of_logits, wide_type


class Operands(NamedTuple):
    """Hidden states [T, H], the weight [V, H], targets [T], and the bias [V] or None."""

    hidden: torch.Tensor
    weight: torch.Tensor
    targets: torch.Tensor
    bias: torch.Tensor | None


class _Cut:
    """How the logits are cut: by tokens or, to ``recompute``, by classes."""

    def __init__(self, operands, options):
        hidden, weight, targets, bias = operands
        tokens, classes, size = len(hidden), len(weight), hidden.element_size()
        self._operands = operands
        self.first_class = options.first_class
        self.is_by_class = options.recompute
        budget = plan.budget_of(*hidden.shape, classes, size, options)
        cut = plan.slabs if self.is_by_class else plan.chunks
        # No tokens have no pieces, and no logits.
        self.pieces = cut(tokens, classes, size, budget) if tokens else []
        most = self.pieces[0].stop if tokens else 0
        shape = (tokens, most) if self.is_by_class else (most, classes)
        self._memory = memory_of_logits(hidden, *shape)

    def logits_of(self, piece):
        """The logits of a piece, its targets, its tokens and its first class. They lie
        in the memory of those of the piece before."""
        hidden, weight, targets, bias = self._operands
        first = self.first_class
        if self.is_by_class:
            tokens = slice(None)
            weight = weight[piece]
            bias = None if bias is None else bias[piece]
            first += piece.start
        else:
            tokens = piece
        hidden, targets = hidden[tokens], targets[tokens]
        logits = self._memory[: len(hidden), : len(weight)]
        return logits_of(hidden, weight, bias, logits), targets, tokens, first


def measure(operands, options):
    """The statistics of all tokens, of all classes."""
    hidden = operands.hidden
    cut = _Cut(operands, options)
    found = []
    for piece in cut.pieces:
        logits, targets, _, first = cut.logits_of(piece)
        found.append(distribution.measure(logits, targets, first, options))
    if not found:
        shape = len(kernels.names_of(options)), 0
        return hidden.new_empty(shape, dtype=wide_type(hidden.dtype))
    if cut.is_by_class:
        own = distribution.combine(torch.stack(found), options)
    else:
        own = found[0] if len(found) == 1 else torch.cat(found, 1)
    if options.group is None:
        return own
    from bastile._losses.log_probs import parallel

    return distribution.combine(parallel.gather(own, options.group), options)


def differentiate(operands, options, top, log_sum, factors, wanted):
    """The gradients that are ``wanted`` of hidden states, weight and bias, from what
    `distribution.factors` says of the tokens."""
    hidden, weight, *_ = operands
    cut = _Cut(operands, options)
    kind = SlabGradients if cut.is_by_class else ChunkGradients
    is_shared = options.group is not None
    gradients = kind(hidden, weight, wanted, len(cut.pieces), is_shared)
    of_tokens = {"top": top, "log_sum": log_sum, **factors}
    for piece in cut.pieces:
        logits, targets, tokens, first = cut.logits_of(piece)
        columns = (targets - first if first else targets)[:, None]
        numbers = {
            name: None if x is None else x[tokens] for name, x in of_tokens.items()
        }
        gradients.add(piece, kernels.gradient(logits, columns, options, **numbers))
    if not is_shared:
        return gradients.finish()
    from bastile._losses.log_probs import parallel

    return gradients.finish(lambda x: parallel.add_up(x, options.group))

# Part of Bastile, under the MIT License. See LICENSE.
"""The loss where each process of a group has some of the classes."""

import torch
import torch.distributed as dist
from bastile._losses import plan
from bastile._losses.forward import combine_chunks
from bastile._losses.gradients import ChunkGradients
from bastile._losses.products import logits_of, memory_of_logits
from bastile._losses.slabs import Slab
from bastile._losses.tokens import Statistics, Tokens
from torch.distributed.distributed_c10d import _resolve_process_group


def run(operands, penalties, scale, options, wanted):
    """As `forward.run`, with this process' classes in ``weight`` and ``bias``, and
    all classes' ``class_weights``. The gradient of the hidden states is the sum
    over the processes."""
    hidden, weight, targets, bias, class_weights = operands
    tokens, classes = len(hidden), len(weight)
    group = _resolve_process_group(options.group)
    # Every process has the same chunks of tokens, also where it has more or fewer
    # classes than others.
    share = -(-options.classes // dist.get_world_size(group))
    size = hidden.element_size()
    budget = plan.budget_of(*hidden.shape, share, size, options.settings)
    parts = plan.chunks(tokens, share, size, budget)
    gradients = None
    if any(wanted):
        gradients = ChunkGradients(hidden, weight, wanted, len(parts), is_shared=True)

    def take(part, memory):
        rows = memory[: part.stop - part.start]
        logits = logits_of(hidden[part], weight, bias, rows)
        slab = Slab(logits, targets[part], options.first_class, class_weights, options)
        statistics = _reduce(slab.statistics(), group)
        of_tokens = Tokens(
            statistics,
            targets[part],
            class_weights,
            options,
            None if penalties is None else penalties[part],
        )
        results = of_tokens.results(options)
        if scale is not None:
            results[0] = (results[0] * scale[part]).sum()
        if gradients is not None:
            gradients.add(part, slab.gradient(of_tokens, scale[part]))
        return results

    memory = memory_of_logits(hidden, parts[0].stop if parts else 0, classes)
    found = [take(part, memory) for part in parts]
    del memory
    results = combine_chunks(found, hidden, options, scale is None)
    if gradients is None:
        return results, []
    return results, gradients.finish(lambda x: dist.all_reduce(x, group=group))


def _reduce(own, group):
    """The statistics of all classes, from those of each process' own."""
    largest = [x for x in (own.lse, own.largest) if x is not None]
    largest = torch.stack(largest)
    dist.all_reduce(largest, dist.ReduceOp.MAX, group=group)
    # Where all logits are -inf, a shift by the largest would make NaN.
    shift = torch.where(largest[0] == -torch.inf, 0, largest[0])
    sums = [torch.exp(own.lse - shift), own.of_target]
    if own.weighted is not None:
        sums.append(own.weighted)
    sums = torch.stack(sums)
    dist.all_reduce(sums, group=group)
    predicted = own.predicted
    if predicted is not None:
        # The first class of those that have the largest logit; a NaN anywhere is -1.
        is_best = (own.largest == largest[1]) & (predicted >= 0)
        predicted = torch.where(is_best, predicted, torch.iinfo(torch.int32).max)
        predicted = torch.where(own.largest.isnan(), -1, predicted)
        dist.all_reduce(predicted, dist.ReduceOp.MIN, group=group)
    return Statistics(
        torch.log(sums[0]) + shift,
        sums[1],
        None if own.largest is None else largest[1],
        None if own.weighted is None else sums[2],
        predicted,
    )

# Part of Bastile, under the MIT License. See LICENSE.
"""Where each query of a mask finds the keys of its own number, and each key the queries:
kernels visit nothing else."""

from typing import NamedTuple

import torch


class Ranges(NamedTuple):
    """For each number of one sequence, [..., length] of int32: the place of the first
    equal number in another one, the place behind the last one, and whether others lie
    between, 1 or 0, or None if they nowhere do. Where no number is equal, the range is
    empty."""

    first: torch.Tensor
    end: torch.Tensor
    others: torch.Tensor | None = None


def of_runs(numbers):
    """The ranges of integers [..., length] that nowhere decrease in themselves."""
    numbers = numbers.contiguous()
    first, end = (
        torch.searchsorted(numbers, numbers, right=right, out_int32=True)
        for right in (False, True)
    )
    return Ranges(first, end)


def of_equals(queries, keys):
    """The ranges of the integers ``queries`` [..., Q] in ``keys`` [..., K], and those of
    the keys in the queries."""
    if queries is keys:
        ranges = _find(keys, keys)
        return ranges, ranges
    batch = torch.broadcast_shapes(queries.shape[:-1], keys.shape[:-1])
    queries, keys = (x.expand(*batch, x.shape[-1]) for x in (queries, keys))
    return _find(queries, keys), _find(keys, queries)


def _find(numbers, others):
    """The ranges of ``numbers`` in ``others``. Integers of any size share as many buckets
    as there are others; in one bucket, ranges are those of all that are there."""
    length = others.shape[-1]
    count = max(length, 1)
    buckets = torch.remainder(others.long(), count)
    places = torch.arange(length, dtype=torch.int32, device=others.device)
    places = places.expand_as(others)
    begins = torch.ones_like(others, dtype=torch.bool)
    begins[..., 1:] = others[..., 1:] != others[..., :-1]
    # The least place, and the least negative of all places and of those where a run of
    # equal numbers begins: where the last run begins first, the bucket has one run.
    values = torch.stack([places, -places, torch.where(begins, -places, 0)])
    table = values.new_full((3, *others.shape[:-1], count), length)
    table.scatter_reduce_(-1, buckets.expand_as(values), values, "amin")
    own = torch.remainder(numbers.long(), count)
    first, last, run = table.gather(-1, own.expand(3, *own.shape))
    is_mixed = first != -run
    if numbers is not others and length:
        found = others.gather(-1, first.clamp(max=length - 1).long())
        is_mixed = is_mixed | (found != numbers)
    return Ranges(first, 1 - last, is_mixed.to(torch.int32))

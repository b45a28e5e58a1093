# Part of Bastile, under the MIT License. See LICENSE.
"""Attention, the one formula that all its forms are made of."""

import functools
import math
import operator

from bastile._compiler import symbols
from bastile._compiler.traced_operators import TracedOperator
from bastile.functions import (
    abs,
    dropout as dropout_of,
    exp,
    expand_as,
    iota,
    log,
    maximum,
    row_max,
    row_sum,
    stop_gradient,
    tanh,
    where,
)

#: The lowest number of float32, which stands for the maximum of a row that sees no key:
#: minus infinity less it is minus infinity, whose power is 0.
LOWEST = -3.4028234663852886e38
#: What is added to the sum of a row's powers, so that a row that sees no key has the
#: weights 0 / `NOTHING`. Any other row's sum is 1 or more, which rounding leaves as it is,
#: also where all scores are `LOWEST`, as of a mask that is added.
NOTHING = 2.0**-100


def scores_of(query, key, scale, softcap):
    """The scores of queries and keys, kept below ``softcap`` where that is not 0."""
    scores = query @ key.mT * scale
    return softcap * tanh(scores / softcap) if softcap else scores


def in_ranges(scores, by_query, by_key, equal=None):
    """Which of ``scores`` [..., queries, keys] belong to a query and a key of one number.

    ``by_query`` are three numbers of each query, [..., queries, 1]: of the first key that
    has the query's number, behind the last one, and not 0 where others lie between, or
    None if they do for no query. ``by_key`` are those of queries for each key, [..., 1,
    keys]. Where others lie between, ``equal`` tells. Each kernel goes by the numbers of
    its own rows, and visits what they leave.
    """
    columns, rows = iota(scores, -1), iota(scores, -2)
    parts = []
    for places, (first, end, others) in ((columns, by_query), (rows, by_key)):
        first, end = expand_as(first, scores), expand_as(end, scores)
        part = (places >= first) & (places < end)
        if equal is not None:
            part = part & ((expand_as(others, scores) <= 0) | equal)
        parts.append(part)
    return symbols.apply("eitherOf", *parts, name="in_ranges")


def attend(scores, value, *, seen, sink, may_be_empty, drop, with_lse, dtype):
    """The product of the softmax of ``scores`` [..., queries, keys] with ``value``
    [..., keys, size], as ``dtype``, and, ``with_lse``, the log-sum-exp of each row of
    scores, [..., queries, 1].

    ``seen`` says which scores count, or is None. ``sink``, [..., 1, 1] or None, is one
    more score of each row, without a value. ``may_be_empty`` says that all scores of a
    row may be minus infinity, without ``seen`` as well. A row that sees nothing has the
    result 0 and the log-sum-exp `LOWEST`. ``drop`` is the probability with which elements
    of the softmax become 0, and the seed that says which.

    For one kernel to do it all, the maximum and the sum have to be reductions of
    ``scores``, or follow from these and from what the maximum is limited by.
    """
    if seen is not None:
        scores = where(seen, scores, -math.inf)
    may_be_empty = may_be_empty or seen is not None
    largest = row_max(scores)
    if sink is not None:
        largest = maximum(largest, sink)
    if may_be_empty:
        largest = maximum(largest, LOWEST)
    largest = stop_gradient(largest)
    powers = exp(scores - largest)
    total = row_sum(powers)
    if sink is not None:
        total = total + exp(sink - largest)
    if may_be_empty:
        total = total + NOTHING
    weights = powers / total
    probability, seed = drop
    if probability:
        weights = dropout_of(weights, probability, seed)
    result = (weights @ value).to(dtype)
    if not with_lse:
        return result
    lse = largest + log(total)
    return result, lse.to(lse.dtype)


def grouped_sizes(left=-1.0, right=-1.0, causal=0.0, **_):
    """Where each query sees few keys, the number of queries' heads for each head of
    keys is part of the code: the heads of a group share tiles."""
    if left < 0 or (right < 0 and not causal):
        return ()
    return ("query", 2), ("key", 2), ("value", 2)


@functools.partial(
    TracedOperator,
    fixed_sizes=grouped_sizes,
    any_length=(
        "seen",
        "seen_keys",
        "bias",
        "key_documents",
        "key_first",
        "key_end",
        "key_others",
    ),
)
def attention(
    query,
    key,
    value,
    offset=None,
    sinks=None,
    seen=None,
    seen_keys=None,
    bias=None,
    query_documents=None,
    key_documents=None,
    query_first=None,
    query_end=None,
    query_others=None,
    key_first=None,
    key_end=None,
    key_others=None,
    slopes=None,
    seed=None,
    scale=1.0,
    causal=0.0,
    left=-1.0,
    right=-1.0,
    softcap=0.0,
    dropout=0.0,
    with_lse=0.0,
):
    """Attention of ``query`` [B, heads of keys, queries of each, Q, size] to ``key`` and
    ``value`` [B, heads of keys, 1, K, size].

    All operands have five dimensions, of which each may be 1: ``sinks`` and ``slopes``
    go along both dimensions of heads, documents and their ranges, as `in_ranges` takes
    them, along the batch and along queries or keys, ``seen``, of int8, and ``bias`` along
    all. Query i is at position i +
    ``offset``, or i where there is no offset. ``left`` and ``right`` are how far before
    and behind a position keys are seen; -1 stands for no limit. ``seed`` is one number.
    """
    scores = scores_of(query, key, scale, softcap)
    if bias is not None:
        scores = scores + bias
    position, place = iota(scores, -2), iota(scores, -1)
    if offset is not None:
        position = position + offset
    if slopes is not None:
        distance = abs(position.to(scores.dtype) - place.to(scores.dtype))
        scores = scores - slopes * distance
    conditions = []
    if causal:
        conditions.append(place <= position)
    if left >= 0:
        conditions.append(place >= position - int(left))
    if right >= 0:
        conditions.append(place <= position + int(right))
    if query_first is not None:
        equal = None
        if query_documents is not None:
            equal = query_documents == expand_as(key_documents, scores)
        of_queries = query_first, query_end, query_others
        of_keys = key_first, key_end, key_others
        conditions.append(in_ranges(scores, of_queries, of_keys, equal))
    for flags in (seen, seen_keys):
        if flags is not None:
            conditions.append(expand_as(flags, scores) != 0)
    return attend(
        scores,
        value,
        seen=functools.reduce(operator.and_, conditions) if conditions else None,
        sink=sinks,
        may_be_empty=bias is not None,
        drop=(dropout, seed),
        with_lse=with_lse,
        dtype=query.dtype,
    )

# Part of Bastile, under the MIT License. See LICENSE.
"""Which document of a packed sequence each token is of."""

import torch
from bastile._attention import ranges

#: The operands of the formula that say documents.
_COUNT = 8


def find(heads, documents, position_ids, cu_seqlens):
    """The documents of queries and of keys and their ranges as operands, of the arguments
    of `bastile.ops.attention` that say them; None where nothing needs to be said."""
    given = [x for x in (documents, position_ids, cu_seqlens) if x is not None]
    if not given:
        return [None] * _COUNT
    if len(given) > 1:
        raise ValueError(
            f"{heads.call}: documents are said by one of 'documents', 'position_ids' and "
            f"'cu_seqlens', but {len(given)} are given"
        )
    numbers = None, None
    if position_ids is not None:
        name, of_queries = "position_ids", ranges.of_runs(of_positions(position_ids))
        of_keys = of_queries
    elif cu_seqlens is not None:
        name, of_queries = "cu_seqlens", of_boundaries(heads, cu_seqlens)
        of_keys = of_queries
    else:
        name = "documents"
        is_pair = isinstance(documents, tuple)
        queries, keys = documents if is_pair else (documents, documents)
        numbers = heads.of_queries(name, queries), heads.of_keys(name, keys)
        of_queries, of_keys = ranges.of_equals(queries, keys)
    return [
        *numbers,
        *(heads.of_queries(name, x) for x in of_queries),
        *(heads.of_keys(name, x) for x in of_keys),
    ]


def of_positions(position_ids):
    """Documents that begin wherever a position does not follow the one before."""
    starts = torch.diff(position_ids, dim=-1) != 1
    first = torch.zeros_like(position_ids[..., :1])
    return torch.cat([first, starts.cumsum(-1)], -1)


def of_boundaries(heads, cu_seqlens):
    """The ranges of documents of one sequence, of the places where they begin."""
    heads.check("cu_seqlens", cu_seqlens, cu_seqlens.dim() == 1, "[documents + 1]")
    if heads.batch != 1 or heads.queries != heads.keys:
        raise ValueError(
            f"{heads.call}: 'cu_seqlens' is for a batch of one sequence, with as many "
            f"queries as keys, but there are {heads.batch} sequences of {heads.queries} "
            f"queries and {heads.keys} keys"
        )
    places = torch.arange(heads.keys, device=cu_seqlens.device, dtype=cu_seqlens.dtype)
    return ranges.of_runs(torch.searchsorted(cu_seqlens, places, right=True))

# Part of Bastile, under the MIT License. See LICENSE.
"""Which document of a packed sequence each token is of."""

import torch


def find(heads, documents, position_ids, cu_seqlens):
    """The documents of queries and of keys as operands, of the arguments of
    `bastile.ops.attention` that say them; a pair of None where none does."""
    given = [x for x in (documents, position_ids, cu_seqlens) if x is not None]
    if not given:
        return None, None
    if len(given) > 1:
        raise ValueError(
            f"{heads.call}: documents are said by one of 'documents', 'position_ids' and "
            f"'cu_seqlens', but {len(given)} are given"
        )
    if position_ids is not None:
        name, documents = "position_ids", of_positions(position_ids)
    elif cu_seqlens is not None:
        name, documents = "cu_seqlens", of_boundaries(heads, cu_seqlens)
    else:
        name = "documents"
    of_queries, of_keys = (
        documents if isinstance(documents, tuple) else (documents, documents)
    )
    return heads.of_queries(name, of_queries), heads.of_keys(name, of_keys)


def of_positions(position_ids):
    """Documents that begin wherever a position does not follow the one before."""
    starts = torch.diff(position_ids, dim=-1) != 1
    first = torch.zeros_like(position_ids[..., :1])
    return torch.cat([first, starts.cumsum(-1)], -1).to(torch.int32)


def of_boundaries(heads, cu_seqlens):
    """Documents of one sequence, of the places where they begin."""
    heads.check("cu_seqlens", cu_seqlens, cu_seqlens.dim() == 1, "[documents + 1]")
    if heads.batch != 1 or heads.queries != heads.keys:
        raise ValueError(
            f"{heads.call}: 'cu_seqlens' is for a batch of one sequence, with as many "
            f"queries as keys, but there are {heads.batch} sequences of {heads.queries} "
            f"queries and {heads.keys} keys"
        )
    places = torch.arange(heads.keys, device=cu_seqlens.device, dtype=cu_seqlens.dtype)
    return torch.searchsorted(cu_seqlens, places, right=True).to(torch.int32)

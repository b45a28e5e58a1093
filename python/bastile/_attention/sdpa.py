# Part of Bastile, under the MIT License. See LICENSE.
"""`scaled_dot_product_attention`, with PyTorch's arguments and more."""

from typing import Any

import torch
from bastile._attention import api
from torch import Tensor

_NAME = "scaled_dot_product_attention"


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    window: tuple[int | None, int | None] = (None, None),
    softcap: float = 0,
    sinks: Tensor | None = None,
    key_mask: Tensor | None = None,
    alibi_slopes: Tensor | None = None,
    documents: Tensor | tuple[Tensor, Tensor] | None = None,
    position_ids: Tensor | None = None,
    cu_seqlens: Tensor | None = None,
    offset: int | Tensor = 0,
    seed: Tensor | None = None,
    return_lse: bool = False,
) -> Any:
    """As ``torch.nn.functional.scaled_dot_product_attention``: ``query`` is [B, H, Q, D],
    ``key`` [B, H, K, D] and ``value`` [B, H, K, E], or without B; with ``enable_gqa``,
    keys and values may have fewer heads.

    ``attn_mask``, [B, H, Q, K] or what broadcasts to it, is of bool, or is added to the
    scores; it may stand beside ``is_causal``. As in PyTorch, ``is_causal`` has the first
    query see the first key alone; with ``offset=K - Q`` the last query is at the last
    key. Dropout drops other elements than PyTorch's. A query that sees no key has the
    result 0.

    The other arguments are those of ``bastile.ops.attention``, which describes them.
    """
    shapes = [x.dim() if isinstance(x, Tensor) else 4 for x in (query, key, value)]
    if set(shapes) == {3}:
        query, key, value = (x.unsqueeze(0) for x in (query, key, value))
    elif not enable_gqa and shapes == [4, 4, 4] and query.shape[1] != key.shape[1]:
        raise ValueError(
            f"{_NAME}: {query.shape[1]} heads of queries and {key.shape[1]} of keys need "
            "enable_gqa=True"
        )
    is_mask = attn_mask is not None and attn_mask.dtype == torch.bool
    result = api.attend(
        query,
        key,
        value,
        scale=scale,
        causal=is_causal,
        window=window,
        softcap=softcap,
        sinks=sinks,
        mask=attn_mask if is_mask else None,
        key_mask=key_mask,
        bias=None if is_mask else attn_mask,
        alibi_slopes=alibi_slopes,
        documents=documents,
        position_ids=position_ids,
        cu_seqlens=cu_seqlens,
        offset=offset,
        dropout=dropout_p,
        seed=seed,
        return_lse=return_lse,
        call=_NAME,
    )
    if set(shapes) != {3}:
        return result
    if return_lse:
        return tuple(x.squeeze(0) for x in result)
    return result.squeeze(0)

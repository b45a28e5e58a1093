# Part of Bastile, under the MIT License. See LICENSE.
"""`bastile.ops.attention`. PyTorch is imported when it is called."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


def attention(
    query: "Tensor",
    key: "Tensor",
    value: "Tensor",
    *,
    scale: float | None = None,
    causal: bool = False,
    window: "tuple[int | None, int | None]" = (None, None),
    softcap: float = 0,
    sinks: "Tensor | None" = None,
    mask: "Tensor | None" = None,
    key_mask: "Tensor | None" = None,
    bias: "Tensor | None" = None,
    alibi_slopes: "Tensor | None" = None,
    documents: "Tensor | tuple[Tensor, Tensor] | None" = None,
    position_ids: "Tensor | None" = None,
    cu_seqlens: "Tensor | None" = None,
    offset: "int | Tensor | None" = None,
    dropout: float = 0,
    seed: "Tensor | None" = None,
    return_lse: bool = False,
) -> Any:
    """``softmax(query @ key.mT * scale) @ value``, with what masks hide left out.

    One kernel computes it and never holds the scores. Shapes but the sizes of heads
    change without compiling anything. A query that sees no key has the result 0 and
    gradients of 0. All operands have gradients but masks, documents, positions and seeds.

    Args:
        query: [B, H, Q, D] of float16, bfloat16, float32 or, on the CPU, float64. Any
            strides will do as long as the elements of a row follow each other, such as
            those of ``x.transpose(1, 2)``.
        key, value: [B, G, K, D] and [B, G, K, E] of the same type; G divides H. Query
            head h reads head ``h // (H / G)``. Autocast converts all three.
        scale: by default ``D ** -0.5``.
        causal: whether a query sees no key behind its own position. Query i is at
            position ``i + offset``.
        window: how many keys before and behind its position a query sees beside the one
            there; None for all. A window of 128 tokens that end with the query's own is
            ``causal=True, window=(127, 0)``.
        softcap: c for scores ``c * tanh(scores / c)``, ahead of biases and masks; 0 for
            scores as they are.
        sinks: [H], one more score of each row, which takes a share of the softmax and has
            no value.
        mask: of bool, shaped [B, H, Q, K], where each size may be 1 and leading ones may
            be missing: what is seen.
        key_mask: [B, K] of bool: which keys are seen, as where sequences are padded.
        bias: floats that are added to the scores, of the shapes of ``mask``.
        alibi_slopes: [H]: of the scores, as many times the distance between the
            positions of query and key are subtracted.
        documents: [B, S] or [S] of integers, where there are as many queries as keys, or
            a pair of such tensors, of queries and of keys: keys of other documents are
            not seen.
        position_ids: [B, S] or [S]: documents, each of which begins where a position does
            not follow the one before.
        cu_seqlens: [documents + 1] of integers: where documents begin in a batch of one
            sequence, and where the last one ends.
        offset: the position of the first query among the keys, a number or an int32
            tensor of one. By default K - Q: the last query is at the last key.
        dropout: with which probability each element of the softmax becomes 0; the others
            grow by ``1 / (1 - dropout)``.
        seed: an int32 tensor of one number, which says what is dropped. By default
            PyTorch's generator draws it.
        return_lse: whether to return the log-sum-exp of each row, sinks included, as
            well: [B, H, Q] of float32 (float64 of float64). That of a row that sees
            nothing is the lowest number of float32.
    """
    from bastile._attention import api

    return api.attend(
        query,
        key,
        value,
        scale=scale,
        causal=causal,
        window=window,
        softcap=softcap,
        sinks=sinks,
        mask=mask,
        key_mask=key_mask,
        bias=bias,
        alibi_slopes=alibi_slopes,
        documents=documents,
        position_ids=position_ids,
        cu_seqlens=cu_seqlens,
        offset=offset,
        dropout=dropout,
        seed=seed,
        return_lse=return_lse,
    )

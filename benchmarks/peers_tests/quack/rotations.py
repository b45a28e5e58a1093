# Part of Bastile, under the MIT License. See LICENSE.
"""``quack.rotary``."""

import torch
from bastile import functional
from torch import Tensor


def apply_rotary(
    x: Tensor,
    cos: Tensor,
    sin: Tensor,
    seqlen_offsets: Tensor | None = None,
    cu_seqlens: Tensor | None = None,
    max_seqlen: int | None = None,
    interleaved: bool = False,
    inplace: bool = False,
    conjugate: bool = False,
) -> Tensor:
    positions = _positions(x, seqlen_offsets, cu_seqlens)
    cos, sin = cos[positions], sin[positions]
    return functional.rope(
        x,
        None,
        cos,
        -sin if conjugate else sin,
        interleaved=interleaved,
        rotary=2 * cos.shape[-1],
        unsqueeze_dim=cos.dim() - 1,
        in_place=inplace,
    )


def _positions(x, offsets, bounds):
    """Rows of the tables of angles: [1, S] or [B, S] of heads [B, S, H, D], and [T] of
    sequences [T, H, D] that ``bounds`` separates."""
    if bounds is None:
        positions = torch.arange(x.shape[1], device=x.device).unsqueeze(0)
        return positions if offsets is None else positions + offsets.unsqueeze(-1)
    tokens = torch.arange(x.shape[0], device=x.device, dtype=bounds.dtype)
    sequences = torch.bucketize(tokens, bounds[1:], right=True)
    positions = tokens - bounds[sequences]
    return positions if offsets is None else positions + offsets[sequences]


def apply_rotary_emb(
    x: Tensor,
    cos: Tensor,
    sin: Tensor,
    interleaved: bool = False,
    inplace: bool = False,
    seqlen_offsets: Tensor | None = None,
    cu_seqlens: Tensor | None = None,
    max_seqlen: int | None = None,
) -> Tensor:
    return apply_rotary(
        *(x, cos, sin, seqlen_offsets, cu_seqlens, max_seqlen, interleaved, inplace)
    )


def apply_rotary_emb_qkv_(
    qkv: Tensor,
    cos: Tensor,
    sin: Tensor,
    interleaved: bool = False,
    seqlen_offsets: Tensor | None = None,
    num_heads_q: int | None = None,
    cu_seqlens: Tensor | None = None,
    max_seqlen: int | None = None,
    headdim: int | None = None,
) -> Tensor:
    if cu_seqlens is not None or headdim is not None:
        raise NotImplementedError("heads that are packed with sequences of any length")
    if qkv.dim() == 5:
        turned = [True, True, False]
    else:
        values = (qkv.shape[2] - num_heads_q) // 2
        turned = [True] * (qkv.shape[2] - values) + [False] * values
    return _turn_some(qkv, turned, cos, sin, interleaved, seqlen_offsets)


def apply_rotary_emb_kv_(
    kv: Tensor,
    cos: Tensor,
    sin: Tensor,
    interleaved: bool = False,
    seqlen_offsets: Tensor | None = None,
) -> Tensor:
    return _turn_some(kv, [True, False], cos, sin, interleaved, seqlen_offsets)


def _turn_some(packed, turned, cos, sin, interleaved, offsets):
    """Turns those of dimension 2 that ``turned`` says, in place.

    PyTorch refuses to overwrite a part of a leaf that requires gradients, as the tests'
    are, so that values turn as well: by an angle of 0, which leaves them as they are.
    """
    positions = _positions(packed, offsets, None)
    is_turned = torch.tensor(turned, device=packed.device)
    is_turned = is_turned.reshape(-1, *[1] * (packed.dim() - 3))
    shape = (*positions.shape, *[1] * (packed.dim() - 3), cos.shape[-1])
    cos, sin = (table[positions].reshape(shape) for table in (cos, sin))
    return functional.rope(
        packed,
        None,
        torch.where(is_turned, cos, 1.0),
        torch.where(is_turned, sin, 0.0),
        interleaved=interleaved,
        rotary=2 * cos.shape[-1],
        in_place=True,
    )


FUNCTIONS = (
    apply_rotary,
    apply_rotary_emb,
    apply_rotary_emb_qkv_,
    apply_rotary_emb_kv_,
)

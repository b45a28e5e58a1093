# Part of Bastile, under the MIT License. See LICENSE.
"""Calls of attention: checks, and the operands of the formula."""

import torch
from bastile._attention import documents as packing
from bastile._attention import heads as heads_of
from bastile._formulas.attention import attention
from bastile._losses import checks

#: No sequence is as long: a window of this many keys, or more, is none.
_ALL_KEYS = 2**30


def attend(
    query,
    key,
    value,
    *,
    scale=None,
    causal=False,
    window=(None, None),
    softcap=0.0,
    sinks=None,
    mask=None,
    key_mask=None,
    bias=None,
    alibi_slopes=None,
    documents=None,
    position_ids=None,
    cu_seqlens=None,
    offset=None,
    dropout=0.0,
    seed=None,
    return_lse=False,
    call="attention",
):
    """`bastile.ops.attention`; messages begin with the name ``call``."""
    query, key, value = checks.cast(query, key, value)
    heads = heads_of.find(call, query, key, value)
    left, right = take_window(call, window)
    packed = packing.find(heads, documents, position_ids, cu_seqlens)
    if not (causal or left >= 0 or right >= 0 or alibi_slopes is not None):
        offset = 0
    others = (
        take_offset(heads, offset, query.device),
        heads.of_heads("sinks", sinks),
        heads.of_scores("mask", take_mask(call, "mask", mask)),
        heads.of_keys("key_mask", take_mask(call, "key_mask", key_mask)),
        take_bias(heads, bias),
        *packed,
        heads.of_heads("alibi_slopes", alibi_slopes),
        take_seed(call, dropout, seed, query.device),
    )
    # Where there are no keys, a causal mask says of each row that it sees nothing.
    numbers = (
        query.shape[-1] ** -0.5 if scale is None else float(scale),
        1.0 if causal or heads.keys == 0 else 0.0,
        left,
        right,
        float(softcap),
        float(dropout),
        1.0 if return_lse else 0.0,
    )
    operands = heads.split_query(query), key.unsqueeze(2), value.unsqueeze(2)
    return finish(heads, attention(*operands, *others, attributes=numbers), return_lse)


def finish(heads, computed, return_lse):
    """The result [B, H, Q, E], and the log-sum-exp [B, H, Q] where it is asked for."""
    if not return_lse:
        return heads.join(computed)
    result, lse = computed
    return heads.join(result), heads.join(lse).squeeze(-1)


def take_window(call, window):
    """How far before and behind its position a query sees, -1 for any distance."""
    try:
        left, right = (-1.0 if size is None else float(size) for size in window)
    except TypeError:
        left = right = None
    if (
        left is None
        or min(left, right) < -1
        or not all(map(float.is_integer, (left, right)))
    ):
        raise ValueError(
            f"{call}: 'window' must be a pair of numbers of keys, before and behind, or "
            f"None for all of them, but is {window!r}"
        )
    # Positions are int32, of which sums with more would wrap around.
    return tuple(-1.0 if size >= _ALL_KEYS else size for size in (left, right))


def take_offset(heads, offset, device):
    """The position of the first query as an operand; None for 0."""
    if offset is None:
        offset = heads.keys - heads.queries
    if isinstance(offset, torch.Tensor):
        heads.check("offset", offset, offset.numel() == 1, "one number")
        return heads_of.one_number(offset.to(device, torch.int32))
    return one_offset(offset, device)


def one_offset(offset, device):
    """A number as an operand; None for 0."""
    if not offset:
        return None
    return torch.full((1, 1, 1, 1, 1), offset, dtype=torch.int32, device=device)


def take_mask(call, name, mask):
    """A mask of bool as bytes, which kernels take."""
    if mask is None:
        return None
    if mask.dtype != torch.bool:
        raise TypeError(
            f"{call}: '{name}' has elements of type {mask.dtype}, but takes bool"
        )
    return as_bytes(mask)


def as_bytes(mask):
    """A tensor of bool as one of bytes, a view of its memory where that can be had."""
    if torch.compiler.is_compiling():
        # Inductor of PyTorch 2.11 has no view of bool.
        return mask.to(torch.int8)
    return mask.view(torch.int8)


def take_bias(heads, bias):
    if bias is None:
        return None
    checks.check_floats(heads.call, "bias", bias)
    if bias.requires_grad and torch.is_grad_enabled():
        # PyTorch sums its gradient over the dimensions along which it is the same: no
        # kernel adds up rows of a length that only a call knows.
        count = heads.key_heads * heads.group
        bias = bias.expand(heads.batch, count, heads.queries, heads.keys)
    return heads.of_scores("bias", bias)


def take_seed(call, dropout, seed, device):
    """The operand that says what is dropped; None where nothing is."""
    if not 0 <= dropout <= 1:
        raise ValueError(f"{call}: 'dropout' must be from 0 to 1, but is {dropout}")
    if not dropout:
        return None
    if seed is None:
        seed = torch.randint(-(2**31), 2**31, (1,), dtype=torch.int32, device=device)
    if seed.dtype != torch.int32 or seed.numel() != 1:
        raise ValueError(
            f"{call}: 'seed' must be an int32 tensor of one number, but has shape "
            f"{list(seed.shape)} and type {seed.dtype}"
        )
    return seed.reshape(1)

# Part of Bastile, under the MIT License. See LICENSE.
"""`flex_attention`, with PyTorch's arguments and more."""

from collections.abc import Callable
from typing import Any

import torch
from bastile._attention import api
from bastile._attention import heads as heads_of, ranges
from bastile._attention.scores import calls, operators
from bastile._attention.scores.values import AXES
from bastile._losses import checks
from torch import Tensor
from torch.nn.attention.flex_attention import noop_mask

_NAME = "flex_attention"


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Callable[..., Any] | None = None,
    block_mask: Any = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: dict[str, Any] | None = None,
    *,
    return_aux: Any = None,
    mask_mod: Callable[..., Any] | None = None,
    softcap: float = 0,
    sinks: Tensor | None = None,
    dropout: float = 0,
    seed: Tensor | None = None,
) -> Any:
    """As ``torch.nn.attention.flex_attention.flex_attention``: ``query`` is [B, H, Q, D],
    ``key`` [B, H, K, D] and ``value`` [B, H, K, E]; with ``enable_gqa``, keys and values
    may have fewer heads.

    ``score_mod(score, b, h, q_idx, kv_idx)`` says what becomes of each score, and
    ``mask_mod(b, h, q_idx, kv_idx)`` which scores count; it may be given as
    ``block_mask``, of which nothing else is read: not the blocks that
    ``BlockMask.from_kv_blocks`` was given, as in PyTorch without torch.compile.

    The functions are run once and become a part of the kernel; they compute with
    PyTorch's functions of one number, and with captured tensors indexed by b, h, q_idx
    and kv_idx, or by what is computed of these, or of one number. Captured tensors may
    change from call to call, and have gradients; captured numbers of Python are part of
    the code. Indices are int32, so that products beyond it wrap around. ``TypeError``
    names what a function does that no kernel can.

    ``kernel_options`` have no effect. ``return_aux`` may ask for the log-sum-exp alone.
    ``softcap``, ``sinks``, ``dropout`` and ``seed`` are those of
    ``bastile.ops.attention``; the cap comes ahead of ``score_mod``.
    """
    if return_aux is not None:
        if getattr(return_aux, "max_scores", False):
            raise NotImplementedError(
                f"{_NAME}: 'return_aux' asks for maxima of scores"
            )
        return_lse = return_aux.lse
    if mask_mod is None:
        mask_mod = getattr(block_mask, "mask_mod", block_mask)
    elif block_mask is not None:
        raise ValueError(f"{_NAME}: 'mask_mod' and 'block_mask' say the same")
    if not enable_gqa and query.dim() == key.dim() and query.shape[1] != key.shape[1]:
        raise ValueError(
            f"{_NAME}: {query.shape[1]} heads of queries and {key.shape[1]} of keys need "
            "enable_gqa=True"
        )
    if mask_mod is None and key.dim() == 4 and key.shape[2] == 0:
        # Without keys, a row sees nothing, as under a mask.
        mask_mod = noop_mask
    result = attend_by(
        operators.Functions(_NAME, score_mod, mask_mod),
        query,
        key,
        value,
        scale=scale,
        softcap=softcap,
        sinks=sinks,
        dropout=dropout,
        seed=seed,
        return_lse=return_lse,
    )
    if return_aux is None:
        return result
    from torch.nn.attention.flex_attention import AuxOutput

    if not return_lse:
        return result, AuxOutput()
    return result[0], AuxOutput(lse=result[1])


def attend_by(
    functions,
    query,
    key,
    value,
    *,
    offsets=None,
    known=None,
    scale=None,
    softcap=0.0,
    sinks=None,
    dropout=0.0,
    seed=None,
    return_lse=False,
):
    """Attention with `Functions` in it. ``offsets`` has, by axis, the number at which the
    indices begin that the functions get. Calls with the same functions and offsets, as
    those of a model's layers, may share ``known``, a dictionary."""
    call = functions.what
    query, key, value = checks.cast(query, key, value)
    heads = heads_of.find(call, query, key, value)
    place = heads, query.device
    if known is None:
        # As a key, sizes would be part of what torch.compile compiles.
        prepared = _prepare(functions, *place, offsets or {})
    else:
        if place not in known:
            known[place] = _prepare(functions, *place, offsets or {})
        prepared = known[place]
    compute, shifts, captured = prepared
    operands = (
        heads.split_query(query),
        key.unsqueeze(2),
        value.unsqueeze(2),
        *shifts,
        heads.of_heads("sinks", sinks),
        api.take_seed(call, dropout, seed, query.device),
        *captured,
    )
    numbers = (
        query.shape[-1] ** -0.5 if scale is None else float(scale),
        float(softcap),
        float(dropout),
        1.0 if return_lse else 0.0,
    )
    return api.finish(heads, compute(operands, numbers), return_lse)


def _prepare(functions, heads, device, offsets):
    """A function of all operands and the numbers, and the operands that follow from the
    functions: where indices begin, and what is read of captured tensors."""
    reads, equals, compute = operators.find(functions)
    tensors = [x.to(device) for x in functions.captured.tensors]
    captured = [_read(heads, tensors, read, offsets) for read in reads]
    for pair in equals:
        queries, keys = (captured[reads.index(read)] for read in pair)
        queries, keys = queries.squeeze(-1), keys.squeeze(-2)
        captured += _find_ranges(
            keys if _is_one(heads, *pair, offsets) else queries, keys
        )
    shifts = [api.one_offset(offsets.get(axis), device) for axis in ("query", "key")]
    return compute, shifts, captured


def _is_one(heads, by_query, by_key, offsets):
    """Whether what is read by the query and by the key are the same numbers."""
    (number, places), (other, others) = by_query, by_key
    if number != other or heads.queries != heads.keys:
        return False
    along_keys = [("key" if axis == "query" else axis, i) for axis, i in places]
    return along_keys == [tuple(place) for place in others] and (
        offsets.get("query", 0) == offsets.get("key", 0)
    )


def _find_ranges(queries, keys):
    """The ranges in which numbers of queries [..., Q] and of keys [..., K] are equal,
    with the dimensions of scores."""
    by_query, by_key = ranges.of_equals(queries, keys)
    return [
        *(x.unsqueeze(-1) for x in by_query),
        *(x.unsqueeze(-2) for x in by_key),
    ]


def _read(heads, tensors, read, offsets):
    """What a function reads of a captured tensor, with the dimensions of scores."""
    number, places = read
    count = heads.key_heads * heads.group
    sizes = dict(zip(AXES, (heads.batch, count, heads.queries, heads.keys)))
    axes = [place[0] for place in places if place[0] in AXES]
    if all(map(_is_place, places)) and len(set(axes)) == len(axes):
        tensor = _view(heads.call, tensors[number], places, sizes, offsets)
    else:
        tensor = _compute(read, tensors, sizes, offsets)
        tensor = tensor.reshape(*[1] * (len(AXES) - tensor.dim()), *tensor.shape)
    if tensor.dtype == torch.bool:
        tensor = api.as_bytes(tensor)
    tensor = tensor.to(operators.KERNEL_TYPES.get(tensor.dtype, tensor.dtype))
    if tensor.shape[-1] != 1 or "key" in axes:
        if tensor.requires_grad and torch.is_grad_enabled():
            # As for a bias, PyTorch sums the gradient.
            tensor = tensor.expand(*sizes.values())
        if tensor.stride(-1) != 1:
            tensor = tensor.contiguous()
    return heads.split_heads(tensor)


def _is_place(source):
    """Whether ``source`` is a `Place`, which torch.compile takes as a tuple."""
    return len(source) == 2 and not isinstance(source[1], tuple)


def _view(call, tensor, places, sizes, offsets):
    """What is read at places along axes of their own, as a view."""
    axes = []
    for axis, shift in places:
        dimension = len(axes)
        if axis is None:
            tensor = tensor.select(dimension, shift)
            continue
        first, size = offsets.get(axis, 0) + shift, sizes[axis]
        if first < 0 or first + size > tensor.shape[dimension]:
            raise ValueError(
                f"{call}: a captured tensor of shape {list(tensor.shape)} is indexed "
                f"from {first} to {first + size - 1} in dimension {dimension}"
            )
        tensor = tensor.narrow(dimension, first, size)
        axes.append(axis)
    order = sorted(range(len(axes)), key=lambda i: AXES.index(axes[i]))
    tensor = tensor.permute(order)
    for dimension, axis in enumerate(AXES):
        if axis not in axes:
            tensor = tensor.unsqueeze(dimension)
    return tensor


def _compute(source, tensors, sizes, offsets):
    """What a function computes of indices and captured tensors, by PyTorch: a tensor with
    the dimensions of scores, or anything of Python. ``source`` is a `Place`, a `Read` or
    a `Computed`, or these as tuples."""
    if not isinstance(source, tuple) or not source:
        return source

    def compute(part):
        return _compute(part, tensors, sizes, offsets)

    if len(source) == 3:
        name, operands, named = source
        return calls.compute(
            name, [compute(x) for x in operands], {key: compute(x) for key, x in named}
        )
    first, rest = source
    if isinstance(rest, tuple):
        return tensors[first][tuple(compute(x) for x in rest)]
    if first is None:
        return rest
    device = tensors[0].device
    numbers = torch.arange(sizes[first], device=device) + (offsets.get(first, 0) + rest)
    behind = len(AXES) - 1 - AXES.index(first)
    return numbers.reshape(-1, *[1] * behind)

# Part of Bastile, under the MIT License. See LICENSE.
"""Attention within a window by PyTorch's flash kernel.

Transformers gives `scaled_dot_product_attention` a window as a mask, and with a mask
PyTorch takes a slower kernel, which computes all of the masked scores as well and needs
a copy of keys and values for each head. The flash kernel takes the window itself.

A mask that is known to be a window is marked; whoever does not know of the mark sees an
ordinary mask.
"""

import functools
import threading
from typing import NamedTuple

import torch

from bastile import _log

_channel = _log.Channel("patching")
_MARK = "bastile_window"
#: What may be asked of attention that the flash kernel does not do.
_OTHERS = ("is_causal", "position_bias", "softcap", "cache", "head_mask", "s_aux")
#: Lengths of heads: the most, and what they are a multiple of.
_LONGEST, _STEP = 256, 8
#: The largest error, as a share of the largest value, that rounding explains.
_BOUND = 3e-2


class _Mark(NamedTuple):
    window: int
    #: How often the mask had been written to: it may be changed in place.
    version: int


def mark(mask, window):
    """Notes that ``mask`` [B, 1, S, S] has each token attend to itself and to the
    ``window - 1`` before it."""
    setattr(mask, _MARK, _Mark(window, mask._version))


def attention(original):
    """The function of Transformers that calls `scaled_dot_product_attention`, with
    windows run by the flash kernel where that computes the same."""

    @functools.wraps(original)
    def sdpa_attention_forward(
        module, query, key, value, attention_mask=None, *operands, **named
    ):
        marked = getattr(attention_mask, _MARK, None)
        if marked is not None and not operands:
            window = _window(marked, attention_mask, query, key, named)
            if window is not None and window >= query.shape[2]:
                # All tokens before one are within the window.
                if getattr(module, "is_causal", True):
                    return original(module, query, key, value, None, **named)
            elif window is not None and _can_run(query, key, value, named):
                dtype = _type_of(query, key, value)
                heads = (x.to(dtype).transpose(1, 2) for x in (query, key, value))
                return run(*heads, window, named.get("scaling")), None
        return original(module, query, key, value, attention_mask, *operands, **named)

    return sdpa_attention_forward


def run(query, key, value, window, scale):
    """Attention of each token to itself and to the ``window - 1`` before it, of
    [B, S, H, D]; differentiable. ``scale`` is that of the scores, by default one over
    the root of D."""
    length = query.shape[1]
    return torch.ops.aten._flash_attention_forward(
        query,
        key,
        value,
        None,
        None,
        length,
        length,
        0.0,
        True,
        False,
        scale=scale,
        window_size_left=window - 1,
        window_size_right=0,
    )[0]


def _window(marked, mask, query, key, named):
    """The window that ``mask`` says, if attention of this call is that and no more."""
    length = query.shape[2]
    is_plain = (
        marked.version == mask._version
        and tuple(mask.shape[-2:]) == (length, length)
        and key.shape[2] == length
        and not torch.compiler.is_compiling()
        and not named.get("output_attentions")
        and all(named.get(name) is None for name in _OTHERS)
    )
    return marked.window if is_plain else None


def _can_run(query, key, value, named):
    size = query.shape[-1]
    if not query.is_cuda or named.get("dropout") or not key.shape[1]:
        return False
    if size != value.shape[-1] or size > _LONGEST or size % _STEP:
        return False
    dtype = _type_of(query, key, value)
    if dtype not in (torch.bfloat16, torch.float16):
        return False
    return (
        query.shape[1] % key.shape[1] == 0
        and all(x.stride(-1) == 1 for x in (query, key, value))
        and torch.backends.cuda.flash_sdp_enabled()
        and not torch.are_deterministic_algorithms_enabled()
        and not torch._C._len_torch_dispatch_stack()
        and _is_proven(query.device, dtype, size)
    )


def _type_of(*heads):
    """The type that PyTorch's own attention takes these heads in, as autocast says;
    None where they have several."""
    if torch.is_autocast_enabled("cuda"):
        return torch.get_autocast_dtype("cuda")
    types = {x.dtype for x in heads}
    return types.pop() if len(types) == 1 else None


_proven = {}


def _is_proven(device, dtype, size):
    """Whether the kernel is there for heads of this type and length, and computes on
    this GPU what PyTorch computes by a mask."""
    key = device, dtype, size
    if key not in _proven:
        if torch.cuda.is_current_stream_capturing():
            return False
        # A thread of its own has none of the hooks that this one may have, as those of
        # gradient checkpointing, which counts the tensors that are kept.
        thread = threading.Thread(target=_prove, args=key)
        thread.start()
        thread.join()
    return _proven[key]


def _prove(device, dtype, size):
    try:
        error = error_of(device, dtype, size)
    except Exception as problem:  # whatever it is, there is no such kernel
        error, reason = float("inf"), str(problem)
    else:
        reason = f"its error is {error:.2g}"
    is_proven = _proven[device, dtype, size] = error < _BOUND
    if not is_proven:
        _channel.info("no flash attention within windows on %s: %s", device, reason)


def error_of(device, dtype, size, compute=run):
    """The largest error of results and gradients beside a mask's, as a share of the
    largest value, of two heads of queries to one of keys."""
    length, window = 300, 70
    generator = torch.Generator("cpu").manual_seed(1)
    heads = [
        torch.randn(1, length, count, size, generator=generator)
        .to(device, dtype)
        .requires_grad_()
        for count in (2, 1, 1)
    ]
    places = torch.arange(length, device=device)
    mask = (places <= places[:, None]) & (places > places[:, None] - window)
    upstream = torch.randn(1, length, 2, size, generator=generator).to(device)

    def expect(query, key, value):
        wide = [x.float().transpose(1, 2) for x in (query, key, value)]
        scores = 0.1 * wide[0] @ wide[1].transpose(-1, -2)
        weights = scores.masked_fill(~mask, -torch.inf).softmax(-1)
        return (weights @ wide[2]).transpose(1, 2)

    def differentiate(result):
        result = result.float()
        gradients = torch.autograd.grad(result, heads, upstream)
        return [result.detach(), *(x.float() for x in gradients)]

    found = differentiate(compute(*heads, window, 0.1))
    expected = differentiate(expect(*heads))
    errors = [(a - b).abs().max() / b.abs().max() for a, b in zip(found, expected)]
    return torch.stack(errors).max().item()

# Part of Bastile, under the MIT License. See LICENSE.
"""The masks that Transformers makes for a forward of a decoder.

For each batch that comes without a mask, Transformers asks whether its positions are
those of several sequences in one row, and the host waits for the GPU's answer: as the
first thing in a step, which is when the GPU has finished the last one. Where the model
has made the positions itself, the answer is known.

Where attention is to be Bastile's kernel's, masks are those of `kernels`.

Transformers looks up all functions that are replaced here at each call, in places that
all models share. Outside of `within` they do what they did.
"""

import contextlib
import functools
import threading
from typing import NamedTuple

import torch
from transformers import masking_utils
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from bastile._patching import registry
from bastile._patching.attention import kernels, packing, windows


class _Forward(NamedTuple):
    """A forward of a decoder that runs: whether its positions are its own, and the
    implementation of attention in whose place the kernel is, if there is one."""

    has_own_positions: bool
    replaced: str | None


#: By thread, the forwards that run.
_running = threading.local()
_lock = threading.Lock()
#: The places of what is replaced: a dictionary and a name in it, with what was there
#: and what is there now.
_replaced = []


@contextlib.contextmanager
def within(has_own_positions, replaced=None):
    """Runs a forward of a decoder, which has made consecutive positions of its own or
    was given some, with the kernel in the place of the implementation ``replaced``."""
    if not _replaced:
        _install()
    stack = _stack()
    stack.append(_Forward(has_own_positions, replaced))
    try:
        yield
    finally:
        stack.pop()


def _stack():
    found = getattr(_running, "stack", None)
    if found is None:
        found = _running.stack = []
    return found


def _install():
    with _lock:
        if _replaced:
            return
        masks = masking_utils.ALL_MASK_ATTENTION_FUNCTIONS._global_mapping
        attention = ALL_ATTENTION_FUNCTIONS._global_mapping
        places = [
            (vars(masking_utils), "find_packed_sequence_indices", _packed),
            (masks, "sdpa", _mask),
            (attention, "sdpa", _attention),
        ]
        if kernels.is_supported():
            own = vars(ALL_ATTENTION_FUNCTIONS)
            places.append((own, "get_interface", _get_interface))
            places.append((masks, "eager", functools.partial(_kernel_mask, "eager")))
        for owner, name, make in places:
            before = owner.get(name)
            owner[name] = after = make(before)
            _replaced.append((owner, name, before, after))


def _remove():
    with _lock:
        while _replaced:
            owner, name, before, after = _replaced.pop()
            # Whoever has replaced or removed it since then keeps that.
            if owner.get(name) is not after:
                continue
            if before is None:
                del owner[name]
            else:
                owner[name] = before
    kernels.forget()


registry.on_undo_of_all.append(_remove)


def _get_interface(_):
    """The method of the registry, which is on its class, with modules' own functions as
    `kernels.wrapped` has them."""

    @functools.wraps(type(ALL_ATTENTION_FUNCTIONS).get_interface)
    def get_interface(implementation, default):
        found = type(ALL_ATTENTION_FUNCTIONS).get_interface(
            ALL_ATTENTION_FUNCTIONS, implementation, default
        )
        # A layer may run again in a backward, long after the forward of its decoder.
        return kernels.wrapped.get(found, found)

    return get_interface


def _kernel_mask(implementation, original):
    @functools.wraps(original)
    def mask(*operands, **named):
        stack = _stack()
        is_replaced = stack and stack[-1].replaced == implementation and not operands
        # The kernel goes along queries; a single one, as in generation, is nothing to it.
        if is_replaced and named["q_length"] > 1:
            whole = {**named, "allow_is_causal_skip": False}
            return kernels.make_mask(lambda: original(**whole), named)
        return original(*operands, **named)

    return mask


def _attention(original):
    """PyTorch's attention, with windows by its flash kernel, or Bastile's kernel where a
    layer gets a mask of that."""
    own = windows.attention(original)

    @functools.wraps(original)
    def sdpa_attention_forward(
        module, query, key, value, attention_mask=None, *operands, **named
    ):
        if isinstance(attention_mask, kernels.Mask):
            if kernels.takes_call(attention_mask, query, key, operands, named):
                return kernels.run(attention_mask, module, query, key, value, named)
            attention_mask = attention_mask.own()
        return own(module, query, key, value, attention_mask, *operands, **named)

    return sdpa_attention_forward


def _packed(original):
    @functools.wraps(original)
    def find_packed_sequence_indices(position_ids):
        stack = _stack()
        if stack and stack[-1].has_own_positions:
            return None
        return original(position_ids)

    return find_packed_sequence_indices


def _mask(original):
    by_kernel = _kernel_mask("sdpa", original)

    @functools.wraps(original)
    def sdpa_mask(*operands, **named):
        mask = by_kernel(*operands, **named)
        stack = _stack()
        if stack and isinstance(mask, torch.Tensor) and not operands:
            window = _window_of(named, stack[-1].has_own_positions)
            if window is not None and _counts_all(named.get("attention_mask")):
                windows.mark(mask, window)
        return mask

    return sdpa_mask


def _window_of(named, has_own_positions):
    """The size of the window if a mask for these arguments, padding aside, has token i
    attend to itself and to the tokens before it within that window; None otherwise."""
    window = named.get("local_size")
    if type(window) is not int or named.get("kv_offset", 0) != 0:
        return None
    if "q_length" in named:
        length, first = named["q_length"], named.get("q_offset", 0)
        if type(first) is not int or first:
            return None
    else:
        # Transformers 4 gives positions in the cache, which lie on the GPU.
        length = named["cache_position"].shape[0]
        if not has_own_positions:
            return None
    if length != named["kv_length"] or not _is_understood():
        return None
    expected = masking_utils.sliding_window_causal_mask_function(window)
    return window if packing.is_same(named.get("mask_function"), expected) else None


def _counts_all(padding):
    """Whether every token of a batch counts. Where there is a mask that could say
    otherwise, Transformers has just waited for the GPU to look at it."""
    if padding is None:
        return True
    return padding.is_cuda and bool(padding.all())


@functools.cache
def _is_understood():
    """Whether Transformers means by a window what is meant here."""
    places = torch.arange(8, device="cpu")
    rows, columns = places[:, None], places
    function = masking_utils.sliding_window_causal_mask_function(3)
    expected = (columns <= rows) & (columns > rows - 3)
    return torch.equal(function(0, 0, rows, columns), expected)

# Part of Bastile, under the MIT License. See LICENSE.
"""Transformers' functions of masks: which are alike, and those of packed documents.

Where several documents are packed into one sequence, Transformers has a mask compare
positions within documents, and documents. Where the mask depends on the distance of two
positions alone, as that of causal attention and of windows does, places in the sequence
have the same distance, and of comparisons of places a kernel knows which keys they hide.
"""

import types

import torch
from transformers import masking_utils


def is_same(a, b):
    """Whether two functions have the same code and the same variables of it."""
    if isinstance(a, types.FunctionType) and isinstance(b, types.FunctionType):
        return (
            a.__code__ is b.__code__
            and a.__globals__ is b.__globals__
            and is_same(_contents(a), _contents(b))
        )
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(is_same, a, b))
    return isinstance(a, int) and a == b


def _contents(function):
    return tuple(cell.cell_contents for cell in function.__closure__ or ())


def by_places(function, window):
    """``function`` with places in the sequence in the place of those in documents, where
    that is the same. ``window`` is what Transformers says of the mask's size, or None."""
    if not hasattr(masking_utils, "packed_sequence_compatibility_function"):
        # Older releases compare places in the sequence.
        return function
    plain = _of_distances(window)
    some = torch.zeros(1, 1, dtype=torch.int64, device="cpu")
    both = masking_utils.packed_sequence_compatibility_function(plain[0], some, some)
    remap = _contents(both)[0][1]
    if not _has_code_of(function, both):
        return function
    parts = _contents(function)[0]
    if len(parts) != 2 or not _has_code_of(parts[1], remap):
        return function
    inner = next(x for x in _contents(parts[1]) if isinstance(x, types.FunctionType))
    if not any(is_same(inner, one) for one in plain):
        return function
    return masking_utils.and_masks(parts[0], inner)


def _has_code_of(function, other):
    return isinstance(function, types.FunctionType) and (
        function.__code__ is other.__code__
    )


def _of_distances(window):
    """The functions of Transformers that depend on distances alone."""
    found = [
        masking_utils.causal_mask_function,
        masking_utils.bidirectional_mask_function,
    ]
    if type(window) is int:
        found.append(masking_utils.sliding_window_causal_mask_function(window))
        found.append(masking_utils.sliding_window_bidirectional_mask_function(window))
    return found

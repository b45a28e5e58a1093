# Part of Bastile, under the MIT License. See LICENSE.
"""The strides of results, said ahead of a call.

A call gives its results the strides that the runtime chooses (`chooseStrides` in
``runtime/launch/Shapes.cpp``). PyTorch, which traces a program with tensors without
memory, must be told the same: code that it generates believes it.
"""

import functools

from bastile import _bastile


@functools.cache
def _find_guard():
    """What decides about symbols. Its module imports sympy, which takes half a second
    that processes without symbols need not spend."""
    try:
        from torch.fx.experimental.symbolic_shapes import guard_or_false
    except ImportError:  # Before PyTorch 2.8.
        return bool
    return guard_or_false


def _holds(condition):
    return condition if isinstance(condition, bool) else _find_guard()(condition)


def choose_strides(sizes, inputs):
    """The strides of a new result of ``sizes`` of a call with ``inputs``; sizes and strides
    may be symbols of PyTorch."""
    order = list(range(len(sizes) - 1))
    like = _find_like(sizes, inputs)
    if like is not None:
        order = _order_of(like.stride()[:-1])
    strides = [1] * len(sizes)
    stride = sizes[-1] if sizes else 1
    for dimension in reversed(order):
        strides[dimension] = stride
        stride = stride * sizes[dimension]
    return strides


def _find_like(sizes, inputs):
    if len(sizes) < 3 or not _bastile.keeps_order() or _holds(sizes[-1] == 1):
        return None
    like = None
    for x in inputs:
        if x.dim() != len(sizes) or not _are_equal(x.shape[:-1], sizes[:-1]):
            continue
        if not _has_rows_in_order(x):
            continue
        if _holds(x.shape[-1] == sizes[-1]):
            return x
        if like is None:
            like = x
    return like


def _are_equal(sizes, others):
    return all(_holds(a == b) for a, b in zip(sizes, others, strict=True))


def _has_rows_in_order(x):
    *outer, inner = x.stride()
    if not _holds(inner == 1) and not _holds(x.shape[-1] == 1):
        return False
    return not any(_holds(x == 0) for x in (*x.shape, *outer))


def _order_of(strides):
    order = []
    for dimension, stride in enumerate(strides):
        place = len(order)
        while place and _holds(strides[order[place - 1]] < stride):
            place -= 1
        order.insert(place, dimension)
    return order

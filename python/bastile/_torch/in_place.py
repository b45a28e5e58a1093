# Part of Bastile, under the MIT License. See LICENSE.
"""Results in the memory of operands, as autograd sees them."""

import torch
from bastile._compiler.op_functions import FUNCTIONS
from bastile._formulas.rope import rope_in_place
from bastile._torch import transforms


class _Stored(torch.autograd.Function):
    """Memory that a value was copied to, with the value's way back."""

    @staticmethod
    def forward(ctx, memory, value):
        return memory.view_as(memory)

    @staticmethod
    def backward(ctx, upstream):
        return None, upstream


def put(place: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """``value`` in the memory of ``place``, which it was computed of.

    The gradient of a leaf is that of what it was before. PyTorch refuses views of
    leaves, and whoever kept the old values for a backward gets PyTorch's error.

    Raises ``RuntimeError`` for a leaf under torch.compile, which puts nothing there.
    """
    if not (torch.is_grad_enabled() and place.is_leaf and place.requires_grad):
        return place.copy_(value)
    if torch.compiler.is_compiling():
        raise RuntimeError(
            "torch.compile cannot overwrite a leaf that requires gradients; "
            "'in_place' has to be False"
        )
    with torch.no_grad():
        place.copy_(value)
    return _Stored.apply(place.detach(), value)


def can_turn(given: tuple[torch.Tensor, ...], *angles: torch.Tensor) -> bool:
    """Whether `turn` may be called: by a plain call outside of PyTorch's
    transformations, for gradients of heads alone, whose rows a kernel overwrites."""
    tensors = (*given, *angles)
    return (
        not torch.compiler.is_compiling()
        and all(type(x) in (torch.Tensor, torch.nn.Parameter) for x in tensors)
        and not torch._C._are_functorch_transforms_active()
        and not torch._C._len_torch_dispatch_stack()
        and not transforms.has_forward_level()
        and not torch._C._is_any_autocast_enabled()
        and not (torch.is_grad_enabled() and any(x.requires_grad for x in angles))
        and all(_is_of_whole_rows(x) for x in given)
        and all(x.device.type in ("cpu", "cuda") for x in tensors)
    )


def _is_of_whole_rows(heads):
    *outer, within = zip(heads.shape, heads.stride())
    return within[1] == 1 and all(stride or size < 2 for size, stride in outer)


def turn(
    given: tuple[torch.Tensor, ...],
    cos: torch.Tensor,
    sin: torch.Tensor,
    interleaved: bool,
    rotary: int | None,
) -> tuple[torch.Tensor, ...]:
    """Heads turned in their own memory by one kernel, or one each where they are slices
    of one tensor. As with `put`, the gradient of a leaf is that of what it was before,
    and PyTorch refuses views of leaves."""
    how = cos, sin, interleaved, rotary
    is_recorded = torch.is_grad_enabled()
    leaves = [is_recorded and x.requires_grad and x.is_leaf for x in given]
    # PyTorch says what it refuses here, before anything is overwritten.
    results = tuple(
        _Turned.apply(x, *how) if is_recorded and x.requires_grad and not leaf else x
        for x, leaf in zip(given, leaves)
    )
    apart = len({x.untyped_storage().data_ptr() for x in given}) == len(given)
    with torch.no_grad():
        if apart:
            rope_in_place(len(given) == 2, interleaved, rotary)(*given, cos, sin)
        else:
            for heads in given:
                rope_in_place(False, interleaved, rotary)(heads, cos, sin)
    # A view whose memory changes later on is refused.
    return tuple(
        _TurnedLeaf.apply(x.detach(), x, *how) if leaf else x
        for x, leaf in zip(results, leaves)
    )


def _keep(ctx, cos, sin, *how):
    ctx.save_for_backward(cos, sin)
    ctx.how = how


def _turned_back(ctx, upstream):
    cos, sin = ctx.saved_tensors
    interleaved, rotary = ctx.how
    return FUNCTIONS["rope"](
        upstream, cos, -sin, interleaved=interleaved, rotary=rotary
    )


class _Turned(torch.autograd.Function):
    """Heads that a kernel will turn."""

    @staticmethod
    def forward(ctx, heads, *how):
        ctx.mark_dirty(heads)
        _keep(ctx, *how)
        return heads

    @staticmethod
    def backward(ctx, upstream):
        return _turned_back(ctx, upstream), None, None, None, None


class _TurnedLeaf(torch.autograd.Function):
    """As `_Turned`, of a leaf and its memory."""

    @staticmethod
    def forward(ctx, memory, leaf, *how):
        _keep(ctx, *how)
        return memory.view_as(memory)

    @staticmethod
    def backward(ctx, upstream):
        return None, _turned_back(ctx, upstream), None, None, None, None

# Part of Bastile, under the MIT License. See LICENSE.
"""The operators that are registered with PyTorch, so that a compiler of graphs sees one
call for a forward and one for a backward."""

import torch
from bastile._losses import forward, kernels, slabs
from bastile._losses.options import Operands, Options
from bastile._losses.products import kept_type, wide_type
from bastile._losses.tokens import total_scale

_LIBRARY = torch.library.Library("bastile", "FRAGMENT")
_SCHEMA = (
    "{}(Tensor hidden, Tensor weight, Tensor targets, Tensor? bias, "
    "Tensor? class_weights, {}, str words, SymInt[] counts, "
    "float[] numbers, bool[] wanted) -> Tensor[]"
)


def _run(options):
    """The function that computes the loss as the options ask for."""
    if options.group is not None:
        from bastile._losses import parallel

        return parallel.run
    return slabs.run if options.settings.recompute else forward.run


def _forward(hidden, weight, targets, bias, class_weights, divisor, *rest):
    """The results, and behind them the gradients that are wanted. Between the two comes
    a factor that the backward has to multiply into the gradients, where these are kept
    in a wider type than they are returned in."""
    *given, wanted = rest
    options = Options.read(*given)
    operands = Operands(hidden, weight, targets, bias, class_weights)
    if options.of_each_token:
        return _run(options)(operands, None, options, wanted)[0]
    wide = wide_type(hidden.dtype)
    factor = total_scale(targets, class_weights, divisor, options.settings, wide)
    is_later = kept_type(hidden.dtype) != hidden.dtype
    of_token = torch.ones_like(factor) if is_later else factor
    scale = of_token.expand(len(hidden))
    results, gradients = _run(options)(operands, scale, options, wanted)
    if not is_later:
        return [*results, *gradients]
    results[0] = results[0] * factor
    return [*results, *([factor] if gradients else []), *gradients]


def _fake_forward(hidden, weight, targets, bias, class_weights, divisor, *rest):
    words, *_, wanted = rest
    options = Options.read(words)
    results = forward.empty_results(hidden, options, options.of_each_token)
    kept = kept_type(hidden.dtype)
    if any(wanted) and kept != hidden.dtype:
        results.append(hidden.new_empty((), dtype=kept))
    return [*results, *_fake_gradients(hidden, weight, wanted, kept)]


def _backward(hidden, weight, targets, bias, class_weights, upstream, *rest):
    """The gradients that are wanted, from that of each token's loss."""
    *given, wanted = rest
    options = Options.read(*given)
    operands = Operands(hidden, weight, targets, bias, class_weights)
    scale = upstream.to(wide_type(hidden.dtype))
    _, gradients = _run(options)(operands, scale, options, wanted)
    return [x.to(hidden.dtype) for x in gradients]


def _fake_backward(hidden, weight, targets, bias, class_weights, upstream, *rest):
    return _fake_gradients(hidden, weight, rest[-1], hidden.dtype)


def _fake_gradients(hidden, weight, wanted, dtype):
    shapes = hidden.shape, weight.shape, weight.shape[:1]
    return [
        hidden.new_empty(shape, dtype=dtype)
        for shape, want in zip(shapes, wanted)
        if want
    ]


def scale_gradient(gradient, factor, dtype, in_place):
    """``gradient`` times a number on its device, rounded to ``dtype``."""
    if in_place and gradient.dtype == dtype and _has_memory(gradient):
        rows = gradient if gradient.dim() == 2 else gradient[None]
        return kernels.scale_in_place(rows, factor.reshape(1)).view_as(gradient)
    return (gradient * factor).to(dtype)


def _has_memory(tensor):
    """Whether a kernel can read and write the elements of ``tensor``."""
    return (
        type(tensor) is torch.Tensor
        and tensor.device.type in ("cpu", "cuda")
        and tensor.numel() > 0
        and not torch._C._len_torch_dispatch_stack()
    )


def _register():
    for name, own, implementation, fake in (
        ("linear_cross_entropy", "Tensor? divisor", _forward, _fake_forward),
        (
            "linear_cross_entropy_backward",
            "Tensor upstream",
            _backward,
            _fake_backward,
        ),
    ):
        _LIBRARY.define(_SCHEMA.format(name, own))
        for device in ("CPU", "CUDA"):
            # Where autograd records a backward, it must not record what that computes.
            _LIBRARY.impl(name, torch.no_grad()(implementation), device)
        torch.library.register_fake(f"bastile::{name}", fake, lib=_LIBRARY)


_register()

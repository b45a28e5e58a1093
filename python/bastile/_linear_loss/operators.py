"""The registered operators, so that compilers of graphs see one call each."""

import torch
from bastile._linear_loss import forward, kernels, plan
from bastile._linear_loss.options import Options
from bastile._linear_loss.products import wide_type

_LIBRARY = torch.library.Library("bastile", "FRAGMENT")
_TENSORS = (
    "Tensor hidden, Tensor weight, Tensor targets, Tensor? bias, "
    "Tensor? class_weights, "
)
_REST = (
    "str reduction, int ignore_index, float label_smoothing, float z_loss, "
    "float soft_cap, float temperature, str[] returns, bool[] wanted, int? budget"
)


def _budget(hidden, weight, budget):
    if budget is not None:
        return budget
    return plan.default_budget(*hidden.shape, len(weight), hidden.element_size())


def _options(arguments):
    *attributes, returns = arguments
    return Options(*attributes, returns=tuple(returns))


def _forward(hidden, weight, targets, bias, class_weights, divisor, *rest):
    """The results, what is still to be multiplied into gradients if they are kept
    wider than they are returned, and the gradients that are wanted."""
    *options, wanted, budget = rest
    options = _options(options)
    budget = _budget(hidden, weight, budget)
    is_apart = options.reduction == "none"
    factor, scale = None, None
    if not is_apart:
        wide = wide_type(hidden.dtype)
        factor = forward.token_scale(targets, class_weights, divisor, options, wide)
        # What is kept wider is scaled when it is rounded.
        is_later = forward.kept_type(hidden.dtype) != hidden.dtype
        of_token = torch.ones_like(factor) if is_later else factor
        scale = of_token.expand(len(hidden), 1).contiguous()
    tensors = hidden, weight, targets, bias, class_weights
    results, gradients = forward.run(*tensors, scale, options, wanted, budget)
    if is_apart or not is_later:
        return [*results, *gradients]
    results[0] = results[0] * factor
    return [*results, *([factor] if gradients else []), *gradients]


def _fake_forward(hidden, weight, targets, bias, class_weights, divisor, *rest):
    *options, wanted, _ = rest
    options = _options(options)
    results = forward.empty_results(hidden, options, options.reduction == "none")
    kept = forward.kept_type(hidden.dtype)
    if any(wanted) and kept != hidden.dtype:
        results.append(hidden.new_empty((), dtype=kept))
    return [*results, *_fake_gradients(hidden, weight, wanted, kept)]


def _backward(hidden, weight, targets, bias, class_weights, upstream, *rest):
    """The gradients that are wanted, from that of each token's loss."""
    *options, wanted, budget = rest
    _, gradients = forward.run(
        *(hidden, weight, targets, bias, class_weights),
        upstream.to(wide_type(hidden.dtype))[:, None].contiguous(),
        _options([*options[:-1], ("loss",)]),
        wanted,
        _budget(hidden, weight, budget),
    )
    return [x.to(hidden.dtype) for x in gradients]


def _fake_backward(hidden, weight, targets, bias, class_weights, upstream, *rest):
    return _fake_gradients(hidden, weight, rest[-2], hidden.dtype)


def _fake_gradients(hidden, weight, wanted, dtype):
    shapes = hidden.shape, weight.shape, weight.shape[:1]
    return [
        hidden.new_empty(shape, dtype=dtype)
        for shape, want in zip(shapes, wanted)
        if want
    ]


def scale_gradient(gradient, factor, dtype, in_place):
    """``gradient`` times a number on its device, rounded to ``dtype``."""
    if gradient.dtype != dtype:
        return (gradient * factor).to(dtype)
    if in_place and gradient.numel():
        rows = gradient if gradient.dim() == 2 else gradient[None]
        return kernels.scale_in_place(rows, factor.reshape(1)).view_as(gradient)
    return gradient * factor.to(dtype) if gradient.dim() == 0 else gradient * factor


def _register():
    pairs = (
        ("linear_cross_entropy", "Tensor? divisor, ", _forward, _fake_forward),
        (
            "linear_cross_entropy_backward",
            "Tensor upstream, ",
            _backward,
            _fake_backward,
        ),
    )
    for name, own, implementation, fake in pairs:
        _LIBRARY.define(f"{name}({_TENSORS}{own}{_REST}) -> Tensor[]")
        for device in ("CPU", "CUDA"):
            _LIBRARY.impl(name, implementation, device)
        torch.library.register_fake(f"bastile::{name}", fake, lib=_LIBRARY)


_register()

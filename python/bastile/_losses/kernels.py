# Part of Bastile, under the MIT License. See LICENSE.
"""Kernels of the loss, for logits of some tokens and of all or some of the classes."""

import dataclasses
import functools

from bastile import _bastile
from bastile._compiler import compile, loading, schedules, tensor_types
from bastile._losses.options import RESULTS, Options, Settings
from bastile.functions import exp, op, row_max, row_sum, sum_of_rows, tanh


def losses(logits, targets, class_weights, options):
    """The results of `tile.cross_entropy` for each token, the loss first."""
    operands = {"logits": logits, "targets": targets, "weights": class_weights}
    return _run(_losses, operands, options)


def total(logits, targets, class_weights, scale, options):
    """The sum of the losses times ``scale`` [rows, 1], and the other results."""
    operands = {"logits": logits, "targets": targets, "weights": class_weights}
    return _run(_total, {**operands, "scale": scale}, options)


def total_and_gradient(logits, targets, class_weights, scale, options):
    """As `total`, and behind the other results the gradient of that sum with respect to
    the logits, in their memory."""
    operands = {"logits": logits, "targets": targets, "weights": class_weights}
    return _run(_total, {**operands, "scale": scale}, options, in_place=True)


def statistics(logits, columns, class_weights, options):
    """By name, numbers [rows, 1] of logits of some classes: ``lse``; ``largest``,
    where ``correct`` is wanted; and ``weighted``, the sum of w z, where labels are
    smoothed. ``columns`` [rows, 1] are any columns."""
    operands = {"logits": logits, "targets": columns}
    names = ["lse"]
    if "correct" in options.returns:
        names.append("largest")
    if options.settings.label_smoothing:
        operands["weights"] = class_weights
        names.append("weighted")
    return dict(zip(names, _run(_statistics, operands, options)))


def gradient(logits, lse, a, d, class_weights, options):
    """(a exp(z - lse) + d w) dz / dlogits, in the logits' memory; ``lse``, ``a``
    and ``d`` are [rows]."""
    operands = {"logits": logits, "lse": lse[:, None], "a": a[:, None]}
    if options.settings.label_smoothing:
        operands |= {"d": d[:, None], "weights": class_weights}
    return _run(_weighted, operands, options, in_place=True, drop_value=True)[0]


def scale_in_place(gradient, factor):
    """``gradient`` [rows, length] times ``factor``, one number on its device, in its
    memory. Where the number is 1, the kernel neither reads nor writes the gradient."""
    request = _request(_sum, _types_of({"x": gradient}), Options(), True, False)
    native = _native(request, _bastile.locate(gradient))
    return native.backward([gradient], [factor], in_place=True)[0]


def _run(formula, operands, options, in_place=False, drop_value=False):
    operands = {name: x for name, x in operands.items() if x is not None}
    types, kind = _types_of(operands), _formula_of(options)
    request = _request(formula, types, kind, in_place, drop_value)
    native = _native(request, _bastile.locate(operands["logits"]))
    return native.run(list(operands.values()), in_place=in_place)


def _types_of(operands):
    """Name, rank, row length and element type of each operand."""
    return tuple(
        (name, x.dim(), x.shape[-1], tensor_types.element_type(x.dtype))
        for name, x in operands.items()
    )


@functools.lru_cache(maxsize=256)
def _formula_of(options):
    """The options without those that no kernel depends on."""
    return Options(Settings(**options.settings.attributes), options.returns)


@functools.cache
def _native(request, device):
    return loading.load(request.on(loading.target_for(device))).kernel()


schedules.on_change(_native.cache_clear)


@functools.cache
def _request(formula, types, options, in_place, drop_value):
    """What to compile; ``in_place`` for the gradient of the first result's sum with
    respect to the first operand, in its memory, ``drop_value`` without that result."""
    shapes = {
        name: (2, length) if rank == 2 else (length,) for name, rank, length, _ in types
    }
    dtypes = {name: element for name, *_, element in types}
    first = types[0][0]
    wide = "f64" if dtypes[first] == "f64" else "f32"

    def compute(operands):
        return formula(operands, options, wide)

    kernel = compile.compile(_with_parameters(compute, shapes), shapes, dtype=dtypes)
    if not in_place:
        return kernel._request
    return dataclasses.replace(
        kernel._request,
        gradients=(first,),
        together=True,
        in_place=True,
        drop_value=drop_value,
    )


def _with_parameters(compute, names):
    """``compute`` of a dictionary as a function of parameters that are named."""
    parameters = ", ".join(names)
    pairs = ", ".join(f"{name!r}: {name}" for name in names)
    scope = {"compute": compute}
    exec(
        f"def linear_cross_entropy({parameters}):\n    return compute({{{pairs}}})\n",
        scope,
    )
    return scope["linear_cross_entropy"]


# The formulas that are traced. Each takes symbolic tensors by name.


def _losses(operands, options, wide):
    attributes = options.settings.attributes
    results = op.cross_entropy(**operands, reduction="none", **attributes)
    made = dict(zip(RESULTS, results))
    return tuple(made[name] for name in ("loss", *options.others))


def _total(operands, options, wide):
    scale = operands.pop("scale")
    loss, *others = _losses(operands, options, wide)
    return (sum_of_rows(loss * scale).to(wide), *others)


def _statistics(operands, options, wide):
    logits, weights = operands["logits"], operands.get("weights")
    _, lse, *_ = op.cross_entropy(
        logits,
        operands["targets"],
        reduction="none",
        soft_cap=options.settings.soft_cap,
        temperature=options.settings.temperature,
    )
    made = [lse]
    if "correct" in options.returns:
        made.append(row_max(logits).to(wide))
    if options.settings.label_smoothing:
        z = _z(logits, options.settings)
        made.append(row_sum(z if weights is None else z * weights).to(wide))
    return tuple(made)


def _weighted(operands, options, wide):
    """The derivative of its sum is the gradient of a slab's logits."""
    z = _z(operands["logits"], options.settings)
    terms = operands["a"] * exp(z - operands["lse"])
    if options.settings.label_smoothing:
        weights = operands.get("weights")
        terms = terms + operands["d"] * (z if weights is None else z * weights)
    return terms.to(wide)


def _z(logits, settings):
    if not settings.soft_cap:
        return logits / settings.temperature
    return settings.soft_cap * tanh(logits / settings.soft_cap) / settings.temperature


def _sum(operands, options, wide):
    """The sum of all elements. Computed together with its gradient of ones, it has a
    backward that multiplies whatever is passed for these ones."""
    return sum_of_rows(row_sum(operands["x"])).to(wide)

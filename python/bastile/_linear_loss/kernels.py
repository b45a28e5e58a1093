"""The compiler's kernels for the loss of a chunk of logits."""

import dataclasses
import functools

from bastile import _bastile, _kernel, _loading, _types
from bastile._tuning import lookup
from bastile.functions import op, sum_of_rows

_ORDER = ("loss", "lse", "correct", "invalid")


def losses(logits, targets, class_weights, options):
    """The results of `tile.cross_entropy` for each token, the loss first."""
    native = _find(logits, targets, class_weights, options, "none")
    return native.run(_present(logits, targets, class_weights))


def total(logits, targets, class_weights, scale, options):
    """The sum of the losses times ``scale`` [rows, 1], and the other results."""
    native = _find(logits, targets, class_weights, options, "value")
    return native.run(_present(logits, targets, class_weights, scale))


def total_and_gradient(logits, targets, class_weights, scale, options):
    """As `total`, and last the gradient of that sum, in the logits' memory."""
    native = _find(logits, targets, class_weights, options, "gradient")
    operands = _present(logits, targets, class_weights, scale)
    return native.run(operands, in_place=True)


def scale_in_place(gradient, factor):
    """``gradient`` times one number on its device, in its memory; nothing is read
    nor written where that is 1."""
    native = _native(
        _scale_request(gradient.shape[-1], _types.element_type(gradient.dtype)),
        _bastile.locate(gradient),
    )
    return native.backward([gradient], [factor], in_place=True)[0]


def _present(*operands):
    return [x for x in operands if x is not None]


def _find(logits, targets, class_weights, options, kind):
    elements = tuple(
        None if x is None else _types.element_type(x.dtype)
        for x in (logits, targets, class_weights)
    )
    options = dataclasses.replace(options, reduction="none")
    request = _request(logits.shape[-1], elements, options, kind)
    return _native(request, _bastile.locate(logits))


@functools.cache
def _native(request, device):
    return _loading.load(request.on(_loading.target_for(device))).kernel()


lookup.on_change(_native.cache_clear)


@functools.cache
def _request(length, elements, options, kind):
    """What to compile for logits of ``length`` classes."""
    logits, targets, weights = elements
    wide = "f64" if logits == "f64" else "f32"
    shapes = {"logits": (2, length), "targets": (2, 1)}
    dtypes = {"logits": logits, "targets": targets}
    if weights:
        shapes["weights"] = (length,)
        dtypes["weights"] = weights
    if kind != "none":
        shapes["scale"] = (2, 1)
        dtypes["scale"] = wide

    def compute(operands):
        scale = operands.pop("scale", None)
        made = dict(
            zip(
                _ORDER,
                op.cross_entropy(
                    **operands, reduction="none", **options.attributes
                ),
            )
        )
        loss = made["loss"]
        if scale is not None:
            loss = sum_of_rows(loss * scale).to(wide)
        return (loss, *(made[name] for name in options.others))

    kernel = _kernel.compile(_with_parameters(compute, shapes), shapes, dtype=dtypes)
    if kind != "gradient":
        return kernel._request
    return dataclasses.replace(
        kernel._request, gradients=("logits",), together=True, in_place=True
    )


def _with_parameters(compute, names):
    """``compute`` of a dictionary as a function of parameters that are named."""
    parameters = ", ".join(names)
    pairs = ", ".join(f"{name!r}: {name}" for name in names)
    scope = {"compute": compute}
    exec(
        f"def linear_cross_entropy({parameters}):\n"
        f"    return compute({{{pairs}}})\n",
        scope,
    )
    return scope["linear_cross_entropy"]


@functools.cache
def _scale_request(length, element):
    """A total whose gradient has rows of ``length``: its backward multiplies them
    by the factor that comes from above."""

    def linear_cross_entropy(x):
        from bastile.functions import row_sum

        return sum_of_rows(row_sum(x)).to("f64" if element == "f64" else "f32")

    kernel = _kernel.compile(linear_cross_entropy, (2, length), dtype=element)
    return dataclasses.replace(
        kernel._request, gradients=("x",), together=True, in_place=True
    )

# Part of Bastile, under the MIT License. See LICENSE.
"""Liger's autograd functions, as its modules call them."""

#: Its losses wait for the number of targets that count.
NOT_IN_GRAPHS = ("cross_entropy", "cross_entropy_loss")

#: The function of each op, and what it takes after the tensors.
_FUNCTIONS = {
    "rms_norm": ("LigerRMSNormFunction", (1e-6,)),
    "add_rms_norm": ("LigerFusedAddRMSNormFunction", (1e-6,)),
    "layer_norm": ("LigerLayerNormFunction", (1e-5,)),
    "geglu_tanh": ("LigerGELUMulFunction", ()),
    "swiglu": ("LigerSiLUMulFunction", ()),
    "relu_squared": ("LigerReLUSquaredFunction", ()),
    "softmax": ("LigerSoftmaxFunction", ()),
    "rope": ("LigerRopeFunction", ()),
    "cross_entropy": ("LigerCrossEntropyFunction", (None,)),
    "cross_entropy_loss": ("LigerCrossEntropyFunction", (None,)),
}


def load() -> dict:
    try:
        from liger_kernel import ops
    except ImportError as error:
        raise ImportError(f"pip install liger-kernel ({error})") from error

    # Older versions have fewer.
    found = {
        op: _bind(getattr(ops, name).apply, options)
        for op, (name, options) in _FUNCTIONS.items()
        if hasattr(ops, name)
    }
    adapted = {
        "rope": _turn_views,
        "cross_entropy": _first,
        "cross_entropy_loss": _first,
    }
    for op in adapted.keys() & found.keys():
        found[op] = adapted[op](found[op])
    return found


def _bind(apply, options):
    if not options:
        return apply
    return lambda *tensors: apply(*tensors, *options)


def _first(function):
    """The loss; the function returns what else it was asked for beside it."""
    return lambda *tensors: function(*tensors)[0]


def _turn_views(function):
    """It takes the heads before the positions, and copies what is no view."""

    def rope(q, k, cosine, sine):
        turned = function(
            q.transpose(1, 2), k.transpose(1, 2), cosine[:, :, 0], sine[:, :, 0]
        )
        return tuple(heads.transpose(1, 2) for heads in turned)

    return rope

# Part of Bastile, under the MIT License. See LICENSE.
"""The entrance to this room for a process that has not imported PyTorch yet.

The first tensor of PyTorch, or the first call that torch.compile sees, imports the
rest of the room, which then puts its own functions in the place of these.
"""

import sys

from bastile import _bastile
from bastile._compiler import capture


def _enter():
    from bastile._torch import startup

    return startup.dispatch


def _classify(kind):
    torch = sys.modules.get("torch")
    if torch is None or not issubclass(kind, torch.Tensor):
        return 0
    return _enter().classify(kind)


def _call_op(name, arguments):
    return _enter().call_op(name, arguments)


def _call_kernel(kernel, operands):
    return _enter().call_kernel(kernel, operands)


def _call_traced(operator, operands, attributes):
    return _enter().call_traced(operator, operands, attributes)


def _forbid_leaves(name, operands):
    return _enter().forbid_leaves(name, operands)


def _overwrite(name, operands):
    if any(_classify(type(x)) for x in operands):
        _enter().overwrite(name, operands)


def install():
    """Has calls on PyTorch's tensors come here."""
    _bastile.set_hooks(_classify)
    capture.connect(
        op=_call_op,
        kernel=_call_kernel,
        traced=_call_traced,
        leaves=_forbid_leaves,
        overwriting=_overwrite,
    )
    if sys.modules.get("torch") is not None:
        # Before torch.compile traces a call.
        _enter().connect()

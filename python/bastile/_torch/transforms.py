# Part of Bastile, under the MIT License. See LICENSE.
"""Refusals of PyTorch's transformations that Bastile has no rule for."""

import torch
from torch._C import _functorch
from torch.autograd import forward_ad

_FORWARD = (
    "'{}' of bastile has no derivative in forward mode (jvp, jacfwd, hessian, dual "
    "tensors); use torch.func.vjp or grad, torch.autograd.grad, or backward"
)
_BATCHED = (
    "'{}' of bastile has no rule for torch.func.vmap: any number of leading dimensions "
    "are rows, so call it on the whole batch, without vmap"
)


def enter():
    """A context in which the functions of `torch.func` see the calls of
    `torch.autograd.Function`: PyTorch hides what an operator's implementation calls from
    them."""
    level = torch._C.DispatchKeySet(torch._C.DispatchKey.FuncTorchDynamicLayerFrontMode)
    included = torch._C._dispatch_tls_local_include_set() | level
    excluded = torch._C._dispatch_tls_local_exclude_set() - level
    return torch._C._ForceDispatchKeyGuard(included, excluded)


def has_forward_level():
    """Whether a level of forward-mode differentiation is open."""
    return forward_ad._current_level >= 0


def refuse(name, operands):
    """Raises ``NotImplementedError`` for operands that `torch.func.vmap` batches, or
    that have derivatives in forward mode: without a rule, these would be lost."""
    if torch._C._are_functorch_transforms_active():
        for operand in operands:
            _refuse_wrapped(name, operand)
    elif has_forward_level():
        for x in operands:
            if x is not None and forward_ad.unpack_dual(x).tangent is not None:
                raise NotImplementedError(_FORWARD.format(name))


def batched(name):
    """The refusal of operands that `torch.func.vmap` batches."""
    return NotImplementedError(_BATCHED.format(name))


def _refuse_wrapped(name, operand):
    forward = {
        interpreter.level()
        for interpreter in _functorch.get_interpreter_stack() or ()
        if interpreter.key() == _functorch.TransformType.Jvp
    }
    while operand is not None and _functorch.is_functorch_wrapped_tensor(operand):
        if _functorch.is_batchedtensor(operand):
            raise batched(name)
        if _functorch.maybe_get_level(operand) in forward:
            raise NotImplementedError(_FORWARD.format(name))
        operand = _functorch.get_unwrapped(operand)

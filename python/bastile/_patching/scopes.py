# Part of Bastile, under the MIT License. See LICENSE.
"""Copies of methods that find another function under a global name."""

import functools
import inspect
import sys
import types


def uses(cls, module, name):
    """Whether the forward of ``cls`` calls the global ``name`` of ``module``."""
    forward = inspect.unwrap(cls.forward)
    return (
        isinstance(forward, types.FunctionType)
        and forward.__globals__ is vars(module)
        and name in forward.__code__.co_names
    )


@functools.cache
def rebind(cls, name, value):
    """The forward of ``cls``, with ``value`` under the global ``name``.

    The copy's globals are those of a module of its own, which is what
    torch.compile looks names up in.
    """
    forward = inspect.unwrap(cls.forward)
    scope = types.ModuleType(f"{cls.__module__}.bastile_{cls.__name__}_{id(value)}")
    own_name = scope.__name__
    vars(scope).update(forward.__globals__)
    vars(scope).update({"__name__": own_name, name: value})
    sys.modules[own_name] = scope
    copy = types.FunctionType(
        forward.__code__,
        vars(scope),
        forward.__name__,
        forward.__defaults__,
        forward.__closure__,
    )
    copy.__kwdefaults__ = forward.__kwdefaults__
    return functools.wraps(forward)(copy)

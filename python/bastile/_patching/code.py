# Part of Bastile, under the MIT License. See LICENSE.
"""Reading modules of Python for what may be patched, without running anything."""

import ast
import dis
import functools
import inspect
import textwrap
import types

import torch

from bastile._patching import probes


def layers(module):
    """The classes of layers that ``module`` itself defines, in its order."""
    return [
        cls
        for cls in vars(module).values()
        if isinstance(cls, type)
        and issubclass(cls, torch.nn.Module)
        and cls.__module__ == module.__name__
    ]


def functions(module):
    """The functions that ``module`` has under global names, by name."""
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, types.FunctionType)
    }


def own_forward(cls):
    """The forward as the class or a parent of Transformers or of somebody else wrote
    it; None where that is PyTorch's."""
    forward = inspect.getattr_static(cls, "forward", None)
    module = getattr(forward, "__module__", None) or ""
    is_plain = isinstance(forward, types.FunctionType)
    return forward if is_plain and not module.startswith("torch.") else None


def names_in(function):
    """Names of globals and attributes that the function's code uses."""
    return _names_in(inspect.unwrap(function).__code__)


def _names_in(compiled):
    # Comprehensions and inner functions have code of their own.
    inner = (x for x in compiled.co_consts if isinstance(x, types.CodeType))
    return set(compiled.co_names).union(*map(_names_in, inner))


#: Instructions that load parameters which inner functions use.
_LOADS_OF_CELLS = ("LOAD_DEREF", "LOAD_CLOSURE")


def unused_parameters(function):
    """Names of parameters that nothing in the function reads."""
    function = inspect.unwrap(function)
    read = set()
    for each in dis.get_instructions(function):
        if "LOAD_FAST" in each.opname or each.opname in _LOADS_OF_CELLS:
            # Newer versions of Python load two at once.
            read.update([each.argval] if isinstance(each.argval, str) else each.argval)
    return set(inspect.signature(function).parameters) - read


def tree_of(function):
    """The syntax tree of a function's definition, with the lines of its file."""
    inner = inspect.unwrap(function)
    lines, first = probes.run("function with a source", inspect.getsourcelines, inner)
    tree = ast.parse(textwrap.dedent("".join(lines))).body[0]
    return ast.increment_lineno(tree, first - 1)


def operands(function):
    """The parameters that a call may give by position, without ``self`` of a method,
    and whether there may be any others."""
    parameters = list(inspect.signature(function).parameters.values())
    by_place = [
        x for x in parameters if x.kind in (x.POSITIONAL_ONLY, x.POSITIONAL_OR_KEYWORD)
    ]
    return by_place, len(by_place) < len(parameters)


@functools.cache
def default_configuration(cls):
    """The configuration that a class has by default; None where it has none."""
    try:
        return cls()
    except Exception:
        return None


def configurations(module):
    """The default configurations of the models in ``module``."""
    classes = {getattr(cls, "config_class", None) for cls in layers(module)}
    found = (
        default_configuration(cls) for cls in sorted(filter(None, classes), key=repr)
    )
    return [config for config in found if config is not None]

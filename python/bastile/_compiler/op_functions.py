# Part of Bastile, under the MIT License. See LICENSE.
"""The functions of `bastile.ops` that are ops of the dialect, made of their definitions."""

from collections.abc import Callable
from typing import Any

from bastile._compiler import capture, operators
from bastile._compiler.definitions import definitions

# What a call needs is in the function's closure: under torch.compile, each name
# that is looked up in a module is looked up again by every call, to see whether it
# has changed.
_TEMPLATE = """
def make(run, is_compiling, registered):
    def {name}({parameters}):
{preparation}        if is_compiling():
            return registered({operands}, {attributes})
        return run(({operands},), ({attributes}))

    def connect(*connected):
        nonlocal is_compiling, registered
        is_compiling, registered = connected

    return {name}, connect
"""

#: By op, its function.
FUNCTIONS: dict[str, Callable[..., Any]] = {}

#: By op, what sets how its function finds out that torch.compile is looking, and what
#: it calls then.
_CONNECTORS: dict[str, Callable[..., None]] = {}


def connect(is_compiling, registered) -> None:
    """Has the functions ask ``is_compiling`` whether torch.compile is looking, and then
    call what ``registered`` has by their names."""
    for name, connect_one in _CONNECTORS.items():
        connect_one(is_compiling, registered[name])


def _find_registered(name):
    """The registered operator of an op, for calls that torch.compile traces before
    `connect` has been called."""
    return lambda *arguments: capture.call_op(name, arguments)


def _as_column(tensor, rows):
    """One number a row, with a last dimension of size 1."""
    rank = len(getattr(rows, "shape", ()))
    if rank and len(getattr(tensor, "shape", ())) == rank - 1:
        return tensor[..., None]
    return tensor


def _as_names(names):
    return (names,) if isinstance(names, str) else names and tuple(names)


def _forbid_leaves(name, operands):
    """As PyTorch does, before one of its leaves loses its value."""
    capture.forbid_leaves(name, operands)


def _preparation(definition):
    """Lines that bring arguments into the form that operators take."""
    first = definition.operands[0].name
    lines = [
        f"{operand.name} = _as_column({operand.name}, {first})"
        for operand in definition.operands
        if operand.kind == "integer_statistic"
    ]
    options = [option.name for option in definition.options]
    for name in ("returns", "results"):
        if name in options:
            lines.append(f"{name} = _as_names({name})")
    if "in_place" in options:
        names = ", ".join(operand.name for operand in definition.operands)
        lines += [
            "if in_place:",
            f"    _forbid_leaves({definition.name!r}, ({names},))",
        ]
    return "".join(f"        {line}\n" for line in lines)


def _parameters(definition):
    parts = [
        f"{operand.name}=None" if operand.optional else operand.name
        for operand in definition.operands
    ]
    keywords = [*definition.attributes, *definition.options]
    if keywords:
        parts.append("*")
    parts += [f"{keyword.name}={keyword.default!r}" for keyword in keywords]
    return ", ".join(parts)


def _document(definition):
    lines = [definition.summary + ".", "", definition.description, "", "Args:"]
    for operand in definition.operands:
        optional = ", or None" if operand.optional else ""
        lines.append(f"    {operand.name}: {operand.summary}{optional}")
    for attribute in definition.attributes:
        kind = attribute.type
        if attribute.cases:
            kind = " or ".join(repr(case) for case in attribute.cases)
        lines.append(f"    {attribute.name}: {kind}, by default {attribute.default!r}")
    for option in definition.options:
        lines.append(f"    {option.name}: {option.document}")
    lines += ["", "Returns:", "    " + ", ".join(definition.results)]
    return "\n".join(lines)


def _make(definition):
    keywords = [*definition.attributes, *definition.options]
    attributes = "".join(f"{keyword.name}, " for keyword in keywords)
    source = _TEMPLATE.format(
        name=definition.name,
        parameters=_parameters(definition),
        preparation=_preparation(definition),
        operands=", ".join(operand.name for operand in definition.operands),
        attributes=attributes,
    )
    names = {}
    exec(compile(source, f"<bastile.ops.{definition.name}>", "exec"), globals(), names)
    name = definition.name
    function, connect_one = names["make"](
        operators.make(name).call, capture.is_compiling, _find_registered(name)
    )
    function.__module__ = "bastile.ops"
    function.__qualname__ = name
    function.__doc__ = _document(definition)
    FUNCTIONS[name], _CONNECTORS[name] = function, connect_one


for _definition in definitions().values():
    _make(_definition)

"""The model ops as functions of tensors.

Every op of the dialect is here under its name, with its operands and attributes
as they are defined there; ``help(bastile.ops.rms_norm)`` shows the formula. An op
runs on PyTorch's tensors, with autograd, and on NumPy's and any other library's.

`linear_cross_entropy` and its vocabulary-parallel form, which PyTorch's products are
part of, run on PyTorch's tensors alone.

Shapes are those of the dialect, except that an operand with one integer a row,
as targets are, may lack its last dimension of size 1.
"""

import sys

from bastile import _operators
from bastile._definitions import definitions
from bastile._linear_cross_entropy import (
    linear_cross_entropy,
    vocab_parallel_linear_cross_entropy,
)

# What a call needs is in the function's closure: under torch.compile, each name
# that is looked up in a module is looked up again by every call, to see whether it
# has changed.
_TEMPLATE = """
def make(run, is_compiling, registered):
    def {name}({parameters}):
{preparation}        if is_compiling():
            return registered({operands}, {attributes})
        return run(({operands},), ({attributes}))

    return {name}
"""


def _find_registered(name):
    """The registered operator of an op, for calls that torch.compile traces before
    `connect` has been called."""

    def call(*arguments):
        from bastile import _torch

        return _torch.REGISTERED[name](*arguments)

    return call


def connect(is_compiling, registered):
    """Has ops ask PyTorch itself whether it is tracing, and then call what
    ``registered`` has by their names."""
    for name in definitions():
        function = globals()[name]
        cells = dict(zip(function.__code__.co_freevars, function.__closure__))
        cells["is_compiling"].cell_contents = is_compiling
        cells["registered"].cell_contents = registered[name]


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
    from bastile import _torch

    _torch.forbid_leaves(name, operands)


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
        lines.append(
            f"    {attribute.name}: {kind}, by default {attribute.default!r}"
        )
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
    function = names["make"](
        _operators.make(definition.name).call,
        _operators.is_compiling,
        _find_registered(definition.name),
    )
    function.__qualname__ = definition.name
    function.__doc__ = _document(definition)
    globals()[definition.name] = function


for _definition in definitions().values():
    _make(_definition)

__all__ = [
    *definitions(),
    "linear_cross_entropy",
    "vocab_parallel_linear_cross_entropy",
]

if sys.modules.get("torch") is not None:
    from bastile import _torch

    # Before torch.compile traces a call.
    _torch.connect()

"""The model ops as functions of tensors.

Every op of the dialect is here under its name, with its operands and attributes
as they are defined there; ``help(bastile.ops.rms_norm)`` shows the formula. An op
runs on PyTorch's tensors, with autograd, and on NumPy's and any other library's.
"""

from bastile import _operators
from bastile._definitions import definitions
from bastile._operators import is_compiling as _is_compiling


_TEMPLATE = """
def {name}({parameters}):
    if _is_compiling():
        return _call_registered({name!r}, ({operands},), ({attributes}))
    return _{name}(({operands},), ({attributes}))
"""


def _call_registered(name, operands, attributes):
    from bastile import _torch

    return _torch.call_registered(name, operands, attributes)


def _parameters(definition):
    required = [operand.name for operand in definition.operands]
    optional = [o.name for o in definition.operands if o.optional]
    parts = [n if n not in optional else f"{n}=None" for n in required]
    if definition.attributes:
        parts.append("*")
    parts += [f"{a.name}={a.default!r}" for a in definition.attributes]
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
    lines += ["", "Returns:", "    " + ", ".join(definition.results)]
    return "\n".join(lines)


def _make(definition):
    # torch.compile looks names up in the module that a function is of.
    globals()[f"_{definition.name}"] = _operators.make(definition.name).native
    attributes = "".join(f"{a.name}, " for a in definition.attributes)
    source = _TEMPLATE.format(
        name=definition.name,
        parameters=_parameters(definition),
        operands=", ".join(operand.name for operand in definition.operands),
        attributes=attributes,
    )
    exec(compile(source, f"<bastile.ops.{definition.name}>", "exec"), globals())
    function = globals()[definition.name]
    function.__doc__ = _document(definition)


for _definition in definitions().values():
    _make(_definition)

__all__ = list(definitions())

# Part of Bastile, under the MIT License. See LICENSE.
"""Keys of tuned schedules: what they belong to."""

import functools
import hashlib
import re

from bastile._compiler.definitions import definitions

_FLOAT = r"-?\d+\.\d*(?:[eE][-+]?\d+)?"
_ATTRIBUTE = re.compile(rf"(\w+) = ({_FLOAT}) : f\d+(?:, )?")
_ARGUMENT = re.compile(r"%(\w+): tensor<[^>]*?(\w+)>(?: \{tile\.name = \"(\w+)\"\})?")

#: The most rows of each bucket but the last.
BUCKETS = (1 << 10, 1 << 12, 1 << 14)


def bucket(rows: int) -> int:
    """The number of the bucket that a call with ``rows`` rows falls into."""
    return sum(rows > most for most in BUCKETS)


def slug(gpu: str) -> str:
    """A file name for a model of GPU: ``nvidia-h100-80gb-hbm3``."""
    return re.sub("[^a-z0-9]+", "-", gpu.lower()).strip("-")


@functools.lru_cache(maxsize=1024)
def key(request) -> str:
    """Equal for requests that the same schedules suit.

    These are equal in the ops, types and row lengths and in what is
    differentiated. The number of rows is none of it, and neither are numbers
    such as an epsilon, as long as they do not do away with a part of a formula.
    """
    text = _normalize(request.source)
    gradients = request.gradients
    arguments = _float_arguments(request.source)
    if arguments and set(gradients) == set(arguments):
        gradients = ("all",)
    parts = [
        text,
        *sorted(gradients),
        str(request.together),
        str(request.in_place),
        # Said only where it holds, as tables are older than it.
        *["alone"] * request.drop_value,
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _normalize(source):
    lines = []
    for line in re.sub(r"//.*", "", source).splitlines():
        op = re.search(r"tile\.(\w+)", line)
        defaults = _defaults(op[1]) if op else {}
        line = _ATTRIBUTE.sub(lambda match: _attribute(match, defaults), line)
        lines.append(re.sub(_FLOAT, lambda match: _kind(match[0]), line))
    text = re.sub(r"\s+", " ", " ".join(lines)).strip()
    # What has its default is left out, the braces included.
    return text.replace("{} ", "")


def _defaults(op):
    definition = definitions().get(op)
    return (
        {attribute.name: attribute.default for attribute in definition.attributes}
        if definition
        else {}
    )


def _attribute(match, defaults):
    name, value = match[1], match[2]
    if name in defaults and _kind(defaults[name]) == _kind(value):
        return ""
    return f"{name} = {_kind(value)} "


def _kind(value):
    # Zero and one take a part of a formula away.
    number = float(value or 0)
    return str(number) if number in (0, 1) else "_"


def _float_arguments(source):
    header = source.partition("func.func")[2].partition("->")[0]
    return [
        name or argument
        for argument, element, name in _ARGUMENT.findall(header)
        if re.search(r"(?:^|x)b?f\d", element)
    ]

"""Ops that compile themselves for the tensors that they are called on."""

import functools
import json
import sys

from bastile import _bastile, _loading, _types
from bastile._definitions import definitions


class Operator:
    """A model op of the dialect, called on tensors of any library.

    The code for a call depends on the attributes and on each operand's type,
    rank and row length, and whether rows repeat. It is made once.
    """

    def __init__(self, definition):
        self.definition = definition
        self.native = _bastile.Operator(self._specialize)
        OPERATORS[definition.name] = self

    @property
    def name(self):
        return self.definition.name

    def request(self, attributes, operands, gradients=None) -> _loading.Request:
        """What to compile for ``operands``; its target is not set."""
        shapes = [None if x is None else tuple(x.shape) for x in operands]
        elements = [
            None if x is None else _types.element_type(x.dtype) for x in operands
        ]
        wanted = ()
        if gradients is not None:
            wanted = tuple(
                operand.name
                for operand, want in zip(self.definition.operands, gradients)
                if want
            )
        types = _types.row_types(shapes, elements)
        source = self.definition.source(types, attributes)
        return _loading.Request(source, "", name=self.name, gradients=wanted)

    def _specialize(self, attributes, operands, gradients):
        device = next(
            _bastile.locate(x) for x in operands if x is not None
        )
        request = self.request(attributes, operands, gradients)
        return _loading.load(request.on(_loading.target_for(device))).kernel()


#: Every op by name; filled as `bastile.ops` makes them.
OPERATORS: dict = {}


def classify(kind):
    """How tensors of type ``kind`` are called on; installs PyTorch's hooks when
    its first tensor comes."""
    torch = sys.modules.get("torch")
    if torch is None or not issubclass(kind, torch.Tensor):
        return 0
    from bastile import _torch

    _torch.install(classify)
    plain = kind is torch.Tensor or kind is torch.nn.Parameter
    return 1 if plain else 2


_bastile.set_hooks(classify)


def is_compiling():
    """Whether torch.compile is looking; what it sees has to be PyTorch's ops."""
    torch = sys.modules.get("torch")
    return torch is not None and torch.compiler.is_compiling()


def call_kernel(kernel, operands):
    """Calls a `bastile.Kernel`, with gradients where they are wanted."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(operands[0], torch.Tensor):
        return kernel.native(_bastile.locate(operands[0])).call(operands)
    from bastile import _torch

    return _torch.call_kernel(kernel, operands)


@functools.cache
def metadata(request: _loading.Request) -> dict:
    """The metadata of a request's functions by name, without generating code."""
    document = json.loads(_bastile.describe_text(request.native()))
    return {function["name"]: function for function in document["functions"]}


def make(name) -> Operator:
    return Operator(definitions()[name])

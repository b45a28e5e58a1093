# Part of Bastile, under the MIT License. See LICENSE.
"""What Python functions capture: the tensors, and a key that is the same for functions
that differ in nothing but these.

Functions of masks are mostly made anew for each call, by functions that return them.
"""

import functools
import types
from typing import Any

import torch


class Captured:
    """The tensors that functions find in their closures, defaults and global names."""

    def __init__(self) -> None:
        self.tensors: list[torch.Tensor] = []
        #: What the key names by its identity, which has to live as long as the key.
        self.named: list[Any] = []
        self._numbers = {}
        self._running = {}

    def key_of(self, value) -> Any:
        """A key of ``value``, with a number in the place of each tensor."""
        if isinstance(value, torch.Tensor):
            return "tensor", self.number_of(value), value.dim(), value.dtype
        if value is None or isinstance(value, (bool, int, float, str)):
            # 1, 1.0 and True are equal, and so are 0.0 and -0.0.
            return type(value), repr(value)
        if isinstance(value, types.FunctionType):
            return self._key_of_function(value)
        if isinstance(value, functools.partial):
            parts = value.func, value.args, tuple(sorted(value.keywords.items()))
            return "partial", *map(self.key_of, parts)
        if isinstance(value, (tuple, list)):
            return type(value), *map(self.key_of, value)
        self.named.append(value)
        return "object", id(value)

    def number_of(self, tensor) -> int:
        number = self._numbers.setdefault(id(tensor), len(self.tensors))
        if number == len(self.tensors):
            self.tensors.append(tensor)
        return number

    def find(self, tensor) -> int | None:
        """The number of ``tensor``; None if no function captures it."""
        return self._numbers.get(id(tensor))

    def _key_of_function(self, function):
        if function in self._running:
            return "again", self._running[function]
        self._running[function] = len(self._running)
        parts = [function.__defaults__]
        parts += [cell.cell_contents for cell in function.__closure__ or ()]
        parts += _globals_of(function)
        return "function", function.__code__, *map(self.key_of, parts)


def _globals_of(function):
    """The values of the global names that a function may use, those of attributes among
    them."""
    names, codes = {}, [function.__code__]
    for code in codes:
        names.update(dict.fromkeys(code.co_names))
        codes += [x for x in code.co_consts if isinstance(x, types.CodeType)]
    found = function.__globals__
    return [found[name] for name in names if name in found]

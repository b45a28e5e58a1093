# Part of Bastile, under the MIT License. See LICENSE.
"""What Python functions capture: the tensors, and a key that is the same for functions
that differ in nothing but these.

Functions of masks are mostly made anew for each call, by functions that return them.
"""

import collections
import functools
import sys
import types
from typing import Any

import torch


class Captured:
    """The tensors that functions find in their closures, defaults and global names, and
    in attributes and elements of what they find there."""

    def __init__(self) -> None:
        self.tensors: list[torch.Tensor] = []
        #: What the key names by its identity, which has to live as long as the key.
        self.named: list[Any] = []
        #: Whether functions that have the same key compute the same. They need not where
        #: they may look at objects whose contents the key does not know.
        self.is_complete = True
        self._running = []
        self._asked = set()

    def key_of(self, value, names=()) -> Any:
        """A key of ``value``, with a number in the place of each tensor. ``names`` are
        the attributes that functions may ask it for."""
        if isinstance(value, torch.Tensor):
            return "tensor", self.number_of(value), value.dim(), value.dtype
        if value is None:
            # Dynamo of PyTorch 2.11 has no hash of it.
            return (type(None),)
        if isinstance(value, (bool, int, float, str)):
            if torch.compiler.is_dynamo_compiling():
                # torch.compile takes the key of a dictionary for a constant, and would
                # make a symbol of a number that changes. Dynamo of PyTorch 2.11 has no
                # hash of a number.
                return type(value), next(iter({value: None}))
            # 1, 1.0 and True are equal, and so are 0.0 and -0.0.
            return type(value), repr(value)
        if isinstance(value, types.FunctionType):
            return self._key_of_function(value, names)
        if isinstance(value, types.MethodType):
            return (
                "method",
                self.key_of(value.__func__),
                self._key_of_object(value.__self__, _names_of(value.__func__)),
            )
        if isinstance(value, functools.partial):
            parts = value.func, value.args, tuple(sorted(value.keywords.items()))
            return "partial", *map(self.key_of, parts)
        if isinstance(value, (tuple, list, collections.deque)):
            return type(value), *(self.key_of(x, names) for x in value)
        if isinstance(value, (set, frozenset)):
            return "set", frozenset(self.key_of(x, names) for x in value)
        if isinstance(value, dict):
            return "dict", *(self.key_of(x, names) for x in value.items())
        return self._key_of_object(value, names)

    def number_of(self, tensor) -> int:
        number = self.find(tensor)
        if number is None:
            number = len(self.tensors)
            self.tensors.append(tensor)
        return number

    def find(self, tensor) -> int | None:
        """The number of ``tensor``; None if no function captures it."""
        # Dynamo of PyTorch 2.11 has no id of a tensor.
        for number, known in enumerate(self.tensors):
            if known is tensor:
                return number
        return None

    def _key_of_function(self, function, names):
        for number, known in enumerate(self._running):
            if known is function:
                return self._add_attributes(("again", number), function, names)
        self._running.append(function)
        asked = _names_of(function)
        self.is_complete &= _LOOK_UPS.isdisjoint(asked)
        parts = [function.__defaults__, function.__kwdefaults__]
        parts += [cell.cell_contents for cell in function.__closure__ or ()]
        found = function.__globals__
        parts += [found[name] for name in asked if name in found]
        key = self._add_attributes(("function", function.__code__), function, names)
        return *key, *(self.key_of(part, asked) for part in parts)

    def _key_of_object(self, value, names):
        """A key of an object by its identity, and of its attributes, which may change."""
        if isinstance(value, types.ModuleType):
            # Dynamo of PyTorch 2.11 has no id of a module.
            return self._add_attributes(("module", value.__name__), value, names)
        self.named.append(value)
        key = "object", id(value)
        if isinstance(value, _NAMED):
            return self._add_attributes(key, value, names)
        if hasattr(value, "tobytes"):
            # An array of NumPy, or a number.
            return "array", str(value.dtype), value.shape, value.tobytes()
        function = _function_of(value)
        if function is not None:
            key = *key, self.key_of(function)
            names = (*names, *_names_of(function))
        self.is_complete &= not _has_contents(value, function)
        return self._add(key, value, names)

    def _add_attributes(self, key, value, names):
        """``key`` and that of the attributes ``names`` of a module, a class or a
        function; of libraries', those that are numbers."""
        if torch.compiler.is_dynamo_compiling():
            return key
        if _is_of_library(value):
            found = _attributes_of(value, names)
            fixed = [(name, x) for name, x in found if isinstance(x, _FIXED)]
            # Others may have contents, such as the variables of os.environ.
            self.is_complete &= len(fixed) == len(found)
            return *key, tuple((name, type(x), repr(x)) for name, x in fixed)
        return self._add(key, value, names)

    def _add(self, key, value, names):
        """``key`` and that of the attributes ``names`` of ``value``."""
        for name in names:
            if (id(value), name) in self._asked or not hasattr(value, name):
                continue
            self._asked.add((id(value), name))
            key = *key, name, self.key_of(getattr(value, name), names)
        return key


#: What has a name of its own, by which its attributes are found.
_NAMED = types.BuiltinFunctionType, type
_WITH_NAMES = *_NAMED, types.FunctionType, types.MethodType, types.ModuleType
#: What has no contents that change.
_FIXED = bool, int, float, str, bytes, type(None), torch.dtype, torch.device

#: By these, a function may look at what no name in its code says.
_LOOK_UPS = frozenset(
    ("getattr", "vars", "globals", "eval", "exec", "attrgetter", "__dict__")
)

#: By these methods, an object has contents that are no attributes of it.
_OF_CONTENTS = ("__getitem__", "__iter__", "__contains__", "__len__", "__getattr__")


def _is_of_library(value):
    """Whether a module, a class or a function is of Python's library, PyTorch or NumPy:
    what functions find there stays as it is."""
    is_module = isinstance(value, types.ModuleType)
    name = value.__name__ if is_module else value.__module__
    first = (name or "builtins").partition(".")[0]
    return first in sys.stdlib_module_names or first in ("torch", "numpy")


def _has_contents(value, function):
    """Whether what ``value`` computes may follow from more than its attributes and
    ``function``, which runs where it is called."""
    if torch.compiler.is_dynamo_compiling():
        return False
    if callable(value) and function is None:
        return True
    found = (getattr(type(value), name, None) for name in _OF_CONTENTS)
    # What PyTorch's modules look up by name are their own attributes.
    return any(x not in (None, torch.nn.Module.__getattr__) for x in found)


def _function_of(value):
    """The function that runs where an object is called; None if it is not its own."""
    called = type(value).forward if isinstance(value, torch.nn.Module) else None
    if called is None and callable(value):
        called = type(value).__call__
    return called if isinstance(called, types.FunctionType) else None


def _names_of(function):
    """The global names that a function may use, and those of attributes."""
    names, codes = {}, [function.__code__]
    for code in codes:
        names.update(dict.fromkeys(code.co_names))
        codes += [x for x in code.co_consts if isinstance(x, types.CodeType)]
    return tuple(names)


def _attributes_of(value, names):
    """Attributes of a module, a class or a function that are no module, class or function
    themselves, with their names."""
    found = getattr(value, "__dict__", {})
    return [
        (name, found[name])
        for name in names
        if name in found and not isinstance(found[name], _WITH_NAMES)
    ]

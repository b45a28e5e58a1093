# Part of Bastile, under the MIT License. See LICENSE.
"""Modules by a peer's names, whose functions call Bastile.

A name without a counterpart is there all the same, so that a file of tests can be
imported, and fails where it is used.
"""

import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any, NoReturn


class NoCounterpart(NotImplementedError):
    """A test used something of its library that Bastile has no counterpart of."""


class Missing:
    """A name that Bastile has no counterpart of: whatever is done with it raises
    `NoCounterpart`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def _fail(self, *_args: Any, **_settings: Any) -> NoReturn:
        raise NoCounterpart(f"Bastile has no counterpart of {self._name}")

    __call__ = __getitem__ = __iter__ = _fail

    def __getattr__(self, name: str) -> Any:
        # Whoever looks a module's names over, as pytest does, asks for these.
        if name.startswith("__"):
            raise AttributeError(name)
        self._fail()


class Module(types.ModuleType):
    """A module that has every name."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name.startswith("pytest"):
            raise AttributeError(name)
        return Missing(f"{self.__name__}.{name}")


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds ``package`` and everything beneath it; ``names_of`` gives the names that a
    module has with a counterpart."""

    def __init__(
        self, package: str, names_of: Callable[[str], Mapping[str, Any]]
    ) -> None:
        self.package = package
        self._names_of = names_of

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname == self.package or fullname.startswith(self.package + "."):
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> Module:
        return Module(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        vars(module).update(self._names_of(module.__name__))


def install(finder: Finder) -> None:
    """Has ``finder`` asked before all others. Raises where the package was imported
    already: its own kernels would run."""
    if finder.package in sys.modules:
        raise RuntimeError(f"{finder.package} has been imported already")
    sys.meta_path.insert(0, finder)


class Function:
    """What a peer has as a class of ``torch.autograd.Function``: its ``apply``."""

    def __init__(self, apply: Callable[..., Any]) -> None:
        self.apply = apply
        self.__name__ = apply.__name__

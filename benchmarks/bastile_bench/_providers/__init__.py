# Part of Bastile, under the MIT License. See LICENSE.
"""The libraries that are compared: each module of this folder is one.

``load()`` returns its functions by the op's name; each takes the op's inputs by
position and returns its result or a tuple of them. It raises ``ImportError`` where
the library is not installed. ``start_case()`` is called before each op and shape.
``make(formula)``, where a library can have it, is the function of a random formula.
"""

import dataclasses
import importlib
import types
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class Provider:
    name: str
    #: How it is called in reports.
    title: str
    #: Its colour in plots, the same everywhere.
    color: str
    module: str

    def load(self) -> "Loaded":
        """Raises ``ImportError`` if the library is not there."""
        module = importlib.import_module(f"{__name__}.{self.module}")
        return Loaded(self, module, module.load())


@dataclasses.dataclass(frozen=True)
class Loaded:
    provider: Provider
    module: types.ModuleType
    functions: dict

    @property
    def name(self) -> str:
        return self.provider.name

    def start_case(self) -> None:
        start = getattr(self.module, "start_case", None)
        if start:
            start()

    def can_capture(self, op: str) -> bool:
        """Whether a call of the op can be part of a CUDA graph."""
        return op not in getattr(self.module, "NOT_IN_GRAPHS", ())

    def function(self, op: str) -> "Callable | None":
        """None if the library does not have the op."""
        return self.functions.get(op)

    def with_formula(self, formula) -> "Loaded":
        """The same library with a random formula as its only op."""
        function = self.module.make(formula)
        return dataclasses.replace(self, functions={formula.name: function})


PROVIDERS = {
    provider.name: provider
    for provider in (
        Provider("bastile", "Bastile", "#d1495b", "of_bastile"),
        Provider("torch", "PyTorch", "#8d99ae", "of_torch"),
        Provider("compile", "torch.compile", "#2e86ab", "of_compile"),
        Provider("liger", "Liger", "#3d9970", "of_liger"),
        Provider("quack", "QuACK", "#e0a030", "of_quack"),
    )
}


def load(names, report=print) -> list:
    """The providers of ``names`` that are installed; of the others, ``report`` is
    told why not."""
    found = []
    for name in names:
        try:
            found.append(PROVIDERS[name].load())
        except ImportError as error:
            report(f"{PROVIDERS[name].title} is left out: {error}")
    return found

# Part of Bastile, under the MIT License. See LICENSE.
"""Waiting for modules of Python that are imported later, or never.

What is to be patched in them would otherwise have to be imported at once, for seconds,
although a program may never use it.
"""

import sys
from collections.abc import Callable
from types import ModuleType


class Arrival:
    """Calls ``arrived`` with the module of a name, once: at once where the module is
    there, and otherwise as soon as an import has run it."""

    def __init__(self, name: str, arrived: Callable[[ModuleType], None]) -> None:
        self._name, self._arrived = name, arrived
        if name in sys.modules:
            arrived(sys.modules[name])
        else:
            sys.meta_path.insert(0, self)

    @property
    def is_awaited(self) -> bool:
        """Whether the module has still to come."""
        return self in sys.meta_path

    def cancel(self) -> None:
        """Waits no longer."""
        if self.is_awaited:
            sys.meta_path.remove(self)

    def find_spec(self, name, path=None, target=None):
        """What Python asks of each entry of ``sys.meta_path``: here, the module as the
        other entries find it, with ``arrived`` called behind its code."""
        if name != self._name:
            return None
        # Those before have been asked, and have not found it.
        behind = sys.meta_path[sys.meta_path.index(self) + 1 :]
        specs = (finder.find_spec(name, path, target) for finder in behind)
        spec = next(filter(None, specs), None)
        if spec is not None and spec.loader is not None:
            self._follow(spec.loader)
        return spec

    def _follow(self, loader):
        execute = loader.exec_module

        def exec_module(module):
            # The loader belongs to this import alone, and stays with the module.
            vars(loader).pop("exec_module", None)
            execute(module)
            if self.is_awaited:
                self.cancel()
                self._arrived(module)

        loader.exec_module = exec_module

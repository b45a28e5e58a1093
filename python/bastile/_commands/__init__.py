# Part of Bastile, under the MIT License. See LICENSE.
"""The commands of ``bastile``: every module in this folder is one.

Its ``register(commands)`` adds a parser, with ``run`` set to a function that
takes the parsed options and returns the exit status. What ``run`` raises as an
``OSError``, a ``RuntimeError`` or a ``ValueError`` is printed in one line.
"""

import importlib
import pkgutil


def register(commands) -> None:
    """Adds the parsers of all commands to ``commands``, by their names."""
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda found: found.name):
        importlib.import_module(f"{__name__}.{module.name}").register(commands)

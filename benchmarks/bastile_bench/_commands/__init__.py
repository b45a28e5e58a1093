# Part of Bastile, under the MIT License. See LICENSE.
"""The commands of ``python -m bastile_bench``: every module in this folder is one.

A module's docstring's first line is the command's summary; ``add_arguments(parser)``
adds its options and ``run(arguments)`` returns the exit status. What ``run`` raises as
an ``OSError``, a ``RuntimeError``, a ``ValueError`` or an ``ImportError`` is printed in
one line.
"""

import importlib
import pkgutil
import types


def modules() -> "dict[str, types.ModuleType]":
    """The module of each command, by the command's name."""
    names = sorted(found.name for found in pkgutil.iter_modules(__path__))
    return {
        name.replace("_", "-"): importlib.import_module(f"{__name__}.{name}")
        for name in names
    }

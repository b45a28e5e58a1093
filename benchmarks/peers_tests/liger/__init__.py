# Part of Bastile, under the MIT License. See LICENSE.
"""Liger's kernels and patches by its names and with its arguments. Its layers are its
own: they call the kernels by the names of ``liger_kernel.ops``."""

import pathlib
import sys
from collections.abc import Mapping
from typing import Any

from peers_tests import stand_ins
from peers_tests.liger import formulas, losses, ops, patches

OPS: dict[str, Any] = {
    name: stand_ins.Function(function)
    for functions in (ops.FUNCTIONS, formulas.FUNCTIONS, losses.FUNCTIONS)
    for name, function in functions.items()
}


def names_of(module: str) -> Mapping[str, Any]:
    """The names of ``liger_kernel.ops`` or of a module in it: kernels alone."""
    return {"is_hip": _is_hip} if module == "liger_kernel.ops.utils" else OPS


def _is_hip() -> bool:
    import torch

    return torch.version.hip is not None


def install(checkout: pathlib.Path) -> None:
    """Puts the modules in the place of Liger's, whose other modules are those of
    ``checkout``."""
    stand_ins.install(stand_ins.Finder("liger_kernel.ops", names_of))
    sys.path.insert(0, str(checkout / "src"))
    patches.install()

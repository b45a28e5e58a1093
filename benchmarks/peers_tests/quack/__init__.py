# Part of Bastile, under the MIT License. See LICENSE.
"""QuACK's functions by its names and with its arguments."""

import pathlib
from collections.abc import Callable, Mapping
from typing import Any

from peers_tests import references, stand_ins
from peers_tests.quack import losses, norms, rotations, softmax

_REFERENCES = {
    "quack.rmsnorm": {
        "rmsnorm_ref",
        "rmsnorm_bwd_ref",
        "layernorm_ref",
        "layernorm_rstd_ref",
        "layernorm_mean_ref",
    }
}

_MODULES: dict[str, tuple[Callable[..., Any], ...]] = {
    "quack.rmsnorm": norms.FUNCTIONS,
    "quack.softmax": softmax.FUNCTIONS,
    "quack.cross_entropy": losses.FUNCTIONS,
    "quack.rotary": rotations.FUNCTIONS,
}


def names_of(checkout: pathlib.Path) -> Callable[[str], Mapping[str, Any]]:
    """What gives the names of a module of QuACK, whose references are read in
    ``checkout``."""

    def names(module: str) -> Mapping[str, Any]:
        found: dict[str, Any] = {
            function.__name__: function for function in _MODULES.get(module, ())
        }
        if module in _REFERENCES:
            source = checkout.joinpath(*module.split(".")).with_suffix(".py")
            found |= references.read(source, _REFERENCES[module])
        if module == "quack.cute_dsl_utils":
            found["get_device_capacity"] = _get_device_capacity
        return found

    return names


def _get_device_capacity(device: Any = None) -> tuple[int, int]:
    import torch

    return torch.cuda.get_device_capability(device)


def install(checkout: pathlib.Path) -> None:
    """Puts the modules in the place of QuACK's."""
    stand_ins.install(stand_ins.Finder("quack", names_of(checkout)))

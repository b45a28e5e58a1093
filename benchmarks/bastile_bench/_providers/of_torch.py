# Part of Bastile, under the MIT License. See LICENSE.
"""Eager PyTorch."""

from bastile_bench import _formulas, _ops
from bastile_bench._random_formulas import in_torch


def load() -> dict:
    return {name: getattr(_formulas, name) for name in _ops.OPS}


def make(formula):
    return in_torch.make(formula)

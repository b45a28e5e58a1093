# Part of Bastile, under the MIT License. See LICENSE.
"""Eager PyTorch."""

from bastile_bench import _formulas, _ops


def load() -> dict:
    return {name: getattr(_formulas, name) for name in _ops.OPS}

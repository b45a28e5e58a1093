# Part of Bastile, under the MIT License. See LICENSE.
"""PyTorch's formulas through torch.compile."""

import torch
from bastile_bench import _formulas, _ops
from bastile_bench._random_formulas import in_torch


def load() -> dict:
    return {
        name: torch.compile(getattr(_formulas, name), fullgraph=True, dynamic=False)
        for name in _ops.OPS
    }


def make(formula):
    return torch.compile(in_torch.make(formula), fullgraph=True, dynamic=False)


def start_case() -> None:
    """Forgets the shapes of earlier cases: after eight of them it would give up."""
    torch._dynamo.reset()

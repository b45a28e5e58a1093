# Part of Bastile, under the MIT License. See LICENSE.
"""Random tensors for an op, in so many sets that no cache holds the next one."""

import dataclasses
import math

import torch


@dataclasses.dataclass
class Inputs:
    """The tensors of one call."""

    #: The tensors by the names that the op has for them.
    tensors: dict
    #: Upstream gradients, one for each result.
    upstream: tuple
    #: Names of the tensors whose first dimension counts rows.
    of_rows: tuple
    #: Names of the tensors that have gradients.
    gradients: tuple

    def refresh(self) -> None:
        """Draws new numbers for the tensors that a call may have written to: some
        libraries put gradients into the memory of arguments."""
        with torch.no_grad():
            for tensor in self._random():
                tensor.normal_()

    def restore(self, other: "Inputs") -> None:
        """Takes the numbers of ``other``."""
        with torch.no_grad():
            for mine, theirs in zip(self._random(), other._random()):
                mine.copy_(theirs)

    def clone(self) -> "Inputs":
        return dataclasses.replace(
            self,
            tensors={
                name: x.detach().clone().requires_grad_(x.requires_grad)
                for name, x in self.tensors.items()
            },
            upstream=tuple(x.clone() for x in self.upstream),
        )

    def wanted(self) -> list:
        return [self.tensors[name] for name in self.gradients]

    def _random(self):
        rows = [self.tensors[name] for name in self.of_rows]
        found = [x for x in rows if x.is_floating_point()]
        return found + [x for x in self.upstream if x.dim()]


def make(op, shape, dtype, device) -> Inputs:
    """A set of tensors for ``op``: never zeros, whose copies cost less power."""

    def normal(*sizes):
        return torch.randn(sizes, device=device, dtype=torch.float32).to(dtype)

    tensors = {
        name: _MAKERS[kind](shape, normal, device) for name, kind in op.inputs.items()
    }
    for name in op.gradients:
        tensors[name].requires_grad_()
    return Inputs(
        tensors,
        tuple(
            normal(*sizes) if sizes else torch.ones((), device=device)
            for sizes in (op.results(shape) if op.gradients else ())
        ),
        tuple(name for name, kind in op.inputs.items() if kind in _OF_ROWS),
        op.gradients,
    )


def _angles(function):
    def make_angles(shape, normal, device):
        positions = torch.arange(shape[1], device=device, dtype=torch.float64)
        exponents = torch.arange(0, shape[-1], 2, device=device) / shape[-1]
        angles = torch.outer(positions, 1e4**-exponents)
        table = function(torch.cat((angles, angles), -1))
        return table.to(normal(1).dtype)[None, :, None, :]

    return make_angles


_MAKERS = {
    "rows": lambda shape, normal, device: normal(*shape),
    "pairs": lambda shape, normal, device: normal(*shape[:-1], 2 * shape[-1]),
    "weight": lambda shape, normal, device: 1 + 0.1 * normal(shape[-1]),
    "offset": lambda shape, normal, device: 0.1 * normal(shape[-1]),
    "numbers": lambda shape, normal, device: normal(*shape[:-1], 1),
    "heads": lambda shape, normal, device: normal(*shape[:3], shape[4]),
    "kv_heads": lambda shape, normal, device: normal(*shape[:2], *shape[3:]),
    "cosine": _angles(torch.cos),
    "sine": _angles(torch.sin),
    "targets": lambda shape, normal, device: torch.randint(
        shape[-1], shape[:1], device=device
    ),
}
_OF_ROWS = ("rows", "pairs", "numbers", "heads", "kv_heads", "targets")


def count_sets(bytes_of_a_set: float, cached_bytes: int) -> int:
    """How many sets make eight times what the cache holds: at least 2, at most
    200."""
    return max(2, min(200, math.ceil(8 * cached_bytes / bytes_of_a_set)))

# Part of Bastile, under the MIT License. See LICENSE.
"""Random formulas as ops that ``_measure`` measures."""

from bastile_bench._random_formulas import costs
from bastile_bench._random_formulas.nodes import Kind


class FormulaOp:
    """A formula with the interface of ``_ops.Op``, of its own shape alone."""

    is_quantization = False

    def __init__(self, formula):
        from bastile_bench._random_formulas import in_torch

        self.name = formula.name
        self.inputs = formula.inputs
        self.gradients = tuple(formula.inputs)
        self.reference = in_torch.make(formula)
        #: What each direction takes at least.
        self.work = {
            "forward": costs.forward_work(formula),
            "backward": costs.backward_work(formula),
        }
        self._results = formula.results

    def results(self, shape) -> list:
        """The shapes of the results."""
        return [
            shape if node.kind == Kind.ROWS else (*shape[:-1], 1)
            for node in self._results
        ]

    def bytes(self, direction: str, shape, size: int) -> int:
        """Bytes that ``direction`` has to move."""
        return self.work[direction].bytes

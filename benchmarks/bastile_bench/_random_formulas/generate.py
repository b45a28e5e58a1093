# Part of Bastile, under the MIT License. See LICENSE.
"""Formulas from a seed.

Operands, functions, reductions and weights are drawn first. Then values are put together
one step at a time, out of steps as models have them: a gate, a norm, a soft cap, a
residual. Each operand and each step has a part in some result. Sizes are kept near 1 by
what is known of each value's, and functions that jump, or whose derivatives do, are
applied to operands alone: elsewhere float64 and float32 may be on two sides of the jump.
"""

import dataclasses
import functools
import math
import random

from bastile_bench._random_formulas import derivatives, growth, text
from bastile_bench._random_formulas.nodes import Graph, Kind

#: PyTorch's names of element types, and how often each is drawn.
DTYPES = {"bfloat16": 14, "float16": 3, "float32": 3}
_SIZES = {"bfloat16": 2, "float16": 2, "float32": 4}

#: Lengths of rows: those of models, short ones, odd ones.
COLUMNS = (
    *(1024, 2048, 2560, 2880, 3072, 4096, 4096, 5120, 6144, 8192, 11008, 14336, 16384),
    *(64, 128, 256, 512, 32768),
    *(100, 1000, 1023, 2049, 2882, 3001, 4095, 4100, 6145, 10007),
)


@dataclasses.dataclass(frozen=True)
class Formula:
    """A function of row tensors, weights and statistics."""

    name: str
    dtype: str
    #: Of all row tensors.
    shape: tuple
    #: The nodes of the operands by their names, of what kind each is for ``_inputs``, and
    #: what the function returns.
    operands: dict
    inputs: dict
    results: tuple
    #: The gradients of the results, as nodes.
    upstream: tuple

    @functools.cached_property
    def text(self) -> str:
        """The function's definition in Python."""
        return text.write(self.name, self.operands, self.results)

    @functools.cached_property
    def gradients(self) -> tuple:
        """The gradients of all operands, as nodes."""
        operands = list(self.operands.values())
        return tuple(
            derivatives.differentiate(
                self.results, self.upstream, operands, self.shape[-1]
            )
        )

    @property
    def element_size(self) -> int:
        """Bytes of an element of a row tensor."""
        return _SIZES[self.dtype]

    @property
    def element_count(self) -> int:
        """Elements of a row tensor."""
        return math.prod(self.shape)

    def bytes_of(self, node) -> int:
        """Bytes of a tensor of a value's kind."""
        if node.kind == Kind.ROWS:
            return self.element_count * self.element_size
        if node.kind == Kind.STATISTIC:
            return math.prod(self.shape[:-1]) * 4
        return self.shape[-1] * self.element_size

    def function(self, functions: dict):
        """The function in Python, of the names in ``functions``."""
        names = dict(functions)
        exec(compile(self.text, f"<{self.name}>", "exec"), names)
        return names[self.name]


def make(seed: int, number: int, least_bytes: float) -> Formula:
    """Formula ``number`` of ``seed``, whose forward moves at least ``least_bytes``. The
    same formula whatever others are made, with as many rows as the bytes need."""
    chance = random.Random(f"{seed} {number}")
    dtype = chance.choices(list(DTYPES), DTYPES.values())[0]
    columns = chance.choice(COLUMNS)
    graph = Graph()
    operands, inputs, results = growth.grow(graph, chance)
    names = [f"upstream{i}" for i in range(len(results))]
    upstream = [graph.operand(name, x.kind) for name, x in zip(names, results)]
    passes = sum(x.kind == Kind.ROWS for x in (*operands.values(), *results))
    rows = math.ceil(least_bytes / (passes * columns * _SIZES[dtype]))
    return Formula(
        f"formula_{seed}_{number}",
        dtype,
        (*_leading_sizes(chance, rows), columns),
        operands,
        inputs,
        results,
        tuple(upstream),
    )


def _leading_sizes(chance, rows):
    """One to three sizes whose product is at least ``rows`` and below twice as many."""
    rows = math.ceil(rows * chance.uniform(1, 1.5))
    count = chance.choices((1, 2, 3), (5, 3, 2))[0]
    sizes = []
    while len(sizes) < count - 1 and rows >= 8:
        size = chance.choice((2, 3, 4, 8))
        sizes.append(size)
        rows = math.ceil(rows / size)
    return (*sizes, rows)

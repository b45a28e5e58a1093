# Part of Bastile, under the MIT License. See LICENSE.
"""The least that a formula and its backward take: bytes, and instructions an element.

A kernel reads each operand once and writes each result once. A backward reads the
gradients of the results and as few operands as it can do with. A result that holds what
some operands are needed for may take their place, unless it has been rounded; statistics
may be saved, as they are a number a row. It writes the gradient of each operand: once where
those of two are the same, and not at all where it is that of a result.
"""

import dataclasses
import itertools

from bastile_bench._random_formulas import expansion
from bastile_bench._random_formulas.nodes import REDUCTIONS, Kind, visit

#: Instructions of the unit for special functions, and others, of each operation on an
#: element, one other if it is not here. Products whose sum is taken are part of it; signs
#: are part of what uses the number.
_INSTRUCTIONS = {
    "abs": (0, 0),
    "cos": (1, 1),
    "divide": (0, 1),
    "erf_of": (0, 8),
    "exp": (1, 1),
    "log": (1, 1),
    "log1p": (1, 2),
    "reciprocal": (1, 0),
    "rsqrt": (1, 0),
    "sin": (1, 1),
    "stop_gradient": (0, 0),
    "tanh": (1, 0),
}
#: What a product that it takes is part of.
_SUMS = ("add", "subtract", "row_sum", "row_mean", "sum_of_rows")


@dataclasses.dataclass(frozen=True)
class Work:
    """What a direction takes at least."""

    #: Of all rows.
    bytes: int
    #: For each element of a row tensor: special functions, and other instructions.
    special: float
    other: float


@dataclasses.dataclass(frozen=True)
class Rates:
    """What a GPU does in a second."""

    multiprocessors: int
    clock_hz: float
    #: Special functions, and instructions of any kind, that a multiprocessor starts in a
    #: cycle: 16 and 128 on Hopper.
    special: int
    instructions: int

    def seconds(self, work: Work, elements: int) -> float:
        """The least time of the arithmetic on so many elements."""
        cycles = max(
            work.special / self.special,
            (work.special + work.other) / self.instructions,
        )
        return elements * cycles / (self.multiprocessors * self.clock_hz)


#: By compute capability, of the programming guide's table of throughput.
_RATES = {
    (8, 0): (16, 64),
    (8, 6): (16, 128),
    (8, 9): (16, 128),
    (9, 0): (16, 128),
    (10, 0): (16, 128),
    (12, 0): (16, 128),
}


def rates_of(environment: dict) -> "Rates | None":
    """The rates of the GPU that a result's environment describes, at its highest clock;
    None where it describes none or they are not known."""
    capability = environment.get("compute_capability")
    clock = environment.get("max_sm_clock_mhz")
    if capability is None or clock is None:
        return None
    rates = _RATES.get(tuple(int(part) for part in capability.split(".")))
    if rates is None:
        return None
    return Rates(environment["multiprocessors"], clock * 1e6, *rates)


def forward_work(formula) -> Work:
    results = formula.results
    expanded = _expand(formula, results)
    operands = list(formula.operands.values())
    outputs = [expanded[x] for x in results]
    return _work(formula, outputs, set(), [*operands, *outputs])


def backward_work(formula) -> Work:
    """Of all ways to read what the backward needs, the one of the fewest bytes, and of
    these of the fewest special functions."""
    expanded = _expand(formula, (*formula.results, *formula.gradients))
    wanted = [expanded[x] for x in formula.gradients if x not in formula.upstream]
    operands = list(formula.operands.values())
    saved = [expanded[x] for x in visit(formula.results) if x.kind == Kind.STATISTIC]
    exact = formula.results if formula.element_size > 2 else ()
    known = dict.fromkeys((*operands, *(expanded[x] for x in exact)))
    choices = [x for x in known if x.kind == Kind.ROWS]
    small = [x for x in operands if x.kind != Kind.ROWS]
    found = []
    for count in range(len(choices) + 1):
        for chosen in itertools.combinations(choices, count):
            stop = {*chosen, *small, *saved, *formula.upstream}
            visited = visit(wanted, stop)
            if any(x.op == "operand" and x not in stop for x in visited):
                continue
            read = [x for x in visited if x in stop]
            found.append(_work(formula, wanted, stop, [*read, *wanted]))
    return min(found, key=lambda work: (work.bytes, work.special, work.other))


def _expand(formula, outputs):
    return expansion.expand(outputs, accurate=formula.element_size > 2)


def _work(formula, outputs, stop, moved):
    visited = [x for x in visit(outputs, stop) if x not in stop]
    users = {}
    for node in visited:
        for each in node.inputs:
            users.setdefault(each, []).append(node.op)
    special = other = 0.0
    for node in visited:
        one = _instructions(node, users.get(node, ()))
        special += one[0]
        other += one[1]
    if formula.element_size == 2:
        # A number of 16 bits is taken out of its word; two are rounded into one at once.
        tensors = [x for x in dict.fromkeys(moved) if x.kind == Kind.ROWS]
        written = sum(x in outputs for x in tensors)
        other += len(tensors) - written / 2
    size = sum(formula.bytes_of(x) for x in dict.fromkeys(moved))
    return Work(size, special, other)


def _instructions(node, users):
    is_reduction = node.op in REDUCTIONS
    kind = node.inputs[0].kind if is_reduction else node.kind
    if kind != Kind.ROWS or not node.inputs:
        return 0, 0
    if node.op == "subtract" and node.inputs[0].value == 0.0:
        return 0, 0
    if node.op == "multiply" and users and all(user in _SUMS for user in users):
        return 0, 0
    return _INSTRUCTIONS.get(node.op, (0, 1))

# Part of Bastile, under the MIT License. See LICENSE.
"""The sizes at which a gated layer's products and activation are faster as one kernel.

What decides is a table of measured figures, and not a measurement in the user's process:
the same sizes give the same bits in every run and on every process of a group, a first
step waits for nothing, and a compiler of graphs can follow the choice.
"""

import functools
import math
from typing import NamedTuple

import torch
from bastile._torch.constants import constant_in_graphs


class Figure(NamedTuple):
    """Microseconds of a gated layer with ``rows`` rows of ``depth`` elements and weights
    for ``columns`` columns of the gate and as many of up."""

    rows: int
    columns: int
    depth: int
    #: One kernel, which also writes the gate and up for a backward.
    kept: float
    #: One kernel that writes the result alone.
    alone: float
    #: The products by cuBLAS, and the activation in a kernel of its own.
    apart: float


#: By compute capability, what was measured for bfloat16; float16 runs the same
#: instructions. `python -m bastile_bench gated-products` measures and prints such lines.
FIGURES: dict[tuple[int, int], tuple[Figure, ...]] = {
    (9, 0): (
        # One H100; `apart` has Bastile's activation.
        Figure(512, 3072, 1024, 23, 22, 23),
        Figure(2048, 3072, 1024, 51, 45, 55),
        Figure(8192, 3072, 1024, 194, 170, 213),
        Figure(16384, 3072, 1024, 387, 338, 425),
        Figure(512, 6912, 1152, 42, 38, 41),
        Figure(2048, 6912, 1152, 125, 111, 136),
        Figure(8192, 6912, 1152, 475, 411, 499),
        Figure(16384, 6912, 1152, 972, 857, 1027),
        Figure(512, 8192, 2048, 63, 57, 65),
        Figure(2048, 8192, 2048, 225, 209, 237),
        Figure(8192, 8192, 2048, 917, 846, 963),
        Figure(16384, 8192, 2048, 1786, 1649, 1894),
        Figure(512, 9728, 2560, 102, 97, 92),
        Figure(2048, 9728, 2560, 329, 311, 348),
        Figure(8192, 9728, 2560, 1282, 1212, 1363),
        Figure(16384, 9728, 2560, 2553, 2391, 2686),
        Figure(512, 14336, 4096, 196, 188, 194),
        Figure(2048, 14336, 4096, 722, 704, 739),
        Figure(8192, 14336, 4096, 2908, 2790, 2966),
        Figure(16384, 14336, 4096, 5787, 5562, 5922),
        Figure(512, 12288, 4096, 153, 146, 156),
        Figure(2048, 12288, 4096, 635, 612, 648),
        Figure(8192, 12288, 4096, 2452, 2351, 2498),
        Figure(16384, 12288, 4096, 4993, 4808, 5088),
    ),
}
#: How many times a measured depth or number of columns another one may be, or a part of
#: it, for the figure to be of use: time is in proportion to both, but the activation's
#: share in it shrinks as the depth grows.
REACH = 2
#: 16 bytes in elements, which copies of boxes want the lengths of rows to be multiples of.
_MULTIPLE = 8


@functools.cache
def least_rows(capability: tuple[int, int], columns: int, depth: int) -> int | None:
    """The number of rows from which one kernel was faster; None where nothing was measured
    at sizes like these, or it was not."""
    if columns % _MULTIPLE or depth % _MULTIPLE:
        return None
    near = [
        figure
        for figure in FIGURES.get(capability, ())
        if columns * REACH >= figure.columns
        and depth * REACH >= figure.depth
        and depth <= figure.depth * REACH
    ]
    if not near:
        return None
    nearest = min((_distance(x, columns, depth), x[1:3]) for x in near)[1]
    found = None
    # From the most rows down, until one kernel was slower.
    for figure in sorted((x for x in near if x[1:3] == nearest), reverse=True):
        if max(figure.kept, figure.alone) >= figure.apart:
            break
        found = figure.rows
    return found


def _distance(figure, columns, depth):
    return abs(math.log2(columns / figure.columns)) + abs(
        math.log2(depth / figure.depth)
    )


@functools.cache
def capability(device: torch.device) -> tuple[int, int] | None:
    """The compute capability of a GPU; None for other devices."""
    if device.type != "cuda" or torch.version.cuda is None:
        return None
    return torch.cuda.get_device_capability(device)


@constant_in_graphs
def least_rows_on(device: torch.device, columns: int, depth: int) -> int | None:
    """`least_rows` on a device."""
    found = capability(device)
    return None if found is None else least_rows(found, columns, depth)


def is_faster(device: torch.device, rows: int, columns: int, depth: int) -> bool:
    """Whether a layer of so many rows is one kernel."""
    least = least_rows_on(device, columns, depth)
    return least is not None and rows >= least

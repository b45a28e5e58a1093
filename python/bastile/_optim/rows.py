# Part of Bastile, under the MIT License. See LICENSE.
"""Tensors of any shape as rows of a few lengths.

A kernel is compiled for the length of its rows, and parameters have many. What goes
element by element, or combines all elements, may see them in any rows.
"""

import torch

#: The longest rows, which are long enough for every schedule, and the shortest that all
#: elements are put into. Of other tensors all but the end is in the longest rows.
LONGEST = 1024
SHORTEST = 32

_is_contiguous = torch.Tensor.is_contiguous


class Elements:
    """The elements of tensors of one shape, in the order in which those of the first
    lie in memory.

    Where the others lie in the same order and none has gaps, nothing is copied.
    """

    def __init__(self, *tensors):
        self._tensors = self._ordered = tensors
        # Most are contiguous, and host time is all that a step of few elements takes.
        if all(map(_is_contiguous, tensors)):
            return
        first = tensors[0]
        order = sorted(range(first.dim()), key=lambda d: -first.stride(d))
        self._order = tuple(order)
        self._ordered = [x.permute(self._order).contiguous() for x in tensors]

    def rows(self):
        """Lists of one tensor [rows, length] for each tensor, which together hold all
        elements."""
        count = self._ordered[0].numel()
        length = min(count & -count, LONGEST)
        if count == 0:
            return
        if length >= SHORTEST:
            yield [x.view(-1, length) for x in self._ordered]
            return
        flat = [x.view(-1) for x in self._ordered]
        whole = count - count % LONGEST
        if whole:
            yield [x[:whole].view(-1, LONGEST) for x in flat]
        yield [x[whole:].view(-1, 1) for x in flat]

    def copy_back(self, *places):
        """Has the tensors at ``places``, which kernels have changed, changed where they
        were copied."""
        if self._ordered is self._tensors:
            return
        for place in places:
            tensor, ordered = self._tensors[place], self._ordered[place]
            if ordered.data_ptr() != tensor.data_ptr():
                tensor.permute(self._order).copy_(ordered)

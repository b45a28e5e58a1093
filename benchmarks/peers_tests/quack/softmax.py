# Part of Bastile, under the MIT License. See LICENSE.
"""``quack.softmax``."""

import bastile
from bastile import functional
from bastile.functions import row_sum
from torch import Tensor


def softmax(x: Tensor) -> Tensor:
    return functional.softmax(x)


def softmax_fwd(x: Tensor) -> Tensor:
    return functional.softmax(x.detach())


@bastile.compile(grad=False)
def _gradient(dy, y):
    return (dy - row_sum(dy * y)) * y


def softmax_bwd(dy: Tensor, y: Tensor) -> Tensor:
    return _gradient(dy, y)


FUNCTIONS = softmax, softmax_fwd, softmax_bwd

# Part of Bastile, under the MIT License. See LICENSE.
"""Matrix products, and the gradients that are sums of them."""

import functools

import torch
from bastile._losses import plan

#: Rows of a product that `add_by_rows` computes at a time.
_ROWS = 8192
#: Fewer classes are not worth a product of their own for the last few.
_LEAST_CLASSES = 4096


def memory_of_logits(like, rows, classes):
    """Memory for logits [rows, classes] of the type of ``like`` and on its device."""
    length = plan.row_length(classes, like.element_size())
    memory = like.new_empty(rows, length)
    if not memory.is_cuda:
        # PyTorch's products of 16-bit floats on processors multiply what is behind a
        # row by zeros, and it may be NaN.
        memory[:, classes:] = 0
    return memory[:, :classes]


def logits_of(hidden, weight, bias, out):
    """``hidden @ weight.T + bias`` in ``out``."""
    for part in _parts(out, 1):
        if bias is None:
            torch.mm(hidden, weight[part].t(), out=out[:, part])
        else:
            torch.addmm(bias[part], hidden, weight[part].t(), out=out[:, part])
    return out


def _parts(matrix, dim):
    """Slices of a dimension of a matrix that products take one by one.

    cuBLAS has its fast kernels for matrices whose rows not only lie multiples of 16
    bytes apart, but also have such a length: with 100,278 classes, a product takes
    three times as long as with 100,272. So where rows go along ``dim``, the last few
    elements are a part of their own, the first one.
    """
    size = matrix.shape[dim]
    end = plan.whole_length(size, matrix.element_size())
    if end == size or matrix.stride(dim) != 1 or not _gains_by_parts(matrix, size):
        return [slice(0, size)]
    return [slice(end, size), slice(0, end)]


def _gains_by_parts(matrix, classes):
    return matrix.is_cuda and classes >= _LEAST_CLASSES


def multiply(a, b, out):
    """``out = a @ b``, rounded once, to the type of ``out``; of logits of many classes
    whose number is odd to the GPU, the few classes that are left are rounded before."""
    for rows in _parts(a, 0):
        first, *others = _parts(a, 1)
        _multiply(a[rows, first], b[first], out[rows])
        for inner in others:
            _add_product(a[rows, inner], b[inner], out[rows])
    return out


def add_product(a, b, out):
    """``out += a @ b``, with sums in the type of ``out``."""
    for rows in _parts(a, 0):
        for inner in _parts(a, 1):
            _add_product(a[rows, inner], b[inner], out[rows])
    return out


def _multiply(a, b, out):
    if out.dtype == a.dtype:
        return torch.mm(a, b, out=out)
    if out.is_cuda:
        return torch.mm(a, b, out_dtype=out.dtype, out=out)
    # PyTorch has products into a wider type on GPUs only.
    return torch.mm(a.to(out.dtype), b.to(out.dtype), out=out)


def _add_product(a, b, out):
    if out.dtype == a.dtype:
        return torch.addmm(out, a, b, out=out)
    if not out.is_cuda:
        return torch.addmm(out, a.to(out.dtype), b.to(out.dtype), out=out)
    if _adds_in_wider_type():
        return torch.addmm(out, a, b, out_dtype=out.dtype, out=out)
    return add_by_rows(a, b, out)


def add_by_rows(a, b, out, count=_ROWS):
    """As `add_product`, where PyTorch cannot add into a wider type: ``count`` rows of
    the product are computed at a time, and added."""
    for rows, sums in zip(a.split(count), out.split(count)):
        sums += _multiply(rows, b, torch.empty_like(sums))
    return out


@functools.cache
def _adds_in_wider_type():
    """Since 2.10, PyTorch takes a sum that is wider than the factors."""
    major, minor = torch.__version__.split(".")[:2]
    return (int(major), int(minor)) >= (2, 10)


def wide_type(dtype):
    """The type that sums of elements of ``dtype`` are kept in."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def kept_type(dtype):
    """The type of gradients that the backward scales: float16 has no range for
    them."""
    return torch.float32 if dtype == torch.float16 else dtype


class Sum:
    """A gradient of the shape of ``like`` that products are added to.

    It is rounded to the type ``kept`` when it is finished, and wider while it grows,
    unless it ``is_single``: then each row is set once, to one product.
    """

    def __init__(self, like, kept, is_single):
        self._kept = kept
        dtype = kept if is_single else wide_type(like.dtype)
        self._sum = like.new_empty(like.shape, dtype=dtype)
        self._is_empty = True

    def add(self, a, b):
        """Adds ``a @ b`` to all rows."""
        (multiply if self._is_empty else add_product)(a, b, self._sum)
        self._is_empty = False

    def put(self, rows, a, b):
        """Sets ``rows``, a slice, to ``a @ b``."""
        multiply(a, b, self._sum[rows])
        self._is_empty = False

    def finish(self, reduce=None):
        """The gradient; ``reduce`` may change it in place before."""
        if self._is_empty:
            self._sum.zero_()
        if reduce is not None:
            reduce(self._sum)
        return self._sum.to(self._kept)


class BiasSum:
    """The gradient of a bias: the sum of the logits' gradients."""

    def __init__(self, weight, kept):
        self._kept = kept
        self._sum = weight.new_zeros(len(weight), dtype=wide_type(weight.dtype))

    def add(self, classes, logits):
        self._sum[classes] += logits.sum(0, dtype=self._sum.dtype)

    def finish(self):
        return self._sum.to(self._kept)

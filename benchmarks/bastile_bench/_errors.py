# Part of Bastile, under the MIT License. See LICENSE.
"""Errors: differences of results from those of the same formula in float64."""

import math
import typing

import torch
from bastile_bench import _formulas

#: Elements of the reference that are computed at a time.
_CHUNK = 1 << 25


class Error(typing.NamedTuple):
    """The difference of tensors from their references; of several, the worst."""

    #: The largest difference, divided by the largest number of the reference.
    largest: float
    #: The norm of the difference, divided by that of the reference.
    norm: float


def find_errors(op, inputs, results, gradients) -> dict:
    """The errors of ``results`` and, where there are any, of ``gradients``, by these
    names.

    ``inputs`` hold what the call was given. All rows are compared. What is not
    finite makes the error infinite.
    """
    results = _values(op, results)
    found_results = [_Difference(x.dim() > 1) for x in results]
    found_gradients = [
        _Difference(name in inputs.of_rows) for name in inputs.gradients if gradients
    ]
    for begin, end, rows in _chunks(inputs):
        piece = _piece(inputs, begin, end)
        expected = _reference(op, piece, (end - begin) / rows)
        if gradients:
            upstream = [
                x[begin:end].double() if x.dim() else None for x in inputs.upstream
            ]
            wanted = [piece[name] for name in inputs.gradients]
            expected_gradients = torch.autograd.grad(expected, wanted, upstream)
            for one, value, reference in zip(
                found_gradients, gradients, expected_gradients
            ):
                one.add(value, reference, begin)
        for one, value, reference in zip(found_results, results, expected):
            one.add(value, reference.detach(), begin)
    errors = {"results": worst(one.relative() for one in found_results)}
    if gradients:
        errors["gradients"] = worst(one.relative() for one in found_gradients)
    return errors


def worst(errors) -> Error:
    """The worst of several errors, in either measure."""
    return Error(*map(max, zip(*errors)))


class _Difference:
    """Compares a tensor with a reference that comes in pieces: of rows, or, where the
    tensor is not ``of_rows``, summands of what all rows share."""

    def __init__(self, of_rows):
        self._of_rows = of_rows
        self._difference = 0.0
        self._largest = 0.0
        self._squares = [0.0, 0.0]
        self._shared = None

    def add(self, value, reference, begin):
        if not self._of_rows:
            total = self._shared[1] if self._shared else 0
            self._shared = value, total + reference
            return
        self._compare(value[begin : begin + reference.shape[0]], reference)

    def relative(self) -> Error:
        if self._shared:
            self._compare(*self._shared)
        if not math.isfinite(self._difference):
            return Error(math.inf, math.inf)
        difference, norm = map(math.sqrt, self._squares)
        return Error(
            self._difference / (self._largest or 1.0), difference / (norm or 1.0)
        )

    def _compare(self, value, reference):
        differences = value.detach().double() - reference
        difference = differences.abs().max().item()
        if math.isnan(difference):
            difference = math.inf
        self._difference = max(self._difference, difference)
        self._largest = max(self._largest, reference.abs().max().item())
        for place, tensor in enumerate((differences, reference)):
            self._squares[place] += tensor.square().sum().item()


def _chunks(inputs):
    first = inputs.tensors[inputs.of_rows[0]]
    rows = first.shape[0]
    step = max(1, _CHUNK * rows // first.numel())
    for begin in range(0, rows, step):
        yield begin, min(begin + step, rows), rows


def _piece(inputs, begin, end):
    """The inputs' rows from ``begin`` to before ``end``, in float64."""
    piece = {}
    for name, tensor in inputs.tensors.items():
        part = tensor.detach()
        if name in inputs.of_rows:
            part = part[begin:end]
        if part.is_floating_point():
            part = part.double().requires_grad_(name in inputs.gradients)
        piece[name] = part
    return piece


def _reference(op, piece, share):
    """The results of these rows; of a mean over all rows, their share."""
    if op.is_quantization:
        return [piece["x"]]
    results = op.reference(*piece.values())
    if not isinstance(results, tuple):
        results = (results,)
    return [x if x.dim() else x * share for x in results]


def _values(op, results):
    """The numbers that results stand for, as float64."""
    return [_formulas.dequantize(*results)] if op.is_quantization else results

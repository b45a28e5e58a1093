"""Functions over symbolic tensors that are called like ops of the dialect.

What ``bastile.compile`` makes is a kernel for one rank, row length and type. Here
the function is traced again for each that comes, by the same way through the
extension module as an op, so that a call costs what an op's does.
"""

import inspect

from bastile import _bastile
from bastile._compiler import (
    capture,
    loading,
    operators,
    schedules,
    tensor_types,
    tracing,
)


class TracedOperator:
    """An op made of a Python function: its parameters without a default are
    operands, the others are numbers that become constants of the kernels.

    Gradients are computed for the operands that want them at a call. ``check`` is
    called on operands before anything is compiled for them, to raise what is wrong.

    With ``differentiated``, names of operands, the first result is only there to be
    differentiated: a call returns the others and, behind them, the gradients of that
    one's sum. Nobody has derived the gradients of these.
    """

    def __init__(self, function, check=None, differentiated=()):
        parameters = inspect.signature(function).parameters.values()
        #: What traced programs call it.
        self.key = self.name = function.__name__
        self.operands = [p.name for p in parameters if p.default is p.empty]
        self.attributes = [p.name for p in parameters if p.default is not p.empty]
        self._function = function
        self._check = check
        self._differentiated = tuple(differentiated)
        self._requests = {}
        self.native = _bastile.Operator(self._specialize, self.name, self.operands)
        self._call = self.native.caller()
        operators.TRACED[self.key] = self

    def __call__(self, *operands, attributes=()):
        """The result, or a tuple of them. ``attributes`` are floats, in the order
        of the function's parameters; those that are missing have their defaults."""
        if capture.is_compiling():
            return capture.call_traced(self, operands, attributes)
        return self._call(operands, attributes)

    def request(self, operands, attributes, gradients) -> loading.Request:
        """What to compile for ``operands``; ``gradients`` says for each whether
        its gradient is wanted, or is None for none."""
        if self._check:
            self._check(*operands)
        shapes = [tuple(x.shape) for x in operands]
        elements = [tensor_types.element_type(x.dtype) for x in operands]
        wanted = tuple(x for x, want in zip(self.operands, gradients or ()) if want)
        if self._differentiated:
            if wanted:
                raise ValueError(f"{self.name}: its results are gradients already")
            wanted = self._differentiated
        # Only the last size and which leading ones repeat are part of the code.
        key = tuple(tensor_types.row_types(shapes, elements)), attributes, wanted
        request = self._requests.get(key)
        if request is None:
            source = self._trace(shapes, elements, attributes)
            alone = bool(self._differentiated)
            request = self._requests[key] = loading.Request(
                source,
                "",
                name=self.name,
                gradients=wanted,
                together=alone,
                drop_value=alone,
            )
        return request

    def _trace(self, shapes, elements, attributes):
        try:
            _, source = tracing.trace(
                self._function,
                dict(zip(self.operands, map(pattern, shapes))),
                dict(zip(self.operands, elements)),
                dict(zip(self.attributes, attributes)),
            )
        except ValueError as error:
            given = (f"'{x}' {list(s)}" for x, s in zip(self.operands, shapes))
            raise ValueError(
                f"{self.name}: {error}; the shapes are {', '.join(given)}"
            ) from None
        return source

    def _specialize(self, attributes, operands, gradients):
        request = self.request(operands, attributes, gradients)
        device = _bastile.locate(operands[0])
        request = request.on(loading.target_for(device))
        schedules.tune_first_call(request, operands, device)
        return loading.load(request).kernel()


def pattern(shape) -> tuple:
    """A shape of the same kind without sizes that torch.compile may change."""
    *leading, length = shape
    return (*(1 if size == 1 else 2 for size in leading), int(length))

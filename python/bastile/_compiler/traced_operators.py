# Part of Bastile, under the MIT License. See LICENSE.
"""Python functions over symbolic tensors that are called like ops of the dialect.

A function is traced again for each rank, row length and type that calls bring. Calls
go the same way through the extension module as an op's, and cost the same.
"""

import inspect

from bastile import _bastile
from bastile._compiler import (
    capture,
    loading,
    operators,
    schedules,
    tensor_types,
    traced_graph,
    tracing,
)


class TracedOperator:
    """An operator made of a Python function. The function's parameters without a
    default are operands, and so are those with the default None, which a call may leave
    out by giving None; the others are numbers, which become constants of the kernels.

    A call computes the gradients of those operands that require them.

    Args:
        function: what is traced.
        check: called on the operands before a kernel is compiled for them, to raise
            what is wrong with them.
        differentiated: names of operands. Where there are any, a call returns no first
            result: it returns the other results and, behind them, the gradients of the
            sum of the first one with respect to these operands. Such a call cannot be
            differentiated.
        any_length: names of operands whose rows have a length that is no part of the
            code, unless it is 1.
        fixed_sizes: called on the numbers of a call, returns which leading sizes are
            part of the code: names of operands, and the dimensions.
        key: a name that no other operator has, by default the function's.
    """

    def __init__(
        self,
        function,
        check=None,
        differentiated=(),
        any_length=(),
        fixed_sizes=None,
        key=None,
    ):
        parameters = inspect.signature(function).parameters.values()
        self.name = function.__name__
        #: The name that programs have which PyTorch traced.
        self.key = key or self.name
        is_operand = {p.name: p.default in (p.empty, None) for p in parameters}
        self.operands = [name for name, holds in is_operand.items() if holds]
        self.attributes = [name for name, holds in is_operand.items() if not holds]
        self._free = frozenset(map(self.operands.index, any_length))
        self._function = function
        self._check = check
        self._differentiated = tuple(differentiated)
        self._fixed_sizes = fixed_sizes
        #: Leading sizes that code depends on, as in `Recipe`, by those that
        #: `fixed_sizes` asks for.
        self._fixed = {}
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
        shapes = [None if x is None else tuple(x.shape) for x in operands]
        elements = [
            None if x is None else tensor_types.element_type(x.dtype) for x in operands
        ]
        wanted = tuple(x for x, want in zip(self.operands, gradients or ()) if want)
        if self._differentiated:
            if wanted:
                raise ValueError(f"{self.name}: its results are gradients already")
            wanted = self._differentiated
        asked = self._find_fixed(attributes)
        while True:
            fixed = self._fixed.get(asked, asked)
            # Code depends on the last size, and on which leading sizes repeat.
            types = tensor_types.row_types(shapes, elements, fixed, self._free)
            key = tuple(types), attributes, wanted
            try:
                if key not in self._requests:
                    source = self._trace(shapes, elements, attributes, fixed)
                    self._requests[key] = self._request(source, wanted)
                return self._requests[key]
            except traced_graph.FreeSizes as sizes:
                self._fixed[asked] = fixed | sizes.places

    def _find_fixed(self, attributes):
        """The leading sizes that `fixed_sizes` asks for: numbers of operands and
        dimensions."""
        if self._fixed_sizes is None:
            return frozenset()
        numbers = dict(zip(self.attributes, attributes))
        places = self._fixed_sizes(**numbers)
        return frozenset((self.operands.index(x), d) for x, d in places)

    def _request(self, source, wanted):
        alone = bool(self._differentiated)
        return loading.Request(
            source,
            "",
            name=self.name,
            gradients=wanted,
            together=alone,
            drop_value=alone,
        )

    def _trace(self, shapes, elements, attributes, fixed):
        present = [i for i, shape in enumerate(shapes) if shape is not None]
        names = [self.operands[i] for i in present]
        free = {n for n, i in enumerate(present) if i in self._free}
        # By their places among the operands that are there.
        of_present = {(present.index(i), d) for i, d in fixed if i in present}
        patterns = [
            pattern(
                shapes[i],
                {d for j, d in fixed if j == i},
                is_free=i in self._free,
            )
            for i in present
        ]
        try:
            _, source, _ = tracing.trace(
                self._function,
                dict(zip(names, patterns)),
                dict(zip(names, (elements[i] for i in present))),
                dict(zip(self.attributes, attributes)),
                fixed=of_present,
                free=free,
            )
        except traced_graph.FreeSizes as sizes:
            if sizes.__cause__ is not None:
                # It is the function that went wrong, not a size that it needs.
                raise sizes.__cause__ from None
            raise traced_graph.FreeSizes(
                (present[n], d) for n, d in sizes.places
            ) from None
        except ValueError as error:
            given = (f"'{x}' {list(shapes[i])}" for x, i in zip(names, present))
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


def pattern(shape, fixed=(), is_free=False) -> tuple:
    """A shape that the same code is for, without the sizes that may change from call to
    call: 2 stands for all leading sizes but 1 and those of the dimensions ``fixed``, and,
    where that ``is_free``, for the length of rows."""
    *leading, length = shape
    sizes = (
        int(size) if place in fixed else 1 if size == 1 else 2
        for place, size in enumerate(leading)
    )
    return (*sizes, (1 if length == 1 else 2) if is_free else int(length))

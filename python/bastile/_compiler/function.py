# Part of Bastile, under the MIT License. See LICENSE.
"""Ops and Python functions that are compiled when they are called."""

import functools
import sys
import weakref
from typing import Any

from bastile import _bastile
from bastile._compiler import capture, operators, schedules, traced_graph
from bastile._compiler.kernel import Kernel, arrange, warn_of_lost_gradients
from bastile._compiler.recipe import Recipe

_functions = weakref.WeakSet()


@schedules.on_change
def _forget_code():
    """Has functions ask for code again, which may have another schedule now."""
    for function in list(_functions):
        function.forget_code()


class Function:
    """An op or a Python function of which ``bastile.compile`` was not told everything.

    A call makes a kernel for the types, row lengths and numbers of dimensions of its
    operands, and for the gradients that it wants. Kernels are kept, and a later call
    takes the one that fits. A new number of rows makes none.
    """

    def __init__(self, recipe: Recipe) -> None:
        if callable(recipe.op):
            functools.update_wrapper(self, recipe.op)
        self._recipe = recipe
        #: The names of the operands, in order.
        self.operands: tuple[str, ...] = recipe.operands
        self._native = _bastile.Operator(
            _specialize,
            recipe.name,
            self.operands,
            # Without gradients where ``grad`` is False or empty; None leaves it to
            # calls.
            gradients=recipe.grad is None or bool(recipe.grad),
        )
        self._overwritten = [
            self.operands.index(place) for place in recipe.places if place is not None
        ]
        self._call = self._native.caller()
        _functions.add(self)
        operators.FUNCTIONS[recipe.key] = recipe

    def __call__(self, *tensors: Any, **named: Any) -> Any:
        """Runs the kernel for such tensors and returns its result, or a tuple of
        them.

        Raises ``TypeError`` for a wrong number of operands or an object that is no
        tensor, ``ValueError`` for shapes or devices that do not fit together and
        for what ``bastile.compile`` was told otherwise, and ``CompileError`` for
        what the compiler rejects.
        """
        recipe = self._recipe
        if named or len(tensors) != len(self.operands):
            tensors = _arrange(recipe, tensors, named)
        if capture.is_compiling():
            return capture.call_traced(recipe, tensors, ())
        if traced_graph.current() is not None and callable(recipe.op):
            # A part of another function.
            return recipe.op(*tensors, **recipe.attributes)
        if self._overwritten:
            capture.overwrite(recipe.name, [tensors[i] for i in self._overwritten])
        return self._call(tensors, recipe)

    def kernel(self, *tensors: Any, **named: Any) -> Kernel:
        """The kernel that a call on such tensors runs, which says what was compiled
        (``schedule``, ``explain()``, ``mlir()``, ``ptx``)."""
        operands = _arrange(self._recipe, tensors, named)
        torch = sys.modules.get("torch")
        wanted = None
        if torch is not None and torch.is_grad_enabled():
            wanted = [getattr(x, "requires_grad", False) for x in operands]
        return self._recipe.kernel(operands, wanted)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels that calls have made so far."""
        return tuple(self._recipe.kernels.values())

    def forget_code(self) -> None:
        """Has calls ask for code again, which may be scheduled otherwise now."""
        self._native.clear()

    def __repr__(self) -> str:
        count = len(self._recipe.kernels)
        return (
            f"<bastile.Function {self._recipe.name}({', '.join(self.operands)}) with "
            f"{count} kernel{'' if count == 1 else 's'}>"
        )

    def __reduce__(self) -> str | tuple[Any, ...]:
        # After ``@bastile.compile``, the name of the Python function is that of this.
        module = sys.modules.get(getattr(self, "__module__", None))
        name = getattr(self, "__qualname__", None)
        if name and getattr(module, name, None) is self:
            return name
        return Function, (self._recipe,)


def _arrange(recipe, tensors, named):
    for name in named:
        if callable(recipe.op) and name not in recipe.operands:
            raise TypeError(
                f"{recipe.name}: there is no operand '{name}', only "
                f"{', '.join(recipe.operands)}; other parameters are constants of a "
                f"kernel, which bastile.compile takes, as in {name}=..."
            )
    return arrange(recipe.name, recipe.operands, tensors, named, recipe.optional)


def _specialize(recipe, operands, gradients):
    """The extension module's kernel for a call. The recipe comes with each call, so
    that it and the extension module's object do not keep each other alive."""
    kernel = recipe.kernel(operands, gradients)
    present = [x for x in operands if x is not None]
    if recipe.grad is not None:
        wanted = gradients
        if wanted is not None:
            wanted = [w for w, x in zip(gradients, operands) if x is not None]
        warn_of_lost_gradients(kernel, present, wanted)
    return kernel.native(_bastile.locate(present[0]), operands)

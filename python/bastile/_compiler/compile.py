# Part of Bastile, under the MIT License. See LICENSE.
"""``bastile.compile``: kernels from an op, from MLIR or from a Python function."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

from bastile import _bastile
from bastile._compiler.function import Function
from bastile._compiler.kernel import Kernel
from bastile._compiler.recipe import Recipe, is_module

_Shape = Sequence[int | None] | Mapping[str, Sequence[int | None]]
_Grad = bool | str | Sequence[str] | None
_InPlace = str | Sequence[str | None] | None


@overload
def compile(
    op: str | os.PathLike[str] | Callable[..., Any],
    shape: _Shape,
    *,
    dtype: Any,
    grad: _Grad = None,
    target: str | None = None,
    schedule: str = "",
    results: Sequence[str] | None = None,
    in_place: _InPlace = None,
    **attributes: Any,
) -> Kernel: ...


@overload
def compile(
    op: os.PathLike[str],
    *,
    grad: _Grad = None,
    target: str | None = None,
    schedule: str = "",
) -> Kernel: ...


@overload
def compile(
    op: Callable[..., Any],
    shape: _Shape | None = None,
    *,
    dtype: Any = None,
    grad: _Grad = None,
    target: str | None = None,
    schedule: str = "",
    in_place: _InPlace = None,
    **attributes: Any,
) -> Function: ...


@overload
def compile(
    op: str,
    shape: _Shape | None = None,
    *,
    dtype: Any = None,
    grad: _Grad = None,
    target: str | None = None,
    schedule: str = "",
    results: Sequence[str] | None = None,
    **attributes: Any,
) -> Kernel | Function: ...


@overload
def compile(
    op: None = None,
    shape: _Shape | None = None,
    *,
    dtype: Any = None,
    grad: _Grad = None,
    target: str | None = None,
    schedule: str = "",
    in_place: _InPlace = None,
    **attributes: Any,
) -> Callable[[Callable[..., Any]], Function]: ...


def compile(
    op: str | os.PathLike[str] | Callable[..., Any] | None = None,
    shape: _Shape | None = None,
    *,
    dtype: Any = None,
    grad: _Grad = None,
    target: str | None = None,
    schedule: str = "",
    results: Sequence[str] | None = None,
    in_place: _InPlace = None,
    **attributes: Any,
) -> Kernel | Function | Callable[[Callable[..., Any]], Kernel | Function]:
    """Compiles ``op``, ahead where ``shape`` and ``dtype`` are given, otherwise when
    it is called: then what was not given is that of the operands.

    Args:
        op: the name of an op of the dialect; the path of a ``.mlir`` file or
            MLIR text with one function, which is compiled as it stands; or a
            Python function over symbolic tensors, which is traced. Without it,
            this is a decorator of such a function.
        shape: sizes of the first operand; those of the others follow from the
            op. A dictionary of shapes by name gives them all. Only the last size
            is fixed by it, and which leading sizes are 1 where those of other
            operands are not. Not for MLIR, which says it itself.
        dtype: the element type of the first operand, which the others follow,
            or a dictionary by name.
        grad: ``True`` for gradients of every floating operand, the names of some,
            or ``False`` for none. By default, those that a call wants, and none
            where ``shape`` and ``dtype`` are given.
        target: ``"host"``, ``"sm_90"``, ...; by default whatever the tensors lie
            on.
        schedule: fields pinned in every kernel's schedule, as in ``"rows=2"``.
        results: the types of the results as MLIR spells them, for an op where
            they do not follow from the operands.
        in_place: for a Python function, the names of the operands whose memory
            its results take, in the order of the results; ``None`` for a result
            with memory of its own. Such a result has the shape and the type of
            the operand, which a call overwrites and returns. There are no
            gradients. MLIR says so itself, by ``tile.in_place``.
        attributes: the op's attributes, as in ``eps=1e-5``, and what parameters
            of a Python function are that are no tensors.

    Returns:
        A `Kernel` for MLIR, and where ``shape`` and ``dtype`` are given; a
        `Function`, which makes kernels as they are called for, otherwise.

    Raises:
        ValueError: (``CompileError``) for what the compiler rejects, with its
            words; for a shape, an attribute or a target that does not fit. What
            is known only at a call is raised there.
    """
    if op is None:
        return lambda function: compile(
            function,
            shape,
            dtype=dtype,
            grad=grad,
            target=target,
            schedule=schedule,
            results=results,
            in_place=in_place,
            **attributes,
        )
    if target is not None and target not in _bastile.targets():
        raise ValueError(
            f"there is no target {target!r}; there are " + ", ".join(_bastile.targets())
        )
    if results and (callable(op) or is_module(op)):
        raise TypeError(
            "results are given to an op by its name; a function and a module say "
            "themselves what they return"
        )
    if is_module(op) and not (shape is None and dtype is None):
        raise TypeError(
            "MLIR says its shapes and types itself: leave out shape and dtype, or give "
            "the name of an op or a Python function"
        )
    places = (in_place,) if isinstance(in_place, str) else tuple(in_place or ())
    if isinstance(op, Function):
        inner = op._recipe
        op, attributes = inner.op, {**inner.attributes, **attributes}
        places = places or inner.places
    if places and not callable(op):
        raise TypeError(
            "in_place is for a Python function: MLIR says it at a result, by "
            "tile.in_place, and an op by its name can be called in a function"
        )
    if any(places):
        if grad:
            raise ValueError(
                "in_place and grad exclude each other: a backward would find the "
                "results where it reads operands"
            )
        grad = False
    recipe = Recipe(
        op,
        shape,
        dtype,
        grad,
        target,
        schedule,
        tuple(results or ()),
        attributes,
        places,
    )
    if is_module(op) or (shape is not None and dtype is not None):
        return recipe.build()
    recipe.check()
    return Function(recipe)

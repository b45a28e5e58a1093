# Part of Bastile, under the MIT License. See LICENSE.
"""Kernels for given types and row lengths, compiled ahead of their first call."""

import sys
import warnings
import weakref
from collections.abc import Sequence
from typing import Any

from bastile import _bastile
from bastile._compiler import capture, loading, schedules

_kernels = weakref.WeakSet()


@schedules.on_change
def _forget_code():
    """Has kernels ask for code again, which may have another schedule now."""
    for kernel in list(_kernels):
        kernel.forget_code()


class Kernel:
    """A function compiled from an op, from MLIR or from a Python function.

    Called on tensors, in the order of its operands or by their names, it runs on
    the GPU that they lie on, in the stream that their library works in, or on
    the CPU. The number of rows is free; types and row lengths are not.

    Code is generated when it is first needed: for the target given to
    ``compile``, or for the device of the tensors.
    """

    def __init__(
        self,
        request: loading.Request,
        operands: Sequence[str],
        result_count: int,
        target: str | None,
    ) -> None:
        self._request = request
        self._target = target
        self._natives = {}
        _kernels.add(self)
        #: The names of the operands, in order.
        self.operands: tuple[str, ...] = tuple(operands)
        self.result_count: int = result_count
        self.has_gradients: bool = bool(request.gradients)
        # A request in place with gradients is for these; they may take the memory of
        # operands, results have to.
        self._overwritten = [
            x["in_place"]
            for x in request.describe()["functions"][0]["outputs"]
            if request.in_place and not request.together and "in_place" in x
        ]
        #: The extension module's part of a call, which asks `_specialize` for the code
        #: of each device once.
        self.fixed: _bastile.FixedOperator = _bastile.FixedOperator(
            _specialize, self.name, self.operands, self.has_gradients
        )
        self._call = self.fixed.caller()
        #: The request as a string, which PyTorch's registered operators are given.
        self.text: str = request.on("").to_text()

    def __call__(self, *tensors: Any, **named: Any) -> Any:
        """Runs the kernel and returns its result, or a tuple of them.

        Raises ``TypeError`` for a wrong number of operands and ``ValueError``
        for one of another shape, type or device than the rest or the kernel.
        """
        if named:
            tensors = arrange(self.name, self.operands, tensors, named)
        if not tensors:
            raise TypeError(f"{self.name}: takes {', '.join(self.operands)}")
        if capture.is_compiling():
            return capture.call_kernel(self, tensors)
        if self._overwritten:
            if len(tensors) != len(self.operands):
                arrange(self.name, self.operands, tensors, {})
            capture.overwrite(self.name, [tensors[i] for i in self._overwritten])
        return self._call(tensors, self)

    @property
    def overwrites(self) -> bool:
        """Whether a call overwrites operands, and returns them as results."""
        return bool(self._overwritten)

    def require_gradients(self, wanted: Any) -> None:
        """Raises ``TypeError`` where gradients are wanted that the kernel lacks."""
        known = self._request.gradients
        require_gradients(self.name, self.operands, known, wanted)

    def native(
        self, device: int | None, operands: Sequence[Any] | None = None
    ) -> _bastile.Kernel:
        """The extension module's kernel for GPU ``device``, or for the CPU where that
        is None. ``operands`` are those of the call that asks, on whose sizes the kernel
        is tuned where ``BASTILE_AUTOTUNE`` is set."""
        kernel = self._natives.get(device)
        if kernel is None:
            code = self._code(device, operands)
            if device is not None:
                code.report_left_out(device)
            kernel = self._natives[device] = code.kernel()
        return kernel

    def forget_code(self) -> None:
        """Has calls ask for code again, which may be scheduled otherwise now."""
        self._natives.clear()
        self.fixed.clear()

    def warm_up(self, device: int | None = None) -> None:
        """Compiles and loads the kernel for GPU ``device``, or for the CPU."""
        self.native(device)
        if device is not None:
            self._code(device).prepare(device)

    def _code(self, device, operands=None):
        target = loading.target_for(device)
        if self._target and (self._target == "host") != (device is None):
            raise ValueError(
                f"{self.name} is compiled for '{self._target}', but its tensors "
                f"are on {'the CPU' if device is None else f'GPU {device}'}"
            )
        request = self._request.on(self._target or target)
        if operands is not None:
            schedules.tune_first_call(request, operands, device)
        return loading.load(request)

    def _ask(self, question, *arguments):
        """The answer of ``question``, a function of the extension module, to the
        request with the schedule that the kernel runs with."""
        return loading.with_schedule(
            self._request.on(self.target),
            lambda request: question(request.native(), *arguments),
        )

    @property
    def target(self) -> str:
        """The target of the properties below: the one that was given, else that of the
        first GPU, else ``sm_90``."""
        if self._target:
            return self._target
        if _bastile.gpu_count():
            return loading.gpu_target(0)
        return loading.DEFAULT_GPU_TARGET

    @property
    def name(self) -> str:
        """The name of the op or of the Python function; the path of a file of MLIR, and
        ``"source"`` for its text."""
        return self._request.name

    @property
    def metadata(self) -> dict[str, Any]:
        """How the kernel is launched (docs/metadata.md)."""
        return loading.load(self._request.on(self.target)).metadata

    @property
    def ptx(self) -> str:
        """PTX with the metadata in it, as ``tilec`` writes it."""
        if self.target == "host":
            raise ValueError("the host has no PTX; compile for a GPU's target")
        return self._ask(_bastile.compile).decode()

    @property
    def cubin(self) -> bytes:
        """The machine code that the driver makes of the PTX. Needs a GPU."""
        return _bastile.assemble(self.ptx.encode(), 0)

    @property
    def object(self) -> bytes:
        """The host's machine code, an ELF object."""
        if self.target != "host":
            raise ValueError("objects are made for the target 'host' only")
        return self._ask(_bastile.compile)

    def mlir(self, level: str = "tile") -> str:
        """The module at a level of the compiler: ``tile`` (as written),
        ``decomposed``, ``fused``, ``scheduled``, ``tiled``, ``distributed``,
        ``nvvm`` or ``llvm``."""
        return self._ask(_bastile.lower_text, level)

    @property
    def schedule(self) -> dict[str, str]:
        """The schedule of each kernel that the function is split into, by its name."""
        return {row["kernel"]: row["schedule"] for row in self._report(1)}

    def explain(self, rows: int = 8192) -> str:
        """A table of the kernels: schedule, bytes, operations and the least time
        that the bytes of ``rows`` rows take at the target's bandwidth."""
        lines = [f"{self!r} on {self.target}, {rows} rows"]
        for row in self._report(rows):
            lines += [
                f"  {row['kernel']}",
                f"    schedule    {row['schedule']}",
                f"    bytes       {row['bytes_per_row']} a row + {row['bytes_shared']}",
                f"    operations  {row['operations_per_row']} a row",
                f"    sweeps      {row['sweeps']}",
                f"    least time  {row['seconds'] * 1e6:.1f} us",
            ]
        return "\n".join(lines)

    def _report(self, rows):
        return self._ask(_bastile.explain_text, rows)

    def __repr__(self) -> str:
        target = f" for {self._target}" if self._target else ""
        return f"<bastile.Kernel {self._request.summary()}{target}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Kernel, (
            self._request,
            self.operands,
            self.result_count,
            self._target,
        )


def arrange(name, operands, tensors, named, optional=()) -> tuple[Any, ...]:
    """The operands of a call in the order of ``operands``, from ``tensors`` by position
    and ``named`` by name; None for one of ``optional`` that is missing.

    Raises ``TypeError`` for too many, too few, unknown and repeated operands.
    """
    if len(tensors) > len(operands):
        raise TypeError(
            f"{name}: takes {len(operands)} tensors, but got {len(tensors)}"
        )
    rest = operands[len(tensors) :]
    for given in named:
        if given not in rest:
            raise TypeError(
                f"{name}: "
                + (
                    f"operand '{given}' is given twice"
                    if given in operands
                    else f"there is no operand '{given}'"
                )
                + f"; the operands are {', '.join(operands)}"
            )
    missing = [x for x in rest if x not in named and x not in optional]
    if missing:
        raise TypeError(f"{name}: missing {', '.join(missing)}")
    return (*tensors, *(named.get(x) for x in rest))


def require_gradients(name, operands, known, wanted) -> None:
    """Raises ``TypeError`` where ``wanted`` says of an operand that is not in ``known``
    that its gradient is wanted."""
    lost = [
        operand
        for operand, want in zip(operands, wanted or ())
        if want and not {"all", operand} & set(known)
    ]
    if lost:
        raise TypeError(
            f"{name} was compiled without gradients of {', '.join(lost)}, which "
            "torch.func asks for: pass grad=True to bastile.compile"
        )


def _specialize(kernel, operands, gradients):
    """The extension module's kernel for a call of ``kernel``. The `Kernel` comes with
    each call, so that it and the extension module's object do not keep each other
    alive."""
    warn_of_lost_gradients(kernel, operands, gradients)
    return kernel.native(_bastile.locate(operands[0]), operands)


def warn_of_lost_gradients(kernel, operands, wanted) -> None:
    """Warns of gradients that a call wants and ``kernel`` does not compute.

    ``wanted`` says for each operand whether its gradient is wanted; None stands for
    what the operands themselves say to PyTorch.
    """
    torch = sys.modules.get("torch")
    if wanted is None and torch is not None and torch.is_grad_enabled():
        wanted = [getattr(x, "requires_grad", False) for x in operands]
    lost = [
        name
        for name, wants in zip(kernel.operands, wanted or ())
        if wants and not {"all", name} & set(kernel._request.gradients)
    ]
    if lost:
        warnings.warn(
            f"{kernel.name} was compiled without gradients of {', '.join(lost)}, "
            "which are lost in this call and in others: pass grad=True to "
            "bastile.compile, or call it under torch.no_grad()",
            RuntimeWarning,
            stacklevel=4,
        )

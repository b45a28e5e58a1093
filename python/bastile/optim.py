# Part of Bastile, under the MIT License. See LICENSE.
"""Optimizers of ``torch.optim`` and the clipping of gradients, each in one kernel.

A step reads each parameter, its gradient and its state once and overwrites what it
changes. Parameters may have any shape: kernels are compiled for rows of a few lengths
and see the elements in these.
"""

import itertools
import math
from collections.abc import Callable, Iterable
from typing import Any, overload

import torch
from bastile._losses.products import wide_type
from bastile._optim import adamw, norms
from bastile._torch.operands import is_distributed
from torch import Tensor

__all__ = ["AdamW", "clip_grad_norm_"]

#: What is in the state of a parameter and has its shape.
_MOMENTS = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")


class AdamW(torch.optim.AdamW):
    """``torch.optim.AdamW``, with one kernel for each parameter.

    Everything is computed in float32 (float64 for float64 parameters), and what is
    stored is rounded once. ``foreach`` has no effect; ``capturable``,
    ``differentiable`` and ``fused`` are refused.

    Args:
        params, lr, betas, eps, weight_decay, amsgrad, maximize: as for
            ``torch.optim.AdamW``.
        state_dtype: the type of the means in the state, by default float32, or float64
            for float64 parameters, whatever the type of the parameters. PyTorch has
            them in the parameter's type; the mean of squares of bfloat16 parameters
            then stays where it is, as it changes by a thousandth and bfloat16 tells
            256ths apart.

    The state has the names of PyTorch's, so that ``load_state_dict`` takes that of a
    ``torch.optim.AdamW`` and the other way round.

    Parameters that are DTensors are changed in each process.

    Raises:
        ValueError: for arguments that PyTorch refuses, and for options that there is no
            kernel for.
    """

    def __init__(
        self,
        params: Any,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        state_dtype: torch.dtype | None = None,
    ) -> None:
        if state_dtype is not None and not state_dtype.is_floating_point:
            raise ValueError(
                f"AdamW: 'state_dtype' is no type of floats: {state_dtype}"
            )
        self._state_dtype = state_dtype
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            maximize=maximize,
            foreach=foreach,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
        )

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        super().add_param_group(param_group)
        for option in ("capturable", "differentiable", "fused"):
            if self.param_groups[-1][option]:
                self.param_groups.pop()
                raise ValueError(
                    f"AdamW: '{option}' is not supported; torch.optim.AdamW has it"
                )

    @overload
    def step(self, closure: None = None) -> None: ...

    @overload
    def step(self, closure: Callable[[], Any]) -> Any: ...

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Changes all parameters that have gradients, and returns what ``closure``,
        which computes these, returns.

        Raises:
            RuntimeError: for sparse gradients and complex parameters.
        """
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        with torch.no_grad():
            self._step_groups()
        return loss

    # Compilers of graphs have nothing to gain from what runs kernels by itself.
    @torch._disable_dynamo
    def _step_groups(self):
        chosen = [
            [p for p in group["params"] if p.grad is not None]
            for group in self.param_groups
        ]
        # Ahead of all changes.
        for parameters in chosen:
            if any(p.grad.is_sparse for p in parameters):
                raise RuntimeError("AdamW: takes no sparse gradients")
            if any(p.is_complex() for p in parameters):
                raise RuntimeError("AdamW: takes no complex parameters")
        for group, parameters in zip(self.param_groups, chosen):
            if parameters:
                self._step_group(group, parameters)

    def _step_group(self, group, parameters):
        lr, betas = float(group["lr"]), tuple(map(float, group["betas"]))
        states = [self._state_of(p, group["amsgrad"]) for p in parameters]
        # One call for all: one for each would take the host as long as some launches.
        torch._foreach_add_([state["step"] for state in states], 1)
        names = _MOMENTS[: 2 + group["amsgrad"]]
        known = {}
        for p, state in zip(parameters, states):
            tensors = _local(p, p.grad, *(state[name] for name in names))
            kind = state["step"].item(), wide_type(p.dtype), tensors[0].device
            if kind not in known:
                known[kind] = adamw.numbers_of(
                    kind[0], lr, betas, group["eps"], group["weight_decay"], *kind[1:]
                )
            adamw.step(tensors, known[kind], group["maximize"])

    def _state_of(self, p, amsgrad):
        state = self.state[p]
        if not state:
            # On the CPU, where each step reads it.
            state["step"] = torch.zeros((), dtype=torch.float32)
            for name in _MOMENTS[: 2 + amsgrad]:
                state[name] = torch.zeros_like(p, dtype=self._moment_dtype(p))
        return state

    def _moment_dtype(self, p):
        return self._state_dtype or wide_type(p.dtype)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads what ``state_dict`` of this class or of ``torch.optim.AdamW`` has
        returned. The means get the type that this optimizer has them in."""
        given = {}
        hook = self.register_load_state_dict_pre_hook(
            lambda _, loaded: given.update(loaded)
        )
        try:
            super().load_state_dict(state_dict)
        finally:
            hook.remove()
        for group in self.param_groups:
            group.update(capturable=False, differentiable=False, fused=None)
        # PyTorch has rounded the means to the types of the parameters.
        numbers = itertools.chain(*(x["params"] for x in given["param_groups"]))
        parameters = itertools.chain(*(x["params"] for x in self.param_groups))
        for number, p in zip(numbers, parameters):
            for name, value in given["state"].get(number, {}).items():
                if name in _MOMENTS:
                    self.state[p][name] = value.to(
                        p.device, self._moment_dtype(p), copy=True
                    )
                elif name == "step":
                    self.state[p][name] = torch.tensor(
                        float(value), dtype=torch.float32
                    )

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_state_dtype": self._state_dtype}


def _local(p, gradient, *moments):
    """The process's own parts of a parameter, its gradient and its state."""
    if not is_distributed(p):
        return p, gradient, *moments
    if gradient.placements != p.placements:
        gradient = gradient.redistribute(p.device_mesh, p.placements)
    return tuple(x.to_local() for x in (p, gradient, *moments))


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """``torch.nn.utils.clip_grad_norm_``: divides the gradients of ``parameters`` by
    their norm over ``max_norm``, where that is above 1.

    The gradients are scaled where they lie. Where the norm is below ``max_norm`` they
    are read once, for the norm, and nothing waits for the device to know that.

    Args:
        parameters: tensors with gradients, of any shapes; those without are left out.
        max_norm: what the norm is to be at most.
        norm_type: a positive number, or ``inf`` for the largest absolute value.
        error_if_nonfinite: whether an infinite norm and one that is no number raise.
        foreach: has no effect.

    Returns:
        The norm of all gradients before, one number of float32, or of float64 where a
        gradient is.

    Raises:
        RuntimeError: where ``error_if_nonfinite`` asks for it.
        TypeError: for DTensors, the norm of which takes all processes, and for sparse
            and complex gradients.
        ValueError: for another ``norm_type``.
    """
    if isinstance(parameters, Tensor):
        parameters = [parameters]
    gradients = [p.grad for p in parameters if p.grad is not None]
    order = float(norm_type)
    if not order > 0:
        raise ValueError(
            f"clip_grad_norm_: 'norm_type' must be positive, but is {order}"
        )
    if any(map(is_distributed, gradients)):
        raise TypeError(
            "clip_grad_norm_: takes no DTensor, whose norm takes all processes; "
            "torch.nn.utils.clip_grad_norm_ does"
        )
    if any(x.is_sparse or x.is_complex() for x in gradients):
        raise TypeError("clip_grad_norm_: takes no sparse and no complex gradients")
    if not gradients:
        return torch.tensor(0.0, dtype=torch.float32)
    with torch.no_grad():
        total = norms.norm(gradients, order)
        if error_if_nonfinite and not math.isfinite(total.item()):
            raise RuntimeError(
                f"clip_grad_norm_: the norm of order {order} of the gradients is "
                f"{total.item()}; error_if_nonfinite=False scales by it anyway"
            )
        norms.scale(gradients, (float(max_norm) / (total + 1e-6)).clamp(max=1.0))
    return total

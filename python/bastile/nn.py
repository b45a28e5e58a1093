# Part of Bastile, under the MIT License. See LICENSE.
"""Modules that take the places of PyTorch's, by name and by ``state_dict``.

Each is a subclass of the module that it replaces, so that constructors, reset,
initialization by type and checkpoints are the same; only ``forward`` runs a
kernel. Shapes, types of elements and errors of a forward are those of the function of
`bastile.functional` of the same name.
"""

import inspect
from collections.abc import Sequence
from typing import Any

import torch
from bastile import functional as F
from torch import Tensor

__all__ = [
    "AddRMSNorm",
    "CrossEntropyLoss",
    "GELU",
    "GeGLU",
    "LayerNorm",
    "LinearCrossEntropy",
    "LogSoftmax",
    "ReGLU",
    "RMSNorm",
    "RotaryEmbedding",
    "SiLU",
    "Softmax",
    "SwiGLU",
]

_CASTINGS = ("gemma", "llama")
_LOSS_OPTIONS = tuple(
    name
    for name, parameter in inspect.signature(F.linear_cross_entropy).parameters.items()
    if parameter.kind == parameter.KEYWORD_ONLY
    and name not in ("linear_bias", "weight")
)


class RMSNorm(torch.nn.RMSNorm):
    """``torch.nn.RMSNorm``, and the norms of Llama (``casting="llama"``) and of
    Gemma (``offset=1.0``, with weights that start at 0)."""

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: torch.dtype | None = None,
        *,
        casting: str = "gemma",
        offset: float = 0.0,
    ) -> None:
        if casting not in _CASTINGS:
            raise ValueError(
                f"{type(self).__name__}: 'casting' must be one of "
                f"{', '.join(_CASTINGS)}, but is {casting!r}"
            )
        self.casting = casting
        self.offset = offset
        super().__init__(normalized_shape, eps, elementwise_affine, device, dtype)

    def reset_parameters(self) -> None:
        if self.elementwise_affine:
            torch.nn.init.constant_(self.weight, 1.0 - self.offset)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(
            x,
            self.normalized_shape,
            self.weight,
            self.eps,
            casting=self.casting,
            offset=self.offset,
        )

    def extra_repr(self) -> str:
        extra = f", casting={self.casting!r}"
        if self.offset:
            extra += f", offset={self.offset}"
        return super().extra_repr() + extra


class AddRMSNorm(RMSNorm):
    """``forward(x, residual)`` returns the norm of the sum, and the sum."""

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        **arguments: Any,
    ) -> None:
        if arguments.get("elementwise_affine", True) is not True:
            raise ValueError("AddRMSNorm: 'elementwise_affine' has to be True")
        super().__init__(normalized_shape, eps, **arguments)
        if len(self.normalized_shape) != 1:
            raise ValueError(
                "AddRMSNorm: 'normalized_shape' has to be one size, but is "
                f"{list(self.normalized_shape)}"
            )

    def forward(self, x: Tensor, residual: Tensor) -> tuple[Tensor, Tensor]:
        return F.add_rms_norm(
            x,
            residual,
            self.weight,
            self.eps,
            casting=self.casting,
            offset=self.offset,
        )


class LayerNorm(torch.nn.LayerNorm):
    """``torch.nn.LayerNorm``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(
            input, self.normalized_shape, self.weight, self.bias, self.eps
        )


class SiLU(torch.nn.SiLU):
    """``torch.nn.SiLU``, but not in place."""

    def __init__(self, inplace: bool = False) -> None:
        if inplace:
            raise ValueError("SiLU: 'inplace' has to be False")
        super().__init__(inplace)

    def forward(self, input: Tensor) -> Tensor:
        return F.silu(input)


class GELU(torch.nn.GELU):
    """``torch.nn.GELU``."""

    def __init__(self, approximate: str = "none") -> None:
        F.gelu_form(approximate)
        super().__init__(approximate)

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, self.approximate)


class Softmax(torch.nn.Softmax):
    """``torch.nn.Softmax`` along the last dimension."""

    def __init__(self, dim: int = -1) -> None:
        F.check_last("Softmax", dim)
        super().__init__(dim)

    def forward(self, input: Tensor) -> Tensor:
        return F.softmax(input, self.dim)


class LogSoftmax(torch.nn.LogSoftmax):
    """``torch.nn.LogSoftmax`` along the last dimension."""

    def __init__(self, dim: int = -1) -> None:
        F.check_last("LogSoftmax", dim)
        super().__init__(dim)

    def forward(self, input: Tensor) -> Tensor:
        return F.log_softmax(input, self.dim)


class CrossEntropyLoss(torch.nn.CrossEntropyLoss):
    """``torch.nn.CrossEntropyLoss`` for indices of classes; with ``z_loss``,
    ``soft_cap`` and ``temperature`` as in `bastile.ops.cross_entropy`, and with
    ``in_place`` for a gradient in the logits' memory."""

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
        *,
        z_loss: float = 0.0,
        soft_cap: float = 0.0,
        temperature: float = 1.0,
        in_place: bool = False,
    ) -> None:
        if size_average is not None or reduce is not None:
            raise ValueError(
                "CrossEntropyLoss: 'size_average' and 'reduce' are obsolete; "
                "use 'reduction'"
            )
        if reduction not in ("none", "mean", "sum"):
            raise ValueError(
                "CrossEntropyLoss: 'reduction' must be one of none, mean, sum, "
                f"but is {reduction!r}"
            )
        super().__init__(
            weight,
            ignore_index=ignore_index,
            reduction=reduction,
            label_smoothing=label_smoothing,
        )
        self.z_loss = z_loss
        self.soft_cap = soft_cap
        self.temperature = temperature
        self.in_place = in_place

    def forward(self, input: Tensor, target: Tensor) -> Any:
        return F.cross_entropy(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
            z_loss=self.z_loss,
            soft_cap=self.soft_cap,
            temperature=self.temperature,
            in_place=self.in_place,
        )

    def extra_repr(self) -> str:
        return (
            f"ignore_index={self.ignore_index}, reduction={self.reduction!r}, "
            f"label_smoothing={self.label_smoothing}, z_loss={self.z_loss}, "
            f"soft_cap={self.soft_cap}, temperature={self.temperature}, "
            f"in_place={self.in_place}"
        )


class LinearCrossEntropy(torch.nn.Linear):
    """``torch.nn.Linear`` to logits, with their loss: ``forward(hidden, targets)``.

    It can take the place of a model's head, whose weight it may share:
    ``loss.weight = model.lm_head.weight``. ``options`` are those of
    `bastile.functional.linear_cross_entropy` that are no tensors, as in
    ``soft_cap=30.0``.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = False,
        device: Any = None,
        dtype: torch.dtype | None = None,
        **options: Any,
    ) -> None:
        for name in options:
            if name not in _LOSS_OPTIONS:
                raise TypeError(
                    f"LinearCrossEntropy: there is no option '{name}'; there are "
                    + ", ".join(_LOSS_OPTIONS)
                )
        super().__init__(in_features, out_features, bias, device, dtype)
        self.options = options

    def forward(self, hidden: Tensor, targets: Tensor, **options: Any) -> Any:
        """The loss of hidden states [..., in_features]; ``options`` are of this call
        alone, as in ``num_items=count`` or ``weight=class_weights``."""
        return F.linear_cross_entropy(
            hidden,
            self.weight,
            targets,
            linear_bias=self.bias,
            **{**self.options, **options},
        )

    def extra_repr(self) -> str:
        words = [f"{name}={value!r}" for name, value in self.options.items()]
        return ", ".join([super().extra_repr(), *words])


class SwiGLU(torch.nn.Module):
    """``forward(gate, up)`` is ``silu(gate_scale * gate) * up * output_scale``."""

    def __init__(self, gate_scale: float = 1.0, output_scale: float = 1.0) -> None:
        super().__init__()
        self.gate_scale = gate_scale
        self.output_scale = output_scale

    def forward(self, gate: Tensor, up: Tensor) -> Tensor:
        return F.swiglu(
            gate, up, gate_scale=self.gate_scale, output_scale=self.output_scale
        )

    def extra_repr(self) -> str:
        return f"gate_scale={self.gate_scale}, output_scale={self.output_scale}"


class GeGLU(torch.nn.Module):
    """``forward(gate, up)`` is ``gelu(gate, approximate) * up``."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        F.gelu_form(approximate)
        self.approximate = approximate

    def forward(self, gate: Tensor, up: Tensor) -> Tensor:
        return F.geglu(gate, up, self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class ReGLU(torch.nn.Module):
    """``forward(gate, up)`` is ``relu(gate) * up``."""

    def forward(self, gate: Tensor, up: Tensor) -> Tensor:
        return F.reglu(gate, up)


class RotaryEmbedding(torch.nn.Module):
    """Turns queries and keys of shape [batch, heads, positions, ``dim``] by the
    angles ``position / base ** (2 i / dim)``.

    ``forward(q, k, positions=None)``: the positions are 0, 1, ... unless a tensor
    of them is given, of shape [positions] or [batch, positions].
    """

    cos: Tensor
    sin: Tensor

    def __init__(
        self,
        dim: int,
        max_positions: int,
        base: float = 10000.0,
        *,
        interleaved: bool = False,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        if dim % 2:
            raise ValueError(f"RotaryEmbedding: 'dim' must be even, but is {dim}")
        super().__init__()
        self.dim = dim
        self.max_positions = max_positions
        self.base = base
        self.interleaved = interleaved
        exponents = torch.arange(0, dim, 2, dtype=torch.float64) / dim
        places = torch.arange(max_positions, dtype=torch.float64)
        angles = torch.outer(places, base**-exponents)
        # They follow from the arguments and are no part of a checkpoint.
        dtype = dtype or torch.get_default_dtype()
        for name, table in (("cos", angles.cos()), ("sin", angles.sin())):
            table = table.to(device=device, dtype=dtype)
            self.register_buffer(name, table, persistent=False)

    def forward(
        self, q: Tensor, k: Tensor, positions: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        if positions is None:
            count = q.shape[-2]
            if count > self.max_positions:
                raise ValueError(
                    f"RotaryEmbedding: 'q' of shape {list(q.shape)} has {count} "
                    f"positions, but 'max_positions' is {self.max_positions}"
                )
            cos, sin = self.cos[None, :count], self.sin[None, :count]
        else:
            cos, sin = self.cos[positions], self.sin[positions]
            if positions.dim() == 1:
                cos, sin = cos[None], sin[None]
        return F.rope(q, k, cos, sin, interleaved=self.interleaved)

    def extra_repr(self) -> str:
        return (
            f"{self.dim}, max_positions={self.max_positions}, base={self.base}, "
            f"interleaved={self.interleaved}"
        )

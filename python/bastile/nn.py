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
    "Dropout",
    "GELU",
    "GeGLU",
    "LayerNorm",
    "Linear",
    "LinearCrossEntropy",
    "LogSoftmax",
    "ReGLU",
    "RMSNorm",
    "RotaryEmbedding",
    "SiLU",
    "Softmax",
    "SwiGLU",
]

_CASTINGS = ("gemma", "llama", "none")


def _options_of(function, *others):
    """The names of its keyword arguments but ``others``."""
    parameters = inspect.signature(function).parameters.values()
    return tuple(
        each.name
        for each in parameters
        if each.kind == each.KEYWORD_ONLY and each.name not in others
    )


_LOSS_OPTIONS = _options_of(F.linear_cross_entropy, "linear_bias", "weight")
#: Those that PyTorch's module has as well are no options.
_TOKEN_LOSS_OPTIONS = _options_of(
    F.cross_entropy, "ignore_index", "reduction", "label_smoothing"
)


class RMSNorm(torch.nn.RMSNorm):
    """``torch.nn.RMSNorm``, and the norms of Llama (``casting="llama"``), of Gemma
    (``offset=1.0``, with weights that start at 0) and of heads.

    With ``bias``, there is a parameter of this name, which starts at 0. With ``heads``,
    weight and bias are [heads, *normalized_shape], and inputs [..., heads,
    *normalized_shape]: each head is normalized alone.
    """

    weight: Any

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
        bias: bool = False,
        heads: int | None = None,
    ) -> None:
        name = type(self).__name__
        if casting not in _CASTINGS:
            raise ValueError(
                f"{name}: 'casting' must be one of {', '.join(_CASTINGS)}, "
                f"but is {casting!r}"
            )
        if heads is not None and heads < 1:
            raise ValueError(f"{name}: 'heads' must be positive, but is {heads}")
        if not elementwise_affine and (bias or heads is not None):
            raise ValueError(
                f"{name}: without 'elementwise_affine' there is no 'bias', and no "
                "weight for each of 'heads'"
            )
        self.casting = casting
        self.offset = offset
        super().__init__(normalized_shape, eps, elementwise_affine, device, dtype)
        self.heads = heads
        shape = (
            self.normalized_shape if heads is None else (heads, *self.normalized_shape)
        )
        if heads is not None:
            self.weight = _parameter(shape, device, dtype)
        self.register_parameter(
            "bias", _parameter(shape, device, dtype) if bias else None
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.elementwise_affine:
            torch.nn.init.constant_(self.weight, 1.0 - self.offset)
        # PyTorch's constructor comes here before there is one.
        if self._parameters.get("bias") is not None:
            torch.nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(
            x, self.normalized_shape, self.weight, self.eps, **self._how()
        )

    def _how(self):
        """The arguments of both norms of `bastile.functional`."""
        return {"bias": self.bias, "casting": self.casting, "offset": self.offset}

    def extra_repr(self) -> str:
        extra = f", casting={self.casting!r}"
        if self.offset:
            extra += f", offset={self.offset}"
        if self.bias is not None:
            extra += ", bias=True"
        if self.heads is not None:
            extra += f", heads={self.heads}"
        return super().extra_repr() + extra


def _parameter(shape, device, dtype):
    return torch.nn.Parameter(torch.empty(shape, device=device, dtype=dtype))


class AddRMSNorm(RMSNorm):
    """``forward(x, residual)`` returns the norm of the sum, and the sum.

    The sum has the type of the residual or, if it is given, ``residual_dtype``, to
    which the residual is converted first.
    """

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        *,
        residual_dtype: torch.dtype | None = None,
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
        self.residual_dtype = residual_dtype

    def forward(self, x: Tensor, residual: Tensor) -> tuple[Tensor, Tensor]:
        return F.add_rms_norm(
            *(x, residual, self.weight, self.eps),
            residual_dtype=self.residual_dtype,
            **self._how(),
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


class Dropout(torch.nn.Dropout):
    """``torch.nn.Dropout``, but not in place."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        F.check_dropout("Dropout", p, inplace)
        super().__init__(p, inplace)

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training)


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
    """``torch.nn.CrossEntropyLoss`` for indices of classes; ``options`` are those of
    `bastile.functional.cross_entropy`, as in ``z_loss=1e-4`` or ``return_lse=True``."""

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
        **options: Any,
    ) -> None:
        _check_options("CrossEntropyLoss", options, _TOKEN_LOSS_OPTIONS)
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
        self.options = options

    def forward(self, input: Tensor, target: Tensor) -> Any:
        return F.cross_entropy(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
            **self.options,
        )

    def extra_repr(self) -> str:
        words = [
            f"ignore_index={self.ignore_index}",
            f"reduction={self.reduction!r}",
            f"label_smoothing={self.label_smoothing}",
        ]
        return ", ".join([*words, *_words(self.options)])


def _check_options(name, options, known):
    for option in options:
        if option not in known:
            raise TypeError(
                f"{name}: there is no option '{option}'; there are {', '.join(known)}"
            )


def _words(options):
    return [f"{name}={value!r}" for name, value in options.items()]


class Linear(torch.nn.Linear):
    """``torch.nn.Linear``."""

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight, self.bias)


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
        _check_options("LinearCrossEntropy", options, _LOSS_OPTIONS)
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
        return ", ".join([super().extra_repr(), *_words(self.options)])


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
    of them is given, of shape [positions] or [batch, positions]. ``k`` may be None, and
    the result is ``q`` alone then. Of longer heads the first ``dim`` elements turn. With
    ``in_place``, the results take the memory of ``q`` and ``k``.
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
        in_place: bool = False,
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
        self.in_place = in_place
        exponents = torch.arange(0, dim, 2, dtype=torch.float64) / dim
        places = torch.arange(max_positions, dtype=torch.float64)
        angles = torch.outer(places, base**-exponents)
        # They follow from the arguments and are no part of a checkpoint.
        dtype = dtype or torch.get_default_dtype()
        for name, table in (("cos", angles.cos()), ("sin", angles.sin())):
            table = table.to(device=device, dtype=dtype)
            self.register_buffer(name, table, persistent=False)

    def forward(
        self, q: Tensor, k: Tensor | None, positions: Tensor | None = None
    ) -> Any:
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
        return F.rope(
            *(q, k, cos, sin),
            interleaved=self.interleaved,
            rotary=self.dim,
            in_place=self.in_place,
        )

    def extra_repr(self) -> str:
        return (
            f"{self.dim}, max_positions={self.max_positions}, base={self.base}, "
            f"interleaved={self.interleaved}, in_place={self.in_place}"
        )

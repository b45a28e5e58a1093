# Part of Bastile, under the MIT License. See LICENSE.
"""``quack.rmsnorm``, which has layer norms as well."""

import functools

import bastile
import torch
from bastile import functional
from bastile.functions import row_mean, rsqrt, sum_of_rows
from torch import Tensor


def rmsnorm(
    x: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    residual: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
    residual_dtype: torch.dtype | None = None,
    eps: float = 1e-6,
    prenorm: bool = False,
    weight_offset: float = 0.0,
) -> Tensor | tuple[Tensor, Tensor]:
    if out_dtype not in (None, x.dtype):
        raise NotImplementedError("functional.rms_norm has the type of its input")
    if residual is None:
        norm = functional.rms_norm(
            x, x.shape[-1:], weight, eps, bias=bias, offset=weight_offset
        )
        total = x
    else:
        norm, total = functional.add_rms_norm(
            x,
            residual,
            weight,
            eps,
            bias=bias,
            offset=weight_offset,
            residual_dtype=residual_dtype,
        )
    return (norm, total) if prenorm else norm


def rmsnorm_fwd(
    x: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    residual: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
    residual_dtype: torch.dtype | None = None,
    eps: float = 1e-6,
    store_rstd: bool = False,
    weight_offset: float = 0.0,
) -> tuple[Tensor, Tensor, Tensor | None]:
    norm, total = rmsnorm(
        *(x, weight, bias, residual, out_dtype, residual_dtype),
        *(eps, True, weight_offset),
    )
    rstd = _rstd(eps)(total).squeeze(-1) if store_rstd else None
    return norm, total, rstd


@functools.cache
def _rstd(eps):
    return bastile.compile(lambda x: rsqrt(row_mean(x * x) + eps).to("f32"), grad=False)


def rmsnorm_bwd(
    x: Tensor,
    weight: Tensor | None,
    dout: Tensor,
    rstd: Tensor,
    dresidual_out: Tensor | None = None,
    has_bias: bool = False,
    has_residual: bool = False,
    weight_offset: float = 0.0,
) -> tuple[Tensor, Tensor | None, Tensor | None, Tensor | None]:
    if weight is None or dresidual_out is not None or has_residual:
        raise NotImplementedError("the gradients of functional.add_rms_norm alone")
    with torch.no_grad():
        gradients = _rmsnorm_bwd(weight_offset, x.dtype, weight.dtype)(
            x, weight, dout, rstd.unsqueeze(-1)
        )
    dx, dw, db = gradients
    return dx, dw, db if has_bias else None, None


@functools.cache
def _rmsnorm_bwd(offset, dtype, weight_dtype):
    def gradients(x, weight, dout, rstd):
        normed = x * rstd
        upstream = dout * (weight + offset)
        dx = (upstream - normed * row_mean(normed * upstream)) * rstd
        dw, db = sum_of_rows(dout * normed), sum_of_rows(dout)
        return dx.to(_name(dtype)), dw.to(_name(weight_dtype)), db.to("f32")

    return bastile.compile(gradients, grad=False)


def layernorm_fwd(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    eps: float = 1e-6,
    return_rstd: bool = False,
    return_mean: bool = False,
) -> Tensor | tuple[Tensor, ...]:
    if bias is not None:
        raise NotImplementedError("a layer norm with a bias and its statistics")
    out, rstd, mean = _layernorm_fwd(eps, x.dtype)(x, weight)
    wanted = [out]
    if return_rstd:
        wanted.append(rstd.squeeze(-1))
    if return_mean:
        wanted.append(mean.squeeze(-1))
    return out if len(wanted) == 1 else tuple(wanted)


@functools.cache
def _layernorm_fwd(eps, dtype):
    def norm(x, weight):
        mean = row_mean(x)
        rstd = rsqrt(row_mean((x - mean) * (x - mean)) + eps)
        out = (x - mean) * rstd * weight
        return out.to(_name(dtype)), rstd.to("f32"), mean.to("f32")

    return bastile.compile(norm, grad=False)


def layernorm_bwd(
    x: Tensor,
    weight: Tensor,
    dout: Tensor,
    rstd: Tensor,
    mean: Tensor,
    has_bias: bool = True,
) -> tuple[Tensor, Tensor, Tensor | None]:
    dx, dw, db = _layernorm_bwd(x.dtype, weight.dtype)(
        x, weight, dout, rstd.unsqueeze(-1), mean.unsqueeze(-1)
    )
    return dx, dw, db if has_bias else None


@functools.cache
def _layernorm_bwd(dtype, weight_dtype):
    def gradients(x, weight, dout, rstd, mean):
        normed = (x - mean) * rstd
        upstream = dout * weight
        slope = row_mean(normed * upstream)
        dx = (upstream - row_mean(upstream) - normed * slope) * rstd
        dw, db = sum_of_rows(dout * normed), sum_of_rows(dout)
        return tuple(
            value.to(_name(each))
            for value, each in zip((dx, dw, db), (dtype, weight_dtype, weight_dtype))
        )

    return bastile.compile(gradients, grad=False)


def _name(dtype):
    """A type of PyTorch as formulas call it."""
    return {torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16"}[dtype]


FUNCTIONS = rmsnorm, rmsnorm_fwd, rmsnorm_bwd, layernorm_fwd, layernorm_bwd

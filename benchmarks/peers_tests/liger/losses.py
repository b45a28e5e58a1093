# Part of Bastile, under the MIT License. See LICENSE.
"""Liger's losses."""

import contextlib
import functools

import bastile
import torch
from bastile import functional, ops
from bastile.functions import (
    abs,
    exp,
    log,
    maximum,
    row_sum,
    stop_gradient,
    sum_of_rows,
    where,
)
from torch import Tensor

_NAMES = {
    "correct": "return_correct",
    "predicted": "return_predicted",
    "z_loss": "return_z_loss",
}


def cross_entropy(
    x: Tensor,
    target: Tensor,
    weight: Tensor | None,
    ignore_index: int = -100,
    lse_square_scale: float = 0.0,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
    softcap: float | None = None,
    return_z_loss: bool = False,
    return_token_accuracy: bool = False,
    return_predicted_tokens: bool = False,
) -> tuple[Tensor | None, ...]:
    wanted = _wanted(return_token_accuracy, return_predicted_tokens, return_z_loss)
    with _error_of_liger():
        results = functional.cross_entropy(
            x,
            target,
            weight,
            ignore_index=ignore_index,
            reduction=reduction,
            label_smoothing=label_smoothing,
            z_loss=lse_square_scale,
            soft_cap=softcap or 0.0,
            check_targets=True,
            **{_NAMES[name]: True for name in wanted},
        )
    return _four(results, wanted, target, ignore_index, reduction, x.dtype)


@contextlib.contextmanager
def _error_of_liger():
    """Liger asserts that targets are classes."""
    try:
        yield
    except ValueError as error:
        if "'target' has" not in str(error):
            raise
        raise AssertionError(f"out of bounds: {error}") from error


def fused_linear_cross_entropy(
    x: Tensor,
    weight: Tensor,
    target: Tensor,
    bias: Tensor | None = None,
    ce_weight: Tensor | None = None,
    ignore_index: int = -100,
    lse_square_scale: float = 0.0,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
    softcap: float | None = None,
    return_z_loss: bool = False,
    accum_dtype: torch.dtype | None = None,
    use_token_scaling: bool = False,
    return_token_accuracy: bool = False,
    return_predicted_tokens: bool = False,
) -> tuple[Tensor | None, ...]:
    """Gradients are added up in float32 whatever ``accum_dtype`` says."""
    wanted = _wanted(return_token_accuracy, return_predicted_tokens, return_z_loss)
    results = functional.linear_cross_entropy(
        x,
        weight,
        target,
        linear_bias=bias,
        weight=ce_weight,
        ignore_index=ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
        z_loss=lse_square_scale,
        soft_cap=softcap or 0.0,
        token_scaling=use_token_scaling,
        check_targets=True,
        **{_NAMES[name]: True for name in wanted},
    )
    return _four(results, wanted, target, ignore_index, reduction, None)


def _wanted(correct, predicted, z_loss):
    flags = {"correct": correct, "predicted": predicted, "z_loss": z_loss}
    return [name for name in flags if flags[name]]


def _four(results, wanted, target, ignore_index, reduction, dtype):
    """Liger's four results, the losses of the type that it gives them."""
    results = results if wanted else (results,)
    found = dict(zip(("loss", *wanted), results))
    if dtype is not None:
        for name in found.keys() & {"loss", "z_loss"}:
            found[name] = found[name].to(dtype)
    if "correct" in found:
        counts = target != ignore_index
        accuracy = (found["correct"] & counts).float()
        found["correct"] = (
            accuracy if reduction == "none" else accuracy.sum() / counts.sum()
        )
    return tuple(found.get(x) for x in ("loss", "z_loss", "correct", "predicted"))


def fused_linear_jsd(
    student_input: Tensor,
    student_weight: Tensor,
    teacher_input: Tensor,
    teacher_weight: Tensor,
    shift_labels: Tensor | None = None,
    jsd_beta: float = 0.5,
    ignore_index: int = -100,
    temperature: float = 1.0,
    accum_dtype: torch.dtype | None = None,
) -> Tensor:
    return ops.linear_jsd(
        *(student_input, student_weight, teacher_input, teacher_weight, shift_labels),
        beta=jsd_beta,
        ignore_index=ignore_index,
        temperature=temperature,
    )


def jsd(
    x: Tensor,
    target: Tensor,
    shift_labels: Tensor | None = None,
    beta: float = 0.5,
    ignore_index: int = -100,
) -> Tensor:
    shares, _ = _shares(x, shift_labels, ignore_index, "batchmean")
    return _jsd(beta)(x, target, shares).reshape(()).to(x.dtype)


@functools.cache
def _jsd(beta):
    def divergence(x, y, shares):
        y = stop_gradient(y)
        q, p = exp(x), exp(y)
        if beta == 0:
            terms = p * (y - x)
        elif beta == 1:
            terms = q * (x - y)
        else:
            mixture = beta * p + (1 - beta) * q
            terms = beta * p * y + (1 - beta) * q * x - mixture * log(mixture)
        return _total(terms, shares)

    return bastile.compile(divergence, grad="x")


def kl_div(
    x: Tensor,
    target: Tensor,
    reduction: str = "batchmean",
    log_target: bool = False,
    eps: float = 1e-10,
) -> Tensor:
    shares, is_each = _shares(x, None, None, reduction)
    result = _kl_div(log_target, eps, is_each)(x, target, shares)
    return result if is_each else result.reshape(())


@functools.cache
def _kl_div(log_target, eps, is_each):
    def divergence(x, y, shares):
        if log_target:
            terms = exp(y) * (y - x)
        else:
            terms = y * (log(maximum(y, eps)) - x)
        return terms.to("f32") if is_each else _total(terms, shares)

    return bastile.compile(divergence, grad="x")


def tvd(
    p: Tensor,
    q: Tensor,
    shift_labels: Tensor | None = None,
    reduction: str = "batchmean",
    ignore_index: int = -100,
) -> Tensor:
    shares, is_each = _shares(p, shift_labels, ignore_index, reduction)
    result = _tvd(is_each)(p, q, shares)
    return result if is_each else result.reshape(())


@functools.cache
def _tvd(is_each):
    def distance(p, q, shares):
        terms = 0.5 * abs(p - q)
        return (terms * shares).to("f32") if is_each else _total(terms, shares)

    return bastile.compile(distance, grad="p")


def _shares(x, labels, ignore_index, reduction):
    """What each row's terms are multiplied by, [T, 1], and whether the terms are
    wanted and not their sum."""
    if labels is None:
        counts = torch.ones(x.shape[:1], device=x.device)
    else:
        counts = (labels != ignore_index).float()
    if reduction in ("batchmean", "mean"):
        counts = counts / counts.sum().clamp(1)
    if reduction == "mean":
        counts = counts / x.shape[-1]
    return counts.unsqueeze(-1), reduction == "none"


def _total(terms, shares):
    rows = where(shares != 0, row_sum(terms) * shares, 0.0)
    return sum_of_rows(rows).to("f32")


FUNCTIONS = {
    "LigerCrossEntropyFunction": cross_entropy,
    "LigerFusedLinearCrossEntropyFunction": fused_linear_cross_entropy,
    "LigerFusedLinearJSDFunction": fused_linear_jsd,
    "LigerJSDFunction": jsd,
    "LigerKLDivLossFunction": kl_div,
    "LigerTVDLossFunction": tvd,
}

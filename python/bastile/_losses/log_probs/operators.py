# Part of Bastile, under the MIT License. See LICENSE.
"""The operators that are registered with PyTorch, and calls of them as nodes of its
autograd graph."""

import torch
from bastile._losses import checks, totals
from bastile._losses.log_probs import distribution, run
from bastile._losses.log_probs.options import CALL, DIFFERENTIABLE, Options
from bastile._losses.products import wide_type
from bastile._torch import autograd

_SCHEMA = (
    "(Tensor hidden, Tensor weight, Tensor targets, Tensor? bias, {}str words, "
    "SymInt[] counts, float[] numbers{}) -> Tensor[]"
)
#: What a backward is told of the tokens: the largest z and the logarithm of the sum of
#: exp(z - top), the entropy, and the upstream gradient of each differentiable result.
_OF_TOKENS = (
    "Tensor top, Tensor log_sum, Tensor? entropy, Tensor? grad_log_prob, "
    "Tensor? grad_entropy, Tensor? grad_lse, "
)


def _forward(hidden, weight, targets, bias, *given):
    """The results that are wanted and, for the backward, two statistics: ``top`` and
    ``log_sum``."""
    options = Options.read(*given)
    operands = run.Operands(hidden, weight, targets, bias)
    statistics = run.measure(operands, options)
    results = distribution.results(statistics, targets, options)
    return [*results, statistics[0].clone(), statistics[1].clone()]


def _fake_forward(hidden, weight, targets, bias, words, *_):
    wide = wide_type(hidden.dtype)
    results = distribution.empty_results(hidden, Options.read(words))
    numbers = (hidden.new_empty(hidden.shape[0], dtype=wide) for _ in range(2))
    return [*results, *numbers]


def _backward(hidden, weight, targets, bias, top, log_sum, entropy, *rest):
    *upstream, words, counts, numbers, wanted = rest
    options = Options.read(words, counts, numbers)
    operands = run.Operands(hidden, weight, targets, bias)
    upstream = dict(zip(DIFFERENTIABLE, upstream))
    factors = distribution.factors(upstream, entropy, targets, options)
    found = run.differentiate(operands, options, top, log_sum, factors, wanted)
    return [x.to(hidden.dtype) for x in found]


def _fake_backward(hidden, weight, *rest):
    return totals.imitate_gradients(hidden, weight, rest[-1], hidden.dtype)


totals.register(CALL, _SCHEMA.format("", ""), _forward, _fake_forward)
totals.register(
    f"{CALL}_backward",
    _SCHEMA.format(_OF_TOKENS, ", bool[] wanted"),
    _backward,
    _fake_backward,
)


class _Node(torch.autograd.Function):
    """A call. Upstream gradients are of each token, so that the backward computes the
    logits again."""

    @staticmethod
    def forward(ctx, call, hidden, weight, bias, targets):
        given, wanted_results, _ = call
        *results, top, log_sum = torch.ops.bastile.linear_log_probs.default(
            hidden, weight, targets, bias, *given
        )
        if not torch.compiler.is_compiling():
            ctx.set_materialize_grads(False)
        ctx.call = call
        entropy = None
        if "entropy" in wanted_results:
            entropy = results[wanted_results.index("entropy")]
        ctx.save_for_backward(hidden, weight, bias, targets, top, log_sum, entropy)
        ctx.mark_non_differentiable(
            *(
                x
                for name, x in zip(wanted_results, results)
                if name not in DIFFERENTIABLE
            )
        )
        return tuple(results)

    @staticmethod
    def backward(ctx, *upstream):
        given, wanted_results, wanted = ctx.call
        # Checkpoints want these to be read once.
        saved = ctx.saved_tensors
        hidden, weight, bias, targets, *of_tokens = saved
        by_name = dict(zip(wanted_results, upstream))
        upstream = [by_name.get(name) for name in DIFFERENTIABLE]
        if all(x is None for x in upstream):
            return None, None, None, None, None
        checks.check_still_whole(CALL, weight)
        found = torch.ops.bastile.linear_log_probs_backward.default(
            *(hidden, weight, targets, bias, *of_tokens, *upstream, *given, wanted)
        )
        found = iter(found)
        spread = [next(found) if want else None for want in wanted]
        sources = (*saved, *upstream)
        return None, *autograd.refuse_twice(CALL, spread, sources), None


def call(operands, options, given):
    """The results that are wanted, for `run.Operands`; traceable."""
    hidden, weight, targets, bias = operands
    is_recorded = torch.is_grad_enabled()
    wanted = [
        is_recorded and x is not None and x.requires_grad
        for x in (hidden, weight, bias)
    ]
    call = given, options.wanted, wanted
    return _Node.apply(call, hidden, weight, bias, targets)

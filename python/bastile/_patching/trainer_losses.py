# Part of Bastile, under the MIT License. See LICENSE.
"""What TRL's functions of hidden states compute, by Bastile's.

Each function of TRL is compared with the formula of its replacement on a few numbers,
with gradients, before anything is replaced. Nothing is compiled for it.
"""

import functools
import importlib
import inspect

import torch
from bastile import ops
from bastile._patching import probes

#: By TRL's name of what it asks for beside log-probabilities, in the order in which it
#: is returned, the result of `bastile.ops.linear_log_probs`.
_RESULTS = {
    "entropy": "entropy",
    "log_sum_sq_probs": "log_sum_square_probs",
    "mean_logits": "mean",
    "is_top1": "correct",
}
_OUTPUTS = tuple(_RESULTS)


def replace(hook):
    """The class of ``hook`` and the function that takes the place of its `apply`.

    Raises ``probes.Mismatch`` where this version of TRL computes something else.
    """
    module = probes.run("module", importlib.import_module, hook.module)
    cls = getattr(module, hook.cls, None)
    if cls is None:
        raise probes.Mismatch("there is no such name")
    function, is_left, probe = _KINDS[hook.op]
    original = cls.apply
    with (
        torch.inference_mode(False),
        torch.enable_grad(),
        probes.apart(),
    ):
        probe(original, cls)
    return cls, _replacement(original, function, is_left)


def _replacement(original, function, is_left):
    """What calls Bastile's function in the place of the original, where it can."""

    @functools.wraps(function)
    def apply(*operands):
        chosen = original if is_left(operands) else function
        return chosen(*operands)

    return apply


def _is_left(operands):
    """Whether TRL's own function is called: on devices that Bastile has no kernels for,
    and for a weight that DeepSpeed's ZeRO-3 partitions again behind the forward, which
    TRL's backward gathers once more."""
    tensors = [x for x in operands if isinstance(x, torch.Tensor)]
    return any(x.device.type not in ("cpu", "cuda") for x in tensors) or any(
        hasattr(x, "ds_id") for x in tensors
    )


def log_probs(
    hidden,
    weight,
    bias,
    targets,
    temperature,
    chunk_size,
    final_logit_softcapping=None,
    logit_scale=1.0,
    outputs=_OUTPUTS,
):
    """In the place of `ChunkedLogProbFunction.apply`."""
    weight, bias = _in_type_of(hidden, weight, bias)
    names = [own for name, own in _RESULTS.items() if name in outputs]
    results = ops.linear_log_probs(
        hidden,
        weight,
        targets,
        bias,
        scale=logit_scale,
        soft_cap=final_logit_softcapping or 0.0,
        temperature=temperature,
        returns=("log_prob", *names),
    )
    made = dict(zip(names, results[1:]))
    return results[0], *(made.get(own) for own in _RESULTS.values())


def divergence(
    student_hidden,
    student_weight,
    student_bias,
    teacher_hidden,
    teacher_weight,
    teacher_bias,
    beta,
    temperature=1.0,
    student_logit_scale=1.0,
    student_final_logit_softcapping=None,
    teacher_logit_scale=1.0,
    teacher_final_logit_softcapping=None,
):
    """In the place of `ChunkedDivergenceFunction.apply`."""
    student_weight, student_bias = _in_type_of(
        student_hidden, student_weight, student_bias
    )
    teacher_weight, teacher_bias = _in_type_of(
        teacher_hidden, teacher_weight, teacher_bias
    )
    return ops.linear_jsd(
        student_hidden,
        student_weight,
        teacher_hidden,
        teacher_weight,
        bias=student_bias,
        teacher_bias=teacher_bias,
        beta=beta,
        reduction="none",
        scale=student_logit_scale,
        soft_cap=student_final_logit_softcapping or 0.0,
        teacher_scale=teacher_logit_scale,
        teacher_soft_cap=teacher_final_logit_softcapping or 0.0,
        temperature=temperature,
        returns=("loss", "entropy"),
    )


def _is_divergence_left(operands):
    """As `_is_left`, and where numbers of 16 bits are multiplied: TRL has float32 logits
    then, and Bastile's would be rounded. A divergence is the small difference of two
    large sums, and shows it."""
    hidden, teacher = operands[0], operands[3]
    if _is_left(operands) or hidden.dtype != teacher.dtype:
        return True
    is_cast = torch.is_autocast_enabled(hidden.device.type)
    return is_cast or hidden.dtype.itemsize < 4


def _in_type_of(hidden, *tensors):
    """The tensors in the type in which TRL multiplies: autocast's, for which Bastile's
    function sees itself, or else that of the hidden states."""
    if torch.is_autocast_enabled(hidden.device.type):
        return tensors
    return tuple(x if x is None else x.to(hidden.dtype) for x in tensors)


#: Of a probe: tokens, length of a hidden state, classes.
_TOKENS, _SIZE, _CLASSES = 6, 8, 12


def _probe_log_probs(original, cls):
    _check_parameters(
        cls,
        "hidden weight bias targets temperature chunk_size final_logit_softcapping "
        "logit_scale outputs",
    )
    hidden, weight, bias = _operands(seed=1)
    # Two classes are equal: of these the first is the most likely.
    with torch.no_grad():
        weight[9], bias[9] = weight[2], bias[2]
        hidden[2] = hidden[3] = weight[2]
    targets = torch.tensor([0, 11, 2, 9, 4, 5])
    for cap, scale, with_bias in ((None, 1.0, None), (2.0, 0.5, bias)):
        operands = [x for x in (hidden, weight, with_bias) if x is not None]
        found = probes.run(
            "function of hidden states, weight, bias and targets",
            original,
            *(hidden, weight, with_bias, targets, 1.5, 5, cap, scale, _OUTPUTS),
        )
        logits = _logits(hidden, weight, with_bias, scale, cap, 1.5)
        rows = logits.log_softmax(-1)
        expected = (
            rows.gather(-1, targets[:, None]).squeeze(-1),
            -(rows.exp() * rows).sum(-1),
            (2 * rows).logsumexp(-1),
            logits.mean(-1),
            (logits.argmax(-1) == targets).float(),
        )
        if len(found) != len(expected):
            raise probes.Mismatch(f"it returns {len(found)} results")
        for name, a, b in zip(("log_probs", *_OUTPUTS), found, expected):
            if probes.difference(a, b) > 1e-5:
                raise probes.Mismatch(f"its '{name}' are other numbers")
        factors = probes.numbers(2, _TOKENS, seed=2)
        _check_gradients(found[:2], expected[:2], factors, operands)


def _check_parameters(cls, names):
    expected = names.split()
    found = list(inspect.signature(cls.forward).parameters)[1:]
    if found != expected:
        raise probes.Mismatch(f"its parameters are {', '.join(found)}")


def _operands(seed):
    return (
        probes.numbers(_TOKENS, _SIZE, seed=seed).requires_grad_(),
        probes.numbers(_CLASSES, _SIZE, seed=seed + 10).requires_grad_(),
        probes.numbers(_CLASSES, seed=seed + 20).requires_grad_(),
    )


def _logits(hidden, weight, bias, scale, cap, temperature):
    logits = scale * torch.nn.functional.linear(hidden, weight, bias)
    if cap is not None:
        logits = cap * torch.tanh(logits / cap)
    return logits / temperature


def _check_gradients(found, expected, factors, operands):
    pairs = zip(*(_gradients(made, factors, operands) for made in (found, expected)))
    if any(a is None or probes.difference(a, b) > 1e-5 for a, b in pairs):
        raise probes.Mismatch("its gradients are other numbers")


def _gradients(results, factors, operands):
    value = sum((a * b).sum() for a, b in zip(results, factors))
    return torch.autograd.grad(value, operands, allow_unused=True)


def _probe_divergence(original, cls):
    _check_parameters(
        cls,
        "student_hidden student_weight student_bias teacher_hidden teacher_weight "
        "teacher_bias beta temperature student_logit_scale "
        "student_final_logit_softcapping teacher_logit_scale "
        "teacher_final_logit_softcapping",
    )
    student = _operands(seed=1)
    teacher = [x.detach() for x in _operands(seed=2)]
    for beta, cap in ((0.0, None), (0.3, 2.0), (1.0, 3.0)):
        found = probes.run(
            "function of two models' hidden states, weights and biases",
            original,
            *(*student, *teacher, beta, 1.5, 0.5, cap, 0.7, cap),
        )
        log_p, log_q = (
            _logits(*operands, scale, cap, 1.5).log_softmax(-1)
            for operands, scale in ((student, 0.5), (teacher, 0.7))
        )
        value = _divergence(log_p, log_q, beta)
        entropy = -(log_p.exp() * log_p).sum(-1)
        for name, a, b in (
            ("divergence", found[0], value),
            ("entropy", found[1], entropy),
        ):
            if probes.difference(a, b) > 1e-5:
                raise probes.Mismatch(
                    f"its {name} for a beta of {beta} are other numbers"
                )
        factors = probes.numbers(1, _TOKENS, seed=3)
        _check_gradients(found[:1], (value,), factors, student)


def _divergence(log_p, log_q, beta):
    p, q = log_p.exp(), log_q.exp()
    if beta == 0:
        return (q * (log_q - log_p)).sum(-1)
    if beta == 1:
        return (p * (log_p - log_q)).sum(-1)
    log_m = ((1 - beta) * p + beta * q).log()
    terms = beta * q * (log_q - log_m) + (1 - beta) * p * (log_p - log_m)
    return terms.sum(-1)


#: By op, the function that takes the place of the original, when it does not, and what
#: checks that it may.
_KINDS = {
    "linear_log_probs": (log_probs, _is_left, _probe_log_probs),
    "linear_jsd": (divergence, _is_divergence_left, _probe_divergence),
}

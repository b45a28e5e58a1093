# Part of Bastile, under the MIT License. See LICENSE.
"""What is said of tokens, from statistics of their logits: a few numbers for each token,
which PyTorch computes on their device.

Statistics are one tensor [n, T], whose rows `kernels.names_of` names.
"""

import torch
from bastile._losses.log_probs import kernels
from bastile._losses.log_probs.options import RESULTS
from bastile._losses.products import wide_type


def measure(logits, targets, first, options):
    """The statistics of logits [T, v] of the classes from ``first`` on."""
    columns = (targets - first if first else targets)[:, None]
    made = kernels.statistics(logits, columns, options)
    # Those that name classes or count them are of all classes, not of these.
    for name in ("mean", "mean_square"):
        if name in made:
            made[name] = made[name] * (logits.shape[1] / options.classes)
    if first and "argmax" in made:
        made["argmax"] = made["argmax"] + first
    return torch.stack(list(made.values()))


def combine(parts, options):
    """The statistics of all classes from those of parts of them [parts, n, T].

    Each part has a softmax of its own, whose tokens have the share ``p`` of all: what is
    said of all classes is the mean of what is said of the parts, and of the shares.
    """
    if len(parts) == 1:
        return parts[0]
    own = dict(zip(kernels.names_of(options), parts.unbind(1)))
    top = own["top"].amax(0)
    # A part whose logits are all -inf has no largest one to be compared with.
    beyond = own["top"] - torch.where(top == -torch.inf, 0, top)
    masses = own["log_sum"] + beyond
    log_sum = torch.logsumexp(masses, 0)
    log_p = masses - log_sum
    p = torch.exp(log_p)
    made = {"top": top, "log_sum": log_sum}
    if "of_target" in own:
        made["of_target"] = (own["of_target"] + beyond).amax(0)
    if "entropy" in own:
        made["entropy"] = torch.where(p > 0, p * (own["entropy"] - log_p), 0).sum(0)
    for name in ("mean", "mean_square"):
        if name in own:
            made[name] = own[name].sum(0)
    if "log_sum_square_probs" in own:
        squares = own["log_sum_square_probs"] + 2 * log_p
        squares = torch.where(p > 0, squares, -torch.inf)
        made["log_sum_square_probs"] = torch.logsumexp(squares, 0)
    if "argmax" in own:
        is_first = own["top"] == top
        last = options.classes - 1
        made["argmax"] = torch.where(is_first, own["argmax"], last).amin(0)
    return torch.stack(list(made.values()))


def results(statistics, targets, options):
    """The results that are wanted, in the order of `RESULTS`; 0 for tokens to ignore."""
    of = dict(zip(kernels.names_of(options), statistics))
    is_wanted, is_outside = _classify(targets, options)

    def make(name):
        if name == "log_prob":
            log_prob = of["of_target"] - of["log_sum"]
            return torch.where(is_outside, torch.nan, log_prob)
        if name == "lse":
            return of["top"] + of["log_sum"]
        if name == "argmax":
            return of["argmax"].long()
        if name == "correct":
            return of["argmax"].long() == targets
        return of[name]

    return [x.masked_fill(~is_wanted, 0) for x in map(make, options.wanted)]


def empty_results(hidden, options):
    """Tensors of the shapes and types of the results."""
    types = {"argmax": torch.int64, "correct": torch.bool}
    wide = wide_type(hidden.dtype)
    return [
        hidden.new_empty(hidden.shape[0], dtype=types.get(name, wide))
        for name in options.wanted
    ]


def factors(upstream, entropy, targets, options):
    """What `kernels.gradient` multiplies: ``a``, ``d`` and ``own``, where the gradient
    is to be that of the sum of the results times ``upstream``, [T] or None by name.

    With log_prob = z[t] - lse and entropy = lse - sum(p z), the derivatives by z[j] are

        lse:       p[j]
        log_prob:  (j = t) - p[j]
        entropy:   -p[j] (log p[j] + entropy)
    """
    is_wanted, is_outside = _classify(targets, options)
    counts = {"log_prob": is_wanted & ~is_outside}
    log_prob, of_entropy, lse = (
        None if x is None else torch.where(counts.get(name, is_wanted), x, 0)
        for name, x in zip(RESULTS, (upstream.get(x) for x in RESULTS[:3]))
    )
    terms = []
    if log_prob is not None:
        terms.append(-log_prob)
    if of_entropy is not None:
        terms.append(-of_entropy * entropy)
    if lse is not None:
        terms.append(lse)
    a = sum(terms[1:], terms[0])
    return {"a": a, "d": None if of_entropy is None else -of_entropy, "own": log_prob}


def _classify(targets, options):
    """Which tokens are not to be ignored, and which of these have a target that is no
    class."""
    is_wanted = targets != options.ignore_index
    is_inside = (targets >= 0) & (targets < options.classes)
    return is_wanted, is_wanted & ~is_inside

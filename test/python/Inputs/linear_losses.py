# Part of Bastile, under the MIT License. See LICENSE.
"""A linear layer with its cross-entropy as a formula of PyTorch, in float64."""

import dataclasses

import torch
import torch.nn.functional as F

TOKENS, LENGTH, CLASSES = 37, 24, 50


@dataclasses.dataclass
class Problem:
    hidden: torch.Tensor
    weight: torch.Tensor
    targets: torch.Tensor
    bias: torch.Tensor | None
    class_weights: torch.Tensor | None

    def leaves(self):
        return [x for x in (self.hidden, self.weight, self.bias) if x is not None]

    def wide(self):
        """The same numbers in float64, as new leaves."""

        def widen(x):
            return x if x is None else x.detach().double().requires_grad_()

        weights = self.class_weights
        return Problem(
            widen(self.hidden),
            widen(self.weight),
            self.targets,
            widen(self.bias),
            None if weights is None else weights.double(),
        )


def make(
    dtype=torch.float64,
    device="cpu",
    bias=True,
    class_weights=False,
    seed=0,
    classes=CLASSES,
) -> Problem:
    """A problem of which some tokens are to be ignored (-100)."""
    generator = torch.Generator().manual_seed(seed)

    def random(*sizes):
        return torch.randn(sizes, generator=generator, dtype=torch.float64)

    def leaf(x):
        return x.to(device, dtype).requires_grad_()

    targets = torch.randint(classes, (TOKENS,), generator=generator)
    targets[3] = -100
    targets[20:25] = -100
    weights = torch.rand(classes, generator=generator).to(device)
    return Problem(
        leaf(random(TOKENS, LENGTH)),
        leaf(random(classes, LENGTH) * 0.3),
        targets.to(device),
        leaf(random(classes)) if bias else None,
        weights if class_weights else None,
    )


def loss_of(
    problem,
    reduction="mean",
    ignore_index=-100,
    label_smoothing=0.0,
    z_loss=0.0,
    soft_cap=0.0,
    temperature=1.0,
    num_items=None,
):
    """The loss, and the logits that it is of, before they are divided."""
    logits = F.linear(problem.hidden, problem.weight, problem.bias)
    if soft_cap:
        logits = soft_cap * torch.tanh(logits / soft_cap)
    z = logits / temperature
    counted = problem.targets != ignore_index
    loss = F.cross_entropy(
        z,
        problem.targets,
        problem.class_weights,
        reduction="none",
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
    )
    penalty = z_loss * torch.where(counted, torch.logsumexp(z, -1).square(), 0)
    if reduction == "none":
        return loss + penalty, z
    loss, penalty = loss.sum(), penalty.sum()
    if reduction == "sum":
        return loss + penalty, z
    if num_items is not None:
        return (loss + penalty) / num_items, z
    count = share = counted.sum()
    if problem.class_weights is not None:
        share = problem.class_weights[problem.targets[counted]].sum()
    return loss / share + penalty / count, z


def distribution_of(problem, scale=1.0, soft_cap=0.0, temperature=1.0, ignore=-100):
    """By name, what `linear_log_probs` returns, and the z that it is of."""
    logits = F.linear(problem.hidden, problem.weight, problem.bias) * scale
    if soft_cap:
        logits = soft_cap * torch.tanh(logits / soft_cap)
    z = logits / temperature
    log_p = z.log_softmax(-1)
    targets = problem.targets
    counted = targets != ignore
    found = {
        "log_prob": log_p.gather(-1, targets.clamp(0)[:, None]).squeeze(1),
        # A class that cannot occur adds nothing, and has no gradient.
        "entropy": -(log_p.exp() * log_p.clamp(min=-1e300)).sum(-1),
        "lse": z.logsumexp(-1),
        "mean": z.mean(-1),
        "mean_square": z.square().mean(-1),
        "log_sum_square_probs": (2 * log_p).logsumexp(-1),
        "argmax": z.argmax(-1),
        "correct": z.argmax(-1) == targets,
    }
    return {name: torch.where(counted, x, 0) for name, x in found.items()}, z


def divergence_of(student, teacher, beta):
    """The generalized divergence of each row of log-probabilities, as
    `torch.nn.functional.kl_div` computes it."""

    def kl(log_other, log_own):
        return F.kl_div(log_other, log_own, reduction="none", log_target=True).sum(-1)

    if beta == 0:
        return kl(student, teacher)
    if beta == 1:
        return kl(teacher, student)
    shares = torch.tensor([1 - beta, beta], dtype=student.dtype).log()
    mixture = torch.logaddexp(student + shares[0], teacher + shares[1])
    return beta * kl(mixture, teacher) + (1 - beta) * kl(mixture, student)


def distance(one, other) -> float:
    """How far apart, relative to the norm of ``other``."""
    one, other = one.detach().double(), other.detach().double()
    return ((one - other).norm() / other.norm()).item()

# Part of Bastile, under the MIT License. See LICENSE.
"""What a call of a divergence says: its tensors, and everything else."""

import dataclasses
import functools
from typing import Any, NamedTuple

from bastile._losses.options import (
    REDUCTIONS,
    check_budget,
    check_integer,
    check_number,
    check_positive,
    check_soft_cap,
)

RESULTS = ("loss", "entropy")
DIRECTIONS = {"forward": 0.0, "reverse": 1.0}


class Operands(NamedTuple):
    """The tensors: the student's hidden states [..., H] or [T, H] and weight [V, H],
    targets [...] or [T] or None, the student's bias [V] or None; and the teacher's
    hidden states, weight and bias, or its logits [..., V] or [T, V]."""

    hidden: Any
    weight: Any
    targets: Any = None
    bias: Any = None
    teacher_hidden: Any = None
    teacher_weight: Any = None
    teacher_bias: Any = None
    teacher_logits: Any = None


class Settings(NamedTuple):
    """How the divergence is made, and how much is held at a time."""

    beta: float = 0.5
    reduction: str = "mean"
    ignore_index: int = -100
    scale: float = 1.0
    soft_cap: float = 0.0
    teacher_scale: float = 1.0
    teacher_soft_cap: float = 0.0
    temperature: float = 1.0
    #: The most bytes of logits at a time; by default as shapes suggest.
    budget: int | None = None

    #: No slabs of classes: a mixture of two softmaxes needs the sums of both.
    recompute = False


@dataclasses.dataclass(frozen=True)
class Options:
    """Settings that were checked, and which results are wanted."""

    #: The function that is called, which messages begin with.
    call: str = "linear_jsd"
    settings: Settings = Settings()
    returns: tuple[str, ...] = ("loss",)

    def __post_init__(self):
        _check(self.call, self.settings)
        unknown = [name for name in self.returns if name not in RESULTS]
        if unknown or not self.returns:
            raise ValueError(
                f"{self.call}: 'returns' must name results out of "
                f"{', '.join(RESULTS)}, but is {self.returns!r}"
            )

    @property
    def others(self):
        """The results beside the loss, in the order of `RESULTS`."""
        return tuple(x for x in RESULTS[1:] if x in self.returns)

    @property
    def of_each_token(self):
        """Whether the loss is that of each token."""
        return self.settings.reduction == "none"

    @property
    def given(self):
        """The options as registered operators take them, for `read`."""
        settings = self.settings
        words = self.call, settings.reduction, "+".join(self.returns)
        # Absent numbers are 0, which is no budget.
        counts = [settings.ignore_index, settings.budget or 0]
        return " ".join(words), counts, [getattr(settings, name) for name in _NUMBERS]

    @staticmethod
    def read(text, counts=(), numbers=()):
        """What was `given`; numbers that are left out have their defaults."""
        return _read(text, tuple(counts), tuple(numbers))


#: The settings that are real numbers.
_NUMBERS = (
    "beta",
    "scale",
    "soft_cap",
    "teacher_scale",
    "teacher_soft_cap",
    "temperature",
)
_POSITIVE = ("scale", "teacher_scale", "temperature")


@functools.lru_cache(maxsize=256)
def _read(text, counts, numbers):
    call, reduction, returns = text.split(" ")
    ignore_index, budget = counts or (-100, 0)
    settings = Settings(
        reduction=reduction,
        ignore_index=ignore_index,
        budget=budget or None,
        **dict(zip(_NUMBERS, numbers)),
    )
    return Options(call, settings, tuple(returns.split("+")))


def _check(call, settings):
    if settings.reduction not in REDUCTIONS:
        raise ValueError(
            f"{call}: 'reduction' must be one of {', '.join(REDUCTIONS)}, but is "
            f"{settings.reduction!r}"
        )
    check_integer(call, "ignore_index", settings.ignore_index)
    for name in _NUMBERS:
        check_number(call, name, getattr(settings, name))
    for name in _POSITIVE:
        check_positive(call, name, getattr(settings, name))
    for name in ("soft_cap", "teacher_soft_cap"):
        check_soft_cap(call, name, getattr(settings, name))
    if not 0 <= settings.beta <= 1:
        raise ValueError(
            f"{call}: 'beta' must be from 0 to 1, but is {settings.beta!r}"
        )
    if settings.budget is not None:
        check_budget(call, settings.budget)

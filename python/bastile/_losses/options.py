# Part of Bastile, under the MIT License. See LICENSE.
"""What a call of `linear_cross_entropy` says: its tensors, and everything else."""

import dataclasses
import functools
import math
from typing import Any, NamedTuple

RESULTS = ("loss", "lse", "correct", "invalid", "predicted")
REDUCTIONS = ("none", "mean", "sum")
_NAME = "linear_cross_entropy"


class Operands(NamedTuple):
    """The tensors: hidden states [..., H] or [T, H], the weight [V, H], targets [...] or
    [T], and the bias [V] and weights of classes [V], which may be None."""

    hidden: Any
    weight: Any
    targets: Any
    bias: Any = None
    class_weights: Any = None


class Settings(NamedTuple):
    """The attributes of `tile.cross_entropy`, and how much is held at a time."""

    reduction: str = "mean"
    ignore_index: int = -100
    label_smoothing: float = 0.0
    z_loss: float = 0.0
    soft_cap: float = 0.0
    temperature: float = 1.0
    #: The most bytes of logits at a time; by default as shapes suggest.
    budget: int | None = None
    #: Whether logits are computed twice, slab by slab of the vocabulary.
    recompute: bool = False
    #: Whether a token's loss is multiplied by the probability of its target.
    token_scaling: bool = False

    @property
    def attributes(self):
        """Those of `tile.cross_entropy` that say how a token's loss is made."""
        return {
            "ignore_index": self.ignore_index,
            "label_smoothing": self.label_smoothing,
            "z_loss": self.z_loss,
            "soft_cap": self.soft_cap,
            "temperature": self.temperature,
            "token_scaling": self.token_scaling,
        }


@dataclasses.dataclass(frozen=True)
class Options:
    """Settings that were checked, which results are wanted, and whose classes the
    weight has."""

    settings: Settings = Settings()
    returns: tuple = ("loss",)
    #: The name of the group of processes that share the vocabulary, ...
    group: str | None = None
    #: ... and which classes this one has, out of how many.
    first_class: int = 0
    classes: int = 0

    def __post_init__(self):
        _check_settings(self.settings)
        unknown = [name for name in self.returns if name not in RESULTS]
        if unknown or not self.returns:
            raise ValueError(
                f"{_NAME}: 'returns' must name results out of {', '.join(RESULTS)}, "
                f"but is {self.returns!r}"
            )

    @property
    def others(self):
        """The results beside the loss, in the order of `RESULTS`."""
        return tuple(x for x in RESULTS[1:] if x in self.returns)

    @property
    def compares_logits(self):
        """Whether results say which logit is the largest."""
        return "correct" in self.returns or "predicted" in self.returns

    @property
    def of_each_token(self):
        """Whether the loss is that of each token."""
        return self.settings.reduction == "none"

    @property
    def given(self):
        """The options as registered operators take them, for `read`: words apart
        from numbers, which to a compiler of graphs may vary."""
        settings = self.settings
        words = (
            settings.reduction,
            "recompute" if settings.recompute else "keep",
            "scaled" if settings.token_scaling else "plain",
            "+".join(self.returns),
            # The last one, as it may be of any letters.
            self.group or "",
        )
        counts = [
            settings.ignore_index,
            self.first_class,
            self.classes,
            # Absent numbers are 0, which is no budget.
            settings.budget or 0,
        ]
        return " ".join(words), counts, [getattr(settings, name) for name in _NUMBERS]

    @staticmethod
    def read(text, counts=(), numbers=()):
        """What was `given`; numbers that are left out have their defaults."""
        return _read(text, tuple(counts), tuple(numbers))


#: The settings that are real numbers.
_NUMBERS = ("label_smoothing", "z_loss", "soft_cap", "temperature")


@functools.lru_cache(maxsize=256)
def _read(text, counts, numbers):
    reduction, logits, scaling, returns, group = text.split(" ", 4)
    ignore_index, first_class, classes, budget = counts or (-100, 0, 0, 0)
    settings = Settings(
        reduction=reduction,
        ignore_index=ignore_index,
        budget=budget or None,
        recompute=logits == "recompute",
        token_scaling=scaling == "scaled",
        **dict(zip(_NUMBERS, numbers)),
    )
    returned = tuple(returns.split("+"))
    return Options(settings, returned, group or None, first_class, classes)


def _check_settings(settings):
    if settings.reduction not in REDUCTIONS:
        raise ValueError(
            f"{_NAME}: 'reduction' must be one of {', '.join(REDUCTIONS)}, "
            f"but is {settings.reduction!r}"
        )
    check_integer(_NAME, "ignore_index", settings.ignore_index)
    for name in _NUMBERS:
        check_number(_NAME, name, getattr(settings, name))
    if settings.temperature == 0:
        raise ValueError(f"{_NAME}: 'temperature' must not be 0")
    if not 0 <= settings.label_smoothing <= 1:
        raise ValueError(
            f"{_NAME}: 'label_smoothing' must be from 0 to 1, but is "
            f"{settings.label_smoothing!r}"
        )
    if settings.budget is not None:
        check_budget(_NAME, settings.budget)


def check_integer(call, name, value):
    """Raises for an option of the function ``call`` that is no whole number."""
    if isinstance(value, (bool, float, str, type(None))):
        raise TypeError(f"{call}: '{name}' must be an integer, but is {value!r}")


def check_number(call, name, value):
    # What a compiler of graphs calls a float is none to isinstance and isfinite.
    if isinstance(value, (str, type(None))):
        raise TypeError(f"{call}: '{name}' must be a number, but is {value!r}")
    if not -math.inf < value < math.inf:
        raise ValueError(f"{call}: '{name}' must be a finite number, but is {value!r}")


def check_positive(call, name, value):
    if value <= 0:
        raise ValueError(f"{call}: '{name}' must be positive, but is {value!r}")


def check_soft_cap(call, name, value):
    if value < 0:
        raise ValueError(
            f"{call}: '{name}' must be positive, or 0 for none, but is {value!r}"
        )


def check_budget(call, budget):
    if isinstance(budget, bool) or not isinstance(budget, int):
        raise TypeError(
            f"{call}: 'budget' must be a whole number of bytes, but is {budget!r}"
        )
    if budget < 1:
        raise ValueError(f"{call}: 'budget' must be at least 1 byte, but is {budget}")

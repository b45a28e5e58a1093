# Part of Bastile, under the MIT License. See LICENSE.
"""What a call of `linear_log_probs` says beside its tensors."""

import dataclasses
import functools

from bastile._losses.options import (
    check_budget,
    check_integer,
    check_number,
    check_positive,
    check_soft_cap,
)

CALL = "linear_log_probs"
#: The results, in the order in which operators return them.
RESULTS = (
    "log_prob",
    "entropy",
    "lse",
    "mean",
    "mean_square",
    "log_sum_square_probs",
    "argmax",
    "correct",
)
#: Those that have a gradient.
DIFFERENTIABLE = RESULTS[:3]
#: The options that are real numbers.
_NUMBERS = ("scale", "soft_cap", "temperature")


@dataclasses.dataclass(frozen=True)
class Options:
    """Options of a call, checked, and whose classes the weight has."""

    scale: float = 1.0
    soft_cap: float = 0.0
    temperature: float = 1.0
    ignore_index: int = -100
    #: The most bytes of logits at a time; by default as shapes suggest.
    budget: int | None = None
    #: Whether logits are cut by classes instead of by tokens.
    recompute: bool = False
    returns: tuple[str, ...] = ("log_prob",)
    #: The name of the group of processes that share the vocabulary, ...
    group: str | None = None
    #: ... and which classes this one has, out of how many.
    first_class: int = 0
    classes: int = 0

    def __post_init__(self):
        for name in _NUMBERS:
            check_number(CALL, name, getattr(self, name))
        for name in ("scale", "temperature"):
            check_positive(CALL, name, getattr(self, name))
        check_soft_cap(CALL, "soft_cap", self.soft_cap)
        check_integer(CALL, "ignore_index", self.ignore_index)
        if self.budget is not None:
            check_budget(CALL, self.budget)
        unknown = [name for name in self.returns if name not in RESULTS]
        if unknown or not self.returns:
            raise ValueError(
                f"{CALL}: 'returns' must name results out of {', '.join(RESULTS)}, "
                f"but is {self.returns!r}"
            )

    @property
    def wanted(self):
        """The results that are wanted, each once, in the order of `RESULTS`."""
        return tuple(x for x in RESULTS if x in self.returns)

    @property
    def given(self):
        """The options as registered operators take them, for `read`."""
        words = (
            "recompute" if self.recompute else "keep",
            "+".join(self.returns),
            # The last one, as it may be of any letters.
            self.group or "",
        )
        counts = [
            self.ignore_index,
            self.first_class,
            self.classes,
            # Absent numbers are 0, which is no budget.
            self.budget or 0,
        ]
        return " ".join(words), counts, [getattr(self, name) for name in _NUMBERS]

    @staticmethod
    def read(text, counts=(), numbers=()):
        """What was `given`; numbers that are left out have their defaults."""
        return _read(text, tuple(counts), tuple(numbers))


@functools.lru_cache(maxsize=256)
def _read(text, counts, numbers):
    logits, returns, group = text.split(" ", 2)
    ignore_index, first_class, classes, budget = counts or (-100, 0, 0, 0)
    return Options(
        **dict(zip(_NUMBERS, numbers)),
        ignore_index=ignore_index,
        budget=budget or None,
        recompute=logits == "recompute",
        returns=tuple(returns.split("+")),
        group=group or None,
        first_class=first_class,
        classes=classes,
    )

"""What a call of `linear_cross_entropy` may say beside its tensors."""

import dataclasses
import functools
import json
import math

import torch

RESULTS = ("loss", "lse", "correct", "invalid")
_REDUCTIONS = ("none", "mean", "sum")
_NAME = "linear_cross_entropy"


@dataclasses.dataclass(frozen=True)
class Options:
    """The attributes of `tile.cross_entropy`, which results are wanted, and how
    they are computed."""

    reduction: str = "mean"
    ignore_index: int = -100
    label_smoothing: float = 0.0
    z_loss: float = 0.0
    soft_cap: float = 0.0
    temperature: float = 1.0
    returns: tuple = ("loss",)
    #: The most bytes of logits at a time; by default as shapes suggest.
    budget: int | None = None
    #: Whether logits are computed twice, slab by slab of the vocabulary.
    recompute: bool = False
    #: The name of the group of processes that share the vocabulary, ...
    group: str | None = None
    #: ... and which classes this one has, out of how many.
    first_class: int = 0
    classes: int = 0

    def __post_init__(self):
        if self.reduction not in _REDUCTIONS:
            raise ValueError(
                f"{_NAME}: 'reduction' must be one of {', '.join(_REDUCTIONS)}, "
                f"but is {self.reduction!r}"
            )
        for name in ("label_smoothing", "z_loss", "soft_cap", "temperature"):
            value = getattr(self, name)
            if not math.isfinite(value):
                raise ValueError(
                    f"{_NAME}: '{name}' must be a finite number, but is {value!r}"
                )
        if self.temperature == 0:
            raise ValueError(f"{_NAME}: 'temperature' must not be 0")
        unknown = [name for name in self.returns if name not in RESULTS]
        if unknown or not self.returns:
            raise ValueError(
                f"{_NAME}: 'returns' must name results out of {', '.join(RESULTS)}, "
                f"but is {self.returns!r}"
            )
        if self.budget is not None and self.budget < 1:
            raise ValueError(
                f"{_NAME}: 'budget' must be at least 1 byte, but is {self.budget}"
            )

    @property
    def attributes(self):
        """Those of `tile.cross_entropy` that say how a token's loss is made."""
        return {
            "ignore_index": self.ignore_index,
            "label_smoothing": self.label_smoothing,
            "z_loss": self.z_loss,
            "soft_cap": self.soft_cap,
            "temperature": self.temperature,
        }

    @property
    def others(self):
        """The results beside the loss, in the order of `RESULTS`."""
        return tuple(x for x in RESULTS[1:] if x in self.returns)

    @property
    def of_each_token(self):
        """Whether the loss is that of each token."""
        return self.reduction == "none"

    @property
    def text(self):
        """What `from_text` reads: registered operators take it."""
        return _to_text(*(getattr(self, name) for name in _NAMES))

    @staticmethod
    @functools.lru_cache(maxsize=256)
    def from_text(text):
        *fields, returns = json.loads(text)
        return Options(**dict(zip(_NAMES, fields)), returns=tuple(returns))


#: The names of the fields, the only one that JSON would change last.
_NAMES = (
    *(x.name for x in dataclasses.fields(Options) if x.name != "returns"),
    "returns",
)


@torch.compiler.assume_constant_result
def _to_text(*fields):
    return json.dumps(fields)

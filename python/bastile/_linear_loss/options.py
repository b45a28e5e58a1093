"""What a call of `linear_cross_entropy` may say beside its tensors."""

import dataclasses
import math

RESULTS = ("loss", "lse", "correct", "invalid")
_REDUCTIONS = ("none", "mean", "sum")


@dataclasses.dataclass(frozen=True)
class Options:
    """The attributes of `tile.cross_entropy`, and which results are wanted.

    The fields stand in the order in which the registered operators take them.
    """

    reduction: str = "mean"
    ignore_index: int = -100
    label_smoothing: float = 0.0
    z_loss: float = 0.0
    soft_cap: float = 0.0
    temperature: float = 1.0
    returns: tuple = ("loss",)

    def __post_init__(self):
        if self.reduction not in _REDUCTIONS:
            raise ValueError(
                "linear_cross_entropy: 'reduction' must be one of "
                f"{', '.join(_REDUCTIONS)}, but is {self.reduction!r}"
            )
        for name in ("label_smoothing", "z_loss", "soft_cap", "temperature"):
            value = getattr(self, name)
            if not math.isfinite(value):
                raise ValueError(
                    f"linear_cross_entropy: '{name}' must be a finite number, "
                    f"but is {value!r}"
                )
        unknown = [name for name in self.returns if name not in RESULTS]
        if unknown or not self.returns:
            raise ValueError(
                "linear_cross_entropy: 'returns' must name results out of "
                f"{', '.join(RESULTS)}, but is {self.returns!r}"
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
    def attributes_in_order(self):
        """As the registered operators take them."""
        return (self.reduction, *self.attributes.values())

    @property
    def others(self):
        """The results beside the loss, in the order of `RESULTS`."""
        return tuple(x for x in RESULTS[1:] if x in self.returns)

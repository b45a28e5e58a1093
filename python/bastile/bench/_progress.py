"""How far a measurement is: a bar where `tqdm` is installed, else a count."""

from bastile._tuning.progress import Progress

__all__ = ["Progress"]

"""Kernels for training language models, compiled from one definition an op."""

from bastile import _adapter, functions, ops  # noqa: F401  the adapter registers itself
from bastile._bastile import CompileError, __version__, compilations
from bastile._kernel import Kernel, compile
from bastile._tuning.api import (
    autotune,
    clear_autotune_cache,
    warmup_all_kernels,
)

__all__ = [
    "CompileError",
    "Kernel",
    "__version__",
    "autotune",
    "clear_autotune_cache",
    "compilations",
    "compile",
    "functions",
    "ops",
    "warmup_all_kernels",
]

"""Kernels for training language models, compiled from one definition an op."""

from bastile import _adapter, ops  # noqa: F401  the adapter registers itself
from bastile._bastile import CompileError, __version__, compilations
from bastile._kernel import Kernel, compile

__all__ = [
    "CompileError",
    "Kernel",
    "__version__",
    "compilations",
    "compile",
    "ops",
]

"""Kernels for training language models, compiled from one definition an op."""

import importlib

from bastile import _adapter, functions, ops  # noqa: F401  the adapter registers itself
from bastile._bastile import CompileError, __version__, compilations
from bastile._bastile import get_thread_count, set_thread_count
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
    "functional",
    "functions",
    "get_thread_count",
    "nn",
    "ops",
    "set_thread_count",
    "warmup_all_kernels",
]


def __getattr__(name):
    # These two are PyTorch's; everything else works without it.
    if name in ("functional", "nn"):
        return importlib.import_module(f"bastile.{name}")
    raise AttributeError(f"module 'bastile' has no attribute {name!r}")

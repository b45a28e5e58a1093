"""Kernels for training language models, compiled from one definition an op."""

import importlib
from typing import TYPE_CHECKING, Any

from bastile import _installation  # noqa: F401  raises, ahead of what it explains
from bastile import _adapter, functions, ops  # noqa: F401  the adapter registers itself
from bastile._bastile import (
    CompileError,
    __version__,
    compilations,
    get_thread_count,
    set_thread_count,
)
from bastile._compile import compile
from bastile._function import Function
from bastile._kernel import Kernel
from bastile._tuning.api import (
    autotune,
    clear_autotune_cache,
    warmup_all_kernels,
)

if TYPE_CHECKING:
    # What `__getattr__` imports when it is asked for.
    from bastile import functional, nn, patching
    from bastile.patching import (
        apply,
        apply_to_model,
        get_patched_ops,
        list_patches,
        register_patch,
        reset,
    )

__all__ = [
    "CompileError",
    "Function",
    "Kernel",
    "__version__",
    "apply",
    "apply_to_model",
    "autotune",
    "clear_autotune_cache",
    "compilations",
    "compile",
    "functional",
    "functions",
    "get_patched_ops",
    "get_thread_count",
    "list_patches",
    "nn",
    "ops",
    "patching",
    "register_patch",
    "reset",
    "set_thread_count",
    "warmup_all_kernels",
]


_PATCHING = (
    "apply",
    "apply_to_model",
    "get_patched_ops",
    "list_patches",
    "register_patch",
    "reset",
)


def __getattr__(name: str) -> Any:
    # These are for PyTorch and Transformers; everything else works without them.
    if name in ("functional", "nn", "patching"):
        return importlib.import_module(f"bastile.{name}")
    if name in _PATCHING:
        return getattr(importlib.import_module("bastile.patching"), name)
    raise AttributeError(f"module 'bastile' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

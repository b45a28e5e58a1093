# Part of Bastile, under the MIT License. See LICENSE.
"""Kernels for training language models, compiled from one definition an op.

`ops` has the ops of the dialect, called on tensors of any library; `functional` and `nn`
have them with the signatures and classes of PyTorch, and `losses` has what trainers make
of log-probabilities; `optim` has optimizers. `compile` makes kernels of ops, of MLIR and of Python functions,
which compute with what `functions` has. `apply` patches models of Transformers
(`patching`), `trainer` does so in a ``Trainer``, and `autotune` chooses schedules by
measurement.
"""

import importlib
from typing import TYPE_CHECKING, Any

from bastile import _installation  # noqa: F401  raises, ahead of what it explains
from bastile import _log  # noqa: F401  reads BASTILE_LOG, ahead of what it prints
from bastile import functions, ops
from bastile._bastile import (
    CompileError,
    __version__,
    compilations,
    get_thread_count,
    set_thread_count,
)
from bastile._compiler.compile import compile
from bastile._compiler.function import Function
from bastile._compiler.kernel import Kernel
from bastile._torch import gate as _torch_gate
from bastile._tuning import gate as _tuning_gate

if TYPE_CHECKING:
    # What `__getattr__` imports when it is asked for.
    from bastile import functional, losses, nn, optim, patching, trainer
    from bastile._tuning.api import (
        autotune,
        clear_autotune_cache,
        warmup_all_kernels,
    )
    from bastile.optim import clip_grad_norm_
    from bastile.patching import (
        apply,
        apply_to_model,
        get_patched_ops,
        list_patches,
        register_attention,
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
    "clip_grad_norm_",
    "compilations",
    "compile",
    "functional",
    "functions",
    "get_patched_ops",
    "get_thread_count",
    "list_patches",
    "losses",
    "nn",
    "ops",
    "optim",
    "patching",
    "register_attention",
    "register_patch",
    "reset",
    "set_thread_count",
    "trainer",
    "warmup_all_kernels",
]

#: By name, the module of what is imported when it is asked for: what needs PyTorch or
#: Transformers, without which everything else works, and what takes long to import.
_LATER = {
    **dict.fromkeys(
        (
            "apply",
            "apply_to_model",
            "get_patched_ops",
            "list_patches",
            "register_attention",
            "register_patch",
            "reset",
        ),
        "patching",
    ),
    **dict.fromkeys(
        ("autotune", "clear_autotune_cache", "warmup_all_kernels"), "_tuning.api"
    ),
    "clip_grad_norm_": "optim",
}


def __getattr__(name: str) -> Any:
    if name in ("functional", "losses", "nn", "optim", "patching", "trainer"):
        return importlib.import_module(f"bastile.{name}")
    if name in _LATER:
        return getattr(importlib.import_module(f"bastile.{_LATER[name]}"), name)
    raise AttributeError(f"module 'bastile' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


_tuning_gate.install()
_torch_gate.install()

# Part of Bastile, under the MIT License. See LICENSE.
"""Schedules that were found for kernels, and who hears of new ones.

The tuner's room provides them. Without it, every kernel is scheduled by the compiler's
heuristic.
"""

import os
import threading
from collections.abc import Callable
from typing import Any

_listeners: list[Callable[[], None]] = []
_guard = threading.Lock()


def _find_none(request: Any, gpu: str | None) -> str:
    return ""


def _tune_nothing(request: Any, tensors: Any, device: int) -> None:
    pass


_find: Callable[..., str] = _find_none
_tune: Callable[..., None] = _tune_nothing


def provide(find: Callable[..., str], tune: Callable[..., None]) -> None:
    """Has schedules looked up by ``find(request, gpu)``, and kernels tuned on their
    first call by ``tune(request, tensors, device)``."""
    global _find, _tune
    _find, _tune = find, tune


def find(request: Any, gpu: str | None) -> str:
    """What to pin in ``request`` on GPUs of model ``gpu``; empty for nothing."""
    return _find(request, gpu)


def tune_first_call(request: Any, operands: Any, device: int | None) -> None:
    """Where ``BASTILE_AUTOTUNE`` asks for it, tunes what is about to be loaded
    for a call on ``operands``, some of which may be None."""
    if device is None or os.environ.get("BASTILE_AUTOTUNE", "0") in ("", "0"):
        return
    tensors = [operand for operand in operands if operand is not None]
    _tune(request, tensors, device)


def on_change(listener):
    """Has ``listener`` called by ``changed``."""
    with _guard:
        _listeners.append(listener)
    return listener


def changed() -> None:
    """Tells the listeners that other schedules may be found than before."""
    with _guard:
        listeners = list(_listeners)
    for listener in listeners:
        listener()

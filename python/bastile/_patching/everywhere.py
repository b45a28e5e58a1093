# Part of Bastile, under the MIT License. See LICENSE.
"""Patching each model type as the first model of it is made.

To import all modules of Transformers at once takes minutes. So what every model runs
when it is made, the ``__init__`` of ``PreTrainedModel``, calls whoever watches, once
for each module of Python with models. Nothing of the model itself has run by then.
"""

import functools
import threading

import transformers

from bastile._patching import model_types, registry

_lock = threading.RLock()
_watchers = []


class _Watcher:
    def __init__(self, patch):
        self._patch = patch
        self._seen = {source.module for source in model_types.loaded()}

    def see(self, cls):
        for source in model_types.of_classes([cls]):
            with _lock:
                is_new = source.module not in self._seen
                self._seen.add(source.module)
            if is_new:
                self._patch(source)


def watch(patch):
    """Has ``patch(source)`` called for each module of Python of which a model is made
    and that has not been imported so far. Returns a function that ends it."""
    watcher = _Watcher(patch)
    with _lock:
        _watchers.append(watcher)
        _install()

    def end():
        with _lock:
            if watcher in _watchers:
                _watchers.remove(watcher)
            _remove()

    return end


def _end_all():
    with _lock:
        _watchers.clear()
        _remove()


registry.on_undo_of_all.append(_end_all)


def _install():
    base = transformers.PreTrainedModel
    original = base.__init__
    if hasattr(original, "bastile_watched"):
        return

    @functools.wraps(original)
    def watched(self, *operands, **named):
        for watcher in tuple(_watchers):
            watcher.see(type(self))
        original(self, *operands, **named)

    watched.bastile_watched = original
    base.__init__ = watched


def _remove():
    base = transformers.PreTrainedModel
    watched = vars(base)["__init__"]
    # Whoever has wrapped the function since then keeps it; it sees nobody.
    if not _watchers and getattr(watched, "bastile_watched", None) is not None:
        base.__init__ = watched.bastile_watched

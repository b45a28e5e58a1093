# Part of Bastile, under the MIT License. See LICENSE.
"""Schedules that tables have for kernels."""

import functools

from bastile import _log
from bastile._compiler import schedules
from bastile._tuning import keys, store


_channel = _log.Channel("tuning")


def find_schedule(request, gpu: str | None) -> str:
    """The schedule to pin in ``request`` on GPUs of model ``gpu``.

    It is the one that was tuned on this machine, else the one that comes with the
    package. Where there is neither, and where the user has pinned something, it is
    empty, and the compiler chooses.
    """
    entry = find_entry(request, gpu)
    return entry["schedule"] if entry else ""


def find_entry(request, gpu: str | None) -> dict | None:
    if gpu is None or is_pinned(request):
        return None
    key = keys.key(request)
    for table in _tables(gpu):
        entry = table.find(key)
        if entry is not None:
            return entry
    return None


def is_pinned(request) -> bool:
    """Whether the user says how the kernels run."""
    return bool(request.schedule) or request.describe()["is_scheduled"]


@functools.cache
def _tables(gpu):
    tables = store.user_table(gpu), store.shipped_table(gpu)
    if not any(table.entries() for table in tables):
        _channel.info(
            "nothing was tuned for %s: the compiler chooses schedules (bastile.autotune)",
            gpu,
        )
    return tables


def forget() -> None:
    """Has the tables read again, when next asked."""
    _tables.cache_clear()


def changed() -> None:
    """Has kernels take the schedules that the tables have now."""
    forget()
    schedules.changed()

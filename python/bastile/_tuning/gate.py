# Part of Bastile, under the MIT License. See LICENSE.
"""The entrance to this room for calls of kernels.

Whatever it takes to read tables, search and measure is imported when the first kernel
asks, which is none on the host.
"""

from bastile._compiler import schedules


def _find(request, gpu):
    from bastile._tuning import lookup

    return lookup.find_schedule(request, gpu)


def _tune(request, tensors, device):
    from bastile._tuning import api

    api.tune_first_call(request, tensors, device)


def install() -> None:
    """Has kernels get the schedules that this room finds."""
    schedules.provide(_find, _tune)

# Part of Bastile, under the MIT License. See LICENSE.
"""The measurement of ``profile``, in its own process."""

import collections
import dataclasses
import re

from bastile_bench._end_to_end import annotations, categories, models, providers
from bastile_bench._end_to_end.training import (
    Clock,
    Training,
    peak_bytes,
    synchronize,
    use,
)


def measure(job: dict, say) -> dict:
    """Times steps, then looks into some of them.

    Times are in seconds. ``step_seconds`` are those of steps that nothing watches.
    ``kernels`` are of one step: ``[{"name", "category", "seconds", "count"}]``, the
    longest first. ``busy_seconds`` is how long a step has any kernel
    running on a GPU, None on the CPU. ``waits`` are the calls of a step in which the
    host waits for the GPU, or copies to or from it: ``[{"name", "within", "seconds",
    "count"}]``.
    """
    import torch  # noqa: F401
    import transformers  # noqa: F401

    provider = providers.parse(job["provider"])[0]
    device = job["device"]
    use(device)
    say("preparing the provider")
    providers.prepare(provider, models.find(job["model"]).model_type)
    warmup, timed, watched = job["warmup"], job["steps"], job["profile_steps"]
    say("building the model")
    training = Training(job, warmup + timed + watched + 1, job["seed"])
    say("steps of warm-up")
    for index in range(warmup):
        training.step(index)
    synchronize(device)
    say("timed steps")
    clock = Clock(device)
    clock.mark()
    for index in range(warmup, warmup + timed):
        training.step(index)
        clock.mark()
    seconds = clock.intervals()
    say("the profile")
    if not provider.is_compiled:
        annotations.annotate(training.model)
    training.step(warmup + timed)
    events = _watch(training, range(warmup + timed + 1, warmup + timed + 1 + watched))
    say("reading the profile")
    units = device_units(events) if device != "cpu" else host_units(events)
    return {
        "step_seconds": seconds,
        # The host is never idle.
        "busy_seconds": None if device == "cpu" else busy_seconds(events) / watched,
        "kernels": _gather(units, watched),
        "waits": waits(events, watched),
        "peak_bytes": peak_bytes(device),
        "attention": training.model.config._attn_implementation,
        "experts": getattr(training.model.config, "_experts_implementation", None),
    }


def _watch(training, indices):
    from torch.profiler import ProfilerActivity, profile

    activities = [ProfilerActivity.CPU]
    if training.device != "cpu":
        activities.append(ProfilerActivity.CUDA)
    with profile(activities=activities) as profiler:
        for index in indices:
            training.step(index)
        synchronize(training.device)
    return profiler.events()


@dataclasses.dataclass(frozen=True)
class Unit:
    """Runs of a kernel or, on the CPU, of an operation without those within it."""

    name: str
    category: str
    seconds: float
    count: float = 1


def _is_on_host(event):
    # By name, since the type is not the same in every version of PyTorch.
    return str(event.device_type).endswith("CPU")


def device_units(events) -> list:
    """The kernels on the device, each under the operation that launched it; those
    that no operation is known for go by their names.

    What kernels took is what the device says. Operations only say whose they are:
    PyTorch may tell of a kernel under several of them.
    """
    told = collections.defaultdict(list)
    for unit in _told_by_operations(events):
        told[unit.name].append(unit)
    seconds, counts = collections.Counter(), collections.Counter()
    for event in _on_device(events):
        seconds[event.name] += _length(event)
        counts[event.name] += 1
    return [
        unit
        for name, count in counts.items()
        for unit in _share(name, seconds[name], count, told[name])
    ]


def _told_by_operations(events):
    scopes = annotations.Scopes([event for event in events if _is_on_host(event)])
    for event in events:
        if not _is_on_host(event) or annotations.is_driver_call(event.name):
            continue
        kernels = [k for k in event.kernels if not annotations.is_mark(k.name)]
        scope = scopes.of(event) if kernels else None
        for kernel in kernels:
            category = categories.of_kernel(kernel.name, scope)
            yield Unit(kernel.name, category, kernel.duration / 1e6)


def _share(name, seconds, count, told):
    """Units that are ``seconds`` and ``count`` together, under the categories of
    those in ``told``: in their proportions where these are all runs or more."""
    told_seconds = sum(unit.seconds for unit in told)
    told_count = sum(unit.count for unit in told)
    if told_count < count and told_seconds <= seconds:
        category = categories.of_kernel(name, None)
        rest = Unit(name, category, seconds - told_seconds, count - told_count)
        return [*told, rest]
    # A clock may be too coarse for a short kernel.
    parts = [
        unit.seconds / told_seconds if told_seconds else 1 / told_count for unit in told
    ]
    return [
        Unit(name, unit.category, seconds * part, count / told_count)
        for unit, part in zip(told, parts)
    ]


def host_units(events) -> list:
    """The operations on the CPU, each without those that it calls."""
    scopes = annotations.Scopes(events)
    return [
        Unit(
            event.name,
            categories.of_kernel(event.name, scopes.of(event)),
            event.self_cpu_time_total / 1e6,
        )
        for event in events
        if event.self_cpu_time_total > 0 and not annotations.is_mark(event.name)
    ]


def _on_device(events):
    return [
        event
        for event in events
        if not _is_on_host(event) and not annotations.is_mark(event.name)
    ]


def _length(event):
    return (event.time_range.end - event.time_range.start) / 1e6


def busy_seconds(events) -> float:
    """How long any kernel ran, overlapping ones counted once."""
    spans = sorted(
        (event.time_range.start, event.time_range.end) for event in _on_device(events)
    )
    busy, reached = 0.0, float("-inf")
    for start, end in spans:
        busy += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return busy / 1e6


#: Calls that return when the GPU has finished, and copies, which may do so.
_WAITS = re.compile(r"^cu(da)?\w*(Synchronize|Memcpy)")


def waits(events, steps) -> list:
    """The calls of one step for which the host may wait, by name and by what they are
    part of, the longest first. ``seconds`` is what the host spends in them.

    What waits for the end of all steps is not one of them.
    """
    seconds, counts = collections.Counter(), collections.Counter()
    for event in events:
        if not _is_on_host(event) or not _WAITS.search(event.name):
            continue
        within = _within(event)
        if not within:
            continue
        key = event.name, " > ".join(within)
        seconds[key] += _length(event)
        counts[key] += 1
    return [
        {
            "name": name,
            "within": within,
            "seconds": total / steps,
            "count": counts[name, within] / steps,
        }
        for (name, within), total in seconds.most_common()
    ]


def _within(event):
    """The names of the operations and parts that an event is in, the outermost
    first."""
    found = []
    while (event := event.cpu_parent) is not None:
        found.insert(0, event.name)
    return found


def _gather(units, steps):
    """Units of one name and category as one, for one step."""
    seconds, counts = collections.Counter(), collections.Counter()
    for unit in units:
        seconds[unit.name, unit.category] += unit.seconds
        counts[unit.name, unit.category] += unit.count
    return [
        {
            "name": name,
            "category": category,
            "seconds": total / steps,
            "count": counts[name, category] / steps,
        }
        for (name, category), total in seconds.most_common()
    ]

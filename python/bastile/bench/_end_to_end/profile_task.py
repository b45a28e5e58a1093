"""The measurement of ``profile``, in its own process."""

import collections
import dataclasses

from bastile.bench._end_to_end import annotations, categories, models, providers
from bastile.bench._end_to_end.training import (
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
    running on a GPU, None on the CPU.
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
    """A run of a kernel or, on the CPU, of an operation without those within it."""

    name: str
    category: str
    seconds: float
    count: int = 1


def _is_on_host(event):
    # By name, since the type is not the same in every version of PyTorch.
    return str(event.device_type).endswith("CPU")


def device_units(events) -> list:
    """The kernels on the device, each under the operation that launched it; those
    that no operation is known for go by their names."""
    scopes = annotations.Scopes([event for event in events if _is_on_host(event)])
    units, known = [], collections.Counter()
    for event in events:
        if not _is_on_host(event):
            continue
        kernels = [k for k in event.kernels if not annotations.is_mark(k.name)]
        scope = scopes.of(event) if kernels else None
        for kernel in kernels:
            category = categories.of_kernel(kernel.name, scope)
            units.append(Unit(kernel.name, category, kernel.duration / 1e6))
            known[kernel.name] += kernel.duration / 1e6
    total = collections.Counter()
    for event in _on_device(events):
        total[event.name] += _length(event)
    for name, seconds in (total - known).items():
        # Less than a tenth of a microsecond is rounding.
        if seconds > 1e-7:
            units.append(Unit(name, categories.of_kernel(name, None), seconds, 0))
    return units


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

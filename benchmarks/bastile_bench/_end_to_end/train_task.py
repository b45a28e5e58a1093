# Part of Bastile, under the MIT License. See LICENSE.
"""The measurement of ``train``, in its own process."""

import time

from bastile_bench._end_to_end import models, providers
from bastile_bench._end_to_end.training import (
    Clock,
    Training,
    peak_bytes,
    release,
    reset_peak,
    synchronize,
    use,
)


def measure(job: dict, say) -> dict:
    """Trains for some steps of warm-up and some timed ones.

    Times are in seconds, memory is in bytes. ``losses`` holds those of all steps,
    ``gradient_norm`` is that of all gradients in the first.
    The baseline trains again afterwards on other data (``other_losses``), which
    says how far two honest curves lie apart.
    """
    import torch  # noqa: F401  its import is nobody's first step
    import transformers  # noqa: F401

    provider = providers.parse(job["provider"])[0]
    device = job["device"]
    use(device)
    say("preparing the provider")
    start = time.perf_counter()
    providers.prepare(provider, models.find(job["model"]).model_type)
    prepared = time.perf_counter() - start

    warmup, timed = job["warmup"], job["steps"]
    say("building the model")
    training = Training(job, warmup + timed, job["seed"])
    synchronize(device)
    reset_peak(device)
    say("the first step")
    start = time.perf_counter()
    losses = [training.step(0)]
    synchronize(device)
    first = time.perf_counter() - start

    say("steps of warm-up")
    losses += [training.step(index) for index in range(1, warmup)]
    synchronize(device)
    peak_of_warmup = peak_bytes(device)
    reset_peak(device)

    say("timed steps")
    clock = Clock(device)
    clock.mark()
    for index in range(warmup, warmup + timed):
        losses.append(training.step(index))
        clock.mark()
    seconds = clock.intervals()
    values = {
        "step_seconds": seconds,
        "first_step_seconds": prepared + first,
        "peak_bytes": peak_bytes(device),
        "peak_bytes_of_warmup": peak_of_warmup,
        "losses": [loss.item() for loss in losses],
        "gradient_norm": training.gradient_norm.item(),
        "fingerprint": training.fingerprint,
        "attention": training.model.config._attn_implementation,
        "experts": getattr(training.model.config, "_experts_implementation", None),
        "parameters": sum(p.numel() for p in training.model.parameters()),
    }
    if provider.name == providers.BASELINE:
        say("steps on other data")
        del training, losses
        release(device)
        values["other_losses"] = _train_again(job, warmup + timed)
    return values


def _train_again(job, steps):
    training = Training(job, steps, job["seed"] + 1)
    losses = [training.step(index) for index in range(steps)]
    return [loss.item() for loss in losses]

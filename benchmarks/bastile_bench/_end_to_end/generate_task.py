# Part of Bastile, under the MIT License. See LICENSE.
"""The measurement of ``generate``, in its own process."""

import statistics
import time

from bastile_bench._end_to_end import models, providers
from bastile_bench._end_to_end.training import (
    peak_bytes,
    release,
    reset_peak,
    synchronize,
    use,
)


class TokenClock:
    """A streamer for ``generate`` that notes when tokens arrive on the host."""

    def __init__(self):
        self.times = []

    def put(self, tokens) -> None:
        self.times.append(time.perf_counter())

    def end(self) -> None:
        pass


def measure(job: dict, say) -> dict:
    """Generates greedily for each pair of batch and prompt length.

    Returns ``{"runs": [...]}``; times are in seconds, memory is in bytes. A token's
    time is that between two arrivals on the host; the prompt's is that from the
    call to the first.
    """
    import transformers  # noqa: F401

    use(job["device"])
    provider = providers.parse(job["provider"])[0]
    model_named = models.find(job["model"])
    device = job["device"]
    say("preparing the provider")
    providers.prepare(provider, model_named.model_type)
    say("building the model")
    model = models.build(
        model_named,
        device=device,
        dtype=job["dtype"],
        layers=job["layers"],
        attention=job["attention"],
        seed=job["seed"],
    ).eval()
    runs = []
    for batch in job["batches"]:
        for prompt in job["prompts"]:
            say(f"batch {batch}, prompt of {prompt}")
            runs.append(_measure_shape(job, provider, model, batch, prompt))
            release(device)
    return {
        "runs": runs,
        "attention": model.config._attn_implementation,
        "experts": getattr(model.config, "_experts_implementation", None),
        "parameters": sum(p.numel() for p in model.parameters()),
    }


def _measure_shape(job, provider, model, batch, prompt):
    device = job["device"]
    tokens = models.draw_tokens(
        model.config.get_text_config().vocab_size, (batch, prompt), job["seed"]
    ).to(device)

    def generate():
        clock = TokenClock()
        synchronize(device)
        start = time.perf_counter()
        result = model.generate(
            tokens,
            attention_mask=tokens.new_ones(tokens.shape),
            max_new_tokens=job["new_tokens"],
            do_sample=False,
            pad_token_id=0,
            streamer=clock,
            **_compile_arguments(job, provider),
        )
        synchronize(device)
        end = time.perf_counter()
        # The prompt itself is what arrives first.
        return result, start, clock.times[1:], end

    first = generate()
    reset_peak(device)
    waits, prefills, totals = [], [], []
    for _ in range(job["repeats"]):
        result, start, times, end = generate()
        prefills.append(times[0] - start)
        waits += [b - a for a, b in zip(times, times[1:])]
        totals.append(end - start)
    made = result[:, prompt:]
    return {
        "batch": batch,
        "prompt": prompt,
        "new_tokens": made.shape[1],
        "first_call_seconds": first[3] - first[1],
        "prefill_seconds": prefills,
        # All of them are too many to keep; their hundredths tell as much.
        "token_seconds": _thin(waits),
        "total_seconds": totals,
        "peak_bytes": peak_bytes(device),
        "tokens": made[0].tolist(),
    }


def _compile_arguments(job, provider):
    if not provider.is_compiled:
        return {"cache_implementation": job["cache"], "disable_compile": True}
    from transformers import CompileConfig

    config = CompileConfig(backend=job["compile_backend"])
    if job["compile_backend"] != "inductor":
        config.mode = None
    # Transformers leaves models on the CPU alone otherwise.
    config._compile_all_devices = job["device"] == "cpu"
    return {"cache_implementation": "static", "compile_config": config}


def _thin(samples):
    """As many samples as there are, or 101 quantiles of more."""
    if len(samples) <= 101:
        return samples
    cuts = statistics.quantiles(samples, n=100, method="inclusive")
    return [min(samples), *cuts, max(samples)]

# Part of Bastile, under the MIT License. See LICENSE.
"""Generate text with whole models by several libraries: time a token, memory.

Models of Transformers with random weights continue random prompts, greedily, each
provider in a process of its own. Who compiles does so with a static cache, as
Transformers does.

  python -m bastile_bench generate --model qwen3 --output results.json
  python -m bastile_bench generate --model llama --batch 1,8 --prompt 128,1024
  python -m bastile_bench generate --model tiny-qwen3 --device cpu --new-tokens 8
"""

import argparse
import sys

from bastile_bench import _statistics
from bastile_bench._end_to_end import jobs, options, providers
from bastile_bench._report import Column, describe_environment, format_table


def add_arguments(parser) -> None:
    """Adds the options of ``generate``."""
    options.add_common(parser, providers.DEFAULT, "qwen3")
    parser.add_argument(
        "--batch",
        type=options.positives,
        default=[1, 8],
        metavar="NUMBERS",
        help="sequences at a time (default 1,8)",
    )
    parser.add_argument(
        "--prompt",
        type=options.positives,
        default=[128, 1024],
        metavar="NUMBERS",
        help="tokens of the prompt (default 128,1024)",
    )
    parser.add_argument(
        "--new-tokens",
        type=_at_least_two,
        default=64,
        help="tokens to generate (default 64)",
    )
    parser.add_argument(
        "--repeats",
        type=options.positive,
        default=3,
        help="timed generations, after one untimed (default 3)",
    )
    parser.add_argument(
        "--cache",
        choices=("dynamic", "static"),
        default="dynamic",
        help="of keys and values, where nothing is compiled (default dynamic)",
    )


def _at_least_two(text):
    # There is no time between one token and the next with one.
    number = int(text)
    if number < 2:
        raise argparse.ArgumentTypeError(f"{number} is less than 2")
    return number


def run(arguments) -> int:
    """Measures, prints and writes; returns the exit status."""
    chosen = options.named_models(arguments)
    runners = options.named_providers(arguments)
    options.check(arguments)
    device = options.device(arguments)
    report = options.make_report("generate", arguments, device)
    print(describe_environment(report.document["environment"]), file=sys.stderr)
    budget = options.budget(arguments)
    for provider in runners:
        for model in chosen:
            job = _make_job(arguments, device, model, provider)
            outcome = jobs.run(job, budget, arguments.keep_caches)
            rows = _rows(job, model, outcome)
            report.add(*rows)
            for row in rows:
                print(_line(row), file=sys.stderr, flush=True)
    compare(report.rows)
    report.write()
    _print(report.rows, chosen)
    if arguments.plots is not None:
        from bastile_bench._end_to_end import figures

        figures.draw_generation(report.rows, arguments.plots)
    return options.status(report.rows)


def _make_job(arguments, device, model, provider):
    return {
        "task": "generate",
        "model": model.name,
        "provider": provider.name,
        "batches": arguments.batch,
        "prompts": arguments.prompt,
        "new_tokens": arguments.new_tokens,
        "repeats": arguments.repeats,
        "cache": arguments.cache,
        **options.base_job(arguments, device),
    }


def _rows(job, model, outcome):
    row = {
        "model": model.name,
        "title": model.title,
        "layers": job["layers"] or model.settings["num_hidden_layers"],
        "dtype": job["dtype"],
        "provider": job["provider"],
        "status": outcome.status,
    }
    if outcome.status != jobs.MEASURED:
        return [{**row, "message": outcome.message, "details": outcome.details}]
    values = dict(outcome.values)
    runs = values.pop("runs")
    return [{**row, **_figures_of(run), **values} for run in runs]


def _figures_of(run):
    """A run's samples as what people ask for: milliseconds and tokens/s."""

    def milliseconds(name):
        return _statistics.summarize([s * 1e3 for s in run[name]])

    tokens = run["batch"] * run["new_tokens"]
    return {
        "batch": run["batch"],
        "prompt": run["prompt"],
        "new_tokens": run["new_tokens"],
        "token_ms": milliseconds("token_seconds"),
        "prefill_ms": milliseconds("prefill_seconds"),
        "tokens_per_second": _statistics.summarize(
            [tokens / s for s in run["total_seconds"]]
        ),
        "first_call_seconds": run["first_call_seconds"],
        "peak_bytes": run["peak_bytes"],
        "tokens": run["tokens"],
    }


def _line(row):
    if row["status"] != jobs.MEASURED:
        return f"{row['model']} {row['provider']}: {row['status']}: {row['message']}"
    return (
        f"{row['model']} {row['provider']} batch {row['batch']}, prompt "
        f"{row['prompt']}: {row['token_ms']['median']:.2f} ms a token, "
        f"{row['tokens_per_second']['median']:,.0f} tokens/s"
    )


def _key(row):
    return row["model"], row.get("batch"), row.get("prompt")


def compare(rows: list) -> None:
    """Adds the speed beside the baseline's, and for how many tokens the first
    sequence is the baseline's."""
    baselines = {
        _key(row): row
        for row in rows
        if row["provider"] == providers.BASELINE and row["status"] == jobs.MEASURED
    }
    for row in rows:
        baseline = baselines.get(_key(row))
        if baseline is None or row["status"] != jobs.MEASURED:
            continue
        row["speed"] = baseline["token_ms"]["median"] / row["token_ms"]["median"]
        pairs = list(zip(row["tokens"], baseline["tokens"]))
        differing = (at for at, (a, b) in enumerate(pairs) if a != b)
        row["same_tokens"] = next(differing, len(pairs))


def _print(rows, models):
    for model in models:
        own = [row for row in rows if row["model"] == model.name]
        print(f"\n{own[0]['title']}, {own[0]['layers']} layers, {own[0]['dtype']}\n")
        measured = [row for row in own if row["status"] == jobs.MEASURED]
        measured.sort(key=lambda row: (row["batch"], row["prompt"]))
        if measured:
            print(format_table(measured, _COLUMNS))
        for row in own:
            if row["status"] != jobs.MEASURED:
                print(f"{row['provider']}: {row['status']}: {row['message']}")


_COLUMNS = [
    Column("batch", "batch"),
    Column("prompt", "prompt"),
    Column("provider", "provider", right=False),
    Column("a token, ms", lambda row: _statistics.spread_text(row["token_ms"], 2)),
    Column("x hf", lambda row: f"{row['speed']:.2f}" if "speed" in row else ""),
    Column("prompt, ms", "prefill_ms"),
    Column("tokens/s", lambda row: f"{row['tokens_per_second']['median']:,.0f}"),
    Column("peak, GB", lambda row: f"{row['peak_bytes'] / 1e9:.2f}"),
    Column("first call, s", lambda row: f"{row['first_call_seconds']:.2f}"),
    Column(
        "as hf",
        lambda row: (
            f"{row['same_tokens']} of {row['new_tokens']}"
            if "same_tokens" in row
            else ""
        ),
    ),
]

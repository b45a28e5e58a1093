# Part of Bastile, under the MIT License. See LICENSE.
"""Train whole models by several libraries: tokens/s, memory, the first step, losses.

Models of Transformers with random weights train on random tokens, each provider in
a process of its own, from the same weights and on the same data. `hf` also trains
on other data: the curves of the others have to lie closer to its curve than that.

  python -m bastile_bench train --model qwen3,llama,gpt_oss --output results/train.json
  python -m bastile_bench train --model qwen3 --batch 1 --seq 512 --providers hf,bastile
  python -m bastile_bench train --model qwen3 --providers hf,bastile,bastile+linear
  python -m bastile_bench train --model tiny-qwen3 --device cpu --providers hf,bastile
"""

import math
import sys

from bastile_bench import _statistics
from bastile_bench._end_to_end import agreement, jobs, options, providers
from bastile_bench._report import Column, describe_environment, format_table

#: What is compared with what in the summary.
_COMPARISONS = (
    ("bastile", "hf"),
    ("bastile", "liger"),
    ("bastile", "compile"),
    ("bastile+compile", "compile"),
    ("bastile+linear", "bastile"),
    ("bastile+linear+compile", "bastile+compile"),
)


def add_arguments(parser) -> None:
    """Adds the options of ``train``."""
    options.add_common(parser, providers.DEFAULT, "qwen3")
    add_shape(parser)
    parser.add_argument(
        "--steps",
        type=options.positive,
        default=10,
        help="timed steps, of which the median counts (default 10)",
    )


def add_shape(parser) -> None:
    """Adds the options of a training step."""
    positive = options.positive
    parser.add_argument(
        "--batch", type=positive, help="sequences a step (default the model's)"
    )
    parser.add_argument(
        "--seq", type=positive, help="tokens a sequence (default the model's)"
    )
    parser.add_argument(
        "--warmup",
        type=positive,
        default=3,
        help="steps before the timed ones (default 3)",
    )
    parser.add_argument(
        "--learning-rate", type=float, default=1e-4, help="of AdamW (default 1e-4)"
    )


def run(arguments) -> int:
    """Measures, prints and writes; returns the exit status."""
    chosen = options.named_models(arguments)
    runners = options.named_providers(arguments)
    options.check(arguments)
    device = options.device(arguments)
    report = options.make_report("train", arguments, device)
    print(describe_environment(report.document["environment"]), file=sys.stderr)
    budget = options.budget(arguments)
    # By provider first, so that what compiles for long comes last.
    for provider in runners:
        for model in chosen:
            job = make_job(arguments, device, model, provider)
            outcome = jobs.run(job, budget, arguments.keep_caches)
            row = _row(job, model, outcome)
            print(_line(row), file=sys.stderr, flush=True)
            report.rows.append(row)
            judge(report.rows)
            report.document["summary"] = summarize(report.rows)
            report.write()
    _print(report, chosen)
    if arguments.plots is not None:
        from bastile_bench._end_to_end import figures

        figures.draw_training(report.rows, arguments.plots)
    return options.status(report.rows)


def make_job(arguments, device, model, provider) -> dict:
    """The job of one provider; ``profile`` makes the same steps."""
    return {
        "task": "train",
        "model": model.name,
        "provider": provider.name,
        "batch": arguments.batch or model.batch,
        "seq": arguments.seq or model.seq,
        "warmup": arguments.warmup,
        "steps": arguments.steps,
        "learning_rate": arguments.learning_rate,
        **options.base_job(arguments, device),
    }


def describe(job, model) -> dict:
    """The beginning of a row: which model, in what shape, by whom."""
    return {
        "model": model.name,
        "title": model.title,
        "layers": job["layers"] or model.settings["num_hidden_layers"],
        "batch": job["batch"],
        "seq": job["seq"],
        "dtype": job["dtype"],
        "provider": job["provider"],
    }


def _row(job, model, outcome):
    row = {**describe(job, model), "status": outcome.status}
    if outcome.status != jobs.MEASURED:
        return {**row, "message": outcome.message, "details": outcome.details}
    values = dict(outcome.values)
    seconds = values.pop("step_seconds")
    tokens = job["batch"] * job["seq"]
    return {
        **row,
        "tokens_per_second": _statistics.summarize([tokens / s for s in seconds]),
        "step_ms": _statistics.summarize([s * 1e3 for s in seconds]),
        "steps_ms": [round(s * 1e3, 4) for s in seconds],
        **values,
    }


def _line(row):
    where = f"{row['model']} {row['batch']}x{row['seq']} {row['provider']}"
    if row["status"] != jobs.MEASURED:
        return f"{where}: {row['status']}: {row['message']}"
    return (
        f"{where}: {row['tokens_per_second']['median']:,.0f} tokens/s, "
        f"{row['peak_bytes'] / 1e9:.1f} GB, "
        f"first step {row['first_step_seconds']:.1f} s"
    )


def _measured(rows, model):
    """The measured rows of a model, by provider."""
    return {
        row["provider"]: row
        for row in rows
        if row["model"] == model and row["status"] == jobs.MEASURED
    }


def judge(rows: list) -> None:
    """Adds to each row what its losses are worth beside the baseline's."""
    for row in rows:
        baseline = _measured(rows, row["model"]).get(providers.BASELINE)
        if row["status"] != jobs.MEASURED or baseline in (None, row):
            continue
        other = baseline["other_losses"]
        row.update(agreement.judge(row["losses"], baseline["losses"], other))
        row["same_weights"] = math.isclose(
            row["fingerprint"], baseline["fingerprint"], rel_tol=1e-9
        )
        row["gradient"] = row["gradient_norm"] / baseline["gradient_norm"]
        # Curves from other weights say nothing, however close they are.
        row["agrees"] = row["agrees"] and row["same_weights"]


def summarize(rows: list) -> list:
    """Speed and memory of one provider by those of another, for each model."""
    found = []
    for model in dict.fromkeys(row["model"] for row in rows):
        measured = _measured(rows, model)
        for ours, theirs in _COMPARISONS:
            if ours not in measured or theirs not in measured:
                continue
            first, second = measured[ours], measured[theirs]
            found.append(
                {
                    "model": model,
                    "batch": first["batch"],
                    "seq": first["seq"],
                    "provider": ours,
                    "beside": theirs,
                    "speed": first["tokens_per_second"]["median"]
                    / second["tokens_per_second"]["median"],
                    "memory": first["peak_bytes"] / second["peak_bytes"],
                }
            )
    return found


def _print(report, models):
    rows = report.rows
    order = [model.name for model in models]
    for name in order:
        ours = [row for row in rows if row["model"] == name]
        first = ours[0]
        print(
            f"\n{first['title']}, {first['layers']} layers, {first['batch']} x "
            f"{first['seq']} tokens, {first['dtype']}, AdamW\n"
        )
        print(format_table(ours, _columns(_measured(rows, name))))
        print_notes(ours)
        _print_losses(_measured(rows, name))
    if report.document["summary"]:
        print("\nSpeed and peak memory, as multiples\n")
        print(format_table(report.document["summary"], _SUMMARY_COLUMNS))


_SUMMARY_COLUMNS = [
    Column("model", "model", right=False),
    Column("shape", lambda row: f"{row['batch']}x{row['seq']}"),
    Column("provider", "provider", right=False),
    Column("beside", "beside", right=False),
    Column("speed", lambda row: f"{row['speed']:.2f}"),
    Column("memory", lambda row: f"{row['memory']:.2f}"),
]


def _columns(measured):
    baseline = measured.get(providers.BASELINE)

    def when_measured(text):
        return lambda row: text(row) if row["status"] == jobs.MEASURED else ""

    def times(row):
        if baseline is None:
            return ""
        ratio = (
            row["tokens_per_second"]["median"] / baseline["tokens_per_second"]["median"]
        )
        return f"{ratio:.2f}"

    return [
        Column("provider", "provider", right=False),
        Column(
            "tokens/s",
            when_measured(lambda row: f"{row['tokens_per_second']['median']:,.0f}"),
        ),
        Column("x hf", when_measured(times)),
        Column("step, ms", "step_ms"),
        Column("peak, GB", when_measured(lambda row: f"{row['peak_bytes'] / 1e9:.2f}")),
        Column(
            "first step, s",
            when_measured(lambda row: f"{row['first_step_seconds']:.2f}"),
        ),
        Column("last loss", when_measured(lambda row: f"{row['losses'][-1]:.4f}")),
        Column(
            "gradient",
            lambda row: f"{row['gradient']:.4f}" if "gradient" in row else "",
        ),
        Column("largest gap", lambda row: _gap_text(row)),
        Column("curve", lambda row: _verdict(row), right=False),
    ]


def _gap_text(row):
    if "loss_gap" not in row:
        return ""
    return f"{row['loss_gap']:.4f} of {row['loss_gap_allowed']:.4f}"


def _verdict(row):
    if row["status"] != jobs.MEASURED:
        return row["status"]
    if "agrees" not in row:
        return "the baseline" if row["provider"] == providers.BASELINE else ""
    if not row["same_weights"]:
        return "OTHER WEIGHTS"
    return "agrees" if row["agrees"] else "DISAGREES"


def print_notes(rows) -> None:
    """Says why rows have no figures."""
    for row in rows:
        if row["status"] != jobs.MEASURED:
            print(f"{row['provider']}: {row['status']}: {row['message']}")


def _print_losses(measured):
    baseline = measured.get(providers.BASELINE)
    curves = {name: row["losses"] for name, row in measured.items()}
    if baseline is not None:
        curves["hf, other data"] = baseline["other_losses"]
    if not curves:
        return
    steps = range(max(map(len, curves.values())))
    lines = [
        {name: f"{curve[step]:.4f}" for name, curve in curves.items()}
        | {"step": step + 1}
        for step in steps
    ]
    columns = [Column(name, name) for name in ("step", *curves)]
    print("\nLoss of each step\n")
    print(format_table(lines, columns))

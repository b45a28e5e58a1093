# Part of Bastile, under the MIT License. See LICENSE.
"""Update a policy by GRPO with several libraries' heads: tokens/s, memory.

A model of Transformers with random weights takes steps of GRPO on completions of random
tokens, each library in a process of its own, from the same weights and on the same
data. What samples is not part of it. The rows:

  trl           Transformers' layers and the head that TRL's trainers give a model
  liger         Liger's layers and its loss of hidden states
  bastile-head  as trl, with Bastile's log-probabilities in TRL's head
  bastile       Bastile's layers as well

  python -m bastile_bench grpo --output results/grpo.json
  python -m bastile_bench grpo --model tiny-qwen3 --device cpu --providers trl,bastile
"""

import math
import sys

from bastile_bench import _statistics
from bastile_bench._end_to_end import grpo_task, jobs, options
from bastile_bench._report import Column, describe_environment, format_table


def add_arguments(parser) -> None:
    """Adds the options of ``grpo``."""
    positive = options.positive
    options.add_common(parser, ",".join(grpo_task.RUNNERS), "qwen3")
    for name, default, what in (
        ("--batch", 8, "completions a step"),
        ("--prompt", 128, "tokens of a prompt"),
        ("--completion", 1024, "tokens of a completion"),
        ("--warmup", 3, "steps before the timed ones"),
        ("--steps", 10, "timed steps, of which the median counts"),
    ):
        parser.add_argument(
            name, type=positive, default=default, help=f"{what} (default {default})"
        )
    parser.add_argument(
        "--learning-rate", type=float, default=1e-5, help="of AdamW (default 1e-5)"
    )


def run(arguments) -> int:
    """Measures, prints and writes; returns the exit status."""
    model, *others = options.named_models(arguments)
    if others:
        raise ValueError("--model: grpo measures one model at a time")
    if arguments.plots is not None:
        raise ValueError("--plots: grpo draws none")
    runners = _named_runners(arguments)
    options.check(arguments)
    device = options.device(arguments)
    report = options.make_report("grpo", arguments, device)
    print(describe_environment(report.document["environment"]), file=sys.stderr)
    budget = options.budget(arguments)
    for name in runners:
        job = _make_job(arguments, device, model, name)
        row = _row(job, model, jobs.run(job, budget, arguments.keep_caches))
        print(_line(row), file=sys.stderr, flush=True)
        report.rows.append(row)
        _judge(report.rows)
        report.write()
    print(
        f"\n{model.title}, {arguments.batch} completions of {arguments.completion} "
        f"tokens after {arguments.prompt}, {arguments.dtype}, GRPO, AdamW\n"
    )
    print(format_table(report.rows, _COLUMNS))
    for row in report.rows:
        if row["status"] != jobs.MEASURED:
            print(f"{row['provider']}: {row['status']}: {row['message']}")
    return options.status(report.rows)


def _named_runners(arguments):
    names = [name.strip() for name in arguments.providers.split(",")]
    for name in names:
        if name not in grpo_task.RUNNERS:
            raise ValueError(
                f"there is no provider '{name}': it is one of "
                f"{', '.join(grpo_task.RUNNERS)}"
            )
    return names


def _make_job(arguments, device, model, name):
    return {
        "task": "grpo",
        "model": model.name,
        "provider": name,
        "batch": arguments.batch,
        "prompt": arguments.prompt,
        "completion": arguments.completion,
        "warmup": arguments.warmup,
        "steps": arguments.steps,
        "learning_rate": arguments.learning_rate,
        **options.base_job(arguments, device),
    }


def _row(job, model, outcome):
    row = {
        "title": model.title,
        **{name: job[name] for name in ("model", "batch", "prompt", "completion")},
        "layers": job["layers"] or model.settings["num_hidden_layers"],
        "dtype": job["dtype"],
        "provider": job["provider"],
        "status": outcome.status,
    }
    if outcome.status != jobs.MEASURED:
        return {**row, "message": outcome.message, "details": outcome.details}
    values = dict(outcome.values)
    seconds = values.pop("step_seconds")
    tokens = job["batch"] * job["completion"]
    return {
        **row,
        "tokens_per_second": _statistics.summarize([tokens / s for s in seconds]),
        "step_ms": _statistics.summarize([s * 1e3 for s in seconds]),
        **values,
    }


def _line(row):
    if row["status"] != jobs.MEASURED:
        return f"{row['provider']}: {row['status']}: {row['message']}"
    return (
        f"{row['provider']}: {row['tokens_per_second']['median']:,.0f} tokens/s, "
        f"{row['peak_bytes'] / 1e9:.1f} GB"
    )


#: How far apart two honest norms of the first gradient may lie, as a share.
_GRADIENT_BOUND = 0.02


def _judge(rows):
    """Adds to each row what it is beside the baseline."""
    measured = [row for row in rows if row["status"] == jobs.MEASURED]
    baseline = next(
        (row for row in measured if row["provider"] == grpo_task.BASELINE), None
    )
    for row in measured:
        if baseline is None or row is baseline:
            continue
        row["gradient"] = row["gradient_norm"] / baseline["gradient_norm"]
        row["loss_gap"] = max(
            abs(a - b) for a, b in zip(row["losses"], baseline["losses"])
        )
        row["speed"] = (
            row["tokens_per_second"]["median"] / baseline["tokens_per_second"]["median"]
        )
        row["memory"] = row["peak_bytes"] / baseline["peak_bytes"]
        is_same = math.isclose(
            row["fingerprint"], baseline["fingerprint"], rel_tol=1e-9
        )
        row["agrees"] = is_same and abs(row["gradient"] - 1) <= _GRADIENT_BOUND


def _when(key, text):
    return lambda row: text(row[key]) if key in row else ""


_COLUMNS = [
    Column("provider", "provider", right=False),
    Column("tokens/s", _when("tokens_per_second", lambda x: f"{x['median']:,.0f}")),
    Column("x trl", _when("speed", "{:.2f}".format)),
    Column("step, ms", "step_ms"),
    Column("peak, GB", _when("peak_bytes", lambda x: f"{x / 1e9:.2f}")),
    Column("of trl's", _when("memory", "{:.2f}".format)),
    Column("gradient", _when("gradient", "{:.4f}".format)),
    Column("largest gap", _when("loss_gap", "{:.5f}".format)),
    Column("", _when("agrees", lambda x: "agrees" if x else "DISAGREES"), right=False),
]

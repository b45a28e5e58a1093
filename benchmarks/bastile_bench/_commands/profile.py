# Part of Bastile, under the MIT License. See LICENSE.
"""Show where the time of a training step goes, before and after patching.

Each kernel counts for what it is for: a matrix product, attention, a norm, ... That
shows what faster kernels can buy for a model, and what they cannot. A part called
idle is the GPU waiting for the host.

  python -m bastile_bench profile --model qwen3 --plots plots
  python -m bastile_bench profile --model gpt_oss --providers hf,liger,bastile
  python -m bastile_bench profile --model tiny-llama --device cpu
"""

import sys

from bastile_bench import _statistics
from bastile_bench._commands import train
from bastile_bench._end_to_end import categories, jobs, options
from bastile_bench._report import Column, describe_environment, format_table


def add_arguments(parser) -> None:
    """Adds the options of ``profile``."""
    options.add_common(parser, "hf,bastile", "qwen3")
    train.add_shape(parser)
    parser.add_argument(
        "--steps",
        type=options.positive,
        default=5,
        help="timed steps that nothing watches (default 5)",
    )
    parser.add_argument(
        "--profile-steps",
        type=options.positive,
        default=2,
        help="steps that are looked into (default 2)",
    )
    parser.add_argument(
        "--top",
        type=int,
        default=12,
        help="kernels to list for each provider (default 12)",
    )


def run(arguments) -> int:
    """Measures, prints and writes; returns the exit status."""
    chosen = options.named_models(arguments)
    runners = options.named_providers(arguments)
    options.check(arguments)
    device = options.device(arguments)
    report = options.make_report("profile", arguments, device)
    print(describe_environment(report.document["environment"]), file=sys.stderr)
    budget = options.budget(arguments)
    for provider in runners:
        for model in chosen:
            job = train.make_job(arguments, device, model, provider)
            job.update(task="profile", profile_steps=arguments.profile_steps)
            outcome = jobs.run(job, budget, arguments.keep_caches)
            row = {**train.describe(job, model), "status": outcome.status}
            report.add({**row, **_figures_of(outcome)})
            print(_line(report.rows[-1]), file=sys.stderr, flush=True)
    for model in chosen:
        _print([row for row in report.rows if row["model"] == model.name], arguments)
    if arguments.plots is not None:
        from bastile_bench._end_to_end import figures

        figures.draw_profiles(report.rows, categories.CATEGORIES, arguments.plots)
    return options.status(report.rows)


def _figures_of(outcome):
    if outcome.status != jobs.MEASURED:
        return {"message": outcome.message, "details": outcome.details}
    values = dict(outcome.values)
    seconds = values.pop("step_seconds")
    step = _statistics.summarize([s * 1e3 for s in seconds])
    busy = values.pop("busy_seconds")
    busy = step["median"] if busy is None else busy * 1e3
    return {
        "step_ms": step,
        "busy_ms": busy,
        "categories": split(step["median"], busy, values["kernels"]),
        **values,
    }


def split(step: float, busy: float, kernels: list) -> dict:
    """Milliseconds of each category, idle among them.

    ``step`` and ``busy`` are in milliseconds. What watches a step slows the host
    down, so that idle is what a step that nothing watched took beyond its kernels.
    """
    found = {}
    for kernel in kernels:
        name = kernel["category"]
        found[name] = found.get(name, 0.0) + kernel["seconds"] * 1e3
    found["idle"] = max(0.0, step - busy)
    return {name: found[name] for name in categories.CATEGORIES if name in found}


def _line(row):
    where = f"{row['model']} {row['batch']}x{row['seq']} {row['provider']}"
    if row["status"] != jobs.MEASURED:
        return f"{where}: {row['status']}: {row['message']}"
    return (
        f"{where}: {row['step_ms']['median']:.1f} ms a step, "
        f"{row['busy_ms']:.1f} with a kernel running"
    )


def _print(rows, arguments):
    first = rows[0]
    print(
        f"\n{first['title']}, {first['layers']} layers, {first['batch']} x "
        f"{first['seq']} tokens: milliseconds of a step, and their share\n"
    )
    measured = [row for row in rows if row["status"] == jobs.MEASURED]
    if measured:
        print(format_table(*_table(measured)))
    train.print_notes(rows)
    for row in measured:
        _print_bound(row)
    for row in measured:
        _print_kernels(row, arguments.top)
        _print_waits(row, arguments.top)


def _table(measured):
    lines = []
    for category in (*categories.CATEGORIES, "step"):
        line = {"category": category}
        for row in measured:
            step = row["step_ms"]["median"]
            value = step if category == "step" else row["categories"].get(category)
            if value is not None:
                line[row["provider"]] = f"{value:.2f} {value / step:>4.0%}"
        if len(line) > 1:
            lines.append(line)
    columns = [Column("", "category", right=False)]
    columns += [Column(row["provider"], row["provider"]) for row in measured]
    return lines, columns


def bound(parts: dict) -> float:
    """How many times as fast a step would be if it were made of nothing but what
    the kernels of this package take no part in. ``parts`` is what `split` returns."""
    kept = sum(parts.get(name, 0.0) for name in categories.NOT_OURS)
    return sum(parts.values()) / kept if kept else float("inf")


def _print_bound(row):
    parts = row["categories"]
    idle = parts["idle"] / row["step_ms"]["median"]
    print(
        f"\n{row['provider']}: with {', '.join(_ours(parts)) or 'nothing else'} at no "
        f"cost, a step would be {bound(parts):.2f} times as fast"
        + (f"; the GPU waits for the host {idle:.0%} of it" if idle > 0.05 else "")
        + "."
    )


def _ours(parts):
    return [name for name in parts if name not in categories.NOT_OURS]


def _print_kernels(row, top):
    if top < 1:
        return
    print(f"\n{row['provider']}, the longest kernels of a step\n")
    print(format_table(row["kernels"][:top], _KERNEL_COLUMNS))


def _print_waits(row, top):
    if top < 1 or not row["waits"]:
        return
    print(f"\n{row['provider']}, where the host may wait for the GPU in a step\n")
    print(format_table(row["waits"][:top], _WAIT_COLUMNS))


_WAIT_COLUMNS = [
    Column("ms", lambda wait: f"{wait['seconds'] * 1e3:.3f}"),
    Column("calls", lambda wait: f"{wait['count']:.0f}"),
    Column("call", "name", right=False),
    # Of a long way, the end says what it is.
    Column("in", lambda wait: wait["within"][-90:], right=False),
]

_KERNEL_COLUMNS = [
    Column("ms", lambda kernel: f"{kernel['seconds'] * 1e3:.3f}"),
    Column("runs", lambda kernel: f"{kernel['count']:.0f}"),
    Column("for", "category", right=False),
    # Templates make names of a thousand characters.
    Column("kernel", lambda kernel: kernel["name"][:90], right=False),
]

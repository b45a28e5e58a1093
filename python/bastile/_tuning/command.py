# Part of Bastile, under the MIT License. See LICENSE.
"""``python -m bastile tune``: tuning from the command line."""

import json
import pathlib

from bastile import _bastile
from bastile._compiler import loading
from bastile._tuning import api, jobs, store


def add_command(subparsers) -> None:
    parser = subparsers.add_parser(
        "tune",
        help="time the schedules of kernels on this GPU and keep the fastest",
        description="Times the schedules of kernels on this GPU. The fastest are "
        "used from then on; --out writes them as a table besides.",
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--preset", help="a list that comes along: models")
    what.add_argument("--op", help="an op, of rows as --shape and --dtype say")
    parser.add_argument(
        "--shape",
        help="of the first operand, as in 8192x2880, or of several by name, as in "
        '\'{"input": [8192, 2880], "weight": [2880]}\'; operands that the op can do '
        "without are left out unless they are named",
    )
    parser.add_argument("--dtype", default="bf16")
    parser.add_argument(
        "--grad", action="store_true", help="tune the gradients as well"
    )
    parser.add_argument(
        "--attributes", type=json.loads, default={}, help="of the op, as JSON"
    )
    parser.add_argument(
        "--budget", type=float, default=60, help="seconds for everything (60)"
    )
    parser.add_argument("--device", type=int, default=0)
    parser.add_argument("--out", help="the table to write or to add to")
    parser.set_defaults(run=run, parser=parser)


def run(arguments) -> int:
    made = _make_jobs(arguments)
    gpu = _bastile.describe_gpu(arguments.device)["name"]

    def keep(result):
        if arguments.out:
            add_to_table(arguments.out, gpu, result)

    results = api.run_jobs(
        made,
        device=arguments.device,
        budget=arguments.budget,
        gpu=gpu,
        report=keep,
    )
    print(format_table(results))
    if len(results) < len(made):
        print(
            f"{len(made) - len(results)} of {len(made)} were not tuned in "
            f"{arguments.budget:g} s; run this again to go on"
        )
    return 0


def _make_jobs(arguments):
    if arguments.preset:
        specs = jobs.read_preset(arguments.preset)
    else:
        if not arguments.shape:
            arguments.parser.error("--op needs a --shape")
        specs = [
            jobs.Spec(
                arguments.op,
                read_shape(arguments.shape),
                arguments.dtype,
                arguments.grad,
                attributes=arguments.attributes,
            )
        ]
    target = loading.gpu_target(arguments.device)
    return [jobs.make_job(spec, target) for spec in specs]


def read_shape(text):
    """Sizes as in ``8192x2880``, or JSON of sizes by name."""
    if text.startswith("{"):
        return json.loads(text)
    return [int(size) for size in text.split("x")]


def add_to_table(path, gpu, result) -> None:
    """Adds the line of a result to a table on disk. This is done for each result, so
    that a run that is killed loses none."""
    try:
        table = store.read_table(pathlib.Path(path))
    except FileNotFoundError:
        table = store.Table()
    table.add(api.entry(result, gpu))
    store.write_table(path, gpu, _bastile.__version__, table.entries())


def format_table(results) -> str:
    head = ("kernel", "of", "heuristic us", "best us", "gain", "best schedule")
    lines = [head]
    for result in results:
        for kernel in result.kernels:
            lines.append(
                (
                    kernel.kernel,
                    result.job.describe(),
                    f"{kernel.heuristic_seconds * 1e6:.1f}",
                    f"{kernel.seconds * 1e6:.1f}",
                    f"{kernel.gain:.3f}",
                    kernel.schedule if kernel.pins else "the heuristic's",
                )
            )
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(line, widths)).rstrip()
        for line in lines
    )

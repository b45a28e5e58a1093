# Part of Bastile, under the MIT License. See LICENSE.
"""What the commands on whole models have in common."""

import argparse
import importlib.util
import pathlib
import sys

from bastile_bench import _environment, _report
from bastile_bench._end_to_end import jobs, models, providers


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


def positives(text: str) -> list:
    """The numbers of "1,8"."""
    return [positive(part) for part in text.split(",")]


def add_common(parser, default_providers: str, default_models: str) -> None:
    """Adds the options of model, provider, device, time and results."""
    parser.add_argument(
        "--model",
        default=default_models,
        metavar="NAMES",
        help=f"{', '.join(models.MODELS)}, or tiny- and one of them; several by "
        f"commas (default {default_models})",
    )
    parser.add_argument("--layers", type=positive, help="layers (default the model's)")
    parser.add_argument(
        "--providers",
        default=default_providers,
        metavar="NAMES",
        help="hf, liger, bastile, compile, liger+compile, bastile+compile, "
        "bastile+linear, bastile+linear+compile, bastile+adamw, bastile+adamw+compile "
        f"(default {default_providers})",
    )
    parser.add_argument("--device", help="cuda, cuda:1 or cpu (default: what there is)")
    parser.add_argument("--dtype", choices=("bfloat16", "float32"), default="bfloat16")
    parser.add_argument(
        "--attention",
        metavar="NAME",
        help="Transformers' attn_implementation (default its own choice)",
    )
    parser.add_argument("--seed", type=int, default=0, help="of weights and data")
    parser.add_argument(
        "--compile-backend",
        default="inductor",
        metavar="NAME",
        help="of torch.compile (default inductor)",
    )
    parser.add_argument(
        "--output", metavar="PATH", type=pathlib.Path, help="a .json file for results"
    )
    parser.add_argument(
        "--plots", metavar="FOLDER", type=pathlib.Path, help="a folder for plots (PNG)"
    )
    parser.add_argument(
        "--budget-seconds",
        type=float,
        metavar="S",
        help="start nothing later, and end what runs then (default no limit)",
    )
    parser.add_argument(
        "--job-seconds",
        type=float,
        default=600.0,
        metavar="S",
        help="end one model of one provider then (default 600)",
    )
    parser.add_argument(
        "--keep-caches",
        action="store_true",
        help="use code that compilers kept on disk; by default each provider starts "
        "without any, so that its first step is a first one",
    )


def device(arguments) -> str:
    """The device to run on, "cpu" or one as "cuda:0". Raises ``ValueError`` where it
    is not there."""
    import torch

    has_gpu = torch.cuda.is_available()
    is_tiny = all(
        name.strip().startswith("tiny-") for name in arguments.model.split(",")
    )
    if not (has_gpu or arguments.device or is_tiny):
        raise ValueError(
            f"PyTorch sees no GPU, and on the CPU '{arguments.model}' takes very long: "
            f"try --model tiny-{arguments.model.partition(',')[0]}, or insist by "
            "--device cpu"
        )
    chosen = arguments.device or ("cuda" if has_gpu else "cpu")
    kind, _, number = chosen.partition(":")
    if kind not in ("cpu", "cuda") or (number and not number.isdigit()):
        raise ValueError(f"--device is cpu, cuda or cuda:1, but is '{chosen}'")
    if kind == "cpu":
        return kind
    if not has_gpu:
        raise ValueError(f"--device {chosen}: PyTorch sees no GPU")
    count = torch.cuda.device_count()
    if int(number or 0) >= count:
        raise ValueError(f"--device {chosen}: there is no such one of {count} GPUs")
    return f"cuda:{number or 0}"


def _require(name, why, extra):
    if importlib.util.find_spec(name) is None:
        raise ImportError(
            f"{name} is not installed, and {why}: pip install 'bastile-mlir[{extra}]'"
        )


def base_job(arguments, device: str) -> dict:
    """What the jobs of all tasks say."""
    return {
        "device": device,
        "dtype": arguments.dtype,
        "layers": arguments.layers,
        "attention": arguments.attention,
        "seed": arguments.seed,
        "compile_backend": arguments.compile_backend,
    }


def named_models(arguments) -> list:
    """The models named. Raises ``ValueError``."""
    return [models.find(name.strip()) for name in arguments.model.split(",")]


def named_providers(arguments) -> list:
    """The providers named. Raises ``ValueError``."""
    return providers.parse(arguments.providers)


def budget(arguments) -> jobs.Budget:
    return jobs.Budget(arguments.budget_seconds, arguments.job_seconds)


def make_report(name: str, arguments, device: str) -> _report.Report:
    """The results of command ``name``: in the file that ``--output`` names, or in
    ``NAME.json`` of the folder that it names."""
    folder = stem = None
    if arguments.output is not None:
        is_file = arguments.output.suffix == ".json"
        folder = arguments.output.parent if is_file else arguments.output
        stem = arguments.output.stem if is_file else name
    report = _report.Report(stem or name, _environment.describe(device), folder)
    report.document["command"] = " ".join([name, *sys.argv[2:]])
    report.write()
    return report


def check(arguments) -> None:
    """Raises ``ImportError`` with what to install, or ``OSError`` where plots cannot
    be written, before anything is measured."""
    _require("transformers", "the models are those of Transformers", "transformers")
    if arguments.plots is not None:
        _require("matplotlib", "--plots draws with it", "bench")
        # What cannot be written is better known now than after measuring.
        arguments.plots.mkdir(parents=True, exist_ok=True)


def status(rows: list) -> int:
    """The exit status: 1 where Bastile or the baseline failed, or Bastile's losses
    are not the baseline's."""
    ours = [
        row
        for row in rows
        if row["provider"] == providers.BASELINE or "bastile" in row["provider"]
    ]
    is_bad = any(
        row["status"] == jobs.FAILED or row.get("agrees") is False for row in ours
    )
    return int(is_bad)

# Part of Bastile, under the MIT License. See LICENSE.
"""Options that several commands have."""

import argparse
import sys

from bastile_bench import _environment, _ops, _providers
from bastile_bench._report import Report, describe_environment

#: By the names of the dialect.
DTYPES = {"bf16": "bfloat16", "f16": "float16", "f32": "float32"}


def add_common(parser: argparse.ArgumentParser) -> None:
    """Ops, providers, element type, device and where results go."""
    parser.add_argument(
        "--ops",
        nargs="+",
        choices=_ops.OPS,
        metavar="OP",
        help=f"of {', '.join(_ops.OPS)} (all)",
    )
    parser.add_argument(
        "--providers",
        type=provider_names,
        default=list(_providers.PROVIDERS),
        metavar="LIST",
        help=f"of {','.join(_providers.PROVIDERS)} (all that are installed)",
    )
    parser.add_argument("--dtype", choices=DTYPES, default="bf16", help="(bf16)")
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1 or cpu (cuda)")
    add_folder(parser)


def add_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out",
        default="bench-results",
        metavar="DIR",
        help="folder for the results (bench-results)",
    )
    parser.add_argument(
        "--no-plots", action="store_true", help="draw nothing; plot can do it later"
    )


def add_timing(parser: argparse.ArgumentParser, rounds: int) -> None:
    """Timed calls, element type, device and where results go."""
    parser.add_argument(
        "--rounds",
        type=int,
        default=rounds,
        help=f"timed calls of a row ({rounds})",
    )
    parser.add_argument("--dtype", choices=DTYPES, default="bf16", help="(bf16)")
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1 or cpu (cuda)")
    add_folder(parser)


def of_preset(add_arguments, words, arguments, names) -> argparse.Namespace:
    """The arguments of the command whose parser has ``add_arguments``, called with
    ``words``, with those called ``names`` of the command that has a preset of it."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    found = parser.parse_args(words)
    for name in names:
        setattr(found, name, getattr(arguments, name))
    return found


def parse_sizes(text: str) -> tuple:
    """The sizes in ``8192x2880``, all at least 1; none if the text has others."""
    try:
        sizes = tuple(int(size) for size in text.split("x"))
    except ValueError:
        return ()
    return sizes if min(sizes) >= 1 else ()


def provider_names(text: str) -> list:
    """The names in ``bastile,torch``."""
    names = [name for name in text.split(",") if name]
    for name in names:
        if name not in _providers.PROVIDERS:
            raise argparse.ArgumentTypeError(
                f"there is no provider '{name}'; there are "
                f"{', '.join(_providers.PROVIDERS)}"
            )
    return names


def require_torch():
    """PyTorch. Raises ``ImportError`` with what to install."""
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            "measuring needs PyTorch; install bastile-mlir[torch]"
        ) from error
    return torch


def find_ops(names) -> list:
    return [op for op in _ops.OPS.values() if not names or op.name in names]


def open_all(arguments):
    """The device, the providers that are installed and PyTorch's element type.

    Raises what `open_providers` does.
    """
    device, providers = open_providers(arguments)
    return device, providers, getattr(require_torch(), DTYPES[arguments.dtype])


def open_providers(arguments):
    """The device, and the providers that are installed.

    Raises ``RuntimeError`` where there is no such device, ``ImportError`` without
    PyTorch and ``ValueError`` where no provider is left.
    """
    require_torch()
    from bastile_bench import _device

    device = _device.open_device(arguments.device)
    left_out = []
    providers = _providers.load(arguments.providers, left_out.append)
    if not providers:
        raise ValueError(
            f"no provider is left, nothing to measure: {'; '.join(left_out)}"
        )
    for words in left_out:
        print(words)
    return device, providers


def open_report(name, arguments):
    """The device, PyTorch's element type, and the report ``name``, whose environment is
    printed.

    Raises ``RuntimeError`` where there is no such device and ``ImportError`` without
    PyTorch.
    """
    torch = require_torch()
    from bastile_bench import _device

    device = _device.open_device(arguments.device)
    environment = _environment.describe(arguments.device)
    report = Report(name, environment, arguments.out)
    print(describe_environment(environment))
    return device, getattr(torch, DTYPES[arguments.dtype]), report


def left_out(arguments, providers) -> list:
    """The names of providers that were asked for and are not installed."""
    found = [loaded.name for loaded in providers]
    return [name for name in arguments.providers if name not in found]


def finish(report, arguments) -> int:
    """Draws the results, says where they are, and returns the exit status: 1 if
    Bastile failed."""
    from bastile_bench._commands import plot

    print(f"\nresults: {report.path} and {report.path.with_suffix('.csv')}")
    if not arguments.no_plots and report.rows:
        try:
            print(f"plots: {plot.draw(report.path)}")
        except ImportError as error:
            print(f"no plots: {error}", file=sys.stderr)
    failed = [row for row in report.rows if row["status"] == "failed"]
    return 1 if any(row["provider"] == "bastile" for row in failed) else 0

# Part of Bastile, under the MIT License. See LICENSE.
"""Time what a call costs the host, beside PyTorch's own.

Tensors are so small (4x64) that the device is done before the next call is: what is
left is the host's share. The libraries take turns; a number is the median of blocks
of calls.

  inference   a forward without gradients
  forward     a forward that records what its backward needs
  both        a forward and its backward

The ratio is to torch.nn.functional.rms_norm's call of the same kind.
"""

from bastile_bench import _environment, _options
from bastile_bench._progress import Progress
from bastile_bench._providers import PROVIDERS
from bastile_bench._report import Column, Report, describe_environment, format_table

_BLOCKS, _CALLS = 15, 200
_CHAIN = 50


def add_arguments(parser) -> None:
    _options.add_common(parser)


def run(arguments) -> int:
    """Measures, prints and writes; 1 if a call of Bastile's failed."""
    from bastile_bench import _host

    device, providers, dtype = _options.open_all(arguments)
    environment = _environment.describe(arguments.device)
    report = Report("host", environment, arguments.out)
    report.document["left_out"] = _options.left_out(arguments, providers)
    print(describe_environment(environment))
    ops = _options.find_ops(arguments.ops)
    references = {}
    with Progress("measuring", len(ops) + 2) as progress:
        progress.step("PyTorch's rms_norm", 0)
        references = _reference_times(device, dtype)
        progress.step()
        calls = _measure_others(arguments.providers, device, dtype)
        report.add(*_rows(calls, references, arguments.dtype))
        progress.step()
        for op in ops:
            progress.step(op.name, 0)
            times = _host.measure_op(
                op, providers, dtype, device, blocks=_BLOCKS, calls=_CALLS
            )
            times = {(op.name, *key): value for key, value in times.items()}
            report.add(*_rows(times, references, arguments.dtype))
            progress.step()
    print(format_table(report.rows, COLUMNS))
    return _options.finish(report, arguments)


def _reference_times(device, dtype):
    """Medians of torch.nn.functional.rms_norm by kind, in microseconds."""
    from bastile_bench import _host, _ops

    times = _host.measure_op(
        _ops.OPS["rms_norm"],
        [PROVIDERS["torch"].load()],
        dtype,
        device,
        blocks=_BLOCKS,
        calls=_CALLS,
    )
    return {kind: times["torch", kind]["median"] for _, kind in times}


def _measure_others(wanted, device, dtype):
    """Calls beside the ops: PyTorch's least, and Bastile's other ways in."""
    from bastile_bench import _host

    functions = {}
    if "torch" in wanted:
        for name, call in _host.eager_calls(device, dtype).items():
            functions[name, "torch", "inference"] = call
    if "bastile" in wanted:
        for name, call in _host.bastile_calls(device, dtype, _CHAIN).items():
            functions[name, "bastile", "inference"] = call
    times = _host.measure_calls(functions, device, _BLOCKS, _CALLS)
    for (name, *_), measured in times.items():
        if str(_CHAIN) in name and isinstance(measured, dict):
            for key in ("median", "low", "high"):
                measured[key] /= _CHAIN
    return times


def _rows(times, references, dtype):
    for (op, provider, kind), measured in times.items():
        row = {"op": op, "direction": kind, "dtype": dtype, "provider": provider}
        if isinstance(measured, str):
            yield {**row, "status": "failed", "error": measured}
            continue
        ratio = measured["median"] / references[kind]
        yield {**row, "status": "ok", "host_us": measured, "ratio": ratio}


COLUMNS = [
    Column("op", "op", right=False),
    Column("direction", "direction", right=False),
    Column("library", lambda row: PROVIDERS[row["provider"]].title, right=False),
    Column("host us", "host_us"),
    Column("ratio", lambda row: f"{row['ratio']:.2f}" if "ratio" in row else ""),
    Column("", lambda row: row.get("error", ""), right=False),
]

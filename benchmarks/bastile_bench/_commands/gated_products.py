# Part of Bastile, under the MIT License. See LICENSE.
"""Time a gated layer's products and activation as one kernel, and apart.

What `bastile.apply(..., linear=True)` decides by: "kept" is one kernel that also writes
the gate and up for a backward, "alone" one that writes the result alone, "apart" the
products by PyTorch (cuBLAS) and the activation in Bastile's kernel. The lines that are
printed last are those of `FIGURES` in python/bastile/_patching/products/sizes.py.

"step" is a forward and its backward, with gradients of rows and weights: "step, one" is
what a patched model runs with linear=True, "step, apart" what it runs without it, "step,
derived" the backward of one kernel as the compiler derives it, products included. Rows of
a size take turns, call by call.

  python -m bastile_bench gated-products --out results
  python -m bastile_bench gated-products --sizes 2048x8192x2048 8192x8192x2048
"""

import argparse
import time

from bastile_bench import _options
from bastile_bench._report import Column, format_table, shape_text
from bastile_bench._statistics import spread_text, summarize

#: Rows, columns of the gate, depth: the MLPs of small and of large models, with the rows
#: of a step and with fewer.
SIZES = tuple(
    (rows, *mlp)
    for mlp in (
        (3072, 1024),
        (6912, 1152),
        (8192, 2048),
        (9728, 2560),
        (14336, 4096),
        (12288, 4096),
    )
    for rows in (512, 2048, 8192, 16384)
)


def add_arguments(parser) -> None:
    parser.add_argument(
        "--sizes",
        nargs="+",
        type=_size,
        default=list(SIZES),
        metavar="ROWSxCOLUMNSxDEPTH",
        help="rows, columns of the gate, columns of the rows (those of several models)",
    )
    _options.add_timing(parser, rounds=30)


def _size(text):
    found = _options.parse_sizes(text)
    if len(found) != 3:
        raise argparse.ArgumentTypeError(f"'{text}' is not rows, columns and depth")
    return found


def run(arguments) -> int:
    """Measures, prints and writes; returns the exit status."""
    device, dtype, report = _options.open_report("gated-products", arguments)
    for size in arguments.sizes:
        report.add(*_measure(device, size, dtype, arguments.rounds))
    print(format_table(report.rows, _COLUMNS))
    print()
    for size in arguments.sizes:
        print(_figure(report.rows, size))
    print(f"\nresults: {report.path} and {report.path.with_suffix('.csv')}")
    return 0


def _figure(rows, size):
    """The line of a size in the table that decides."""
    found = {
        row["kernel"]: row["device_us"]["median"]
        for row in rows
        if row["shape"] == list(size)
    }
    numbers = [f"{found[name]:.0f}" for name in ("kept", "alone", "apart")]
    return f"Figure({', '.join([*map(str, size), *numbers])}),"


def _measure(device, size, dtype, rounds):
    """A row for each call of a size."""
    device.start_case()
    calls = {
        name: device.capture([[call]], can_capture="step" not in name)
        for name, call in _calls(device.name, size, dtype).items()
    }
    times = {name: [] for name in calls}
    until = time.monotonic() + device.settling_seconds
    while time.monotonic() < until:
        for each in calls.values():
            each.run()
    for _ in range(rounds):
        for name, each in calls.items():
            device.flush()
            times[name].append(device.seconds(each))
    for name, seconds in times.items():
        yield {
            "op": "gated product",
            "shape": list(size),
            "dtype": str(dtype).removeprefix("torch."),
            "kernel": name,
            "device_us": summarize([1e6 * x for x in seconds]),
        }


def _calls(device, size, dtype):
    """By name, what is measured."""
    import torch
    from bastile import ops
    from bastile._patching import activations
    from bastile._patching.products import gated_products, projections

    count, columns, depth = size
    generator = torch.Generator(device).manual_seed(0)

    def draw(*sizes, scale=1.0):
        drawn = torch.randn(sizes, device=device, generator=generator)
        return (drawn * scale).to(dtype)

    x, upstream = draw(count, depth), draw(count, columns)
    layers = [torch.nn.Linear(depth, columns, False, "meta") for _ in ("gate", "up")]
    for layer in layers:
        weight = draw(columns, depth, scale=depth**-0.5)
        layer.weight = torch.nn.Parameter(weight)
    gate, up = (layer.weight.detach() for layer in layers)
    linear, products = torch.nn.functional.linear, activations.of("silu").products

    def step(forward):
        def call():
            rows = x.detach().requires_grad_()
            leaves = [rows, *(layer.weight for layer in layers)]
            torch.autograd.grad(forward(rows), leaves, upstream)

        return call

    def one(rows):
        return gated_products.project(
            rows, layers, torch.nn.Identity(), activations.of("silu")
        )

    return {
        "kept": lambda: products.kept(x, gate, up, None, None),
        "alone": lambda: products.alone(x, gate, up, None, None),
        "apart": lambda: ops.swiglu(linear(x, gate), linear(x, up)),
        "step, one": step(one),
        "step, apart": step(
            lambda rows: ops.swiglu(*projections.project(rows, layers))
        ),
        "step, derived": step(
            lambda rows: products.alone(
                rows, *(layer.weight for layer in layers), None, None
            )
        ),
    }


_COLUMNS = [
    Column("rows x columns x depth", lambda row: shape_text(row["shape"]), False),
    Column("what", "kernel", False),
    Column("us", lambda row: spread_text(row["device_us"], 1)),
]

# Part of Bastile, under the MIT License. See LICENSE.
"""Time of kernels on one thread of the host beside PyTorch's eager mode.

Needs `tile-run` (given with --tile-run, in build/bin, or on PATH). Where PyTorch
is missing, its column is left out. The two are timed alternately, so that what
else the machine does falls on both; a time is the median over all rounds.

    python3 benchmarks/host.py
    python3 benchmarks/host.py --type bf16 --rows 8192 --length 2880
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

try:
    import torch
except ImportError:
    torch = None

GATED = """
func.func @f(%gate: tensor<?x{n}x{t}>, %up: tensor<?x{n}x{t}>) -> tensor<?x{n}x{t}> {{
  %0 = tile.geglu %gate, %up {form} : tensor<?x{n}x{t}>
  return %0 : tensor<?x{n}x{t}>
}}"""
RMS_NORM = """
func.func @f(%x: tensor<?x{n}x{t}>, %w: tensor<{n}x{t}>) -> tensor<?x{n}x{t}> {{
  %0 = tile.rms_norm %x, %w : tensor<?x{n}x{t}>, tensor<{n}x{t}>
  return %0 : tensor<?x{n}x{t}>
}}"""


def geglu(gate, up):
    gate = gate.clamp(max=7.0)
    up = up.clamp(-7.0, 7.0)
    return (up + 1) * gate * torch.sigmoid(1.702 * gate)


def geglu_tanh(gate, up):
    return torch.nn.functional.gelu(gate, approximate="tanh") * up


def geglu_erf(gate, up):
    return torch.nn.functional.gelu(gate) * up


def rms_norm(x, weight):
    return torch.nn.functional.rms_norm(x, weight.shape, weight, 1e-6)


# The source, the form of the gate, and the same in PyTorch.
OPS = {
    "geglu": (GATED, "", geglu),
    "geglu, tanh": (GATED, "form(tanh)", geglu_tanh),
    "geglu, erf": (GATED, "form(erf)", geglu_erf),
    "rms_norm": (RMS_NORM, "", rms_norm),
}


def find_tool(given):
    root = pathlib.Path(__file__).resolve().parent.parent
    build = pathlib.Path(os.environ.get("BASTILE_BUILD", root / "build"))
    for candidate in (given, build / "bin" / "tile-run", "tile-run"):
        found = candidate and shutil.which(candidate)
        if found:
            return found
    sys.exit("host.py: no tile-run; build it or give it with --tile-run")


def time_compiled(tool, source, arguments):
    """Seconds of a call, and the bytes that it moves."""
    done = subprocess.run(
        [
            tool,
            "-",
            "--json",
            f"--rows={arguments.rows}",
            f"--repeat={arguments.repeat}",
        ],
        input=source,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(done.stderr)
    (run,) = json.loads(done.stdout)["runs"]
    return run["seconds"], run["bytes"]


def time_eager(function, inputs, repeat):
    function(*inputs)
    samples = []
    for _ in range(repeat):
        start = time.perf_counter()
        function(*inputs)
        samples.append(time.perf_counter() - start)
    return statistics.median(samples)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tile-run")
    parser.add_argument("--rows", type=int, default=1024)
    parser.add_argument("--length", type=int, default=4096)
    parser.add_argument("--type", choices=("f32", "bf16", "f16"), default="f32")
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    tool = find_tool(arguments.tile_run)
    if torch:
        torch.set_num_threads(1)
        kind = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}[
            arguments.type
        ]
        title = f"PyTorch {torch.__version__}"
    else:
        title = "PyTorch missing"

    print(f"{arguments.rows}x{arguments.length} {arguments.type}, one thread")
    print(f"{'op':<12} {'Bastile':>10} {'GB/s':>6} {title:>20} {'ratio':>6}")
    for name, (template, form, eager) in OPS.items():
        source = template.format(n=arguments.length, t=arguments.type, form=form)
        compiled, reference = [], []
        for _ in range(arguments.rounds):
            seconds, moved = time_compiled(tool, source, arguments)
            compiled.append(seconds)
            if torch:
                x = torch.randn(arguments.rows, arguments.length).to(kind)
                other = torch.randn(
                    (arguments.length,) if template is RMS_NORM else x.shape
                ).to(kind)
                reference.append(time_eager(eager, (x, other), arguments.repeat))
        ours = statistics.median(compiled)
        line = f"{name:<12} {ours * 1e3:>7.2f} ms {moved / ours / 1e9:>6.1f}"
        if reference:
            theirs = statistics.median(reference)
            line += f" {theirs * 1e3:>17.2f} ms {ours / theirs:>6.2f}"
        print(line)


if __name__ == "__main__":
    main()

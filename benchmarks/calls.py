"""Host time of calls on tiny tensors, beside PyTorch's own in the same process.

Usage: python3 benchmarks/calls.py [--json FILE], with the package importable and
a GPU. Tensors are so small that the GPU is done before the next call is: what is
left is what a call costs the host. Cases take turns, so that all see the same
machine; the medians are of blocks of calls. The ratio is to the reference case of
the same kind: torch.nn.functional.rms_norm.
"""

import argparse
import json
import statistics
import time

import bastile
import torch
import torch.nn.functional as F

ROWS, LENGTH = 4, 64


def make_cases():
    x = torch.randn(ROWS, LENGTH, device="cuda", dtype=torch.bfloat16)
    weight = torch.ones(LENGTH, device="cuda", dtype=torch.bfloat16)
    gradient = torch.randn_like(x)
    leaf = x.clone().requires_grad_()
    other = x.clone().requires_grad_()
    leaf_weight = weight.clone().requires_grad_()
    kernel = bastile.compile(
        "rms_norm", {"input": (ROWS, LENGTH), "weight": (LENGTH,)}
    )
    swiglu = bastile.ops.swiglu
    rms_norm = bastile.ops.rms_norm

    def torch_norm(x, weight):
        return F.rms_norm(x, (LENGTH,), weight)

    def torch_swiglu(gate, up):
        return F.silu(gate) * up

    def both(function, *leaves):
        def run():
            for one in leaves:
                one.grad = None
            function(*leaves).backward(gradient)

        return run

    return {
        "forward": {
            "torch rms_norm": lambda: torch_norm(x, weight),
            "torch silu * up": lambda: torch_swiglu(x, x),
            "bastile rms_norm": lambda: rms_norm(x, weight),
            "bastile swiglu": lambda: swiglu(x, x),
            "bastile compiled rms_norm": lambda: kernel(x, weight),
            "torch empty_like": lambda: torch.empty_like(x),
            "torch x + x": lambda: x + x,
        },
        "forward with grad": {
            "torch rms_norm": lambda: torch_norm(leaf, leaf_weight),
            "torch silu * up": lambda: torch_swiglu(leaf, other),
            "bastile rms_norm": lambda: rms_norm(leaf, leaf_weight),
            "bastile swiglu": lambda: swiglu(leaf, other),
        },
        "forward and backward": {
            "torch rms_norm": both(torch_norm, leaf, leaf_weight),
            "torch silu * up": both(torch_swiglu, leaf, other),
            "bastile rms_norm": both(rms_norm, leaf, leaf_weight),
            "bastile swiglu": both(swiglu, leaf, other),
        },
    }


def measure(cases, blocks=15, calls=200):
    """Microseconds a call: the median and the least of the blocks."""
    for run in cases.values():
        for _ in range(100):
            run()
    samples = {name: [] for name in cases}
    for _ in range(blocks):
        for name, run in cases.items():
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(calls):
                run()
            samples[name].append((time.perf_counter() - start) / calls * 1e6)
    return {
        name: (statistics.median(times), min(times))
        for name, times in samples.items()
    }


def measure_compiled(calls=50):
    """A compiled function of 50 calls against the same calls made eagerly."""
    x = torch.randn(ROWS, LENGTH, device="cuda", dtype=torch.bfloat16)
    weight = torch.ones(LENGTH, device="cuda", dtype=torch.bfloat16)

    def chain(x):
        for _ in range(calls):
            x = bastile.ops.rms_norm(x, weight)
        return x

    compiled = torch.compile(chain, fullgraph=True)
    with torch.no_grad():
        return measure(
            {
                "50 calls": lambda: chain(x),
                "50 calls under torch.compile": lambda: compiled(x),
            },
            blocks=15,
            calls=20,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", help="write the results to this file")
    arguments = parser.parse_args()
    cases = make_cases()
    results = {kind: measure(rows) for kind, rows in cases.items()}
    results["torch.compile"] = measure_compiled()
    print(f"{'':44}{'median':>8}{'least':>8}{'ratio':>8}   (us)")
    for kind, rows in results.items():
        print(kind)
        reference = next(iter(rows.values()))[0]
        for name, (median, least) in rows.items():
            print(
                f"  {name:42}{median:8.1f}{least:8.1f}{median / reference:8.2f}"
            )
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(
                {"gpu": torch.cuda.get_device_name(), "microseconds": results},
                file,
                indent=1,
            )


if __name__ == "__main__":
    main()

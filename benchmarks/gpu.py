"""Device time of compiled functions beside a copy that moves the same bytes.

Needs PyTorch with CUDA and `tilec` (given with --tilec or on PATH). Each point
is captured in a CUDA graph over rotating tensors larger than the L2 cache and
replayed, so that neither the host's launch time nor the cache is measured; the
copy is captured in the same way and the two are interleaved. Bytes are those of
a function's arguments and results that have rows, each counted once.

    python3 benchmarks/gpu.py                          # every op, its main shapes
    python3 benchmarks/gpu.py --ops rms_norm_backward --shapes 8192x2880 \\
        --schedules "" "threads=192,persistent=4"      # compare schedules
"""

import argparse
import itertools
import json
import pathlib
import sys

import torch

from launch import TYPES, Driver, Function, capture, compile_ptx, measure

NORMS = [(8192, 2880), (16384, 8192), (65536, 8192), (1024, 2048), (8192, 4096),
         (262144, 128), (4096, 16384), (2048, 65536)]
GATES = [(8192, 2880), (32768, 2880), (8192, 11008), (16384, 14336)]
LOGITS = [(8192, 128256), (8192, 151936), (4096, 201088), (4096, 262144),
          (8192, 32000), (4096, 50257)]
ROPES = [(4, 2048, 32, 8, 128), (4, 4096, 64, 8, 64), (1, 16384, 32, 8, 128)]


def unary(op, suffix=""):
    return (f"func.func @f(%x: tensor<?x{{n}}x{{t}}>) -> tensor<?x{{n}}x{{t}}> {{{{\n"
            f"  %0 = tile.{op} %x{suffix} : tensor<?x{{n}}x{{t}}>\n"
            f"  return %0 : tensor<?x{{n}}x{{t}}>\n}}}}")


def gated(op, suffix=""):
    return (f"func.func @f(%gate: tensor<?x{{n}}x{{t}}>, %up: tensor<?x{{n}}x{{t}}>)"
            f" -> tensor<?x{{n}}x{{t}}> {{{{\n"
            f"  %0 = tile.{op} %gate, %up{suffix} : tensor<?x{{n}}x{{t}}>\n"
            f"  return %0 : tensor<?x{{n}}x{{t}}>\n}}}}")


PACKED = """func.func @f(%gate_up: tensor<?x{n2}x{t}>) -> tensor<?x{n}x{t}> {{
  %gate, %up = tile.split interleaved %gate_up
      : tensor<?x{n2}x{t}> -> tensor<?x{n}x{t}>, tensor<?x{n}x{t}>
  %0 = tile.geglu %gate, %up : tensor<?x{n}x{t}>
  return %0 : tensor<?x{n}x{t}>
}}"""
RMS_NORM = """func.func @f(%x: tensor<?x{n}x{t}>, %weight: tensor<{n}x{t}>)
    -> tensor<?x{n}x{t}> {{
  %0 = tile.rms_norm %x, %weight : tensor<?x{n}x{t}>, tensor<{n}x{t}>
  return %0 : tensor<?x{n}x{t}>
}}"""
ADD_RMS_NORM = """func.func @f(%x: tensor<?x{n}x{t}>, %residual: tensor<?x{n}x{t}>,
    %weight: tensor<{n}x{t}>) -> (tensor<?x{n}x{t}>, tensor<?x{n}x{t}>) {{
  %0, %1 = tile.add_rms_norm %x, %residual, %weight
      : tensor<?x{n}x{t}>, tensor<{n}x{t}>
  return %0, %1 : tensor<?x{n}x{t}>, tensor<?x{n}x{t}>
}}"""
LAYER_NORM = """func.func @f(%x: tensor<?x{n}x{t}>, %weight: tensor<{n}x{t}>,
    %bias: tensor<{n}x{t}>) -> tensor<?x{n}x{t}> {{
  %0 = tile.layer_norm %x, %weight bias(%bias)
      : tensor<?x{n}x{t}>, tensor<{n}x{t}>, tensor<{n}x{t}>
  return %0 : tensor<?x{n}x{t}>
}}"""
CROSS_ENTROPY = """func.func @f(%logits: tensor<?x{n}x{t}>, %targets: tensor<?x1xi64>)
    -> tensor<1xf32> {{
  %0, %1, %2, %3 = tile.cross_entropy %logits, %targets
      : tensor<?x{n}x{t}>, tensor<?x1xi64>
  return %0 : tensor<1xf32>
}}"""
ROPE = """func.func @f(%q: tensor<?x?x?x{n}x{t}>, %k: tensor<?x?x?x{n}x{t}>,
    %cos: tensor<1x?x1x{half}x{t}>, %sin: tensor<1x?x1x{half}x{t}>)
    -> (tensor<?x?x?x{n}x{t}>, tensor<?x?x?x{n}x{t}>) {{
  %0 = tile.rope %q, %cos, %sin : tensor<?x?x?x{n}x{t}>, tensor<1x?x1x{half}x{t}>
  %1 = tile.rope %k, %cos, %sin : tensor<?x?x?x{n}x{t}>, tensor<1x?x1x{half}x{t}>
  return %0, %1 : tensor<?x?x?x{n}x{t}>, tensor<?x?x?x{n}x{t}>
}}"""

# Source, shapes, flags of the backward (none: there is none).
OPS = {
    "rms_norm": (RMS_NORM, NORMS, ["--grad"]),
    "add_rms_norm": (ADD_RMS_NORM, NORMS[:2], ["--grad"]),
    "layer_norm": (LAYER_NORM, NORMS[:2], ["--grad"]),
    "geglu": (gated("geglu"), GATES, ["--grad"]),
    "geglu_interleaved": (PACKED, GATES[:2], ["--grad"]),
    "geglu_tanh": (gated("geglu", " form(tanh)"), GATES[2:3], ["--grad"]),
    "geglu_erf": (gated("geglu", " form(erf)"), GATES[2:3], ["--grad"]),
    "swiglu": (gated("swiglu"), GATES[3:], ["--grad"]),
    "reglu": (gated("reglu"), GATES[2:3], ["--grad"]),
    "relu_squared": (unary("relu_squared"), GATES[2:3], ["--grad"]),
    "gelu": (unary("gelu"), GATES[2:3], ["--grad"]),
    "silu": (unary("silu"), GATES[2:3], ["--grad"]),
    "softmax": (unary("softmax"), [(8192, 4096), (8192, 32768)], ["--grad"]),
    "log_softmax": (unary("log_softmax"), [(8192, 4096)], ["--grad"]),
    "rope": (ROPE, ROPES, ["--grad=q,k"]),
    "cross_entropy": (CROSS_ENTROPY, LOGITS, []),
    "cross_entropy_with_grad": (CROSS_ENTROPY, LOGITS, []),
}


def make_inputs(function, shape):
    """Random tensors for a function of rows of `shape`, or for rope's layout."""
    tensors = []
    for spec in function.spec["inputs"]:
        sizes = list(spec["shape"])
        if len(shape) == 5:
            batch, sequence, heads, kv_heads, _ = shape
            count = kv_heads if spec["name"] in ("k", "grad_result1") else heads
            leading = [batch, sequence, count]
            if len(sizes) == 4:
                sizes = [lead if size is None else size
                         for lead, size in zip(leading, sizes[:3])] + sizes[3:]
        sizes = [shape[0] if size is None else size for size in sizes]
        dtype = TYPES[spec["type"]]
        if dtype.is_floating_point:
            tensors.append(torch.randn(sizes, device="cuda").to(dtype))
        else:
            tensors.append(torch.randint(0, shape[1], sizes, device="cuda",
                                         dtype=dtype))
    return tensors


def count_bytes(tensors):
    return sum(t.numel() * t.element_size() for t in tensors if t.dim() >= 2)


class Point:
    """One function on one shape, captured over rotating tensors."""

    def __init__(self, function, shape, in_place):
        self.function = function
        inputs = make_inputs(function, shape)
        outputs = function.make_outputs(inputs)
        self.bytes = count_bytes(inputs) + count_bytes(outputs)
        self.count = max(2, min(40, -(-400_000_000 // self.bytes)))
        del inputs, outputs
        self.outputs, calls = [], []
        for _ in range(self.count):
            inputs = make_inputs(function, shape)
            outputs = function.make_outputs(inputs, in_place)
            self.outputs.append(outputs)
            calls.append(function.prepare(inputs, outputs))
        self.calls = calls
        self.graph = capture(calls)

    def is_written(self):
        return all(torch.isfinite(t).all() for outputs in self.outputs
                   for t in outputs if t.dtype.is_floating_point)


def capture_copies(moved, count):
    """The driver's copy and a kernel of PyTorch's that move `moved` bytes."""
    elements = moved // 4
    pairs = [(torch.randn(elements, device="cuda").bfloat16(),
              torch.empty(elements, device="cuda", dtype=torch.bfloat16))
             for _ in range(count)]
    graphs = [capture([lambda a=a, b=b: b.copy_(a) for a, b in pairs]),
              capture([lambda a=a, b=b: torch.neg(a, out=b) for a, b in pairs])]
    return graphs, pairs


def bench(driver, tilec, name, shape, type_name, schedules):
    source, _, gradients = OPS[name.removesuffix("_backward")]
    text = source.format(n=shape[-1] if len(shape) == 5 else shape[1],
                         n2=2 * shape[1], half=shape[-1] // 2, t=type_name)
    flags, entry, in_place = [], "f", False
    if name.endswith("_with_grad"):
        flags, in_place = ["--value-and-grad=logits", "--in-place"], True
    elif name.endswith("_backward"):
        flags, entry = gradients, "f_backward"
    points = []
    for schedule in schedules:
        pinned = [f"--schedule={schedule}"] if schedule else []
        try:
            ptx = compile_ptx(tilec, text, *flags, *pinned)
        except ValueError as error:
            print(f"  {schedule}: {str(error).splitlines()[0]}", file=sys.stderr)
            continue
        points.append((schedule, Point(Function(driver, ptx, entry), shape, in_place)))
    if not points:
        return
    first = points[0][1]
    copies, keep = capture_copies(first.bytes, first.count)
    memcpy, negate, *times = measure(copies + [point.graph for _, point in points])
    copy = min(memcpy, negate) / first.count
    del keep
    for (schedule, point), time in zip(points, times):
        time /= point.count
        yield {"op": name, "type": type_name, "shape": shape, "schedule": schedule,
               "copy_us": copy, "time_us": time, "share": copy / time,
               "gb_per_s": point.bytes / time / 1e3,
               "registers": point.function.registers,
               "spilled": point.function.spilled, "finite": point.is_written()}


def main():
    names = [name for op, (_, _, gradients) in OPS.items()
             for name in ([op, op + "_backward"] if gradients else [op])]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tilec", default="tilec")
    parser.add_argument("--type", default="bf16", choices=TYPES)
    parser.add_argument("--ops", nargs="+", default=names, choices=names)
    parser.add_argument("--shapes", nargs="+", help="as in 8192x2880")
    parser.add_argument("--schedules", nargs="+", default=[""],
                        help="to compare; empty is the heuristic's")
    parser.add_argument("--json", help="where to write all measurements")
    arguments = parser.parse_args()

    driver, results = Driver(), []
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    print(f"{'op':<24}{'shape':<18}{'copy us':>9}{'time us':>9}{'share':>7}"
          f"{'GB/s':>7}  registers, schedule")
    for name in arguments.ops:
        shapes = OPS[name.removesuffix("_backward")][1]
        if arguments.shapes:
            shapes = [tuple(map(int, s.split("x"))) for s in arguments.shapes]
        for shape in shapes:
            for point in bench(driver, arguments.tilec, name, shape,
                               arguments.type, arguments.schedules):
                results.append(point)
                print(f"{name:<24}{'x'.join(map(str, shape)):<18}"
                      f"{point['copy_us']:>9.1f}{point['time_us']:>9.1f}"
                      f"{point['share']:>7.3f}{point['gb_per_s']:>7.0f}  "
                      f"{'+'.join(map(str, point['registers']))} "
                      f"{'SPILLED ' if any(point['spilled']) else ''}"
                      f"{point['schedule']}"
                      f"{'' if point['finite'] else ' NOT FINITE'}", flush=True)
            torch.cuda.empty_cache()
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()

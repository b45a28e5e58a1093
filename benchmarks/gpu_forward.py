"""Device time of compiled kernels beside a copy that moves the same bytes.

Needs PyTorch with CUDA and `tilec` (given with --tilec or on PATH). Each point
is captured in a CUDA graph over rotating buffers larger than the L2 cache and
replayed, so that neither the host's launch time nor the cache is measured; the
copy is captured in the same way and the two are interleaved.

    python3 benchmarks/gpu_forward.py                      # the table in docs/benchmarks.md
    python3 benchmarks/gpu_forward.py --sweep rms_norm     # compare schedules
"""

import argparse
import ctypes
import itertools
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import torch

SHAPES = [(8192, 2880), (16384, 8192), (65536, 8192)]
MORE_SHAPES = [(1024, 2048), (8192, 2560), (8192, 4096), (262144, 128),
               (4096, 16384), (2048, 65536), (8192, 11008)]

SOURCES = {
    "geglu": """
func.func @geglu(%gate: tensor<?x{n}x{t}>, %up: tensor<?x{n}x{t}>) -> tensor<?x{n}x{t}> {{
  %0 = tile.geglu %gate, %up : tensor<?x{n}x{t}>
  return %0 : tensor<?x{n}x{t}>
}}""",
    "geglu_tanh": """
func.func @geglu(%gate: tensor<?x{n}x{t}>, %up: tensor<?x{n}x{t}>) -> tensor<?x{n}x{t}> {{
  %0 = tile.geglu %gate, %up form(tanh) : tensor<?x{n}x{t}>
  return %0 : tensor<?x{n}x{t}>
}}""",
    "rms_norm": """
func.func @rms_norm(%x: tensor<?x{n}x{t}>, %w: tensor<{n}x{t}>) -> tensor<?x{n}x{t}> {{
  %0 = tile.rms_norm %x, %w : tensor<?x{n}x{t}>, tensor<{n}x{t}>
  return %0 : tensor<?x{n}x{t}>
}}""",
}
TYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}


class Driver:
    """The few driver calls that launching PTX takes."""

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")

    def check(self, code):
        if code:
            text = ctypes.c_char_p()
            self.cuda.cuGetErrorString(code, ctypes.byref(text))
            raise RuntimeError(f"CUDA driver: {(text.value or b'?').decode()}")

    def load(self, ptx, entry):
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.check(self.cuda.cuModuleLoadData(ctypes.byref(module), ptx.encode()))
        self.check(self.cuda.cuModuleGetFunction(ctypes.byref(function), module,
                                                 entry.encode()))
        return function

    def attribute(self, function, number):
        value = ctypes.c_int()
        self.check(self.cuda.cuFuncGetAttribute(ctypes.byref(value), number, function))
        return value.value


class Kernel:
    """The first variant of a PTX file's only launch, on contiguous tensors."""

    def __init__(self, driver, ptx):
        comment = ptx.split("// bastile-metadata-begin\n")[1]
        comment = comment.split("// bastile-metadata-end")[0]
        document = json.loads("\n".join(line[3:] for line in comment.splitlines()))
        launch = document["functions"][0]["launches"][0]
        self.driver = driver
        self.operands = launch["operands"]
        self.variant = launch["variants"][0]
        self.function = driver.load(ptx, self.variant["entry"])
        self.registers = driver.attribute(self.function, 4)
        self.spilled = driver.attribute(self.function, 3)
        self.multiprocessors = torch.cuda.get_device_properties(0).multi_processor_count

    def evaluate(self, expression, rows):
        if isinstance(expression, int):
            return expression
        if isinstance(expression, str):
            return {"rows": rows, "multiprocessors": self.multiprocessors}[expression]
        (operator, arguments), = expression.items()
        left, right = (self.evaluate(argument, rows) for argument in arguments)
        return {"ceildiv": lambda: -(-left // right), "mul": lambda: left * right,
                "add": lambda: left + right, "min": lambda: min(left, right),
                "max": lambda: max(left, right)}[operator]()

    def prepare(self, tensors):
        """The launch on `tensors`, inputs before outputs, as a closure."""
        rows = tensors[0].shape[0]
        values = []
        for argument in self.variant["arguments"]:
            if "size" in argument:
                values.append(rows)
            elif "pointer" in argument:
                values.append(tensors[argument["pointer"]].data_ptr())
            else:
                values.append(tensors[argument["stride"]].stride(argument["dimension"]))
        slots = (ctypes.c_int64 * len(values))(*values)
        pointers = (ctypes.c_void_p * len(values))(
            *(ctypes.addressof(slots) + 8 * index for index in range(len(values))))
        grid = self.evaluate(self.variant["grid"], rows)

        def launch():
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            self.driver.check(self.driver.cuda.cuLaunchKernel(
                self.function, grid, 1, 1, self.variant["block"], 1, 1, 0, stream,
                pointers, None))
        launch.keep = (slots, tensors)
        return launch


def compile_ptx(tilec, source, schedule=""):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "kernel.mlir"
        path.write_text(source)
        command = [tilec, str(path), "-o", "-"]
        if schedule:
            command.append(f"--schedule={schedule}")
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise ValueError(done.stderr.strip())
        return done.stdout


def capture(calls):
    for call in calls:
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in calls:
            call()
    return graph


def measure(graphs, rounds=15):
    """Median microseconds of one replay of each graph, interleaved."""
    times = [[] for _ in graphs]
    for graph in graphs:
        graph.replay()
    for _ in range(rounds):
        for graph, samples in zip(graphs, times):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            graph.replay()
            end.record()
            end.synchronize()
            samples.append(start.elapsed_time(end) * 1e3)
    return [statistics.median(samples) for samples in times]


def make_buffers(name, rows, length, dtype):
    """Sets of operands that together are several times the L2 cache."""
    size = rows * length * dtype.itemsize
    operands = 3 if name.startswith("geglu") else 2
    count = max(2, min(40, -(-400_000_000 // (size * operands))))
    sets = []
    for _ in range(count):
        tensors = [torch.randn(rows, length, device="cuda").to(dtype)]
        if operands == 3:
            tensors.append(torch.randn(rows, length, device="cuda").to(dtype))
        else:
            tensors.append(torch.randn(length, device="cuda").to(dtype))
        tensors.append(torch.full((rows, length), float("nan"), device="cuda",
                                  dtype=dtype))
        sets.append(tensors)
    # A copy that reads and writes as many bytes in all.
    elements = rows * length * operands // 2
    copies = [(torch.randn(elements, device="cuda").to(dtype),
               torch.empty(elements, device="cuda", dtype=dtype))
              for _ in range(count)]
    return sets, copies, size * operands


def bench(driver, tilec, name, rows, length, type_name, schedules):
    dtype = TYPES[type_name]
    source = SOURCES[name].format(n=length, t=type_name)
    sets, copies, moved = make_buffers(name, rows, length, dtype)
    # The driver's copy and a kernel of PyTorch's; the faster one counts.
    references = [capture([lambda a=a, b=b: b.copy_(a) for a, b in copies]),
                  capture([lambda a=a, b=b: torch.neg(a, out=b) for a, b in copies])]
    graphs, kernels = [], []
    for schedule in schedules:
        try:
            kernel = Kernel(driver, compile_ptx(tilec, source, schedule))
        except ValueError as error:
            print(f"  {schedule}: {str(error).splitlines()[0]}", file=sys.stderr)
            continue
        graphs.append(capture([kernel.prepare(tensors) for tensors in sets]))
        kernels.append((schedule, kernel))
    memcpy, negate, *times = (time / len(sets)
                              for time in measure(references + graphs))
    copy = min(memcpy, negate)
    written = all(torch.isfinite(tensors[-1]).all() for tensors in sets)
    for (schedule, kernel), time in zip(kernels, times):
        yield {"op": name, "type": type_name, "rows": rows, "length": length,
               "schedule": schedule, "copy_us": copy, "time_us": time,
               "share": copy / time, "gb_per_s": moved / time / 1e3,
               "registers": kernel.registers, "spilled": kernel.spilled,
               "finite": bool(written)}


def sweep_schedules(length, type_name, reduces):
    vector = 16 // TYPES[type_name].itemsize
    while length % vector:
        vector //= 2
    yield ""
    for blocks, threads, held, rows in itertools.product(
            (1, 2, 4, 8) if reduces else (1,),
            (64, 96, 128, 192, 256, 384, 512, 768, 1024), (1, 2, 3, 4, 6, 8),
            (1, 2, 4)):
        pieces = -(-length // (vector * blocks))
        covered = threads * held
        if covered >= pieces + threads and reduces or covered < pieces and reduces:
            continue
        if covered > pieces + threads or held * rows > 8:
            continue
        for persistent in (0, 1024 // threads or 1):
            yield (f"rows={rows},threads={threads},vector={vector},"
                   f"columns={covered * vector * blocks},"
                   f"persistent={persistent},cluster={blocks}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tilec", default="tilec")
    parser.add_argument("--type", default="bf16", choices=TYPES)
    parser.add_argument("--ops", nargs="+", default=["geglu", "rms_norm"], choices=SOURCES)
    parser.add_argument("--shapes", nargs="+", help="as in 8192x2880")
    parser.add_argument("--more", action="store_true", help="more shapes")
    parser.add_argument("--sweep", action="store_true", help="compare schedules")
    parser.add_argument("--json", help="where to write all measurements")
    arguments = parser.parse_args()

    shapes = SHAPES + (MORE_SHAPES if arguments.more else [])
    if arguments.shapes:
        shapes = [tuple(map(int, shape.split("x"))) for shape in arguments.shapes]
    driver, results = Driver(), []
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    print(f"{'op':<11}{'shape':<14}{'copy us':>9}{'time us':>9}{'share':>7}"
          f"{'GB/s':>7}{'regs':>5}  schedule")
    for name, (rows, length) in itertools.product(arguments.ops, shapes):
        schedules = [""]
        if arguments.sweep:
            schedules = list(sweep_schedules(length, arguments.type,
                                             name == "rms_norm"))
        points = list(bench(driver, arguments.tilec, name, rows, length,
                            arguments.type, schedules))
        results += points
        best = sorted(points, key=lambda point: point["time_us"])[:6]
        for point in points[:1] + [p for p in best if p is not points[0]]:
            print(f"{name:<11}{f'{rows}x{length}':<14}{point['copy_us']:>9.1f}"
                  f"{point['time_us']:>9.1f}{point['share']:>7.3f}"
                  f"{point['gb_per_s']:>7.0f}{point['registers']:>5}  "
                  f"{point['schedule'] or 'heuristic'}"
                  f"{'' if point['finite'] else '  NOT WRITTEN'}", flush=True)
        torch.cuda.empty_cache()
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()

"""Compiles functions with tilec and launches them on PyTorch's tensors, by what
the metadata says (docs/metadata.md) and the CUDA driver alone."""

import ctypes
import json
import pathlib
import subprocess
import tempfile

import torch

TYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16,
         "bf16": torch.bfloat16, "i64": torch.int64, "i32": torch.int32,
         "i8": torch.int8, "f8E4M3FN": torch.float8_e4m3fn,
         "f8E5M2": torch.float8_e5m2}


def compile_ptx(tilec, source, *flags):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "kernel.mlir"
        path.write_text(source)
        done = subprocess.run([tilec, str(path), "-o", "-", *flags],
                              capture_output=True, text=True)
        if done.returncode:
            raise ValueError(done.stderr.strip())
        return done.stdout


class Driver:
    """The few driver calls that launching PTX takes."""

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        torch.zeros(1, device="cuda")  # Makes PyTorch's context the current one.

    def check(self, code):
        if code:
            text = ctypes.c_char_p()
            self.cuda.cuGetErrorString(code, ctypes.byref(text))
            raise RuntimeError(f"CUDA driver: {(text.value or b'?').decode()}")

    def load(self, ptx):
        module = ctypes.c_void_p()
        self.check(self.cuda.cuModuleLoadData(ctypes.byref(module), ptx.encode()))
        return module

    def entry(self, module, name):
        function = ctypes.c_void_p()
        self.check(self.cuda.cuModuleGetFunction(ctypes.byref(function), module,
                                                 name.encode()))
        return function

    def attribute(self, function, number):
        value = ctypes.c_int()
        self.check(self.cuda.cuFuncGetAttribute(ctypes.byref(value), number, function))
        return value.value


class Function:
    """A function of a PTX file, with the first variant of each of its launches:
    the one for aligned tensors, without gaps but for rows that are repeated."""

    def __init__(self, driver, ptx, name):
        comment = ptx.split("// bastile-metadata-begin\n")[1]
        comment = comment.split("// bastile-metadata-end")[0]
        document = json.loads("\n".join(line[3:] for line in comment.splitlines()))
        self.driver = driver
        self.spec, = (f for f in document["functions"] if f["name"] == name)
        self.module = driver.load(ptx)
        self.entries = [driver.entry(self.module, launch["variants"][0]["entry"])
                        for launch in self.spec["launches"]]
        self.registers = [driver.attribute(entry, 4) for entry in self.entries]
        self.spilled = [driver.attribute(entry, 3) for entry in self.entries]
        self.multiprocessors = torch.cuda.get_device_properties(0).multi_processor_count

    def evaluate(self, expression, inputs, rows=()):
        def recurse(inner):
            return self.evaluate(inner, inputs, rows)
        if isinstance(expression, int):
            return expression
        if expression == "rows":
            return rows[0]
        if expression == "multiprocessors":
            return self.multiprocessors
        if "input" in expression:
            return inputs[expression["input"]].shape[expression["dimension"]]
        if "rows" in expression:
            return rows[expression["rows"]]
        (operator, arguments), = expression.items()
        values = list(map(recurse, arguments))
        if operator == "ceildiv":
            return -(-values[0] // values[1])
        if operator == "mul":
            result = 1
            for value in values:
                result *= value
            return result
        return {"add": sum, "min": min, "max": max}[operator](values)

    def make(self, spec, inputs):
        shape = [self.evaluate(size, inputs) for size in spec["shape"]]
        dtype = TYPES[spec["type"]]
        if not dtype.is_floating_point:
            return torch.full(shape, 111, dtype=dtype, device="cuda")
        return torch.full(shape, float("nan"), device="cuda").to(dtype)

    def make_outputs(self, inputs, in_place=False):
        return [inputs[spec["may_alias"]] if in_place and "may_alias" in spec
                else self.make(spec, inputs) for spec in self.spec["outputs"]]

    def prepare(self, inputs, outputs):
        """The launches on these tensors, as a closure."""
        buffers = {"input": inputs, "output": outputs,
                   "temporary": [self.make(spec, inputs)
                                 for spec in self.spec.get("temporaries", [])]}
        launches = [self.prepare_launch(launch, entry, buffers)
                    for launch, entry in zip(self.spec["launches"], self.entries)]

        def call():
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            for entry, grid, block, pointers, _ in launches:
                self.driver.check(self.driver.cuda.cuLaunchKernel(
                    entry, grid, 1, 1, block, 1, 1, 0, stream, pointers, None))
        call.keep = buffers
        return call

    def prepare_launch(self, launch, entry, buffers):
        variant = launch["variants"][0]
        operands = []
        for operand in launch["operands"]:
            kind = next(k for k in buffers if k in operand)
            operands.append(buffers[kind][operand[kind]])
        spaces = {}
        for operand, tensor in zip(launch["operands"], operands):
            if operand.get("rows"):
                sizes = spaces.setdefault(operand.get("space", 0),
                                          [1] * launch["leading"])
                for d in range(launch["leading"]):
                    sizes[d] = max(sizes[d], tensor.shape[d])
        merged = variant["leading"] < launch["leading"]
        rows = []
        for _, sizes in sorted(spaces.items()):
            count = 1
            for size in sizes:
                count *= size
            rows.append(count)
        values = []
        for argument in variant["arguments"]:
            if "size" in argument:
                space = argument.get("space", 0)
                values.append(rows[space] if merged
                              else spaces[space][argument["size"]])
            elif "pointer" in argument:
                values.append(operands[argument["pointer"]].data_ptr())
            else:
                tensor, d = operands[argument["stride"]], argument["dimension"]
                if merged:
                    d = max([d for d in range(launch["leading"])
                             if tensor.shape[d] != 1], default=0)
                values.append(0 if tensor.shape[d] == 1 else tensor.stride(d))
        slots = (ctypes.c_int64 * len(values))(*values)
        pointers = (ctypes.c_void_p * len(values))(
            *(ctypes.addressof(slots) + 8 * index for index in range(len(values))))
        grid = self.evaluate(variant["grid"], buffers["input"], rows)
        return entry, grid, variant["block"], pointers, slots


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
    return [sorted(samples)[rounds // 2] for samples in times]

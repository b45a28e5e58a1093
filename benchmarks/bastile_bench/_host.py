# Part of Bastile, under the MIT License. See LICENSE.
"""The host's time of a call: on tensors so small that the device has finished before
the next call begins."""

import time

import torch
from bastile_bench import _inputs
from bastile_bench._measure import KINDS, Case, Subject
from bastile_bench._statistics import summarize

_WARM_UP = 50


def measure_op(op, providers, dtype, device, kinds=KINDS, blocks=9, calls=100) -> dict:
    """Microseconds of a call by (provider, kind), as measurements; the error's text
    where it failed. The providers take turns."""
    kinds = kinds if op.gradients else ("inference",)
    case = Case(op, op.tiny, dtype, tuple(kinds))
    inputs = _inputs.make(op, op.tiny, dtype, device.name)
    subjects = {}
    for loaded in providers:
        if loaded.function(op.name):
            loaded.start_case()
            subject = Subject(case, loaded, loaded.function(op.name))
            for kind in kinds:
                subjects[loaded.name, kind] = subject
    return measure_calls(
        {
            key: lambda subject=subject, kind=key[1]: subject.call(kind, inputs)
            for key, subject in subjects.items()
        },
        device,
        blocks,
        calls,
    )


def measure_calls(functions: dict, device, blocks=9, calls=100) -> dict:
    """Microseconds of a call of each of ``functions``, taking turns; the text of
    the error of one that fails."""
    found, samples = {}, {}
    for key, function in functions.items():
        try:
            for _ in range(_WARM_UP):
                function()
            device.synchronize()
            samples[key] = []
        except Exception as error:  # whatever a library raises
            found[key] = f"{type(error).__name__}: {error}".splitlines()[0][:300]
    for _ in range(blocks):
        for key, times in samples.items():
            times.append(_time_block(functions[key], device, calls))
    return {**found, **{key: summarize(times) for key, times in samples.items()}}


def _time_block(function, device, calls):
    device.synchronize()
    start = time.perf_counter()
    for _ in range(calls):
        function()
    seconds = time.perf_counter() - start
    device.synchronize()
    return seconds / calls * 1e6


def eager_calls(device, dtype) -> dict:
    """Calls of PyTorch's that do hardly anything, to compare with."""
    x = torch.randn(4, 64, device=device.name).to(dtype)
    return {
        "torch.empty_like": lambda: torch.empty_like(x),
        "x + x": lambda: x + x,
    }


def bastile_calls(device, dtype, chain) -> dict:
    """RMSNorm by a kernel that was compiled ahead, and ``chain`` calls of the op in
    one function, plain and under torch.compile."""
    import bastile

    x = torch.randn(4, 64, device=device.name).to(dtype)
    weight = torch.ones(64, device=device.name, dtype=dtype)
    kernel = bastile.compile(
        "rms_norm", {"input": x.shape, "weight": weight.shape}, dtype=dtype
    )

    def calls(x):
        for _ in range(chain):
            x = bastile.ops.rms_norm(x, weight)
        return x

    compiled = torch.compile(calls, fullgraph=True)
    return {
        "rms_norm, compiled kernel": lambda: kernel(x, weight),
        f"rms_norm, each of {chain} calls": lambda: calls(x),
        f"rms_norm, each of {chain} in torch.compile": lambda: compiled(x),
    }

# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""python -m bastile_bench: everything but the timing on a GPU."""

import copy
import importlib.metadata
import math
import os
import subprocess
import sys
import types

import pytest

torch = pytest.importorskip("torch")

from bastile_bench import (  # noqa: E402
    __main__,
    _device,
    _environment,
    _errors,
    _inputs,
    _measure,
    _ops,
    _providers,
    _report,
)
from bastile_bench._commands import kernels  # noqa: E402
from bastile_bench._providers import of_bastile  # noqa: E402

# The cores are others' as well: threads would wait for each other.
torch.set_num_threads(1)


def read(results):
    return _report.read(results[0] / "kernels.json")


def find(rows, **wanted):
    return [
        row for row in rows if all(row[key] == value for key, value in wanted.items())
    ]


def test_kernels_measure_every_direction_and_provider(results):
    rows = read(results)["rows"]
    assert results[1] == 0
    found = {(row["op"], row["direction"], row["provider"]) for row in rows}
    assert found == {
        (op, direction, provider)
        for op, directions in {
            "rms_norm": ("forward", "backward", "both"),
            "quantize_blocks": ("forward",),
            "cross_entropy": ("both",),
        }.items()
        for direction in directions
        for provider in ("bastile", "torch")
    }
    for row in rows:
        assert row["status"] == "ok"
        assert row["rows_checked"] == 16
        for key in ("device_us", "wall_us", "host_us", "copy_us"):
            measured = row[key]
            assert measured["low"] <= measured["median"] <= measured["high"]
            assert measured["count"] >= 5


def test_kernels_errors_are_those_of_rounding(results):
    for row in read(results)["rows"]:
        limit = 0.07 if row["op"] == "quantize_blocks" else 0.02
        assert 0 < row["max_error"] < limit, row
        assert 0 < row["norm_error"] < limit, row


def test_kernels_bytes(results):
    rows = find(read(results)["rows"], op="rms_norm", provider="torch")
    assert {row["direction"]: row["bytes"] for row in rows} == {
        "forward": 2 * 16 * 256 * 2,
        "backward": 3 * 16 * 256 * 2,
        "both": 5 * 16 * 256 * 2,
    }


def test_bytes_of_8_bit_floats():
    op = _ops.OPS["quantize_blocks"]
    assert op.bytes("forward", (8, 256), 2) == 8 * 256 * (2 + 1) + 8 * 2 * 4
    assert op.bytes("forward", (8, 256), 4) == 8 * 256 * (4 + 1) + 8 * 2 * 4


def test_results_name_what_was_measured_on(results):
    document = read(results)
    environment = document["environment"]
    assert environment["device"] == "cpu" and environment["torch"] == torch.__version__
    assert document["command"].startswith("kernels")


def test_results_name_the_build_of_torch(monkeypatch):
    """Where the distribution, as some do, has a version without the build's suffix."""
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "1.0")
    monkeypatch.setattr(torch, "__version__", "1.0+cu130")
    assert _environment.describe("cpu")["torch"] == "1.0+cu130"


@pytest.mark.parametrize("name", _ops.OPS)
@pytest.mark.parametrize("provider", ["bastile", "torch"])
def test_functions_agree_with_float64(name, provider):
    """Formulas, gradients and the reference fit together for every op."""
    op = _ops.OPS[name]
    loaded = _providers.PROVIDERS[provider].load()
    case = _measure.Case(op, op.tiny, torch.float32, op.directions)
    subject = _measure.Subject(case, loaded, loaded.function(name))
    inputs = _inputs.make(op, op.tiny, torch.float32, "cpu")
    given = inputs.clone()
    results, gradients = subject.call("both", inputs)
    errors = _errors.find_errors(op, given, results, gradients)
    limit = 0.07 if op.is_quantization else 2e-6
    assert max(_errors.worst(errors.values())) < limit
    assert ("gradients" in errors) == bool(op.gradients)


def test_errors_of_pieces_are_those_of_all(monkeypatch):
    op = _ops.OPS["rms_norm"]
    inputs = _inputs.make(op, (13, 32), torch.bfloat16, "cpu")
    loaded = _providers.PROVIDERS["torch"].load()
    case = _measure.Case(op, (13, 32), torch.bfloat16, op.directions)
    results = _measure.Subject(case, loaded, loaded.function("rms_norm")).call(
        "both", inputs
    )
    whole = _errors.find_errors(op, inputs, *results)
    monkeypatch.setattr(_errors, "_CHUNK", 5 * 32)
    pieces = _errors.find_errors(op, inputs, *results)
    for name, errors in whole.items():
        assert pieces[name] == pytest.approx(errors)


def test_errors_of_rows_and_of_what_they_share():
    """A weight's gradient is summed over all rows, also where there are as many rows as
    columns."""
    op = _ops.OPS["rms_norm"]
    inputs = _inputs.make(op, (32, 32), torch.float32, "cpu")
    loaded = _providers.PROVIDERS["torch"].load()
    case = _measure.Case(op, (32, 32), torch.float32, op.directions)
    subject = _measure.Subject(case, loaded, loaded.function("rms_norm"))
    results, gradients = subject.call("both", inputs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_errors, "_CHUNK", 5 * 32)
        errors = _errors.find_errors(op, inputs, results, gradients)
        assert max(_errors.worst(errors.values())) < 2e-6
        # Twice the weight's gradient, whose difference is as large as itself.
        doubled = gradients[0], 2 * gradients[1]
        errors = _errors.find_errors(op, inputs, results, doubled)
    assert errors["gradients"] == pytest.approx((1, 1), rel=1e-5)


def test_what_was_not_written_is_an_infinite_error():
    op = _ops.OPS["softmax"]
    inputs = _inputs.make(op, (4, 8), torch.float32, "cpu")
    result = torch.softmax(inputs.tensors["x"].detach(), -1)
    result[2, 3] = math.nan
    errors = _errors.find_errors(op, inputs, [result], ())
    assert errors == {"results": (math.inf, math.inf)}


def test_a_provider_that_fails_is_shown_and_the_others_go_on():
    op = _ops.OPS["softmax"]
    loaded = _providers.PROVIDERS["torch"].load()
    broken = copy.copy(_providers.PROVIDERS["compile"])
    broken = _providers.Loaded(broken, _providers, {"softmax": _fail})
    case = _measure.Case(op, (8, 64), torch.float32, op.directions)
    rows = _measure.measure_case(case, [broken, loaded], _device.open_device("cpu"))
    failed = find(rows, provider="compile")
    assert [row["status"] for row in failed] == ["failed"] * 3
    assert failed[0]["error"] == "ValueError: no such thing"
    assert all(row["status"] == "ok" for row in find(rows, provider="torch"))
    text = kernels.describe_case(op, (8, 64), rows)
    assert "torch.compile FAILED: ValueError: no such thing" in text


def _fail(*tensors):
    raise ValueError("no such thing")


class Replayed(_device.Calls):
    """What a CUDA graph does, without one: results lie where they lay first."""

    def __init__(self, stages):
        super().__init__(stages)
        self._results = [super(Replayed, self).run_stage(i) for i in range(len(stages))]

    def run_stage(self, index):
        new_results = super().run_stage(index)
        if self._results is None:
            return new_results
        with torch.no_grad():
            for kept, new in zip(self._results[index], new_results):
                for old, value in zip((*kept[0], *kept[1]), (*new[0], *new[1])):
                    old.data.copy_(value.data)
        return self._results[index]

    def forget_results(self):
        self._results = None


class ReplayingCpu(_device.Cpu):
    def capture(self, stages, can_capture=True):
        is_copy = isinstance(stages[0][0](), torch.Tensor)
        return _device.Calls(stages) if is_copy else Replayed(stages)


def _in_place(gate, up):
    return _InPlace.apply(gate, up)


class _InPlace(torch.autograd.Function):
    """SwiGLU whose gradients take the place of its arguments and are views of them,
    as Liger's are."""

    @staticmethod
    def forward(ctx, gate, up):
        gate, up = (x.view(-1, x.shape[-1]) for x in (gate, up))
        ctx.save_for_backward(gate, up)
        return torch.nn.functional.silu(gate) * up

    @staticmethod
    def backward(ctx, upstream):
        gate, up = (x.detach().requires_grad_() for x in ctx.saved_tensors)
        with torch.enable_grad():
            result = torch.nn.functional.silu(gate) * up
        gradients = torch.autograd.grad(result, (gate, up), upstream)
        for tensor, gradient in zip(ctx.saved_tensors, gradients):
            tensor.data.copy_(gradient)
        return tuple(x.view(upstream.shape) for x in ctx.saved_tensors)


@pytest.mark.parametrize("function", [_in_place, None])
def test_replayed_results_are_checked(function):
    op = _ops.OPS["swiglu"]
    loaded = _providers.PROVIDERS["torch"].load()
    if function:
        loaded = _providers.Loaded(loaded.provider, _providers, {"swiglu": function})
    case = _measure.Case(op, (8, 64), torch.float32, op.directions)
    for row in _measure.measure_case(case, [loaded], ReplayingCpu()):
        assert row["status"] == "ok" and row["max_error"] < 1e-6


def test_a_replay_that_writes_nothing_is_found():
    op = _ops.OPS["silu"]
    calls = []

    def only_once(x):
        calls.append(x)
        if len(calls) > 6:
            return torch.full_like(x, math.nan)
        return torch.nn.functional.silu(x)

    torch_provider = _providers.PROVIDERS["torch"]
    loaded = _providers.Loaded(torch_provider, _providers, {"silu": only_once})
    case = _measure.Case(op, (8, 64), torch.float32, ("inference",))
    (row,) = _measure.measure_case(case, [loaded], ReplayingCpu())
    assert row["error"] == (
        "ValueError: its results are not finite where those of float64 are"
    )


def test_backward_of_the_device_comes_after_all_forwards():
    op = _ops.OPS["silu"]
    loaded = _providers.PROVIDERS["torch"].load()
    case = _measure.Case(op, (4, 8), torch.float32, op.directions)
    subject = _measure.Subject(case, loaded, loaded.function("silu"))
    sets = [_inputs.make(op, (4, 8), torch.float32, "cpu") for _ in range(3)]
    forwards, backwards = subject.stages("both", sets)
    assert [call() for call in forwards] == [None] * 3
    assert len(backwards) == 3
    for (result,), (gradient,) in [call() for call in backwards]:
        assert result.shape == gradient.shape


class TimedCpu(_device.Cpu):
    """Whose first stages take 1 ms, and second ones 5."""

    flushes = 0

    def flush(self):
        self.flushes += 1

    def seconds(self, calls, stage=0, behind=None):
        assert self.flushes, "a stage finds in the cache what it reads"
        self.flushes = 0
        return (1e-3, 5e-3)[stage]


def test_backwards_of_the_device_are_timed_alone():
    op = _ops.OPS["silu"]
    loaded = _providers.PROVIDERS["torch"].load()
    case = _measure.Case(op, (4, 8), torch.float32, op.directions)
    rows = _measure.measure_case(case, [loaded], TimedCpu())
    for row in rows:
        expected = {"forward": 1e3, "backward": 5e3, "both": 6e3}[row["direction"]]
        assert row["device_us"]["median"] == pytest.approx(expected / row["sets"])


def test_a_case_that_does_not_fit_fails_in_every_row():
    op = _ops.OPS["silu"]
    loaded = _providers.PROVIDERS["torch"].load()
    case = _measure.Case(op, (4, 8), torch.float32, op.directions)
    rows = _measure.failed_rows(case, [loaded], torch.OutOfMemoryError("too large"))
    assert [row["error"] for row in rows] == ["OutOfMemoryError: too large"] * 3


def test_a_provider_that_is_missing_is_left_out_with_a_word():
    told = []
    loaded = _providers.load(["torch", "quack"], told.append)
    names = [one.name for one in loaded]
    if "quack" not in names:
        assert told and told[0].startswith("QuACK is left out: pip install")


def test_sets_are_larger_than_the_cache():
    assert _inputs.count_sets(1 << 20, 50 << 20) == 200
    assert _inputs.count_sets(100 << 20, 50 << 20) == 4
    assert _inputs.count_sets(1 << 40, 50 << 20) == 2


def test_every_op_has_shapes_that_fit_it():
    for op in _ops.OPS.values():
        shapes = op.shapes(_ops.PRESETS)
        assert shapes and op.shapes(("models", "more"))
        for shape in (*shapes, op.tiny):
            _ops.check_shape(op, shape)


def test_the_models_have_at_most_16384_rows():
    for op in _ops.OPS.values():
        for shape in op.shapes(["models"]):
            rows = shape[0] * shape[1] if op.name == "rope" else shape[0]
            assert rows <= 16384, (op.name, shape)


@pytest.mark.parametrize(
    "arguments, words",
    [
        ("--device cpu --shapes 8x8", "--shapes needs --ops"),
        ("--device cpu --ops rope --shapes 8x8", "rope takes shapes of 5 sizes"),
        ("--device cpu --ops silu --shapes 8by8", "'8by8' is no shape"),
        ("--device cpu --ops silu --preset small", "nothing to measure"),
        ("--device cpu --preset products small", "products stands alone"),
        ("--device cpu --ops silu --preset products", "products stands alone"),
        ("--device cpu --ops quantize_blocks --shapes 8x100", "groups of 128"),
    ],
)
def test_mistakes_are_said_in_one_line(arguments, words, capsys, tmp_path):
    command = ["kernels", *arguments.split(), "--out", str(tmp_path / "results")]
    assert __main__.main(command) == 1
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1
    assert not (tmp_path / "results").exists()


def test_a_gpu_that_is_not_there_is_said(capsys, tmp_path):
    if torch.cuda.is_available():
        pytest.skip("there is one")
    assert __main__.main(["host", "--out", str(tmp_path)]) == 1
    assert "--device cpu" in capsys.readouterr().err


def test_budget_ends_a_run_and_keeps_what_is_there(capsys, tmp_path):
    command = "kernels --device cpu --ops silu --shapes 4x64 --budget-seconds 0"
    assert __main__.main([*command.split(), "--out", str(tmp_path)]) == 0
    assert "was not measured" in capsys.readouterr().out
    assert _report.read(tmp_path / "kernels.json")["rows"] == []


def test_host(tmp_path, capsys):
    command = "host --device cpu --ops rms_norm --providers torch --no-plots"
    assert __main__.main([*command.split(), "--out", str(tmp_path)]) == 0
    rows = _report.read(tmp_path / "host.json")["rows"]
    kinds = {row["direction"] for row in find(rows, op="rms_norm")}
    assert kinds == {"inference", "forward", "both"}
    assert 0.2 < find(rows, op="rms_norm")[0]["ratio"] < 5


def test_compile_time(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("BASTILE_CACHE", raising=False)
    command = "compile-time --ops silu rope --runs 2 --no-plots"
    assert __main__.main([*command.split(), "--out", str(tmp_path)]) == 0
    rows = _report.read(tmp_path / "compile-time.json")["rows"]
    assert [row["op"] for row in rows] == ["rope", "silu"]
    assert all(0.5 < row["compile_ms"]["median"] < 5000 for row in rows)
    assert "BASTILE_CACHE" not in os.environ


def test_without_torch_only_measuring_is_refused(tmp_path):
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "from bastile_bench.__main__ import main\n"
        "main(['kernels', '--out', sys.argv[1]])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True
    )
    assert done.stderr == (
        "bastile_bench: error: measuring needs PyTorch; install bastile-mlir[torch]\n"
    )


def test_liger_is_called_as_its_modules_call_it(monkeypatch):
    called = []

    def function(name, results):
        def apply(*arguments):
            called.append((name, arguments))
            return results

        return types.SimpleNamespace(apply=apply)

    heads = torch.zeros(1, 2, 4, 8)
    ops = types.SimpleNamespace(
        LigerRMSNormFunction=function("rms_norm", "y"),
        LigerCrossEntropyFunction=function("loss", ("loss", None, None, None)),
        LigerRopeFunction=function("rope", (heads, heads)),
    )
    monkeypatch.setitem(sys.modules, "liger_kernel", types.SimpleNamespace(ops=ops))
    loaded = _providers.PROVIDERS["liger"].load()
    assert loaded.function("swiglu") is None
    assert not loaded.can_capture("cross_entropy")
    assert loaded.function("rms_norm")("x", "w") == "y"
    assert loaded.function("cross_entropy")("x", "t") == "loss"
    assert called == [("rms_norm", ("x", "w", 1e-6)), ("loss", ("x", "t", None))]
    q, k = loaded.function("rope")(
        torch.zeros(1, 4, 2, 8), torch.zeros(1, 4, 2, 8), *[torch.zeros(1, 4, 1, 8)] * 2
    )
    assert q.shape == k.shape == (1, 4, 2, 8)
    shapes = [tuple(x.shape) for x in called[-1][1]]
    assert shapes == [(1, 2, 4, 8)] * 2 + [(1, 4, 8)] * 2


@pytest.mark.parametrize("name", _ops.OPS)
def test_the_kernel_described_takes_what_the_op_is_called_with(name):
    op = _ops.OPS[name]
    kernel = of_bastile.kernel(name, op.shapes(["small", "models", "more"])[0], "bf16")
    assert len(kernel.operands) == len(op.inputs)

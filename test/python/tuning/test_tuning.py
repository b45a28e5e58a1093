# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""bastile.autotune and what belongs to it, on a GPU that is not there."""

import argparse
import fcntl
import functools
import json
import pathlib
import sys

import bastile
import numpy as np
import pytest
from bastile import _bastile
from bastile._compiler import loading, operators, schedules
from bastile._tuning import api, command, jobs, keys, lookup, measure, store

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "Inputs"))
from tuning import GPU, Clock, EnumeratedMeter, cache  # noqa: E402, F401


@pytest.fixture
def autotune(cache, monkeypatch):
    """bastile.autotune, with made-up times."""
    run = functools.partial(api.run_jobs, meter=EnumeratedMeter)
    monkeypatch.setattr(api, "run_jobs", run)
    return bastile.autotune


def test_tunes_an_op(autotune, cache):
    kernel = bastile.compile("rms_norm", (8, 2880), dtype="bf16", target="sm_90")
    before = kernel.schedule["rms_norm_kernel"]
    (result,) = autotune("rms_norm", (8192, 2880))
    assert result.name == "rms_norm"
    assert result.rows == 8192
    assert result.seconds < result.heuristic_seconds
    # Kernels that exist already take it as well.
    after = kernel.schedule["rms_norm_kernel"]
    assert after != before
    assert after == result.kernels[0].schedule
    # It is there for the next process.
    (record,) = [
        record for record in store.open_log(GPU).records() if record["kind"] == "best"
    ]
    assert record["schedule"] == result.schedule
    assert record["rows"] == 8192


def test_tunes_gradients_function_by_function(autotune):
    (result,) = autotune("rms_norm", (8192, 2880), grad=True)
    assert [kernel.function for kernel in result.kernels] == [
        "rms_norm",
        "rms_norm_backward",
    ]
    assert result.schedule.count(";") == 1
    kernel = bastile.compile(
        "rms_norm", (8, 2880), dtype="bf16", grad=True, target="sm_90"
    )
    assert list(kernel.schedule.values()) == [
        tuned.schedule for tuned in result.kernels
    ]


def test_tunes_mlir(autotune):
    """It says its types itself, and is timed at the shape that is given."""
    source = """func.func @doubled(%x: tensor<?x2880xbf16>) -> tensor<?x2880xbf16> {
      %0 = arith.addf %x, %x : tensor<?x2880xbf16>
      return %0 : tensor<?x2880xbf16>
    }"""
    (result,) = autotune(source, (8192, 2880))
    assert [kernel.function for kernel in result.kernels] == ["doubled"]
    assert result.rows == 8192


def test_tunes_products(autotune):
    def project(x, w):
        return x @ w

    shapes = {"x": (4096, 64), "w": (64, 96)}
    kernel = bastile.compile(project, shapes, dtype="bf16", target="sm_90")
    before = kernel.schedule["project_kernel"]
    (result,) = autotune([(kernel, shapes)])
    (tuned,) = result.kernels
    assert 20 < tuned.candidates <= 40
    assert "depth = " in tuned.schedule
    after = kernel.schedule["project_kernel"]
    assert after != before
    assert after == tuned.schedule


def test_tunes_a_list_and_kernels(autotune):
    kernel = bastile.compile("silu", (8, 64), dtype="bf16")
    results = autotune(
        [
            ("swiglu", (16, 64)),
            (kernel, (32, 64)),
            ("geglu", (8, 64), {"form": "tanh"}),
        ]
    )
    assert [result.name for result in results] == ["swiglu", "silu", "geglu"]
    assert [result.rows for result in results] == [16, 32, 8]


def test_does_not_measure_twice(autotune):
    autotune("rms_norm", (8192, 2880))
    first = EnumeratedMeter.made[-1].compared
    autotune("rms_norm", (8192, 2880))
    assert len(first) > 6
    assert EnumeratedMeter.made[-1].compared == []


def test_a_budget_that_is_spent_leaves_the_rest(autotune):
    assert autotune([("silu", (8, 64)), ("gelu", (8, 64))], budget=0) == []


def test_what_time_was_too_short_for_stays_untuned(autotune):
    clock = Clock()

    class Slow(EnumeratedMeter):
        def difference(self, function, candidate):
            clock.now += 10
            return 0.0

    kernel = bastile.compile("silu", (8, 64), dtype="bf16", target="sm_90")
    job = jobs.make_job(kernel, "sm_90", (8, 64))
    assert api.run_jobs([job], budget=5, clock=clock, meter=Slow) == []
    assert lookup.find_entry(kernel._request, GPU) is None
    # The measurement counts nevertheless.
    autotune(kernel, (8, 64))
    assert "" not in EnumeratedMeter.made[-1].compared


def test_what_fails_does_not_keep_others(autotune, monkeypatch):
    def fail(meter, function):
        if meter._request.name == "silu":
            raise RuntimeError("cannot allocate 1 byte")

    monkeypatch.setattr(EnumeratedMeter, "open", fail)
    with pytest.warns(UserWarning, match="silu 8x64 is not tuned: cannot alloc"):
        results = autotune([("silu", (8, 64)), ("gelu", (8, 64))])
    assert [result.name for result in results] == ["gelu"]
    with pytest.raises(RuntimeError, match="cannot allocate 1 byte"):
        autotune("silu", (8, 64))


def test_there_is_nothing_to_tune_in_what_is_pinned(autotune):
    kernel = bastile.compile("silu", (8, 64), dtype="bf16", schedule="threads = 64")
    with pytest.raises(ValueError, match="silu: its schedule is pinned"):
        autotune(kernel, (8, 64))


def test_mistakes(autotune):
    with pytest.raises(ValueError, match="no op 'sliu'"):
        autotune("sliu", (8, 64))
    with pytest.raises(TypeError, match="the shape of input is missing"):
        autotune(bastile.compile("silu", (8, 64), dtype="bf16"))


def test_an_unreadable_cache_is_no_cache(cache, monkeypatch):
    monkeypatch.setenv("BASTILE_CACHE_DIR", "/proc/nothing")
    lookup.changed()
    kernel = bastile.compile("silu", (8, 64), dtype="bf16", target="sm_90")
    assert kernel.schedule


def test_without_a_folder_results_last_as_long_as_the_process(
    autotune, monkeypatch, tmp_path
):
    monkeypatch.setenv("BASTILE_CACHE_DIR", "")
    kernel = bastile.compile("rms_norm", (8, 2880), dtype="bf16", target="sm_90")
    (result,) = autotune(kernel, (8192, 2880))
    assert kernel.schedule["rms_norm_kernel"] == result.kernels[0].schedule
    assert list(tmp_path.iterdir()) == []
    bastile.clear_autotune_cache()
    assert kernel.schedule["rms_norm_kernel"] != result.kernels[0].schedule


def test_ops_take_what_was_found(autotune, monkeypatch):
    cleared = []

    class Native:
        def clear(self):
            cleared.append(self)

    monkeypatch.setattr(operators, "OPERATORS", {})
    operator = type("Operator", (), {"native": Native()})
    operators.OPERATORS["an_op"] = operator
    autotune("silu", (8, 64))
    assert cleared == [operator.native]


def test_the_cache_is_cleared(autotune, cache):
    autotune("rms_norm", (8192, 2880))
    kernel = bastile.compile("rms_norm", (8, 2880), dtype="bf16", target="sm_90")
    tuned = kernel.schedule
    bastile.clear_autotune_cache()
    assert list((cache / "tuning").iterdir()) == []
    assert kernel.schedule != tuned
    bastile.clear_autotune_cache()  # of nothing


@pytest.fixture
def first_call(cache, monkeypatch):
    monkeypatch.setenv("BASTILE_AUTOTUNE", "1")

    run = functools.partial(api.run_jobs, meter=EnumeratedMeter)
    monkeypatch.setattr(api, "run_jobs", run)

    def call(request, rows):
        operands = (np.empty((rows, 2880), np.float16), None)
        schedules.tune_first_call(request, operands, 0)
        return len(EnumeratedMeter.made)

    return call


def test_a_first_call_tunes_and_no_other(first_call):
    request = bastile.compile(
        "rms_norm", (8, 2880), dtype="bf16", target="sm_90"
    )._request
    assert first_call(request, 0) == 0  # there is nothing to time
    assert first_call(request, 512) == 1
    assert lookup.find_entry(request, GPU)["rows"] == 512
    # Neither do other numbers of rows, nor another epsilon.
    assert first_call(request, 100000) == 1
    other = bastile.compile(
        "rms_norm", (8, 2880), dtype="bf16", eps=1e-5, target="sm_90"
    )
    assert first_call(other._request, 512) == 1


def test_a_first_call_tunes_only_where_it_is_asked_to(first_call, monkeypatch):
    request = bastile.compile(
        "rms_norm", (8, 2880), dtype="bf16", target="sm_90"
    )._request
    for value in ("", "0"):
        monkeypatch.setenv("BASTILE_AUTOTUNE", value)
        assert first_call(request, 512) == 0


def test_a_first_call_waits_for_another_process(first_call, monkeypatch):
    # One that has tuned this meanwhile, and one that takes too long.
    request = bastile.compile(
        "rms_norm", (8, 2880), dtype="bf16", target="sm_90"
    )._request
    monkeypatch.setattr(api, "FIRST_CALL_BUDGET", 0.1)
    store.open_log(GPU).path.parent.mkdir(parents=True)
    with open(store.open_log(GPU).path.with_suffix(".lock"), "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.warns(UserWarning, match="another process is tuning"):
            first_call(request, 512)
    entry = {"kind": "best", "key": keys.key(request), "name": "rms_norm"}
    entry |= {"rows": 8, "schedule": ""}
    store.open_log(GPU).append(entry)
    assert lookup.find_entry(request, GPU) is None  # as it was read before
    assert first_call(request, 512) == 0
    assert lookup.find_entry(request, GPU) == entry


def test_a_first_call_that_cannot_tune_goes_on(first_call, monkeypatch):
    def fail(*arguments, **options):
        raise RuntimeError("cannot allocate 1 byte")

    monkeypatch.setattr(api, "run_jobs", fail)
    request = bastile.compile(
        "rms_norm", (8, 2880), dtype="bf16", target="sm_90"
    )._request
    with pytest.warns(UserWarning, match="rms_norm is not tuned: cannot allocate"):
        first_call(request, 512)


def test_calls_on_the_cpu_tune_nothing(cache, monkeypatch):
    monkeypatch.setenv("BASTILE_AUTOTUNE", "1")
    x = np.ones((4, 64), np.float32)
    bastile.compile("silu", (8, 64), dtype="f32")(x)
    assert not (cache / "tuning").exists()


def test_warming_up_compiles_ahead(monkeypatch):
    # Kernels are warmed up for the first GPU, where there is one.
    monkeypatch.setattr(_bastile, "gpu_count", lambda: 0)
    kernel = bastile.compile("gelu", (8, 64), dtype="f32")
    assert bastile.warmup_all_kernels([kernel]) == 1
    assert (
        bastile.warmup_all_kernels(["silu", "gelu"], [(8, 64), (8, 32)], dtype="f32")
        == 4
    )
    before = bastile.compilations()
    for length in (64, 32):
        x = np.ones((3, length), np.float32)
        bastile.compile("silu", (8, length), dtype="f32")(x)
    kernel(np.ones((3, 64), np.float32))
    assert bastile.compilations() == before


def test_warming_up_takes_what_is_tuned(autotune, monkeypatch):
    autotune([("silu", (8, 64)), ("rms_norm", (8, 2880), {"grad": True})])
    warmed = []
    monkeypatch.setattr(bastile.Kernel, "warm_up", lambda *call: warmed.append(call))
    assert bastile.warmup_all_kernels(device=0) >= 2
    assert {kernel.name for kernel, _ in warmed} >= {"silu", "rms_norm"}


def run_command(*arguments):
    parser = argparse.ArgumentParser()
    command.add_command(parser.add_subparsers())
    parsed = parser.parse_args(["tune", *arguments])
    return parsed.run(parsed)


def test_the_command_writes_a_table(autotune, tmp_path, capsys):
    path = tmp_path / "folder" / "nvidia-test-1.json"
    options = ["--out", str(path)]
    assert run_command("--op", "silu", "--shape", "8192x64", *options) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split("  ")[0] == "kernel"
    assert lines[1].startswith("silu_kernel  silu 8192x64")
    shape = '{"input": [16, 2880], "weight": [2880]}'
    run_command("--op", "rms_norm", "--shape", shape, "--grad", *options)
    document = json.loads(path.read_text())
    assert document["gpu"] == GPU
    assert [entry["name"] for entry in document["entries"]] == [
        "rms_norm",
        "silu",
    ]
    # It says what to compile.
    for entry in document["entries"]:
        jobs.make_job(jobs.Spec(**entry["spec"]), "sm_90")


def test_the_command_says_what_it_did_not_come_to(autotune, capsys):
    run_command("--op", "silu", "--shape", "8x64", "--budget", "0")
    assert "1 of 1 were not tuned in 0 s" in capsys.readouterr().out


def test_the_command_keeps_what_a_killed_run_has_found(autotune, tmp_path, monkeypatch):
    path = tmp_path / "table.json"
    preset = [jobs.Spec("silu", [8, 64]), jobs.Spec("gelu", [8, 64])]
    monkeypatch.setattr(jobs, "read_preset", lambda name: preset)

    def kill(meter, function):
        if meter._request.name == "gelu":
            raise KeyboardInterrupt

    monkeypatch.setattr(EnumeratedMeter, "open", kill)
    with pytest.raises(KeyboardInterrupt):
        run_command("--preset", "models", "--out", str(path))
    (entry,) = store.read_table(path).entries()
    assert entry["name"] == "silu"


def test_the_command_needs_a_shape(autotune, capsys):
    with pytest.raises(SystemExit):
        run_command("--op", "silu")
    assert "--op needs a --shape" in capsys.readouterr().err


def test_a_candidate_is_known_by_its_code():
    request = bastile.compile("silu", (8, 64), dtype="bf16", target="sm_90")._request
    meter = measure.GpuMeter(request, ((8, 64),), 0)
    schedules = ["", "silu_kernel: rows = 32", "silu_kernel: rows = 16"]
    codes = [meter.compile(s).code for s in schedules]
    (chosen,) = bastile.compile(
        "silu", (8, 64), dtype="bf16", target="sm_90"
    ).schedule.values()
    assert "rows = 32" in chosen
    assert codes[0] == codes[1] != codes[2]


@pytest.fixture
def norm():
    """Compiles a norm with its gradients for the host."""

    def compile(**options):
        kernel = bastile.compile(
            "rms_norm",
            {"input": (8, 288), "weight": (288,)},
            target="host",
            dtype="f32",
            grad=True,
            **options,
        )
        return loading.load(kernel._request).program

    return compile


def test_a_trial_compares_and_times(norm):
    program = norm()
    for function in program.functions:
        trial = _bastile.Trial(program, function, [[100, 288], [288]])
        assert trial.compare(program) == 0
        assert trial.compare(norm(schedule="columns = 64")) <= 1
        times = trial.time(program, 5)
        assert len(times) == 5 and all(time > 0 for time in times)


def test_a_trial_finds_what_computes_something_else(norm):
    trial = _bastile.Trial(norm(), "rms_norm", [[100, 288], [288]])
    assert trial.compare(norm(eps=0.1)) > 100


def test_a_trial_needs_sizes_that_fit(norm):
    for sizes in ([[100, 288]], [[100, 289], [288]]):
        with pytest.raises(RuntimeError, match="takes 2 tensors|has shape"):
            _bastile.Trial(norm(), "rms_norm", sizes)
    with pytest.raises(RuntimeError, match="'g' is neither the first function nor"):
        _bastile.Trial(norm(), "g", [[100, 288], [288]])

# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""train, generate and profile of python -m bastile_bench, on tiny models."""

import json
import math
import os
import signal
import subprocess
import sys
import time
import types

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from bastile_bench import __main__, _report  # noqa: E402
from bastile_bench._commands import generate, profile, train  # noqa: E402
from bastile_bench._end_to_end import (  # noqa: E402
    agreement,
    annotations,
    categories,
    generate_task,
    jobs,
    models,
    profile_task,
    providers,
    worker,
)

JOB = {
    "model": "tiny-qwen3",
    "provider": "hf",
    "device": "cpu",
    "dtype": "bfloat16",
    "layers": 1,
    "attention": None,
    "seed": 0,
    "compile_backend": "aot_eager",
    "batch": 2,
    "seq": 16,
    "warmup": 1,
    "steps": 2,
    "learning_rate": 1e-3,
}


def work(**job):
    """What becomes of a job in this process, and the stages it told of."""
    stages = []
    return worker.work({**JOB, **job}, stages.append), stages


def build(name="tiny-qwen3", **arguments):
    return models.build(models.find(name), device="cpu", **arguments)


# Models and data.


@pytest.mark.long(every=5)
@pytest.mark.parametrize("name", models.MODELS)
def test_every_model_is_one_of_transformers(name):
    tiny = build(f"tiny-{name}", layers=1)
    tokens = models.draw_tokens(tiny.config.get_text_config().vocab_size, (1, 8), 0)
    loss = tiny(input_ids=tokens, labels=tokens).loss
    assert abs(loss.item() - math.log(256)) < 0.5


def test_weights_follow_from_the_seed():
    first = models.fingerprint(build())
    assert models.fingerprint(build()) == first
    assert models.fingerprint(build(seed=1)) != first
    assert len(build(layers=3).model.layers) == 3


def test_weights_do_not_follow_from_the_order_in_which_they_are_drawn(monkeypatch):
    first = models.fingerprint(build())
    monkeypatch.setattr(torch, "manual_seed", lambda seed: None)
    torch.rand(5)
    assert models.fingerprint(build()) == first


def test_tokens_are_of_the_vocabulary_and_fall_in_frequency():
    tokens = models.draw_tokens(100, (4, 5000), 0)
    assert tokens.shape == (4, 5000) and tokens.dtype == torch.int64
    assert 0 <= tokens.min() and tokens.max() < 100
    counts = tokens.flatten().bincount(minlength=100).sort(descending=True).values
    assert 0.15 < counts[0] / tokens.numel() < 0.25
    assert torch.equal(tokens, models.draw_tokens(100, (4, 5000), 0))
    assert not torch.equal(tokens, models.draw_tokens(100, (4, 5000), 1))


def test_an_unknown_model_is_refused_with_those_there_are():
    with pytest.raises(ValueError, match="no model 'qwen9'.*qwen3, llama, gpt_oss"):
        models.find("qwen9")


# Providers.


def test_providers_are_parts():
    found = providers.parse(
        "hf,liger, bastile+compile,compile,bastile+linear,bastile+linear+compile,"
        "bastile+adamw"
    )
    assert found == [
        providers.Provider("hf", None, False),
        providers.Provider("liger", "liger", False),
        providers.Provider("bastile+compile", "bastile", True),
        providers.Provider("compile", None, True),
        providers.Provider("bastile+linear", "bastile", False, True),
        providers.Provider("bastile+linear+compile", "bastile", True, True),
        providers.Provider("bastile+adamw", "bastile", False, False, True),
    ]


@pytest.mark.parametrize(
    "text, message",
    [
        ("hf,eager", "no provider 'eager'"),
        ("", "no provider ''"),
        ("hf+compile", "no provider 'hf\\+compile'"),
        ("liger+bastile", "only one library"),
        ("liger+linear", "an option of bastile"),
        ("linear", "an option of bastile"),
        ("liger+adamw", "an option of bastile"),
        ("hf,hf", "named twice"),
    ],
)
def test_wrong_providers_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        providers.parse(text)


def test_optimizers():
    """Both keep their state in the type of the weights."""
    import bastile

    for name, kind in (
        ("bastile", torch.optim.AdamW),
        ("bastile+adamw", bastile.optim.AdamW),
    ):
        weight = torch.nn.Parameter(torch.ones(4, dtype=torch.bfloat16))
        weight.grad = torch.ones_like(weight)
        provider = providers.parse(name)[0]
        optimizer = providers.make_optimizer(provider, [weight], 0.5)
        assert type(optimizer) is kind
        optimizer.step()
        assert optimizer.state[weight]["exp_avg"].dtype == torch.bfloat16
        assert weight[0].item() == pytest.approx(0.5, abs=0.01)


def test_marks_leave_attention_to_bastile(monkeypatch):
    """What is measured with marks is what runs without them."""
    import bastile

    kernels = pytest.importorskip("bastile._patching.attention.kernels")
    if not kernels.is_supported():
        pytest.skip("this Transformers has masks that are tensors")
    model = models.build(models.find("tiny-gpt_oss"), device="cpu", layers=1)
    # Marks stay for good, but for this.
    registry, source = (
        kernels.ALL_ATTENTION_FUNCTIONS,
        sys.modules[type(model).__module__],
    )
    monkeypatch.setattr(registry, "get_interface", registry.get_interface)
    monkeypatch.setattr(source, "apply_rotary_pos_emb", source.apply_rotary_pos_emb)
    ran = []
    run = kernels.run
    monkeypatch.setattr(kernels, "run", lambda *x: ran.append(1) or run(*x))
    with bastile.apply("gpt_oss"):
        annotations.annotate(model)
        model(input_ids=torch.zeros(1, 4, dtype=torch.long))
    assert ran


@pytest.mark.parametrize("name", ["bastile", "bastile+linear"])
def test_products_are_asked_for(name):
    import bastile

    try:
        providers.prepare(providers.parse(name)[0], "qwen3")
        patched = bastile.get_patched_ops()["qwen3"]
    finally:
        bastile.reset()
    assert ("linear" in patched) == (name == "bastile+linear")


def test_a_library_that_is_missing_is_left_out(monkeypatch):
    monkeypatch.setitem(sys.modules, "liger_kernel", None)
    outcome, _ = work(task="train", provider="liger")
    assert outcome["status"] == jobs.LEFT_OUT
    assert "Liger cannot be imported" in outcome["message"]


def test_liger_patches_before_the_model_is_built(monkeypatch):
    patched = []
    liger = types.ModuleType("liger_kernel.transformers")
    liger.apply_liger_kernel_to_qwen3 = lambda: patched.append("qwen3")
    monkeypatch.setitem(sys.modules, "liger_kernel", types.ModuleType("liger_kernel"))
    monkeypatch.setitem(sys.modules, "liger_kernel.transformers", liger)
    assert work(task="train", provider="liger")[0]["status"] == jobs.MEASURED
    assert patched == ["qwen3"]
    outcome, _ = work(task="train", provider="liger", model="tiny-llama")
    assert outcome["status"] == jobs.LEFT_OUT
    assert "no models of type llama" in outcome["message"]


def test_bastile_says_which_models_it_does_not_know():
    provider = providers.parse("bastile")[0]
    with pytest.raises(providers.Unavailable, match="no patches.*'bert'"):
        providers.prepare(provider, "bert")


# Losses.


def test_a_curve_agrees_within_what_other_data_change():
    baseline, other = [5.0, 4.0, 3.0], [5.1, 4.0, 3.0]
    close = agreement.judge([5.0, 4.05, 3.0], baseline, other)
    assert close["agrees"] and close["loss_gap"] == pytest.approx(0.05)
    assert close["loss_gap_allowed"] == pytest.approx(0.1)
    assert not agreement.judge([5.0, 4.2, 3.0], baseline, other)["agrees"]


def test_a_loss_that_is_no_number_agrees_with_nothing():
    nan = [5.0, math.nan]
    assert not agreement.judge(nan, [5.0, 4.0], [5.1, 4.0])["agrees"]
    assert not agreement.judge([5.0, 4.0], nan, [5.1, 4.0])["agrees"]


def test_rows_are_judged_beside_their_baseline():
    common = {
        "model": "m",
        "status": jobs.MEASURED,
        "fingerprint": 1.0,
        "gradient_norm": 2.0,
    }
    rows = [
        {**common, "provider": "hf", "losses": [5.0], "other_losses": [5.1]},
        {**common, "provider": "bastile", "losses": [5.01]},
        {**common, "provider": "liger", "losses": [5.01], "fingerprint": 1.1},
        {"model": "m", "provider": "compile", "status": jobs.FAILED},
    ]
    train.judge(rows)
    assert "agrees" not in rows[0] and "agrees" not in rows[3]
    assert rows[1]["agrees"] and rows[1]["gradient"] == 1.0
    assert not rows[2]["agrees"] and not rows[2]["same_weights"]


# Jobs.


def test_a_training_job_measures_steps_and_losses():
    outcome, stages = work(task="train")
    values = outcome["values"]
    assert outcome["status"] == jobs.MEASURED
    assert len(values["step_seconds"]) == 2
    assert len(values["losses"]) == len(values["other_losses"]) == 3
    assert values["losses"] != values["other_losses"]
    assert values["peak_bytes"] > 1e8
    assert stages[:3] == [
        "preparing the provider",
        "building the model",
        "the first step",
    ]
    assert json.loads(json.dumps(outcome)) == outcome


def test_compiled_steps_have_the_same_losses():
    plain, compiled = (
        work(task="train", provider=name)[0]["values"] for name in ("hf", "compile")
    )
    assert compiled["losses"] == pytest.approx(plain["losses"], abs=1e-3)
    assert "other_losses" not in compiled


def test_a_job_that_fails_says_why():
    outcome, _ = work(task="train", attention="nonsense")
    assert outcome["status"] == jobs.FAILED
    assert "nonsense" in outcome["message"] and "\n" not in outcome["message"]
    assert "Traceback" in outcome["details"]


def test_a_job_ends_with_the_command():
    script = """
import subprocess, sys
from bastile_bench._end_to_end import jobs

start = subprocess.Popen

def start_sleeper(command, **options):
    child = start([sys.executable, "-c", "import time; time.sleep(600)"], **options)
    print(child.pid, flush=True)
    return child

jobs.subprocess.Popen = start_sleeper
jobs.run({}, jobs.Budget(None, 600))
"""
    command = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True
    )
    with command:
        child = int(command.stdout.readline())
        # Give it the time to wait for the child.
        time.sleep(1)
        command.terminate()
        assert command.wait(60) == 128 + signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_a_job_in_its_process_reports_errors():
    outcome = jobs.run({"task": "nonsense"}, jobs.Budget(None, 60))
    assert outcome.status == jobs.FAILED and "KeyError" in outcome.message


def test_a_job_is_ended_when_its_time_is_over():
    outcome = jobs.run({**JOB, "task": "train"}, jobs.Budget(None, 0.2))
    assert outcome.status == jobs.FAILED
    assert outcome.message == "not done after 0 s; last: starting"


def test_no_job_starts_when_the_time_of_all_is_used_up():
    outcome = jobs.run({**JOB, "task": "train"}, jobs.Budget(0.0, 60))
    assert outcome.status == jobs.LEFT_OUT and "used up" in outcome.message


# Generating.


def test_generating_times_every_token():
    outcome, _ = work(
        task="generate",
        batches=[1, 2],
        prompts=[4],
        new_tokens=3,
        repeats=2,
        cache="dynamic",
    )
    assert outcome["status"] == jobs.MEASURED, outcome
    runs = outcome["values"]["runs"]
    assert [run["batch"] for run in runs] == [1, 2]
    for run in runs:
        assert run["new_tokens"] == 3 == len(run["tokens"])
        assert len(run["token_seconds"]) == 4 and len(run["prefill_seconds"]) == 2
        assert min(run["token_seconds"]) > 0


def test_many_samples_are_thinned_and_keep_their_ends():
    thin = generate_task._thin([float(i) for i in range(1001)])
    assert len(thin) == 101
    assert (thin[0], thin[50], thin[100]) == (0.0, 500.0, 1000.0)


def test_generations_are_compared_with_the_baseline():
    def row(provider, milliseconds, tokens):
        return {
            "model": "m",
            "batch": 1,
            "prompt": 4,
            "provider": provider,
            "status": jobs.MEASURED,
            "token_ms": {"median": milliseconds},
            "tokens": tokens,
        }

    rows = [row("hf", 2.0, [1, 2, 3]), row("bastile", 1.0, [1, 2, 4])]
    generate.compare(rows)
    assert rows[1]["speed"] == 2.0
    assert (rows[0]["same_tokens"], rows[1]["same_tokens"]) == (3, 2)


# Profiles.


@pytest.mark.parametrize(
    "name, scope, category",
    [
        ("nvjet_tst_128x256_64x4_2x1_v_bz_coopA_NNT", None, "matmul"),
        ("void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16>", "loss", "matmul"),
        ("ampere_bf16_s16816gemm_bf16_128x128_ldg8", "attention", "attention"),
        ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop", None, "attention"),
        (
            "void at::native::(anonymous)::multi_tensor_apply_kernel<x>",
            None,
            "optimizer",
        ),
        (
            "void at::native::vectorized_elementwise_kernel<8, F>",
            "optimizer",
            "optimizer",
        ),
        ("void at::native::vectorized_elementwise_kernel<8, F>", "norm", "norm"),
        ("void at::native::vectorized_elementwise_kernel<8, F>", None, "elementwise"),
        ("Memcpy DtoD (Device -> Device)", "norm", "copy"),
        ("triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_3", None, "norm"),
        ("triton_poi_fused_mul_silu_1", None, "activation"),
        ("triton_per_fused__log_softmax_nll_loss_forward_9", None, "loss"),
        ("triton_poi_fused_add_5", None, "elementwise"),
        ("interleaved_geglu_bias_backward_kernel", "routing", "activation"),
        ("rms_norm_backward_kernel", None, "norm"),
        ("norm_add_norm_gemma_backward_kernel0", None, "norm"),
        ("linear_cross_entropy_kernel", None, "loss"),
        ("_triton_rope", None, "rope"),
        ("liger_cross_entropy_kernel", None, "loss"),
        ("void at::native::radixSortKVInPlace<x>", "routing", "routing"),
        ("quite_new_kernel", None, "other"),
    ],
)
def test_kernels_count_for_what_they_are_for(name, scope, category):
    assert categories.of_kernel(name, scope) == category


def test_a_profile_splits_a_step():
    outcome, _ = work(task="profile", profile_steps=1)
    assert outcome["status"] == jobs.MEASURED, outcome
    kernels = outcome["values"]["kernels"]
    seconds = [kernel["seconds"] for kernel in kernels]
    assert seconds == sorted(seconds, reverse=True)
    parts = profile.split(10.0, 8.0, kernels)
    assert {"matmul", "attention", "norm", "rope", "activation", "loss"} <= set(parts)
    assert parts["optimizer"] > 0 and parts["idle"] == 2.0
    # The gradient of a norm is one as well.
    norms = {k["name"] for k in kernels if k["category"] == "norm"}
    assert {"aten::rsqrt", "RsqrtBackward0"} <= norms


def test_a_profile_bounds_what_kernels_can_buy():
    assert profile.bound({"matmul": 6.0, "norm": 3.0, "idle": 1.0}) == 10 / 7


def event(name, device="CPU", start=0, end=0, parent=None, kernels=(), number=-1):
    """What the profiler tells of, times in microseconds."""
    return types.SimpleNamespace(
        name=name,
        device_type=f"DeviceType.{device}",
        time_range=types.SimpleNamespace(start=start, end=end),
        cpu_parent=parent,
        kernels=[types.SimpleNamespace(name=k, duration=t) for k, t in kernels],
        sequence_nr=number,
    )


def test_kernels_on_a_device_belong_to_who_launched_them():
    mark = event("bench::norm", kernels=[("bench::norm", 90)])
    forward = event(
        "aten::mul", parent=mark, kernels=[("elementwise_kernel", 3)], number=7
    )
    node = event(
        "autograd::engine::evaluate_function: MulBackward0", start=20, number=7
    )
    backward = event(
        "aten::mul", start=21, parent=node, kernels=[("elementwise_kernel", 4)]
    )
    events = [
        mark,
        forward,
        node,
        backward,
        event("bench::norm", "CUDA", 0, 90),
        event("elementwise_kernel", "CUDA", 10, 13),
        event("elementwise_kernel", "CUDA", 30, 34),
        event("rms_norm_kernel", "CUDA", 33, 40),
    ]
    units = profile_task.device_units(events)
    assert [(unit.name, unit.category) for unit in units] == [
        ("elementwise_kernel", "norm"),
        ("elementwise_kernel", "norm"),
        ("rms_norm_kernel", "norm"),
    ]
    assert sum(unit.seconds for unit in units) == pytest.approx(14e-6)
    # From 33 to 34, two of them run.
    assert profile_task.busy_seconds(events) == pytest.approx(13e-6)


def test_waits_are_listed_with_what_they_are_part_of():
    mark = event("bench::loss")
    item = event("aten::item", parent=mark)
    events = [
        mark,
        item,
        event("cudaStreamSynchronize", start=5, end=45, parent=item),
        event("cudaMemcpyAsync", start=3, end=5, parent=item),
        event("cudaMemcpyAsync", start=53, end=55, parent=item),
        event("cudaLaunchKernel", start=6, end=9, parent=item),
        # The end of the profile.
        event("cudaDeviceSynchronize", start=60, end=90),
        event("Memcpy DtoH (Device -> Pageable)", "CUDA", 5, 6),
    ]
    within = "bench::loss > aten::item"
    first, second = (list(x.values()) for x in profile_task.waits(events, 2))
    assert first == ["cudaStreamSynchronize", within, 20e-6, 0.5]
    assert second == ["cudaMemcpyAsync", within, 2e-6, 1]


def spent(units):
    """By kernel and category, microseconds and runs."""
    found = {}
    for unit in units:
        key = unit.name, unit.category
        seconds, count = found.get(key, (0, 0))
        found[key] = seconds + unit.seconds * 1e6, count + unit.count
    return {key: pytest.approx(values) for key, values in found.items()}


def test_a_kernel_under_several_operations_counts_once():
    step = event("Optimizer.step#AdamW.step")
    norm = event("bench::norm")
    twice = [("multi_tensor_apply_kernel", 6), ("elementwise_kernel", 3)]
    events = [
        step,
        norm,
        event("aten::_foreach_add_", parent=step, kernels=twice),
        event("aten::add", parent=step, kernels=twice),
        event("aten::mul", parent=norm, kernels=[("elementwise_kernel", 6)]),
        # A number that it has by chance.
        event("cudaStreamIsCapturing", parent=norm, kernels=twice),
        event("multi_tensor_apply_kernel", "CUDA", 0, 6),
        event("elementwise_kernel", "CUDA", 6, 9),
        event("elementwise_kernel", "CUDA", 9, 15),
    ]
    assert spent(profile_task.device_units(events)) == {
        ("multi_tensor_apply_kernel", "optimizer"): (6, 1),
        # 12 of which 6 are told twice; 9 there are.
        ("elementwise_kernel", "optimizer"): (9 * 6 / 12, 2 * 2 / 3),
        ("elementwise_kernel", "norm"): (9 * 6 / 12, 2 * 1 / 3),
    }


def test_runs_are_those_on_the_device():
    """Also of kernels that some or all operations are unknown for, or that are so
    short that the host's clock has nothing for them."""
    norm = event("bench::norm")
    events = [
        norm,
        event("aten::mul", parent=norm, kernels=[("elementwise_kernel", 3)]),
        event("aten::neg", parent=norm, kernels=[("short_kernel", 0)]),
        event("aten::abs", parent=norm, kernels=[("unseen_kernel", 5)]),
        event("elementwise_kernel", "CUDA", 0, 3),
        event("elementwise_kernel", "CUDA", 4, 8),
        event("rms_norm_kernel", "CUDA", 8, 9),
        event("rms_norm_kernel", "CUDA", 9, 11),
        event("short_kernel", "CUDA", 11, 11.25),
    ]
    assert spent(profile_task.device_units(events)) == {
        ("elementwise_kernel", "norm"): (3, 1),
        ("elementwise_kernel", "elementwise"): (4, 1),
        ("rms_norm_kernel", "norm"): (3, 2),
        ("short_kernel", "norm"): (0.25, 1),
    }


def test_marks_are_no_kernels():
    assert annotations.is_mark("bench::norm")
    assert annotations.is_mark("Optimizer.step#AdamW.step")
    assert not annotations.is_mark("rms_norm_kernel")
    assert annotations.is_driver_call("cudaLaunchKernelExC")
    assert annotations.is_driver_call("cuLaunchKernel")
    assert not annotations.is_driver_call("cuda_compiled_region")
    assert not annotations.is_driver_call("aten::mul")


# The command line.


@pytest.mark.long
def test_training_from_the_command_line(tmp_path, capfd):
    pytest.importorskip("matplotlib")
    words = (
        "train --model tiny-qwen3 --layers 1 --device cpu --providers hf,bastile "
        f"--steps 2 --warmup 1 --output {tmp_path}/results.json --plots {tmp_path}"
    )
    status = __main__.main(words.split())
    text = capfd.readouterr().out
    assert status == 0, text
    document = _report.read(tmp_path / "results.json")
    first, second = document["rows"]
    assert (first["provider"], second["provider"]) == ("hf", "bastile")
    assert second["agrees"] and second["same_weights"]
    assert second["gradient"] == pytest.approx(1.0, abs=0.01)
    assert second["tokens_per_second"]["count"] == 2
    assert document["summary"][0]["beside"] == "hf"
    for name in ("results.csv", "train.png", "losses-tiny-qwen3.png"):
        assert (tmp_path / name).stat().st_size > 0
    for words in ("tokens/s", "peak, GB", "hf, other data", "agrees"):
        assert words in text


def test_generating_and_profiling_from_the_command_line(tmp_path, capfd, monkeypatch):
    pytest.importorskip("matplotlib")

    # In this process, to spare the start of two.
    def run(job, budget, keep_caches):
        return jobs.Outcome(**worker.work(job, lambda stage: None))

    monkeypatch.setattr(jobs, "run", run)
    common = f"--model tiny-llama --device cpu --output {tmp_path} --plots {tmp_path} "
    assert not __main__.main(
        f"generate {common} --providers hf --batch 1 --prompt 4 --new-tokens 2 "
        "--repeats 1".split()
    )
    assert not __main__.main(
        f"profile {common} --providers hf --steps 1 --profile-steps 1 --top 3".split()
    )
    text = capfd.readouterr().out
    assert "a token, ms" in text and "2 of 2" in text
    assert "matmul" in text and "times as fast" in text
    for name in ("generate", "profile"):
        assert len(_report.read(tmp_path / f"{name}.json")["rows"]) == 1
        assert (tmp_path / f"{name}-tiny-llama.png").stat().st_size > 0


@pytest.mark.parametrize(
    "words, message",
    [
        ("train --model qwen9", "no model 'qwen9'"),
        ("train --providers hf,eager", "no provider 'eager'"),
        ("generate --device tpu", "--device is cpu, cuda or cuda:1"),
        pytest.param(
            "profile --device cuda",
            "PyTorch sees no GPU",
            marks=pytest.mark.skipif(
                torch.cuda.is_available(), reason="there is a GPU"
            ),
        ),
        pytest.param(
            "train --model llama,qwen3",
            "try --model tiny-llama, or insist by --device cpu",
            marks=pytest.mark.skipif(torch.cuda.is_available(), reason="there is one"),
        ),
        ("train --batch 0", "0 is less than 1"),
        ("generate --new-tokens 1", "1 is less than 2"),
    ],
)
def test_mistakes_are_told_before_anything_runs(words, message, capsys):
    try:
        status = __main__.main(words.split())
    except SystemExit as ended:
        status = ended.code
    assert status in (1, 2)
    assert message in capsys.readouterr().err


def test_help_imports_no_torch():
    code = (
        "import sys; from bastile_bench._commands import train, generate, profile; "
        "assert 'torch' not in sys.modules and 'matplotlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.gpu
def test_training_on_a_gpu(tmp_path):
    status = __main__.main(
        "train --model tiny-qwen3,tiny-gpt_oss --providers hf,bastile --steps 2 "
        f"--output {tmp_path}/results.json".split()
    )
    assert status == 0
    rows = _report.read(tmp_path / "results.json")["rows"]
    assert all(row["peak_bytes"] < 1e9 for row in rows)

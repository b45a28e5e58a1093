# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""TRL's trainers log the same with Bastile's functions in the place of theirs."""

import subprocess
import sys

import bastile
import pytest
import tiny_models
import torch
import transformers
from bastile import ops, patching

trl = pytest.importorskip("trl")
datasets = pytest.importorskip("datasets")
peft = pytest.importorskip("peft")
kernels = pytest.importorskip("trl.kernels.chunked_logprob")
divergence = pytest.importorskip("trl.kernels.chunked_divergence")

#: What a trainer logs that is another with each run.
TIMES = ("time", "runtime", "per_second", "total_flos")


@pytest.fixture(autouse=True)
def leave_nothing():
    yield
    bastile.reset()
    assert "apply" not in vars(kernels.ChunkedLogProbFunction)
    assert "apply" not in vars(divergence.ChunkedDivergenceFunction)


@pytest.fixture(scope="module")
def tokenizer():
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = {f"t{i}": i for i in range(tiny_models.VOCABULARY)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="t3"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="t0", eos_token="t2"
    )


def text(seed, count):
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(3, tiny_models.VOCABULARY, (count,), generator=generator)
    return " ".join(f"t{token}" for token in tokens)


def rows(*columns, count=8):
    """Rows with text of several lengths."""
    made = []
    for i in range(count):
        row = {
            name: text(10 * i + j, 4 + (i + j) % 3) for j, name in enumerate(columns)
        }
        made.append(row)
    return datasets.Dataset.from_list(made)


def length_reward(completions, **_):
    return [float(sum(map(ord, completion)) % 7) for completion in completions]


def sft(**options):
    return trl.SFTTrainer, trl.SFTConfig, {"train_dataset": rows("text")}, options


def dpo(**options):
    data = rows("prompt", "chosen", "rejected")
    return trl.DPOTrainer, trl.DPOConfig, {"train_dataset": data}, options


def kto(**options):
    data = rows("prompt", "completion")
    data = data.add_column("label", [i % 3 > 0 for i in range(len(data))])
    return trl.KTOTrainer, trl.KTOConfig, {"train_dataset": data}, options


def grpo(trainer=trl.GRPOTrainer, config=trl.GRPOConfig, **options):
    given = {"train_dataset": rows("prompt"), "reward_funcs": length_reward}
    options = {"num_generations": 2, "max_completion_length": 4, **options}
    return trainer, config, given, options


def rloo(**options):
    return grpo(trl.RLOOTrainer, trl.RLOOConfig, **options)


def saved(name, folder):
    """A model in a folder, where trainers find the reference as well."""
    place = folder / name
    if not place.exists():
        tiny_models.make(name, num_hidden_layers=1).save_pretrained(place)
    return transformers.AutoModelForCausalLM.from_pretrained(place)


def distillation(**options):
    teacher = tiny_models.make("qwen3", seed=1, num_hidden_layers=1)
    given = {"train_dataset": rows("prompt"), "teacher_model": teacher}
    options = {"max_completion_length": 4, **options}
    return trl.DistillationTrainer, trl.DistillationConfig, given, options


def train(trainer, folder, tokenizer, model="qwen3", config=None):
    """What a trainer logs, and the weights that it leaves."""
    kind, arguments, given, options = trainer
    transformers.set_seed(0)
    made = kind(
        model=saved(model, folder),
        args=arguments(
            output_dir=str(folder),
            per_device_train_batch_size=4,
            max_steps=2,
            # AdamW would make much of gradients that are nothing but rounding.
            optim="sgd",
            learning_rate=0.1,
            logging_steps=1,
            report_to=[],
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=options.pop("gradient_checkpointing", False),
            save_strategy="no",
            disable_tqdm=True,
            **options,
        ),
        processing_class=tokenizer,
        peft_config=config,
        **given,
    )
    made.train()
    logged = [
        (f"{name} of step {i}", value)
        for i, entry in enumerate(made.state.log_history)
        for name, value in entry.items()
        if not any(word in name for word in TIMES)
    ]
    weights = {name: value.detach() for name, value in made.model.named_parameters()}
    return dict(logged), weights


@pytest.fixture
def calls(monkeypatch):
    """How often each of Bastile's functions was called."""
    counts = {}

    def count(name):
        original = getattr(ops, name)

        def call(*args, **kwargs):
            counts[name] = counts.get(name, 0) + 1
            return original(*args, **kwargs)

        monkeypatch.setattr(ops, name, call)

    count("linear_log_probs")
    count("linear_jsd")
    return counts


def compare(make, folder, tokenizer, calls, **options):
    """Trains with TRL's own function and with Bastile's, and returns what is logged."""
    called = "linear_jsd" if make is distillation else "linear_log_probs"
    expected, weights = train(make(), folder, tokenizer, **options)
    assert not calls
    bastile.apply("trl")
    found, others = train(make(), folder, tokenizer, **options)
    assert calls[called] >= 2
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, rel=2e-4, abs=2e-5), name
    for name, value in weights.items():
        assert torch.allclose(others[name], value, atol=2e-5), name
    return expected


METRICS = {
    sft: {"loss", "entropy", "mean_token_accuracy"},
    dpo: {"loss", "entropy", "logits/chosen", "mean_token_accuracy", "logps/rejected"},
    kto: {"loss", "entropy", "logits/chosen", "rewards/margins", "kl"},
    grpo: {"loss", "entropy", "kl", "clip_ratio/region_mean"},
    rloo: {"loss", "entropy", "kl", "clip_ratio/region_mean"},
    distillation: {"loss", "entropy"},
}


@pytest.mark.long(every=3)
@pytest.mark.parametrize(
    "trainer, options",
    [
        (sft, {}),
        (sft, {"loss_type": "dft"}),
        (dpo, {}),
        (dpo, {"use_weighting": True, "loss_type": ["sigmoid", "ipo"]}),
        (kto, {}),
        (grpo, {"beta": 0.1, "steps_per_generation": 2, "num_iterations": 2}),
        (rloo, {"beta": 0.1}),
        (distillation, {}),
    ],
    ids=lambda value: getattr(value, "__name__", None) or "-".join(value) or "plain",
)
def test_what_trainers_log(trainer, options, tmp_path, tokenizer, calls):
    make = (lambda: trainer(**options)) if options else trainer
    logged = compare(make, tmp_path, tokenizer, calls)
    names = {name.split(" of ")[0] for name in logged}
    assert names >= METRICS[trainer]


def test_the_policy_is_what_is_compared(tmp_path, tokenizer):
    """Rewards differ, so that what GRPO's test compares is not 0."""
    logged, _ = train(grpo(), tmp_path, tokenizer)
    assert any(value > 0 for name, value in logged.items() if "reward_std" in name)


def test_adapters(tmp_path, tokenizer, calls):
    """The reference is the model without them."""
    config = peft.LoraConfig(r=4, target_modules=["q_proj", "up_proj"])
    compare(dpo, tmp_path, tokenizer, calls, config=config)


def test_gradient_checkpointing(tmp_path, tokenizer, calls):
    compare(lambda: kto(gradient_checkpointing=True), tmp_path, tokenizer, calls)


@pytest.mark.parametrize("model", ["gemma2", "granite", "qwen3_moe"])
def test_what_becomes_of_logits(model, tmp_path, tokenizer, calls):
    """A soft cap, a divisor, the loss of a router."""
    compare(sft, tmp_path, tokenizer, calls, model=model)


def test_both_functions_and_layers(tmp_path, tokenizer, calls):
    expected, _ = train(sft(), tmp_path, tokenizer)
    bastile.apply("qwen3")
    found, _ = train(sft(), tmp_path, tokenizer)
    assert calls["linear_log_probs"] >= 2
    assert found == pytest.approx(expected, rel=1e-3, abs=1e-4)


def operands(dtype=torch.float32, tokens=5, seed=3):
    generator = torch.Generator().manual_seed(seed)
    hidden, weight, bias = (
        torch.randn(shape, generator=generator).to(dtype).requires_grad_()
        for shape in ((tokens, 16), (40, 16), (40,))
    )
    return hidden, weight, bias, torch.arange(tokens) * 7


ALL = ("log_probs", "entropy", "log_sum_sq_probs", "mean_logits", "is_top1")


def run_head(hidden, weight, bias, targets, outputs=ALL, cap=None, scale=1.0):
    """The results of TRL's function, as it is patched or not, and the gradients."""
    head = kernels.ChunkedLogProbFunction.apply
    results = head(hidden, weight, bias, targets, 0.7, 16, cap, scale, outputs)
    value = sum((x * (1 + i)).sum() for i, x in enumerate(results[:2]) if x is not None)
    wanted = [x for x in (hidden, weight, bias) if x is not None and x.requires_grad]
    return results, torch.autograd.grad(value, wanted)


def compare_heads(*given, bound=1e-5, autocast=False, **options):
    def run():
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            return run_head(*given, **options)

    expected, gradients = run()
    bastile.apply("trl")
    found, others = run()
    for a, b in zip((*found, *others), (*expected, *gradients)):
        if b is None:
            assert a is None
            continue
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        assert torch.allclose(a.float(), b.float(), rtol=bound, atol=bound)
    return found


@pytest.mark.parametrize("outputs", [ALL[:1], ALL[:2], ALL[2:], ALL])
@pytest.mark.parametrize("options", [{}, {"cap": 1.5, "scale": 0.5}])
def test_outputs(outputs, options):
    hidden, weight, bias, targets = operands()
    found = compare_heads(hidden, weight, bias, targets, outputs=outputs, **options)
    assert not any(x.requires_grad for x in found[2:] if x is not None)


def test_no_bias_and_a_frozen_weight():
    hidden, weight, _, targets = operands()
    compare_heads(hidden, weight.detach(), None, targets)


def test_no_token():
    hidden, weight, bias, targets = operands(tokens=0)
    compare_heads(hidden, weight, bias, targets)


def test_float32_hidden_states_and_a_bfloat16_weight():
    """What `cast_lm_head_to_fp32` does."""
    _, weight, bias, targets = operands(torch.bfloat16)
    hidden, *_ = operands()
    compare_heads(hidden, weight, bias, targets, bound=1e-2)


def test_autocast():
    hidden, weight, bias, targets = operands()
    compare_heads(hidden, weight, bias, targets, autocast=True, bound=3e-2)


def test_of_equal_logits_the_first_is_the_most_likely():
    """In bfloat16 the largest of many logits is often one of several."""
    hidden, weight, bias, targets = operands(torch.bfloat16)
    with torch.no_grad():
        weight[7:] = weight[7]
        bias[7:] = 32.0
    found = compare_heads(hidden, weight, bias, targets, bound=2e-2)
    assert found[4].tolist() == [False, True, False, False, False]


def test_a_partitioned_weight_is_left_to_trl(calls):
    hidden, weight, bias, targets = operands()
    weight.ds_id = 0
    compare_heads(hidden, weight, bias, targets, bound=0.0)
    assert not calls


def teach(beta, dtype=torch.float32, other=None, cap=None, autocast=False):
    """What TRL's function of distillation gives, as it is patched or not, and the
    gradients."""
    student, teacher = operands(dtype)[:3], operands(other or dtype, seed=4)[:3]
    given = *student, *(x.detach() for x in teacher), beta, 0.7, 0.5, cap, 0.9, cap
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        value, entropy = divergence.ChunkedDivergenceFunction.apply(*given)
    assert not entropy.requires_grad
    factors = torch.arange(1.0, 1 + len(value))
    return value, entropy, *torch.autograd.grad((factors * value).sum(), student)


@pytest.mark.parametrize("cap", [None, 1.5])
@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
def test_divergence(beta, cap, calls):
    expected = teach(beta, cap=cap)
    bastile.apply("trl")
    for a, b in zip(teach(beta, cap=cap), expected):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        assert (a - b).abs().max() <= 1e-5 * b.abs().max()
    assert calls == {"linear_jsd": 1}


@pytest.mark.parametrize(
    "options",
    [
        {"dtype": torch.bfloat16},
        {"autocast": True},
        {"other": torch.bfloat16},
    ],
)
def test_a_divergence_of_16_bits_is_left_to_trl(options, calls):
    """Its logits are float32 there."""
    expected = teach(0.5, **options)
    bastile.apply("trl")
    assert all(torch.equal(a, b) for a, b in zip(teach(0.5, **options), expected))
    assert not calls


BOTH = ["linear_jsd", "linear_log_probs"]


def test_names_of_the_patches():
    infos = bastile.list_patches("trl")
    target = "ChunkedLogProbFunction.apply"
    assert infos[0] == patching.PatchInfo("trl", "linear_log_probs", target, False)
    assert [info.op for info in infos] == BOTH[::-1]
    assert all(info in bastile.list_patches() for info in infos)
    with bastile.apply("trl") as patched:
        assert patched.ops == [f"trl.{op}" for op in BOTH]
        assert bastile.get_patched_ops() == {"trl": BOTH}
        assert all(info.applied for info in bastile.list_patches("trl"))
        assert not bastile.apply("trl").ops
    assert bastile.get_patched_ops() == {}
    for name in ("linear_log_probs", "trl.linear_log_probs", "trl"):
        bastile.apply("llama", rms_norm=False)
        assert bastile.get_patched_ops()["trl"] == BOTH
        bastile.reset(name)
        left = [] if name == "trl" else ["linear_jsd"]
        assert bastile.get_patched_ops().get("trl", []) == left
    bastile.reset()
    with bastile.apply("llama", linear_log_probs=False):
        assert bastile.get_patched_ops()["trl"] == ["linear_jsd"]


@pytest.mark.parametrize(
    "mistake",
    [
        lambda z, scale, *rest: 1.01 * scale * z,
        lambda z, *rest: kernels.no_such_name,
    ],
)
def test_another_function_is_left_as_it_is(mistake, monkeypatch):
    monkeypatch.setattr(kernels, "_torch_transform", mistake)
    with pytest.warns(RuntimeWarning, match="stays as it is in this version of TRL"):
        assert not bastile.apply("trl", linear_jsd=False).ops
    assert bastile.get_patched_ops() == {}
    assert bastile.list_patches("trl")[0].reason
    with pytest.raises(patching.PatchError, match="stays as it is"):
        bastile.apply("llama", strict=True)
    assert bastile.get_patched_ops() == {}


@pytest.mark.parametrize("module", [kernels, divergence])
def test_other_gradients_are_noticed(module, monkeypatch):
    backward = module._backward_tile

    def double(tile, *rest, **options):
        backward(tile, *rest, **options)
        tile *= 2

    monkeypatch.setattr(module, "_backward_tile", double)
    with pytest.warns(RuntimeWarning, match="its gradients are other numbers"):
        patched = bastile.apply("trl")
    # The other function is patched.
    assert len(patched.ops) == 1


def test_another_divergence_is_noticed(monkeypatch):
    original = divergence._jsd_tile

    def swap(*operands, **options):
        original(*operands[:9], 1 - operands[9], *operands[10:], **options)

    monkeypatch.setattr(divergence, "_jsd_tile", swap)
    with pytest.warns(RuntimeWarning, match="its divergence for a beta of 0.3"):
        bastile.apply("trl")


LATER = """
import sys, bastile
patched = bastile.apply("trl")
first = bastile.apply("trl")
assert not any(name.startswith("trl.") for name in sys.modules) and not patched.ops
import trl.trainer.utils as utils
assert bastile.get_patched_ops() == {"trl": ["linear_log_probs"]}
assert patched.ops == ["trl.linear_log_probs"] and not first.ops
import trl.kernels.chunked_divergence as divergence
assert patched.ops == ["trl.linear_jsd", "trl.linear_log_probs"] and not first.ops
assert "apply" in vars(utils._ChunkedLogProbFunction)
assert "exec_module" not in vars(utils.__loader__)
patched.reset()
assert "apply" not in vars(utils._ChunkedLogProbFunction)
assert "apply" not in vars(divergence.ChunkedDivergenceFunction)
"""


def test_trl_may_come_later():
    subprocess.run([sys.executable, "-c", LATER], check=True)

# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""The callback for Hugging Face's `Trainer`."""

import subprocess
import sys
import warnings

import bastile
import pytest
import tiny_models
import torch
import transformers

pytest.importorskip("accelerate")

ALL = [
    "qwen3.add_rms_norm",
    "qwen3.attention",
    "qwen3.fused_linear_cross_entropy",
    "qwen3.norm_rope",
    "qwen3.rms_norm",
    "qwen3.swiglu",
]


@pytest.fixture(autouse=True)
def leave_nothing():
    yield
    bastile.reset()


def rows(count):
    batches = [tiny_models.batch(seed=i, shape=(1, 12)) for i in range(count)]
    return [{key: value[0] for key, value in batch.items()} for batch in batches]


def make_trainer(folder, callback, model=None, **options):
    options = {"max_steps": 3, "logging_steps": 1, **options}
    return transformers.Trainer(
        model=model or tiny_models.make("qwen3"),
        args=transformers.TrainingArguments(
            output_dir=str(folder),
            per_device_train_batch_size=2,
            report_to=[],
            use_cpu=True,
            save_strategy="no",
            disable_tqdm=True,
            **options,
        ),
        train_dataset=rows(12),
        eval_dataset=rows(4),
        callbacks=[callback] if callback else None,
    )


def logged(trainer, name):
    return [entry[name] for entry in trainer.state.log_history if name in entry]


@pytest.mark.parametrize("bf16", [False, True])
def test_patches_the_model_and_says_so(tmp_path, bf16):
    plain = make_trainer(tmp_path, None, bf16=bf16)
    plain.train()
    callback = bastile.trainer.BastileCallback()
    with warnings.catch_warnings():
        # Where mixed precision has wrapped the forward before, the loss is left out.
        warnings.simplefilter("error", RuntimeWarning)
        trainer = make_trainer(tmp_path, callback, bf16=bf16)
        trainer.train()
    assert logged(trainer, "bastile_patched") == [ALL]
    assert bastile.get_patched_ops() == {}
    assert bastile.get_patched_ops(trainer.model) == {"qwen3": [x[6:] for x in ALL]}
    bound = 5e-3 if bf16 else 1e-5
    for a, b in zip(logged(plain, "loss"), logged(trainer, "loss"), strict=True):
        assert abs(a - b) < bound * a
    assert not logged(trainer, "tokens_per_second")
    if not bf16:
        # Mixed precision keeps the forward that it has wrapped.
        callback.patched.reset()
        assert bastile.get_patched_ops(trainer.model) == {}


def test_leaves_out_what_it_is_told(tmp_path):
    callback = bastile.trainer.BastileCallback(
        **dict.fromkeys(["add_rms_norm", "attention", "norm_rope", "rope"], False),
        swiglu=False,
    )
    trainer = make_trainer(tmp_path, callback, max_steps=1)
    trainer.train()
    assert logged(trainer, "bastile_patched") == [
        ["qwen3.fused_linear_cross_entropy", "qwen3.rms_norm"]
    ]


def test_measures_tokens_of_the_steps(tmp_path, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("time.perf_counter", lambda: clock[0])
    callback = bastile.trainer.BastileCallback(measure=True)

    class Slow(transformers.TrainerCallback):
        """A step takes two seconds, and the trainer is slow to evaluate."""

        def on_step_begin(self, *operands, **named):
            clock[0] += 2

        def on_prediction_step(self, *operands, **named):
            clock[0] += 100

    trainer = make_trainer(
        tmp_path, callback, eval_strategy="steps", eval_steps=1, max_steps=4,
        gradient_accumulation_steps=2, logging_steps=2,
    )  # fmt: skip
    trainer.add_callback(Slow())
    trainer.train()
    assert logged(trainer, "eval_loss")
    # Two sequences of 12 tokens, twice a step, in two seconds.
    assert logged(trainer, "tokens_per_second") == [24.0, 24.0]
    assert bool(logged(trainer, "peak_memory_gb")) == torch.cuda.is_available()
    # Nothing is left on the model.
    assert not trainer.model._forward_pre_hooks


def test_takes_the_trainer_s_count_of_tokens(tmp_path, monkeypatch):
    callback = bastile.trainer.BastileCallback(measure=True)
    trainer = make_trainer(tmp_path, callback, include_num_input_tokens_seen=True)
    # As in a compiled model, where the callback cannot count.
    monkeypatch.setattr(callback._speed, "_see", lambda *operands: None)
    trainer.train()
    assert len(logged(trainer, "tokens_per_second")) == 3


def test_a_model_that_cannot_be_patched_is_an_error(tmp_path):
    with pytest.raises(TypeError, match="apply_to_model takes a model of Transformers"):
        make_trainer(tmp_path, bastile.trainer.BastileCallback(), torch.nn.Linear(2, 2))


def test_is_not_imported_with_the_package():
    code = "import bastile, sys; assert 'transformers' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)

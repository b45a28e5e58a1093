# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""Patched models in what people train them with: checkpointing, torch.compile,
Trainer, TRL, several processes; and the examples."""

import importlib.util
import multiprocessing
import os
import pathlib
import subprocess
import sys

import bastile
import pytest
import tiny_models
import torch
import transformers
from packaging.version import Version

EXAMPLES = pathlib.Path(__file__).resolve().parents[3] / "examples"


@pytest.fixture(autouse=True)
def leave_nothing():
    yield
    bastile.reset()


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.long(every=7)
@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("name", ["qwen3", "gpt_oss"])
def test_gradient_checkpointing(name, reentrant):
    model, inputs = tiny_models.make(name), tiny_models.batch()
    expected = tiny_models.run(model, inputs)
    model.gradient_checkpointing_enable({"use_reentrant": reentrant})
    model.enable_input_require_grads()
    bastile.apply(name)
    outputs, gradients = tiny_models.run(model, inputs)
    assert torch.allclose(outputs.loss, expected[0].loss)
    for key, gradient in gradients.items():
        assert torch.allclose(gradient, expected[1][key], atol=2e-5), key


@pytest.mark.long(every=11)
@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("name", ["gemma2", "glm4", "gpt_oss", "qwen3"])
def test_no_graph_break(name, apart):
    """Also where one model alone is patched, whose methods have own globals."""
    if name == "gpt_oss" and transformers.__version__.startswith("4."):
        pytest.skip("the experts of Transformers 4 are a loop that no graph holds")
    if name == "gpt_oss" and Version(transformers.__version__) < Version("5.23"):
        pytest.skip(
            "the gradient of the experts is a loop that no graph holds, with or without "
            "patches: Transformers has registered it as an operator since 5.23"
        )
    model, inputs = tiny_models.make(name), tiny_models.batch()
    bastile.apply_to_model(model) if apart else bastile.apply(name)
    expected, gradients = tiny_models.run(model, inputs)
    torch._dynamo.reset()
    # One graph holds a whole model, or as here for speed, a layer.
    model.model.layers[1].compile(backend="aot_eager", fullgraph=True)
    outputs, compiled = tiny_models.run(model, inputs)
    assert torch.allclose(outputs.loss, expected.loss)
    for key, gradient in compiled.items():
        assert torch.allclose(gradient, gradients[key], atol=2e-5), key


def test_the_loss_in_one_graph():
    model, inputs = tiny_models.make("qwen3", num_hidden_layers=1), tiny_models.batch()
    bastile.apply("qwen3")
    expected, gradients = tiny_models.run(model, inputs)
    torch._dynamo.reset()
    compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
    outputs, found = tiny_models.run(compiled, inputs)
    assert outputs.logits is None
    assert torch.allclose(outputs.loss, expected.loss)
    assert torch.allclose(outputs.token_accuracy, expected.token_accuracy)
    for name, gradient in gradients.items():
        assert torch.allclose(gradient, found[f"_orig_mod.{name}"], atol=2e-5), name


def arguments(kind, folder, **options):
    return kind(
        output_dir=str(folder),
        per_device_train_batch_size=2,
        max_steps=3,
        logging_steps=1,
        report_to=[],
        use_cpu=True,
        save_strategy="no",
        disable_tqdm=True,
        **options,
    )


def rows(count=12):
    batches = [tiny_models.batch(seed=i, shape=(1, 12)) for i in range(count)]
    return [{key: value[0] for key, value in batch.items()} for batch in batches]


def logged(trainer, name):
    return [entry[name] for entry in trainer.state.log_history if name in entry]


def twice(name, train):
    """What ``train`` gives for the model as it was, and patched."""
    original = train(tiny_models.make(name))
    with bastile.apply(name):
        return original, train(tiny_models.make(name))


@pytest.mark.parametrize(
    "options",
    [
        {"gradient_accumulation_steps": 2},
        {"bf16": True, "gradient_checkpointing": True},
    ],
)
def test_trainer(tmp_path, options):
    pytest.importorskip("accelerate")

    def train(model):
        trainer = transformers.Trainer(
            model=model,
            args=arguments(transformers.TrainingArguments, tmp_path, **options),
            train_dataset=rows(),
            eval_dataset=rows(4),
        )
        trainer.train()
        return [*logged(trainer, "loss"), trainer.evaluate()["eval_loss"]]

    bound = 5e-3 if "bf16" in options else 1e-5
    original, patched = twice("qwen3", train)
    for a, b in zip(original, patched):
        assert abs(float(a) - float(b)) < bound * float(a)


def word_tokenizer():
    from tokenizers import Tokenizer, models

    words = {f"t{i}": i for i in range(tiny_models.VOCABULARY)}
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel(words, unk_token="t3")),
        pad_token="t0",
        eos_token="t2",
    )


@pytest.mark.parametrize("adapted", [False, True])
def test_sft_trainer(tmp_path, adapted):
    trl = pytest.importorskip("trl")
    datasets = pytest.importorskip("datasets")
    peft = pytest.importorskip("peft")
    lists = [{key: value.tolist() for key, value in row.items()} for row in rows()]
    config = peft.LoraConfig(r=4, target_modules=["q_proj", "up_proj"])

    def train(model):
        torch.manual_seed(0)
        trainer = trl.SFTTrainer(
            model=model,
            args=arguments(trl.SFTConfig, tmp_path, bf16=False),
            train_dataset=datasets.Dataset.from_list(lists),
            processing_class=word_tokenizer(),
            peft_config=config if adapted else None,
        )
        trainer.train()
        names = "loss", "mean_token_accuracy", "entropy"
        return [float(x) for name in names for x in logged(trainer, name)]

    original, patched = twice("qwen3", train)
    assert len(original) == 9
    assert original == pytest.approx(patched, rel=1e-4)


def fork_training(rank, size, port, options, results):
    os.environ.update(
        RANK=str(rank),
        LOCAL_RANK=str(rank),
        WORLD_SIZE=str(size),
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
    )
    results.put((rank, example("fsdp2").main(options)))
    results.close()
    results.join_thread()
    os._exit(0)


def free_port():
    import socket

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@pytest.mark.skipif(torch.cuda.is_available(), reason="with a GPU, that is used")
@pytest.mark.parametrize(
    "options",
    [["--with", "ddp"], ["--with", "fsdp2"], ["--with", "fsdp2", "--shard-head"]],
)
def test_two_processes_have_the_losses_of_one(options):
    options = [*options, "--steps", "3", "--sequences", "4", "--length", "8"]
    alone = example("fsdp2").main(options)
    context = multiprocessing.get_context("fork")
    results, port = context.Queue(), free_port()
    processes = [
        context.Process(target=fork_training, args=(rank, 2, port, options, results))
        for rank in range(2)
    ]
    for process in processes:
        process.start()
    found = dict(results.get(timeout=120) for _ in processes)
    for process in processes:
        process.join()
    assert found[0] == found[1] == pytest.approx(alone, rel=1e-5)


@pytest.mark.gpu
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
@pytest.mark.parametrize("way", ["ddp", "fsdp2"])
def test_two_gpus_have_the_losses_of_one(way):
    def losses(count):
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        command += ["--nproc-per-node", str(count), str(EXAMPLES / "fsdp2.py")]
        result = subprocess.run(
            [*command, "--with", way, "--steps", "10"],
            capture_output=True,
            text=True,
        )
        assert result.returncode == 0, result.stderr
        return [float(line.split()[-1]) for line in result.stdout.splitlines()]

    assert losses(2) == pytest.approx(losses(1), rel=1e-3)


@pytest.mark.long(every=3)
@pytest.mark.parametrize("name", ["finetune_qwen3", "finetune_gpt_oss"])
def test_examples_of_trainer(name, tmp_path):
    pytest.importorskip("accelerate")
    options = ["--steps", "10", "--length", "16", "--output", str(tmp_path)]
    losses = [float(loss) for loss in example(name).main(options)]
    assert losses[-1] < losses[0]


def test_example_of_a_custom_op(capsys):
    example("custom_op").main()
    losses = [float(x.split()[-1]) for x in capsys.readouterr().out.splitlines()]
    assert losses[-1] < 0.1 * losses[0]

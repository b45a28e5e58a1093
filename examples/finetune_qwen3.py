# Part of Bastile, under the MIT License. See LICENSE.
"""Fine-tunes Qwen3 with Transformers' Trainer on Bastile's kernels.

As it stands, a small model is trained on sequences that count upwards, on a GPU or
the CPU. With a model and a text file, it fine-tunes that model on the text:

    python examples/finetune_qwen3.py
    python examples/finetune_qwen3.py --model Qwen/Qwen3-0.6B --text book.txt
"""

import argparse

import bastile
import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    Qwen3Config,
    Trainer,
    TrainingArguments,
)

VOCABULARY = 512


def parse(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", help="a model's name or folder; else a small one")
    parser.add_argument("--text", help="a file of text for --model")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--length", type=int, default=64, help="of a sequence")
    parser.add_argument("--output", default="qwen3-finetuned")
    options = parser.parse_args(arguments)
    if (options.model is None) != (options.text is None):
        parser.error("--model and --text belong together")
    return options


def small_model():
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=VOCABULARY,
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
    )
    return AutoModelForCausalLM.from_config(config)


def counting(length, count=256):
    """Sequences of tokens that follow each other by a step of 1 to 8."""
    starts = torch.arange(count) % VOCABULARY
    steps = 1 + torch.arange(count) % 8
    return (starts[:, None] + steps[:, None] * torch.arange(length)) % VOCABULARY


def sequences_of(path, tokenizer, length):
    with open(path, encoding="utf-8") as file:
        tokens = tokenizer(file.read(), return_tensors="pt").input_ids[0]
    return tokens[: len(tokens) // length * length].reshape(-1, length)


def main(arguments=None):
    options = parse(arguments)
    bastile.apply("qwen3")
    if options.model is None:
        model, tokens = small_model(), counting(options.length)
    else:
        tokenizer = AutoTokenizer.from_pretrained(options.model)
        model = AutoModelForCausalLM.from_pretrained(options.model)
        tokens = sequences_of(options.text, tokenizer, options.length)
    trainer = Trainer(
        model=model,
        args=TrainingArguments(
            output_dir=options.output,
            max_steps=options.steps,
            per_device_train_batch_size=8,
            gradient_accumulation_steps=2,
            learning_rate=1e-3 if options.model is None else 1e-5,
            bf16=torch.cuda.is_available(),
            logging_steps=5,
            save_strategy="no",
            report_to=[],
        ),
        train_dataset=[{"input_ids": row, "labels": row} for row in tokens],
    )
    trainer.train()
    if options.model is not None:
        trainer.save_model()
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


if __name__ == "__main__":
    main()

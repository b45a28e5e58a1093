# Part of Bastile, under the MIT License. See LICENSE.
"""Fine-tunes GPT-OSS with Transformers' Trainer on Bastile's kernels.

As it stands, a small model of its architecture is trained on sequences that count
upwards, on a GPU or the CPU. With ``--model`` (``openai/gpt-oss-20b``, in bfloat16),
LoRA adapts the attention of that model instead, which needs PEFT and a GPU.
"""

import argparse

import bastile
import torch
from transformers import (
    AutoModelForCausalLM,
    GptOssConfig,
    Mxfp4Config,
    Trainer,
    TrainingArguments,
)

VOCABULARY = 512


def parse(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", help="a model's name or folder; else a small one")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--length", type=int, default=64, help="of a sequence")
    parser.add_argument("--output", default="gpt-oss-finetuned")
    return parser.parse_args(arguments)


def small_model():
    torch.manual_seed(0)
    config = GptOssConfig(
        vocab_size=VOCABULARY,
        hidden_size=128,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        num_local_experts=4,
        num_experts_per_tok=2,
        sliding_window=32,
        pad_token_id=0,
        eos_token_id=1,
    )
    return AutoModelForCausalLM.from_config(config)


def adapted_model(name):
    from peft import LoraConfig, get_peft_model

    model = AutoModelForCausalLM.from_pretrained(
        name, dtype=torch.bfloat16, quantization_config=Mxfp4Config(dequantize=True)
    )
    targets = ["q_proj", "k_proj", "v_proj", "o_proj"]
    return get_peft_model(model, LoraConfig(r=16, target_modules=targets))


def counting(length, count=256):
    """Sequences of tokens that follow each other by a step of 1 to 8."""
    starts = torch.arange(count) % VOCABULARY
    steps = 1 + torch.arange(count) % 8
    return (starts[:, None] + steps[:, None] * torch.arange(length)) % VOCABULARY


def main(arguments=None):
    options = parse(arguments)
    bastile.apply("gpt_oss")
    model = adapted_model(options.model) if options.model else small_model()
    tokens = counting(options.length)
    trainer = Trainer(
        model=model,
        args=TrainingArguments(
            output_dir=options.output,
            max_steps=options.steps,
            per_device_train_batch_size=4,
            gradient_accumulation_steps=2,
            gradient_checkpointing=True,
            learning_rate=1e-3,
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

# Part of Bastile, under the MIT License. See LICENSE.
"""Trains Qwen3 on several processes, with its parameters sharded among them:

    torchrun --nproc-per-node 2 examples/fsdp2.py

The sequences of a step are the same ones for any number of processes, and so are
the losses. ``--with ddp`` keeps all parameters in each process; without torchrun,
there is one process. Without a GPU, it runs on the CPU.
"""

import argparse
import gc
import os

import bastile
import torch
import torch.distributed as dist
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from transformers import Qwen3Config, Qwen3ForCausalLM


def parse(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--with", dest="way", choices=["fsdp2", "ddp"], default="fsdp2")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--sequences", type=int, default=8, help="of a step")
    parser.add_argument("--length", type=int, default=32, help="of a sequence")
    parser.add_argument("--hidden", type=int, default=64, help="size of the model")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--shard-head", action="store_true", help="apart from the rest")
    parser.add_argument("--bf16", action="store_true", help="compute in bfloat16")
    return parser.parse_args(arguments)


def make_model(options, device):
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=1024,
        hidden_size=options.hidden,
        intermediate_size=3 * options.hidden,
        num_hidden_layers=options.layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
    )
    bastile.apply("qwen3")
    model = Qwen3ForCausalLM(config).to(device)
    if not dist.is_initialized():
        return model
    if options.way == "ddp":
        return torch.nn.parallel.DistributedDataParallel(model)
    policy = MixedPrecisionPolicy(torch.bfloat16 if options.bf16 else None)
    mesh = dist.device_mesh.init_device_mesh(device.type, (dist.get_world_size(),))
    heads = [model.lm_head] if options.shard_head else []
    for module in [*model.model.layers, *heads, model]:
        fully_shard(module, mesh=mesh, mp_policy=policy)
    return model


def make_batch(options, step):
    """All sequences of a step: each token follows from the one before it."""
    generator = torch.Generator().manual_seed(step)
    first = torch.randint(1024, (options.sequences, 1), generator=generator)
    return (first + 7 * torch.arange(options.length)) % 1024


def train(options, device):
    """The loss of every step, over the sequences of all processes."""
    rank, size = (
        (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)
    )
    model = make_model(options, device).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for step in range(options.steps):
        batch = make_batch(options, step)
        tokens = batch.chunk(size)[rank].to(device)
        items = batch[:, 1:].numel()
        with torch.autocast(
            device.type, torch.bfloat16, enabled=options.bf16 and options.way == "ddp"
        ):
            loss = model(input_ids=tokens, labels=tokens, num_items_in_batch=items).loss
        # Gradients are averaged over the processes, of which each has a share.
        (loss * size).backward()
        optimizer.step()
        optimizer.zero_grad()
        total = loss.detach().clone()
        if dist.is_initialized():
            dist.all_reduce(total)
        losses.append(total.item())
        if rank == 0:
            print(f"step {step}: loss {losses[-1]:.6f}", flush=True)
    return losses


def main(arguments=None):
    options = parse(arguments)
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
        torch.cuda.set_device(device)
    if "RANK" not in os.environ:
        return train(options, device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        return train(options, device)
    finally:
        # The model, which is in cycles, lets go of the group before that is gone.
        gc.collect()
        dist.destroy_process_group()


if __name__ == "__main__":
    main()

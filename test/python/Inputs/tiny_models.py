# Part of Bastile, under the MIT License. See LICENSE.
"""Models of every patched type that are small enough for a test."""

import torch
import transformers
from torch.utils._python_dispatch import TorchDispatchMode

# Threads cost more than they bring at these sizes.
torch.set_num_threads(1)

VOCABULARY = 96

_COMMON = dict(
    vocab_size=VOCABULARY,
    hidden_size=64,
    intermediate_size=96,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=16,
    max_position_embeddings=64,
    initializer_range=0.1,
    pad_token_id=0,
    bos_token_id=1,
    eos_token_id=2,
)

#: By model type, what of its configuration matters here.
CONFIGURATIONS = {
    "gemma2": dict(final_logit_softcapping=30.0, query_pre_attn_scalar=16),
    "gemma3": dict(final_logit_softcapping=30.0, query_pre_attn_scalar=16),
    "glm4": dict(partial_rotary_factor=0.5),
    "gpt_oss": dict(num_local_experts=4, num_experts_per_tok=2, sliding_window=8),
    "granite": dict(logits_scaling=4.0),
    "llama": {},
    "mistral": {},
    "mixtral": dict(num_local_experts=4, num_experts_per_tok=2),
    "olmo2": {},
    "phi3": dict(partial_rotary_factor=0.5),
    "qwen2": {},
    "qwen3": dict(tie_word_embeddings=True),
    "qwen3_moe": dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=48),
}
NAMES = list(CONFIGURATIONS)
#: Changes for comparing roundings: with every expert chosen, a bit less in the
#: router's logits chooses no other one.
ALL_EXPERTS = {
    name: {"num_experts_per_tok": 4} if "num_experts_per_tok" in fields else {}
    for name, fields in CONFIGURATIONS.items()
}


def configuration(name, **changes):
    fields = {**_COMMON, **CONFIGURATIONS[name], **changes}
    # The class of Gemma 3 without pictures.
    return transformers.AutoConfig.for_model(
        "gemma3_text" if name == "gemma3" else name, **fields
    )


def make(name, seed=0, **changes):
    """A causal language model of type ``name`` in training mode, in float32."""
    torch.manual_seed(seed)
    config = configuration(name, **changes)
    return transformers.AutoModelForCausalLM.from_config(config).train()


def batch(seed=0, shape=(2, 12)):
    """Inputs and labels, of which some do not count."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(3, VOCABULARY, shape, generator=generator)
    labels = tokens.clone()
    labels[:, :2] = -100
    return {"input_ids": tokens, "labels": labels}


def on(device, inputs):
    return {name: tensor.to(device) for name, tensor in inputs.items()}


def run(model, inputs, **options):
    """The outputs for ``inputs``, and the gradients by parameter."""
    model.zero_grad()
    outputs = model(**inputs, **options)
    outputs.loss.backward()
    return outputs, {
        name: parameter.grad.clone()
        for name, parameter in model.named_parameters()
        if parameter.grad is not None
    }


class Calls(TorchDispatchMode):
    """Counts calls of kernels."""

    count = 0

    def __torch_dispatch__(self, function, types, operands=(), named=None):
        self.count += str(function).startswith("bastile.")
        return function(*operands, **(named or {}))


def calls(model, inputs):
    """How many kernels a forward calls."""
    with Calls() as found, torch.no_grad():
        model(**inputs)
    return found.count


def find_nodes(result, name):
    """The nodes of this name in the graph of a result."""
    seen, waiting = set(), [result.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            waiting += [following for following, _ in node.next_functions]
    return [x for x in seen if type(x).__name__ == name]


def count_nodes(result, name):
    """How many nodes of this name the graph of a result has."""
    return len(find_nodes(result, name))


def run_compiled(model, inputs):
    """What `run` returns for the model in one graph of `torch.compile`, and the names of
    the kernels in it."""
    kernels = []

    def backend(graph, operands):
        for node in _nodes(graph):
            name = str(node.target).removesuffix(".default")
            if name == "bastile.traced":
                kernels.append(node.args[0])
            elif name.startswith("bastile."):
                kernels.append(name.removeprefix("bastile."))
        return torch._dynamo.lookup_backend("aot_eager")(graph, operands)

    torch._dynamo.reset()
    outputs, gradients = run(
        torch.compile(model, backend=backend, fullgraph=True), inputs
    )
    found = {name.removeprefix("_orig_mod."): x for name, x in gradients.items()}
    return (outputs, found), kernels


def _nodes(graph):
    """Those of a graph, and of the graphs that nodes of PyTorch's autograd have in it."""
    for module in graph.modules():
        if isinstance(module, torch.fx.GraphModule):
            yield from module.graph.nodes


def assert_alike(results, expected, bound=2e-5):
    """Compares what `run` has returned with what it returned for another model."""
    (outputs, gradients), (original, original_gradients) = results, expected
    assert (outputs.loss - original.loss).abs() < bound * original.loss
    assert gradients.keys() == original_gradients.keys()
    scale = max(x.abs().max() for x in original_gradients.values())
    for name, gradient in gradients.items():
        difference = (gradient - original_gradients[name]).abs().max()
        assert difference < bound * scale, name


def has_logits(outputs):
    """Whether logits are there, in outputs that may make them when they are read."""
    return isinstance(dict(outputs.items()).get("logits"), torch.Tensor)


def losses_of_training(model, steps, lr=1e-3):
    """The losses of training on a few batches in turn."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
    device = next(model.parameters()).device
    losses = []
    for step in range(steps):
        loss = model(**on(device, batch(seed=step % 5))).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses

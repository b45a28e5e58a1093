# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""Routing of tokens to experts: each step beside plain indexing, and the experts of
patched models beside what they were."""

import collections

import bastile
import pytest
import tiny_models
import torch
import transformers
from bastile._patching import grouped, routing
from torch.utils._python_dispatch import TorchDispatchMode

EXPERTS, CHOSEN, SIZE = 4, 2, 64
MODELS = ["gpt_oss", "mixtral", "qwen3_moe"]
only_5 = pytest.mark.skipif(
    transformers.__version__.startswith("4."), reason="Transformers 4 has a loop alone"
)


@pytest.fixture(autouse=True)
def leave_nothing():
    yield
    bastile.reset()


def numbers(*shape, seed=0, dtype=torch.float32, device="cpu"):
    generator = torch.Generator().manual_seed(seed)
    tensor = torch.randn(*shape, generator=generator, dtype=torch.float64)
    return tensor.to(device, dtype).requires_grad_()


def choices(tokens, device="cpu"):
    """Experts for each token; nobody wants the one before the last."""
    scores = numbers(tokens, EXPERTS, seed=9).detach()
    scores[:, EXPERTS - 2] = -100
    return scores.topk(CHOSEN).indices.to(device)


def test_a_plan():
    indices = torch.tensor([[3, 0], [0, 4], [1, 3]])
    plan = routing.plan(indices, EXPERTS)
    assert plan.experts.tolist() == [0, 0, 1, 3, 3, 4]
    assert plan.tokens.tolist() == [0, 1, 2, 0, 2, 1]
    assert plan.places.tolist() == [[3, 0], [1, 5], [2, 4]]
    # The 4 is no expert here.
    assert plan.ends.tolist() == [2, 3, 3, 5]


def routed(hidden, weights, first_bias, last_bias, indices):
    plan = routing.plan(indices, EXPERTS)
    rows, bias = routing.with_bias(routing.spread(hidden, plan), first_bias, plan)
    combined = routing.combine((rows + bias).tanh(), weights, plan, hidden.dtype)
    return routing.add_shares(combined, last_bias, weights, indices)


def routed_with_factors(hidden, weights, first_bias, last_bias, indices):
    """The same, of rows that are multiplied ahead of their sum."""
    plan = routing.plan(indices, EXPERTS)
    rows, bias = routing.with_bias(routing.spread(hidden, plan), first_bias, plan)
    weighted = (rows + bias).tanh() * routing.factors(weights, plan)
    combined = routing.gather(weighted.to(hidden.dtype), plan, hidden.dtype)
    return routing.add_shares(combined, last_bias, weights, indices)


def indexed(hidden, weights, first_bias, last_bias, indices):
    """The same, by what PyTorch has a backward for."""
    rows = (hidden[:, None] + first_bias[indices]).tanh() + last_bias[indices]
    return (rows * weights[..., None]).sum(1)


def operands(dtype, weights_dtype, device="cpu", tokens=37):
    place = {"dtype": dtype, "device": device}
    return [
        numbers(tokens, SIZE, seed=1, **place),
        numbers(tokens, CHOSEN, seed=2, dtype=weights_dtype, device=device),
        numbers(EXPERTS, SIZE, seed=3, **place),
        numbers(EXPERTS, SIZE, seed=4, **place),
    ]


@pytest.mark.parametrize(
    "dtype, weights_dtype, bound",
    [
        (torch.float64, torch.float64, 1e-12),
        (torch.float32, torch.float32, 1e-6),
        (torch.bfloat16, torch.bfloat16, 2**-7),
        (torch.bfloat16, torch.float32, 2**-7),
        (torch.float16, torch.float32, 2**-10),
    ],
)
@pytest.mark.parametrize("route", [routed, routed_with_factors])
def test_routing_is_what_indexing_gives(dtype, weights_dtype, bound, device, route):
    tensors = operands(dtype, weights_dtype, device)
    exact = [x.detach().double().requires_grad_() for x in tensors]
    indices = choices(37, device)
    result = route(*tensors, indices)
    expected = indexed(*exact, indices)
    upstream = numbers(*result.shape, seed=5, device=device).to(dtype)
    gradients = torch.autograd.grad(result, tensors, upstream)
    derived = torch.autograd.grad(expected, exact, upstream.double())
    assert result.dtype == dtype
    for x, own, other in zip(tensors, gradients, derived):
        assert own.dtype == x.dtype
        assert (own - other).abs().max() <= bound * other.abs().max()
    assert (result - expected).abs().max() <= bound * expected.abs().max()


def test_sums_are_rounded_once(device):
    """Near to 256, bfloat16 has nothing smaller than 1."""
    plan = routing.plan(torch.tensor([[0, 1, 2, 3]], device=device), EXPERTS)
    values = torch.tensor([256.0, 0.75, 0.75, 0.75], device=device)
    rows = values[:, None].expand(4, 8).bfloat16()
    for dtype in (torch.bfloat16, torch.float32):
        ones = torch.ones(1, 4, dtype=dtype, device=device)
        combined = routing.combine(rows, ones, plan, torch.bfloat16)
        assert combined.tolist() == [[258.0] * 8]
    assert torch.equal(routing.gather(rows, plan, torch.bfloat16), combined)
    hidden = numbers(1, 8, dtype=torch.bfloat16, device=device)
    routing.spread(hidden, plan).backward(rows)
    assert torch.equal(hidden.grad, combined)


def test_weights_in_float32_have_gradients_in_float32():
    """Those of a router that chooses by more than bfloat16 tells apart."""
    plan = routing.plan(choices(37), EXPERTS)
    rows = numbers(74, SIZE, seed=1, dtype=torch.bfloat16).detach()
    weights = numbers(37, CHOSEN, seed=2)
    upstream = numbers(37, SIZE, seed=3, dtype=torch.bfloat16).detach()
    routing.combine(rows, weights, plan, torch.bfloat16).backward(upstream)
    taken = rows[plan.places].double()
    expected = (taken * upstream.double()[:, None]).sum(-1)
    assert torch.allclose(weights.grad.double(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("routed", [routed, routed_with_factors])
def test_only_gradients_that_are_wanted(routed):
    tensors = operands(torch.float32, torch.float32)
    expected = torch.autograd.grad(routed(*tensors, choices(37)).sum(), tensors)
    for index, wanted in enumerate(tensors):
        alone = [x.detach() for x in tensors]
        alone[index].requires_grad_()
        routed(*alone, choices(37)).sum().backward()
        assert torch.allclose(alone[index].grad, expected[index], atol=1e-6)
        assert all(x.grad is None for x in alone if x is not alone[index])


def test_frozen_weights_keep_no_rows():
    plan = routing.plan(choices(5), EXPERTS)
    rows, weights = numbers(10, 8), numbers(5, CHOSEN).detach()
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(kept.append, lambda x: x):
        routing.combine(rows, weights, plan, rows.dtype)
    assert all(x is not rows for x in kept)


@pytest.mark.parametrize("routed", [routed, routed_with_factors])
def test_gradients_are_not_differentiated_again(routed):
    tensors = operands(torch.float32, torch.float32)
    result = routed(*tensors, choices(37)).pow(2).sum()
    gradients = torch.autograd.grad(result, tensors[:2], create_graph=True)
    with pytest.raises(RuntimeError, match="routing of experts.*differentiated again"):
        sum(x.sum() for x in gradients).backward()


def make_experts(name, kind):
    """A layer's experts as a part of a model that is patched."""
    model = tiny_models.make(name)
    model.config._experts_implementation = kind
    experts = next(
        module
        for module in model.modules()
        if type(module).__name__.endswith("Experts")
    )
    with torch.no_grad():
        for index, parameter in enumerate(experts.parameters()):
            parameter.copy_(0.3 * numbers(*parameter.shape, seed=index))
    return experts


def run(experts, function, tokens=37):
    """The result of ``function``, and all gradients."""
    dtype = next(experts.parameters()).dtype
    hidden = numbers(tokens, SIZE, seed=1, dtype=dtype)
    weights = numbers(tokens, CHOSEN, seed=2, dtype=dtype)
    wanted = [hidden, weights, *experts.parameters()]
    for tensor in wanted:
        tensor.grad = None
    result = function(hidden, choices(tokens), weights)
    result.backward(numbers(*result.shape, seed=5, dtype=dtype))
    return [result.detach(), *(tensor.grad for tensor in wanted)]


def assert_close(results, expected, bound=1e-6):
    for own, other in zip(results, expected, strict=True):
        assert own.shape == other.shape and own.dtype == other.dtype
        assert (own - other).abs().max() <= bound * other.abs().max()


@pytest.mark.long(every=3)
@only_5
@pytest.mark.parametrize("kind", ["eager", "grouped_mm"])
@pytest.mark.parametrize("name", MODELS)
def test_experts(name, kind):
    experts = make_experts(name, kind)
    expected = run(experts, experts)
    with bastile.apply(name):
        results = run(experts, experts)
        with torch.no_grad():
            inferred = experts(
                numbers(37, SIZE, seed=1), choices(37), numbers(37, CHOSEN, seed=2)
            )
    assert_close(results, expected)
    assert torch.equal(inferred, results[0])


def test_no_rows():
    for dtype in (torch.bfloat16, torch.float32):
        tensors = operands(torch.bfloat16, dtype, tokens=0)
        routed(*tensors, choices(0)).sum().backward()
        assert [x.grad.shape for x in tensors] == [x.shape for x in tensors]


@only_5
@pytest.mark.parametrize("name", ["gpt_oss", "qwen3_moe"])
def test_no_tokens(name):
    experts = make_experts(name, "grouped_mm")
    bastile.apply(name)
    result, of_hidden, of_weights, *others = run(experts, experts, tokens=0)
    assert result.shape == of_hidden.shape == (0, SIZE)
    assert of_weights.shape == (0, CHOSEN)
    assert all(not x.any() for x in others)
    # The loop, like that of Transformers, asks no expert.
    experts.config._experts_implementation = "eager"
    assert run(experts, experts, tokens=0)[0].shape == (0, SIZE)


class Calls(TorchDispatchMode):
    """Counts the operators that run."""

    def __init__(self):
        super().__init__()
        self.count = collections.Counter()

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        self.count[function.overloadpacket.__name__] += 1
        return function(*arguments, **(named or {}))


@pytest.mark.long(every=3)
@only_5
@pytest.mark.parametrize("kind", ["eager", "grouped_mm"])
@pytest.mark.parametrize("name", MODELS)
def test_nothing_is_added_row_by_row(name, kind):
    """In PyTorch's backward of an index, that took longer than the products."""
    experts = make_experts(name, kind)
    by_row = {"index_put", "index_put_", "_index_put_impl_", "index_add", "index_add_"}

    def count():
        with Calls() as calls:
            run(experts, experts)
        return calls.count

    assert count().keys() & by_row
    with bastile.apply(name):
        assert not count().keys() & by_row


@pytest.mark.long(every=3)
@only_5
@pytest.mark.parametrize(
    "backend, name",
    # Inductor takes its time for each.
    [("aot_eager", "gpt_oss"), ("aot_eager", "qwen3_moe"), ("inductor", "qwen3_moe")],
)
def test_one_graph(backend, name):
    # For bfloat16 alone, Transformers uses PyTorch's product in a graph.
    experts = make_experts(name, "grouped_mm").bfloat16()
    bastile.apply(name)
    expected = run(experts, experts)
    torch._dynamo.reset()
    compiled = torch.compile(
        lambda *inputs: experts(*inputs), backend=backend, fullgraph=True
    )
    assert_close(run(experts, compiled), expected, 2**-6)


@only_5
def test_checkpointing():
    experts = make_experts("gpt_oss", "grouped_mm")
    bastile.apply("gpt_oss")
    expected = run(experts, experts)
    for reentrant in (False, True):
        checkpoint = torch.utils.checkpoint.checkpoint
        results = run(
            experts, lambda *x: checkpoint(experts, *x, use_reentrant=reentrant)
        )
        assert_close(results, expected)


@only_5
@pytest.mark.parametrize(
    "change",
    [
        {"_is_expert_parallel": True},
        {"has_post_expert_norm": True, "post_expert_norm": torch.tanh},
    ],
)
def test_what_is_unusual_stays_with_transformers(change, monkeypatch):
    experts = make_experts("qwen3_moe", "grouped_mm")
    for name, value in change.items():
        setattr(experts, name, value)
    expected = run(experts, experts)
    monkeypatch.setattr(routing, "plan", None)
    bastile.apply("qwen3_moe")
    assert_close(run(experts, experts), expected)


@only_5
@pytest.mark.parametrize("change", ["another result", "another question", "no product"])
def test_a_function_that_differs_stays(change, monkeypatch):
    from transformers.integrations import moe

    original = moe.grouped_mm_experts_forward

    def forward(self, *inputs):
        if change == "another result":
            return 2 * original(self, *inputs)
        getattr(self, "has_something_new", False)
        return original(self, *inputs)

    assert grouped.find.__wrapped__() is not None
    monkeypatch.setattr(moe, "grouped_mm_experts_forward", forward)
    if change == "no product":
        monkeypatch.setattr(moe, "_grouped_mm", lambda rows, weights: rows)
    assert grouped.find.__wrapped__() is None


@only_5
def test_a_function_of_somebody_else_is_called(monkeypatch):
    from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS

    experts = make_experts("qwen3_moe", "grouped_mm")
    functions = ALL_EXPERTS_FUNCTIONS._local_mapping
    monkeypatch.setitem(functions, "grouped_mm", lambda self, hidden, *_: hidden + 1)
    bastile.apply("qwen3_moe")
    result = experts(torch.ones(3, SIZE), choices(3), torch.ones(3, CHOSEN))
    assert torch.equal(result, torch.full((3, SIZE), 2.0))


@only_5
def test_experts_of_other_processes():
    """As a process sees them that has the first two of four."""
    for name in ("gpt_oss", "qwen3_moe"):
        experts = make_experts(name, "grouped_mm")
        indices = choices(37).clamp(max=2)
        weights = numbers(37, CHOSEN, seed=2).detach().masked_fill(indices == 2, 0)
        hidden = numbers(37, SIZE, seed=1).detach()
        for parameter in experts.parameters():
            parameter.data = parameter.data[:2].clone()
        experts.num_experts = 2
        if hasattr(experts, "_is_expert_parallel"):
            experts._is_expert_parallel = True
        with torch.no_grad():
            expected = experts(hidden, indices, weights)
            with bastile.apply(name):
                for kind in ("grouped_mm", "eager"):
                    experts.config._experts_implementation = kind
                    assert_close([experts(hidden, indices, weights)], [expected])


@only_5
@pytest.mark.gpu
@pytest.mark.parametrize("name", MODELS)
def test_the_host_does_not_wait(name):
    model = tiny_models.make(name, **tiny_models.ALL_EXPERTS[name])
    model = model.to("cuda", torch.bfloat16)
    model.config._experts_implementation = "grouped_mm"
    experts = next(
        module
        for module in model.modules()
        if type(module).__name__.endswith("Experts")
    )
    place = {"dtype": torch.bfloat16, "device": "cuda"}
    hidden = numbers(37, SIZE, seed=1, **place)
    weights = numbers(37, CHOSEN, seed=2, **place)
    indices = choices(37, "cuda")
    bastile.apply(name)
    experts(hidden, indices, weights).sum().backward()
    torch.cuda.set_sync_debug_mode("error")
    try:
        experts(hidden, indices, weights).sum().backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")


@only_5
@pytest.mark.parametrize("name", MODELS)
def test_under_functorch(name):
    model, inputs = tiny_models.make(name), tiny_models.batch()
    parameters = {key: x.detach() for key, x in model.named_parameters()}

    def loss(parameters):
        return torch.func.functional_call(model, parameters, (), dict(inputs)).loss

    expected = torch.func.grad(loss)(parameters)
    with bastile.apply(name, fused_linear_cross_entropy=False):
        found = torch.func.grad(loss)(parameters)
    for key, gradient in expected.items():
        assert torch.allclose(found[key], gradient, atol=1e-5), key

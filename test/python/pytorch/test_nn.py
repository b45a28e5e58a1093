# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""bastile.nn and bastile.functional beside PyTorch's modules and functions."""

import copy
import io
import pickle

import bastile
import pytest
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

nn = bastile.nn

PAIRS = [
    (nn.RMSNorm(16), torch.nn.RMSNorm(16)),
    (nn.RMSNorm((4, 16), eps=1e-3), torch.nn.RMSNorm((4, 16), eps=1e-3)),
    (
        nn.RMSNorm(16, elementwise_affine=False),
        torch.nn.RMSNorm(16, elementwise_affine=False),
    ),
    (nn.LayerNorm(16), torch.nn.LayerNorm(16)),
    (nn.LayerNorm(16, bias=False), torch.nn.LayerNorm(16, bias=False)),
    (nn.LayerNorm([4, 16]), torch.nn.LayerNorm([4, 16])),
    (
        nn.LayerNorm(16, elementwise_affine=False),
        torch.nn.LayerNorm(16, elementwise_affine=False),
    ),
    (nn.Linear(16, 24), torch.nn.Linear(16, 24)),
    (nn.Linear(16, 24, bias=False), torch.nn.Linear(16, 24, bias=False)),
    (nn.SiLU(), torch.nn.SiLU()),
    (nn.GELU(), torch.nn.GELU()),
    (nn.GELU("tanh"), torch.nn.GELU("tanh")),
    (nn.Softmax(), torch.nn.Softmax(dim=-1)),
    (nn.LogSoftmax(2), torch.nn.LogSoftmax(dim=2)),
]


@pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=lambda x: repr(x))
def test_module_is_the_one_it_replaces(ours, theirs, device):
    theirs = copy.deepcopy(theirs).to(device)
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter)
    ours = copy.deepcopy(ours).to(device)
    ours.load_state_dict(theirs.state_dict())
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert isinstance(ours, type(theirs))
    x = torch.randn(3, 4, 16, device=device, requires_grad=True)
    y = torch.randn(theirs(x).shape, device=device)
    results = []
    for module in (ours, theirs):
        loss = (module(x) * y).sum()
        results.append(
            [module(x), *torch.autograd.grad(loss, [x, *module.parameters()])]
        )
    for a, b in zip(*results):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_norms_of_one_row_and_of_bfloat16():
    norm = nn.RMSNorm(16)
    x = torch.randn(16)
    torch.testing.assert_close(norm(x), F.rms_norm(x, (16,)))
    assert nn.RMSNorm(16, dtype=torch.bfloat16)(x.bfloat16()).dtype == torch.bfloat16
    assert nn.LayerNorm(16, device="meta").weight.is_meta
    x = torch.randn(64, 16).bfloat16()
    weight = torch.randn(16).bfloat16()
    assert torch.equal(
        bastile.functional.rms_norm(x, (16,), weight), F.rms_norm(x, (16,), weight)
    )


def test_norm_of_gemma():
    norm = nn.RMSNorm(16, eps=1e-6, offset=1.0)
    assert torch.equal(norm.weight, torch.zeros(16))
    torch.nn.init.normal_(norm.weight)
    x = torch.randn(3, 16)
    expected = F.rms_norm(x, (16,), 1 + norm.weight, 1e-6)
    torch.testing.assert_close(norm(x), expected)
    norm.reset_parameters()
    assert torch.equal(norm.weight, torch.zeros(16))


def test_norms_without_a_weight_have_no_offset():
    """What would be added to the weight is left out with it."""
    x = torch.randn(3, 16, requires_grad=True)
    expected = F.rms_norm(x, (16,), eps=1e-6)
    norm = nn.RMSNorm(16, eps=1e-6, offset=1.0, elementwise_affine=False)
    for result in (norm(x), bastile.ops.rms_norm(x, eps=1e-6, offset=1.0)):
        torch.testing.assert_close(result, expected)
        (gradient,) = torch.autograd.grad(result.sin().sum(), x)
        (wanted,) = torch.autograd.grad(expected.sin().sum(), x, retain_graph=True)
        torch.testing.assert_close(gradient, wanted)


def test_norm_of_llama_rounds_before_its_weight():
    norm = nn.RMSNorm(64, eps=1e-6, casting="llama", dtype=torch.bfloat16)
    torch.nn.init.normal_(norm.weight)
    x = torch.randn(8, 64).bfloat16()
    normed = F.rms_norm(x.float(), (64,), eps=1e-6).bfloat16()
    assert torch.equal(norm(x), norm.weight * normed)


def test_add_rms_norm():
    module = nn.AddRMSNorm(16, eps=1e-5)
    x, residual = torch.randn(2, 3, 16)
    result, total = module(x, residual)
    assert torch.equal(total, x + residual)
    torch.testing.assert_close(result, F.rms_norm(x + residual, (16,), eps=1e-5))


@pytest.mark.parametrize("heads", [None, 2])
def test_norms_with_a_bias_and_of_heads(heads, device):
    x, residual = torch.randn(2, 3, 4, 2, 16, device=device)
    norm = nn.RMSNorm(16, bias=True, heads=heads, device=device)
    add = nn.AddRMSNorm(16, bias=True, heads=heads, device=device)
    assert norm.weight.shape == norm.bias.shape == ((16,) if heads is None else (2, 16))
    for parameter in norm.parameters():
        torch.nn.init.normal_(parameter)
    add.load_state_dict(norm.state_dict())

    def expected(x):
        return F.rms_norm(x, (16,)) * norm.weight + norm.bias

    torch.testing.assert_close(norm(x), expected(x), rtol=1e-4, atol=1e-5)
    result, total = add(x, residual)
    assert torch.equal(total, x + residual)
    torch.testing.assert_close(result, expected(total), rtol=1e-4, atol=1e-5)
    norm.reset_parameters()
    assert not norm.bias.any() and (norm.weight == 1).all()


def test_sum_of_a_wider_type():
    module = nn.AddRMSNorm(16, dtype=torch.bfloat16, residual_dtype=torch.float32)
    x, residual = torch.randn(2, 3, 16).bfloat16()
    result, total = module(x, residual)
    assert torch.equal(total, x.float() + residual.float())
    assert result.dtype == torch.bfloat16


def test_norm_that_rounds_every_step():
    x = torch.randn(8, 64).bfloat16()
    norm = nn.RMSNorm(64, eps=1e-6, casting="none", dtype=torch.bfloat16)
    expected = bastile.functional.rms_norm(x, (64,), norm.weight, 1e-6, casting="none")
    assert torch.equal(norm(x), expected)
    assert not torch.equal(norm(x), F.rms_norm(x, (64,), norm.weight, 1e-6))


@pytest.mark.parametrize(
    ("ours", "formula"),
    [
        (nn.SwiGLU(), lambda g, u: F.silu(g) * u),
        (nn.SwiGLU(0.5, 2.0), lambda g, u: F.silu(0.5 * g) * u * 2),
        (nn.GeGLU(), lambda g, u: F.gelu(g) * u),
        (nn.GeGLU("tanh"), lambda g, u: F.gelu(g, approximate="tanh") * u),
        (nn.ReGLU(), lambda g, u: F.relu(g) * u),
    ],
    ids=lambda x: repr(x) if isinstance(x, torch.nn.Module) else "",
)
def test_gated_activations(ours, formula):
    gate, up = torch.randn(2, 3, 16)
    torch.testing.assert_close(ours(gate, up), formula(gate, up))
    torch.testing.assert_close(ours(gate[0], up[0]), formula(gate[0], up[0]))


def turn(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def test_rotary_embedding():
    module = nn.RotaryEmbedding(8, 32)
    assert not module.state_dict()
    q, k = torch.randn(2, 4, 5, 8), torch.randn(2, 1, 5, 8)
    angles = torch.arange(5)[:, None] * 10000.0 ** -(torch.arange(0, 8, 2) / 8)
    for result, x in zip(module(q, k), (q, k)):
        torch.testing.assert_close(result, turn(x, angles.cos(), angles.sin()))
    for positions in (torch.arange(5), torch.arange(5).expand(2, 5)):
        for a, b in zip(module(q, k, positions), module(q, k)):
            assert torch.equal(a, b)
    with pytest.raises(ValueError, match="'max_positions' is 32"):
        module(torch.randn(1, 1, 33, 8), k)


def test_rotary_embedding_of_one_tensor_in_place():
    module = nn.RotaryEmbedding(8, 32, in_place=True)
    q = torch.randn(2, 4, 5, 12)
    expected = nn.RotaryEmbedding(8, 32)(q, None)
    assert torch.equal(expected[..., 8:], q[..., 8:])
    assert not torch.equal(expected[:, :, 1:, :8], q[:, :, 1:, :8])
    assert module(q, None).data_ptr() == q.data_ptr()
    assert torch.equal(q, expected)


def test_rope_with_angles_repeated_over_the_halves():
    q, k = torch.randn(2, 4, 5, 8), torch.randn(2, 1, 5, 8)
    angles = torch.randn(2, 5, 4)
    cos, sin = (x.repeat(1, 1, 2) for x in (angles.cos(), angles.sin()))
    for result, x in zip(bastile.functional.rope(q, k, cos, sin), (q, k)):
        expected = turn(x, angles.cos()[:, None], angles.sin()[:, None])
        torch.testing.assert_close(result, expected)


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("size, rotary", [(128, 96), (16, 12), (10, 6), (8, 2)])
def test_rope_of_a_part_of_each_head(size, rotary, interleaved):
    """Also where half of what turns does not divide the head, as in Phi-4-mini."""
    q, k = torch.randn(2, 4, 3, size), torch.randn(2, 1, 3, size)
    angles = torch.randn(1, 3, rotary // 2)
    cos, sin = angles.cos(), angles.sin()

    def formula(x):
        x, others = x[..., :rotary], x[..., rotary:]
        if interleaved:
            x = torch.cat((x[..., 0::2], x[..., 1::2]), -1)
        x = turn(x, cos[:, None], sin[:, None])
        if interleaved:
            x = torch.stack(x.chunk(2, -1), -1).flatten(-2)
        return torch.cat((x, others), -1)

    results = []
    for function in (
        lambda *pair: bastile.functional.rope(
            *pair, cos, sin, interleaved=interleaved, rotary=rotary
        ),
        lambda *pair: [formula(x) for x in pair],
    ):
        pair = [x.clone().requires_grad_() for x in (q, k)]
        turned = function(*pair)
        sum(x.sin().sum() for x in turned).backward()
        results.append([*turned, *(x.grad for x in pair)])
    for a, b in zip(*results):
        torch.testing.assert_close(a, b)


LOSSES = [
    {},
    {"reduction": "sum"},
    {"reduction": "none"},
    {"label_smoothing": 0.1},
    {"ignore_index": 3},
    {"weight": torch.linspace(0.5, 2, 10)},
    {"weight": torch.linspace(0.5, 2, 10), "reduction": "none"},
]


@pytest.mark.parametrize("arguments", LOSSES, ids=lambda x: "-".join(x) or "plain")
@pytest.mark.parametrize("shape", [(6, 10), (2, 10, 3), (2, 10, 3, 2), (10,)])
def test_cross_entropy_loss(shape, arguments, device):
    # Of these targets, one at least is not ignored: PyTorch's mean of none is NaN.
    torch.manual_seed(1)
    ours = nn.CrossEntropyLoss(**arguments).to(device)
    theirs = torch.nn.CrossEntropyLoss(**arguments).to(device)
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(shape, device=device, requires_grad=True)
    rest = (shape[0], *shape[2:]) if len(shape) > 1 else ()
    target = torch.randint(0, 10, rest, device=device)
    results = []
    for module in (ours, theirs):
        loss = module(x, target)
        (gradient,) = torch.autograd.grad((loss * 2).sum(), x)
        results.append((loss, gradient))
    assert results[0][0].shape == results[1][0].shape
    for a, b in zip(*results):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def test_cross_entropy_says_more_on_request():
    logits, target = torch.randn(6, 10), torch.randint(0, 10, (6,))
    loss, lse, correct = bastile.functional.cross_entropy(
        logits, target, return_lse=True, return_correct=True
    )
    torch.testing.assert_close(loss, F.cross_entropy(logits, target))
    torch.testing.assert_close(lse, logits.logsumexp(-1))
    assert torch.equal(correct, logits.argmax(-1) == target)


def test_loss_of_bfloat16_logits_is_float32():
    logits, target = torch.randn(6, 10).bfloat16(), torch.randint(0, 10, (6,))
    assert nn.CrossEntropyLoss()(logits, target).dtype == torch.float32


MODULES = [module for module, _ in PAIRS] + [
    nn.AddRMSNorm(16),
    nn.CrossEntropyLoss(z_loss=1e-4, soft_cap=30.0),
    nn.RotaryEmbedding(8, 16),
    nn.SwiGLU(),
    nn.GeGLU(),
]


@pytest.mark.parametrize("module", MODULES, ids=lambda x: repr(x))
def test_copies_and_files(module):
    buffer = io.BytesIO()
    torch.save(module, buffer)
    buffer.seek(0)
    for other in (
        copy.deepcopy(module),
        pickle.loads(pickle.dumps(module)),
        torch.load(buffer, weights_only=False),
    ):
        assert repr(other) == repr(module)
        for a, b in zip(other.state_dict().items(), module.state_dict().items()):
            assert a[0] == b[0] and torch.equal(a[1], b[1])


def test_repr():
    assert repr(nn.RMSNorm(16, casting="llama")) == (
        "RMSNorm((16,), eps=None, elementwise_affine=True, casting='llama')"
    )
    assert "z_loss=0.5" in repr(nn.CrossEntropyLoss(z_loss=0.5))
    assert repr(nn.RMSNorm(16, bias=True, heads=2)).endswith("bias=True, heads=2)")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.SiLU(inplace=True), "'inplace' has to be False"),
        (lambda: nn.Dropout(inplace=True), "'inplace' has to be False"),
        (lambda: nn.Dropout(1.5), "'p' must be from 0 to 1, but is 1.5"),
        (lambda: nn.GELU("sigmoid"), "'none' or 'tanh', but is 'sigmoid'"),
        (lambda: nn.GeGLU("fast"), "'none' or 'tanh', but is 'fast'"),
        (lambda: nn.Softmax(None), "'dim' must be the last dimension"),
        (lambda: nn.LogSoftmax(-2), "the last dimension, but is -2"),
        (lambda: nn.Softmax(0)(torch.randn(2, 3)), "but is 0 of 2"),
        (lambda: nn.CrossEntropyLoss(reduction="avg"), "one of none, mean, sum"),
        (lambda: nn.CrossEntropyLoss(size_average=True), "obsolete"),
        (lambda: nn.RMSNorm(16, heads=0), "must be positive, but is 0"),
        (lambda: nn.RMSNorm(16, None, False, bias=True), "there is no 'bias'"),
        (lambda: nn.RMSNorm(4, casting="half"), "one of gemma, llama"),
        (lambda: nn.AddRMSNorm((4, 4)), r"one size, but is \[4, 4\]"),
        (lambda: nn.RotaryEmbedding(7, 4), "must be even, but is 7"),
    ],
)
def test_what_no_kernel_does(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_options_of_a_loss():
    logits, targets = torch.randn(6, 16), torch.tensor([0, 3, 15, -1, 2, 7])
    options = {"token_scaling": True, "return_lse": True, "return_predicted": True}
    module = nn.CrossEntropyLoss(ignore_index=-1, reduction="none", **options)
    expected = bastile.functional.cross_entropy(
        logits, targets, ignore_index=-1, reduction="none", **options
    )
    for ours, theirs in zip(module(logits, targets), expected, strict=True):
        assert torch.equal(ours, theirs)
    module = nn.CrossEntropyLoss(check_targets=True)
    with pytest.raises(ValueError, match="neither one of the 16 classes"):
        module(logits, targets)
    with pytest.raises(TypeError, match="there is no option 'reduction_'"):
        nn.CrossEntropyLoss(reduction_="sum")


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.RMSNorm(16)
        self.gate = torch.nn.Linear(16, 32)
        self.up = torch.nn.Linear(16, 32)
        self.down = torch.nn.Linear(32, 16)
        self.activation = nn.SwiGLU()

    def forward(self, x):
        h = self.norm(x)
        return x + self.down(self.activation(self.gate(h), self.up(h)))


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_activation_checkpointing(use_reentrant, device):
    block = Block().to(device)
    loss = nn.CrossEntropyLoss()
    x = torch.randn(4, 16, device=device, requires_grad=True)
    target = torch.randint(0, 16, (4,), device=device)

    def forward(x):
        return loss(block(x), target)

    wanted = [x, *block.parameters()]
    forward(x).backward()
    expected = [p.grad for p in wanted]
    for p in wanted:
        p.grad = None
    checkpoint(forward, x, use_reentrant=use_reentrant).backward()
    for p, gradient in zip(wanted, expected):
        assert torch.equal(p.grad, gradient)


def test_saved_tensors_go_through_hooks():
    packed = []
    x = torch.randn(4, 16, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: packed.append(t.shape) or t, lambda t: t
    ):
        y = nn.RMSNorm(16)(x)
    assert (4, 16) in packed
    y.sum().backward()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast(dtype, device):
    block = Block().to(device)
    loss = nn.CrossEntropyLoss()
    x = torch.randn(4, 16, device=device, requires_grad=True)
    target = torch.randint(0, 16, (4,), device=device)
    with torch.autocast(device, dtype=dtype):
        # Rows of the linear layer's type meet rows of float32.
        mixed = bastile.ops.swiglu(block.gate(x), torch.randn(4, 32, device=device))
        assert mixed.dtype == torch.float32
        y = block(x)
        value = loss(block.down(torch.randn(4, 32, device=device)), target)
    assert value.dtype == torch.float32
    y.sum().backward()
    assert x.grad.dtype == torch.float32
    assert block.norm.weight.grad.dtype == torch.float32
    with torch.no_grad():
        exact = x + block.down(
            F.silu(block.gate(block.norm(x))) * block.up(block.norm(x))
        )
    torch.testing.assert_close(y.float(), exact, rtol=0.1, atol=0.1)


class PlainSwiGLU(torch.nn.Module):
    def forward(self, gate, up):
        return F.silu(gate) * up


def test_autocast_leaves_alone_what_may_differ():
    heads = torch.randn(2, 3, 4, 8).bfloat16()
    angles = torch.randn(1, 3, 1, 4)
    small, scale = bastile.functional.quantize(torch.randn(4, 8))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert bastile.ops.rope(heads, angles, angles).dtype == torch.bfloat16
        back = bastile.functional.dequantize(small, scale)
    assert back.dtype == torch.bfloat16


def test_trains_as_its_replacement():
    torch.manual_seed(0)
    ours = torch.nn.Sequential(Block(), nn.LayerNorm(16), torch.nn.Linear(16, 8))
    theirs = copy.deepcopy(ours)
    theirs[0].norm = torch.nn.RMSNorm(16)
    theirs[0].activation = PlainSwiGLU()
    theirs[1] = torch.nn.LayerNorm(16)
    x, target = torch.randn(32, 16), torch.randint(0, 8, (32,))
    losses = []
    for model, loss in (
        (ours, nn.CrossEntropyLoss(in_place=True)),
        (theirs, torch.nn.CrossEntropyLoss()),
    ):
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        for _ in range(20):
            value = loss(model(x), target)
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
        losses.append(value.detach())
    torch.testing.assert_close(*losses, rtol=1e-4, atol=1e-5)

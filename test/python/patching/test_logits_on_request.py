# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""Logits of a forward that made none: they are part of the graph however they are
read, and nobody makes them who does not read them."""

import copy
import dataclasses
import pickle
import weakref

import bastile
import pytest
import tiny_models
import torch
from bastile._patching import outputs as kinds
from torch.utils import _pytree as pytree
from transformers import modeling_outputs

NAMES = ["llama", "gemma2", "granite", "mixtral"]


@pytest.fixture
def model():
    with bastile.apply("llama"):
        yield tiny_models.make("llama")


def index_of_logits(outputs):
    """Behind the loss, whatever the name of its entry is."""
    return [name.startswith("logits") for name in outputs].index(True)


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_logits_that_are_read_behind_a_forward_without_gradients(context, model):
    with context():
        outputs = model(**tiny_models.batch())
    assert not outputs.logits.requires_grad
    assert outputs.logits.numpy().shape == (2, 12, 96)


READERS = {
    "attribute": lambda outputs: outputs.logits,
    "getattr": lambda outputs: getattr(outputs, "logits", None),
    "name": lambda outputs: outputs["logits"],
    "get": lambda outputs: outputs.get("logits"),
    "position": lambda outputs: outputs[index_of_logits(outputs)],
    "slice": lambda outputs: outputs[index_of_logits(outputs) :][0],
    "tuple": lambda outputs: outputs.to_tuple()[index_of_logits(outputs)],
    "keys": lambda outputs: [outputs[name] for name in outputs.keys()][
        index_of_logits(outputs)
    ],
    "dictionary": lambda outputs: dict(outputs)["logits"],
    "unpacking": lambda outputs: {**outputs}["logits"],
    "items": lambda outputs: dict(outputs.items())["logits"](),
    "values": lambda outputs: list(outputs.values())[index_of_logits(outputs)](),
    "copy": lambda outputs: copy.copy(outputs).logits,
    "copied": lambda outputs: outputs.copy()["logits"],
    # As Accelerate, FSDP and PyTorch's trees rebuild outputs.
    "rebuilt": lambda outputs: type(outputs)(dict(outputs.items()))["logits"],
    "replaced": lambda outputs: dataclasses.replace(outputs, loss=None).logits,
    "mapped": lambda outputs: pytree.tree_map(lambda x: x, outputs).logits,
}


def gradients(model):
    found = {name: x.grad for name, x in model.named_parameters() if x.grad is not None}
    model.zero_grad()
    return found


def distillation(logits):
    """A loss of logits that the labels have no part in."""
    teacher = torch.linspace(0, 3, logits.shape[-1]).softmax(-1)
    return -(logits.float().log_softmax(-1) * teacher).sum(-1).mean()


def train(model, read, times=1, **options):
    """The gradients of both losses in ``times`` backwards."""
    outputs = model(**tiny_models.batch(), **options)
    loss = outputs.loss + distillation(read(outputs))
    for _ in range(times):
        loss.backward(retain_graph=True)
    return gradients(model)


def assert_close(found, expected, bound=1e-6):
    assert found.keys() == expected.keys()
    for name, gradient in found.items():
        assert torch.allclose(gradient, expected[name], atol=bound), name


@pytest.mark.parametrize("way", READERS)
def test_a_loss_of_logits_beside_the_loss(way, model):
    expected = train(model, READERS["attribute"], skip_logits=False)
    assert_close(train(model, READERS[way]), expected)


@pytest.mark.long(every=3)
@pytest.mark.parametrize("name", NAMES)
def test_every_kind_of_logits(name):
    model = tiny_models.make(name)
    options = {"output_router_logits": True} if name == "mixtral" else {}
    expected = train(model, READERS["attribute"], times=2, **options)
    with bastile.apply(name):
        found = train(model, READERS["position"], times=2, **options)
    # The router of Mixtral says more than these numbers have digits.
    assert_close(found, expected, 5e-5)


def test_logits_before_the_loss_and_apart(model):
    """Two backwards of one graph, in either order."""
    expected = train(model, READERS["attribute"], skip_logits=False)
    for of_logits_first in (False, True):
        outputs = model(**tiny_models.batch())
        losses = [outputs.loss, distillation(outputs.logits)]
        if of_logits_first:
            losses.reverse()
        losses[0].backward(retain_graph=True)
        losses[1].backward()
        assert_close(gradients(model), expected)


def test_logits_alone(model):
    distillation(model(**tiny_models.batch()).logits).backward()
    found = gradients(model)
    distillation(model(**tiny_models.batch(), skip_logits=False).logits).backward()
    assert_close(found, gradients(model))


def test_logits_of_a_metric_have_no_graph(model):
    outputs = model(**tiny_models.batch())
    with torch.no_grad():
        without = outputs.logits
        assert not without.requires_grad and outputs.logits is without
    # A metric before a loss does not take the loss's graph away.
    assert outputs.logits.requires_grad and outputs.logits is outputs.logits
    assert torch.equal(outputs.logits, without)
    with torch.inference_mode():
        assert torch.equal(model(**tiny_models.batch()).logits, without)


def count_made(monkeypatch):
    made, make = [], kinds.Logits._make

    def counted(self):
        made.append(self)
        return make(self)

    monkeypatch.setattr(kinds.Logits, "_make", counted)
    return made


def test_nobody_makes_logits_who_does_not_read_them(model, monkeypatch):
    made = count_made(monkeypatch)
    outputs = model(**tiny_models.batch())
    text = repr(outputs) + str(outputs) + repr(outputs.items())
    assert "logits=<logits of [2, 12] tokens, made when" in text
    assert "logits" in outputs and list(outputs)[:2] == ["loss", "logits"]
    assert outputs["loss"] is outputs[0] is outputs.loss is outputs.get("loss")
    assert len(outputs[2:]) == len(outputs) - 2
    assert outputs["token_accuracy"] is outputs[-1]
    assert outputs.get("nothing") is None and outputs.get("nothing", 3) == 3
    with pytest.raises(KeyError):
        outputs["nothing"]
    names = [field.name for field in dataclasses.fields(outputs)]
    for name in names:
        getattr(outputs, name)
    for other in (
        dataclasses.replace(outputs),
        copy.copy(outputs),
        pytree.tree_map(lambda x: x, outputs),
        type(outputs)(dict(outputs.items())),
    ):
        assert list(other) == list(outputs) and type(other) is type(outputs)
    assert not made
    outputs.logits
    assert len(made) == 1


def test_what_libraries_do_behind_a_forward_makes_none(model, monkeypatch):
    operations = pytest.importorskip("accelerate.utils.operations")
    from torch.nn.parallel.distributed import _find_tensors

    made = count_made(monkeypatch)
    outputs = model.bfloat16()(**tiny_models.batch())
    converted = operations.convert_to_fp32(outputs)
    moved = operations.send_to_device(converted, "cpu")
    assert len(list(_find_tensors(moved))) >= 1
    assert not made
    assert torch.equal(moved.logits, outputs.logits)


def walk(function, value):
    """As DeepSpeed goes through what each module returns under ZeRO-3."""
    if isinstance(value, dict):
        for key in value.keys():
            value[key] = walk(function, value[key])
    elif isinstance(value, (tuple, list)):
        return type(value)([walk(function, element) for element in value])
    elif isinstance(value, torch.Tensor):
        return function(value)
    return value


def manage(model):
    """The model with what ZeRO-3 gives to parameters that it manages."""
    for index, parameter in enumerate(model.parameters()):
        parameter.ds_id = index
    return model


@pytest.fixture
def managed(model):
    return manage(model)


@pytest.mark.parametrize("name", ["llama", "mixtral"])
def test_deepspeed_makes_no_logits(name, monkeypatch):
    made = count_made(monkeypatch)
    with bastile.apply(name):
        outputs = manage(tiny_models.make(name))(**tiny_models.batch())
    loss, accuracy = outputs.loss, outputs.token_accuracy
    touched = []

    def touch(tensor):
        touched.append(tensor)
        return tensor.view_as(tensor)

    assert walk(touch, outputs) is outputs
    assert not made and "logits" not in list(outputs) and "logits" in outputs
    assert any(x is loss for x in touched) and any(x is accuracy for x in touched)
    assert outputs.loss is outputs["loss"] is outputs[0] and outputs.loss is not loss
    assert "logits_on_request=<logits of [2, 12] tokens, made" in repr(outputs)
    assert outputs.logits is outputs["logits"] is outputs[1] and len(made) == 1


@pytest.mark.parametrize(
    "way", sorted({*READERS} - {"keys", "dictionary", "unpacking", "items", "values"})
)
def test_logits_behind_deepspeed(way, managed):
    def read(outputs):
        walk(lambda tensor: tensor.view_as(tensor), outputs)
        return READERS[way](outputs)

    expected = train(managed, READERS["attribute"], skip_logits=False)
    assert_close(train(managed, read), expected)


@pytest.fixture(params=["model", "managed"])
def either(request):
    return request.getfixturevalue(request.param)


def test_pickled_outputs_have_logits(either):
    outputs = either(**tiny_models.batch(), use_cache=False)
    copied = pickle.loads(pickle.dumps(outputs))
    assert type(copied) is kinds.kind(modeling_outputs.CausalLMOutputWithPast, None)
    for name in ("loss", "logits", "token_accuracy"):
        assert torch.equal(copied[name], outputs[name]), name
    assert list(copied) == ["loss", "logits", "token_accuracy"]


def test_logits_that_are_set(either):
    outputs = either(**tiny_models.batch())
    for other in (
        dataclasses.replace(outputs, logits=torch.ones(2)),
        type(outputs)(loss=outputs.loss, logits=torch.ones(2)),
    ):
        assert torch.equal(other.logits, torch.ones(2))
        assert torch.equal(dataclasses.replace(other)[1], torch.ones(2))
    outputs["logits"] = torch.ones(3)
    assert torch.equal(outputs.logits, torch.ones(3))
    outputs.logits = torch.ones(4)
    assert torch.equal(outputs["logits"], torch.ones(4))
    outputs.logits = None
    assert outputs.logits is None and "logits" not in outputs


def test_logits_are_those_of_the_forwards_autocast(model):
    with torch.autocast("cpu", torch.bfloat16):
        outputs = model(**tiny_models.batch())
        expected = model(**tiny_models.batch(), skip_logits=False).logits
    assert outputs.logits.dtype == expected.dtype == torch.bfloat16
    assert torch.equal(outputs.logits, expected)
    outputs = model(**tiny_models.batch())
    with torch.autocast("cpu", torch.bfloat16):
        assert outputs.logits.dtype == torch.float32


def test_outputs_keep_no_more_than_hidden_states(model):
    """What the graph kept is gone after its backward, and logits as well."""
    kept = []

    def pack(tensor):
        kept.append(weakref.ref(tensor.untyped_storage()))
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        outputs = model(**tiny_models.batch(), use_cache=False)
    outputs.loss.backward()
    parameters = list(model.parameters())
    found = [x.grad for x in parameters]
    own = {
        x.untyped_storage().data_ptr() for x in (*parameters, *found, *model.buffers())
    }
    own.add(dict(outputs.items())["logits"]._hidden.untyped_storage().data_ptr())
    alive = [storage() for storage in kept if storage() is not None]
    assert {storage.data_ptr() for storage in alive} <= own
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        distillation(outputs.logits).backward()


def test_a_tuple_is_as_long_as_without(model):
    inputs = {**tiny_models.batch(), "use_cache": False}
    loss, logits = model(**inputs, return_dict=False)
    for x, y in zip(model(**inputs).to_tuple(), (loss, logits), strict=True):
        torch.testing.assert_close(x, y)


@pytest.mark.parametrize("stays", [False, True])
@pytest.mark.parametrize("is_head_apart", [False, True])
def test_fsdp(is_head_apart, stays, mesh, monkeypatch):
    from torch.distributed.fsdp import fully_shard

    bastile.apply("llama")
    model = tiny_models.make("llama")
    expected = train(model, READERS["attribute"])
    parts = [*model.model.layers, *([model.lm_head] if is_head_apart else []), model]
    for module in parts:
        fully_shard(module, mesh=mesh, reshard_after_forward=not stays)
    made = count_made(monkeypatch)
    model(**tiny_models.batch()).loss.backward()
    assert not made
    model.zero_grad()
    # A metric first, whose logits have no graph.
    with torch.no_grad():
        metric = model(**tiny_models.batch())
        assert metric.logits.shape == (2, 12, 96)
    outputs = model(**tiny_models.batch())
    with torch.no_grad():
        outputs.logits
    (outputs.loss + distillation(outputs.logits)).backward()
    found = gradients(model)
    bastile.reset()
    assert_close({name: x.full_tensor() for name, x in found.items()}, expected)


@pytest.mark.parametrize("looks_for_unused", [False, True])
def test_ddp(looks_for_unused, mesh, monkeypatch):
    bastile.apply("llama")
    model = tiny_models.make("llama")
    expected = train(model, READERS["attribute"])
    wrapped = torch.nn.parallel.DistributedDataParallel(
        model, find_unused_parameters=looks_for_unused
    )
    made = count_made(monkeypatch)
    wrapped(**tiny_models.batch()).loss.backward()
    assert not made
    model.zero_grad()
    found = train(wrapped, READERS["attribute"])
    bastile.reset()
    own = {name.removeprefix("module."): x for name, x in found.items()}
    assert_close(own, expected)

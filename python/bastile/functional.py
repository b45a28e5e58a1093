# Part of Bastile, under the MIT License. See LICENSE.
"""The ops with the signatures of ``torch.nn.functional``, on PyTorch's tensors.

Tensors are float16, bfloat16, float32 or, on the CPU, float64, in any number of leading
dimensions. Results have the shape and type of ``input`` where nothing else is said, and
are rounded once from float32. Formulas stand in docs/ops.md.

Functions raise ``TypeError`` for elements of another type, and ``ValueError`` for
shapes and devices that do not fit together and for arguments that are not supported.
Beside that they differ from PyTorch's in what their descriptions say: losses are
float32, and a loss of no token is 0.
"""

from collections.abc import Sequence
from typing import Any

import torch
from bastile import ops
from bastile._attention.flex import flex_attention as flex_attention
from bastile._attention.sdpa import (
    scaled_dot_product_attention as scaled_dot_product_attention,
)
from bastile._compiler import tensor_types
from bastile._formulas.dropout import dropout as _dropout
from bastile._formulas.rope import rope_half_angles, rope_neighbours
from bastile._losses import api, requests
from bastile._losses.checks import cast, check_whole
from bastile._losses.options import Operands, Settings
from bastile._torch.in_place import can_turn, put, turn
from bastile._torch.operands import reshape_result
from torch import Tensor


def rms_norm(
    input: Tensor,
    normalized_shape: int | Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
    *,
    bias: Tensor | None = None,
    casting: str = "gemma",
    offset: float = 0.0,
) -> Tensor:
    """As ``torch.nn.functional.rms_norm``: ``input`` divided by the root of the mean of
    its squares over the last dimensions, ``normalized_shape``, times ``weight`` of that
    shape, plus ``bias`` of that shape.

    Weight and bias may also have one more dimension in front, [heads,
    *normalized_shape], where ``input`` is [..., heads, *normalized_shape]: each head is
    normalized alone, and has a weight and a bias of its own.

    ``casting="llama"`` rounds before the multiplication by the weight, as Llama does;
    ``casting="none"`` rounds every step, the rows' statistics too, to the type of
    ``input``. ``offset`` is added to the weight, as Gemma adds 1.
    """
    eps = _eps(eps, input)
    vectors = {"weight": weight, "bias": bias}
    rows, shape, heads = _take_heads("rms_norm", input, normalized_shape, vectors)
    result = ops.rms_norm(
        rows, **vectors, casting=casting, eps=eps, offset=offset, groups=heads
    )
    return result if shape is None else result.reshape(shape)


def add_rms_norm(
    input: Tensor,
    residual: Tensor,
    weight: Tensor | None = None,
    eps: float | None = None,
    *,
    bias: Tensor | None = None,
    casting: str = "gemma",
    offset: float = 0.0,
    residual_dtype: torch.dtype | None = None,
) -> tuple[Tensor, Tensor]:
    """The norm of ``input + residual``, both [..., N], and that sum, in one pass over
    memory.

    The sum has the type of ``residual``, such as float32 beside an input of bfloat16,
    or ``residual_dtype``, to which the residual is converted first; the norm has the
    type of ``input``. Weight and bias, [N] or [heads, N], and the other arguments are
    as in `rms_norm`.
    """
    eps = _eps(eps, input)
    if residual_dtype is not None:
        residual = residual.to(residual_dtype)
    if residual.shape != input.shape:
        raise ValueError(
            f"add_rms_norm: 'residual' has shape {list(residual.shape)}, but "
            f"'input' has shape {list(input.shape)}"
        )
    vectors = {"weight": weight, "bias": bias}
    size = input.shape[-1:]
    rows, shape, heads = _take_heads("add_rms_norm", input, size, vectors)
    residual = residual.reshape(rows.shape)
    results = ops.add_rms_norm(
        rows, residual, **vectors, casting=casting, eps=eps, offset=offset, groups=heads
    )
    return results if shape is None else tuple(x.reshape(shape) for x in results)


def _eps(eps, input):
    """PyTorch's default is the precision that it computes in."""
    if eps is not None:
        return eps
    wide = input.dtype if input.dtype == torch.float64 else torch.float32
    return torch.finfo(wide).eps


def layer_norm(
    input: Tensor,
    normalized_shape: int | Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """As ``torch.nn.functional.layer_norm``; weight and bias have the shape
    ``normalized_shape``."""
    rows, shape = _take_rows("layer_norm", input, normalized_shape)
    weight = _flat("layer_norm", "weight", weight, normalized_shape)
    bias = _flat("layer_norm", "bias", bias, normalized_shape)
    result = ops.layer_norm(rows, weight, bias, eps=eps)
    return result if shape is None else result.reshape(shape)


def softmax(input: Tensor, dim: int = -1, dtype: torch.dtype | None = None) -> Tensor:
    """As ``torch.nn.functional.softmax``, along the last dimension."""
    return _along_rows(ops.softmax, "softmax", input, dim, dtype)


def log_softmax(
    input: Tensor, dim: int = -1, dtype: torch.dtype | None = None
) -> Tensor:
    """As ``torch.nn.functional.log_softmax``, along the last dimension."""
    return _along_rows(ops.log_softmax, "log_softmax", input, dim, dtype)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """As ``torch.nn.functional.silu``: ``input * sigmoid(input)``."""
    if inplace:
        raise ValueError("silu: 'inplace' has to be False")
    return _elementwise(ops.silu, input)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """As ``torch.nn.functional.gelu``; ``approximate`` is ``"none"`` or ``"tanh"``."""
    return _elementwise(ops.gelu, input, form=gelu_form(approximate))


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """As ``torch.nn.functional.linear``: ``input @ weight.mT + bias`` of an ``input``
    [..., in], a ``weight`` [out, in] and a ``bias`` [out].

    Products are summed in float32 (float64 of float64) and rounded once, with the bias
    added, which may be of another type than the others. ``out`` is part of the code: a
    weight of another shape compiles another kernel.
    """
    if input.dim() == 1:
        return linear(input.unsqueeze(0), weight, bias).squeeze(0)
    return ops.linear(*cast(input, weight, bias))


def dropout(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """As ``torch.nn.functional.dropout``: 0 with probability ``p`` for each element, and
    ``input / (1 - p)`` elsewhere; without ``training``, ``input`` itself.

    PyTorch's generator of the device draws a seed, from which it follows which elements
    are 0: other ones than in PyTorch. The backward finds them again, so no mask is
    stored. An infinity or NaN becomes 0 like any number. DTensors are refused.
    """
    check_dropout("dropout", p, inplace)
    if not training or p == 0:
        return input
    # Each process would draw a seed of its own.
    check_whole("dropout", "input", input)
    seed = torch.randint(-(2**31), 2**31, (1,), dtype=torch.int32, device=input.device)
    return _elementwise(_dropout, input, seed, attributes=(float(p),))


def check_dropout(name: str, p: float, inplace: bool) -> None:
    """Raises for arguments of a dropout that are not supported."""
    if inplace:
        raise ValueError(f"{name}: 'inplace' has to be False")
    if not 0 <= p <= 1:
        raise ValueError(f"{name}: 'p' must be from 0 to 1, but is {p}")


def relu_squared(input: Tensor) -> Tensor:
    """The square of the positive part."""
    return _elementwise(ops.relu_squared, input)


def swiglu(
    gate: Tensor, up: Tensor, *, gate_scale: float = 1.0, output_scale: float = 1.0
) -> Tensor:
    """``silu(gate_scale * gate) * up * output_scale``, of two tensors of one shape."""
    return _elementwise(
        ops.swiglu, gate, up, gate_scale=gate_scale, output_scale=output_scale
    )


def geglu(gate: Tensor, up: Tensor, approximate: str = "none") -> Tensor:
    """``gelu(gate, approximate) * up``; the form of GPT-OSS is
    ``bastile.ops.geglu``'s."""
    return _elementwise(ops.geglu, gate, up, form=gelu_form(approximate))


def reglu(gate: Tensor, up: Tensor) -> Tensor:
    """``relu(gate) * up``."""
    return _elementwise(ops.reglu, gate, up)


def gelu_form(approximate: str) -> str:
    """The dialect's word for PyTorch's ``approximate``."""
    forms = {"none": "erf", "tanh": "tanh"}
    if approximate not in forms:
        raise ValueError(
            f"gelu: 'approximate' must be 'none' or 'tanh', but is {approximate!r}"
        )
    return forms[approximate]


def rope(
    q: Tensor,
    k: Tensor | None,
    cos: Tensor,
    sin: Tensor,
    *,
    interleaved: bool = False,
    rotary: int | None = None,
    unsqueeze_dim: int = 1,
    in_place: bool = False,
) -> Any:
    """The heads of ``q`` and ``k``, rotated by the angles of their positions (RoFormer,
    https://arxiv.org/abs/2104.09864).

    ``q`` and ``k`` are [..., heads, positions, length] or, with ``unsqueeze_dim=2``,
    [..., positions, heads, length], with numbers of heads of their own. ``cos`` and
    ``sin`` have one number for each pair of elements in their last dimension or, as
    some models repeat them, one for each element of the two halves. Where they lack the
    dimension of the heads, it is put at ``unsqueeze_dim``. ``rotary`` is how many
    elements of a head turn, by default all of them. Both are turned by one kernel;
    without ``k``, the result is ``q`` alone.

    With ``in_place``, the results take the memory of ``q`` and ``k``, which may be
    slices of larger tensors and, outside of torch.compile, leaves: the gradient is that
    of what they were before. The results are computed there; under torch.compile,
    PyTorch's transformations and autocast, where angles have gradients, and for heads
    whose elements lie apart, they are copied there.
    """
    length = q.shape[-1] if rotary is None else rotary
    cos = _angles("cos", cos, q, length, interleaved, unsqueeze_dim)
    sin = _angles("sin", sin, q, length, interleaved, unsqueeze_dim)
    given = (q,) if k is None else (q, k)
    if in_place and can_turn(given, cos, sin):
        turned = turn(given, cos, sin, interleaved, length)
        return turned[0] if k is None else turned
    if (
        k is not None
        and q.dim() == k.dim()
        and q.dtype == k.dtype
        and cos.dtype == sin.dtype
    ):
        both = rope_neighbours if interleaved else rope_half_angles
        turned = both(q, k, cos, sin)
    else:
        turned = tuple(
            ops.rope(heads, cos, sin, interleaved=interleaved, rotary=rotary)
            for heads in given
        )
    if in_place:
        turned = tuple(put(*pair) for pair in zip(given, turned))
    return turned[0] if k is None else turned


def _angles(name, angles, heads, length, interleaved, unsqueeze_dim):
    if angles.shape[-1] == length and not interleaved:
        angles = angles[..., : length // 2]
    elif 2 * angles.shape[-1] != length:
        raise ValueError(
            f"rope: '{name}' has shape {list(angles.shape)}, but of heads of "
            f"shape {list(heads.shape)} {length} elements turn: its last "
            f"dimension must be {length // 2}"
        )
    if angles.dim() == heads.dim() - 1:
        angles = angles.unsqueeze(unsqueeze_dim)
    # Positions that go from the last leading dimensions repeat over the others.
    while angles.dim() < heads.dim():
        angles = angles.unsqueeze(0)
    return angles


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    *,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
    z_loss: float = 0.0,
    soft_cap: float = 0.0,
    temperature: float = 1.0,
    token_scaling: bool = False,
    return_lse: bool = False,
    return_correct: bool = False,
    return_predicted: bool = False,
    return_z_loss: bool = False,
    return_gradient: bool = False,
    check_targets: bool = False,
    in_place: bool = False,
) -> Any:
    """As ``torch.nn.functional.cross_entropy`` with indices of classes: ``input`` is
    [C], [N, C] or [N, C, ...], ``target`` int64 or int32 without the dimension C.
    ``z_loss``, ``soft_cap``, ``temperature`` and ``token_scaling`` are those of
    ``cross_entropy`` in docs/ops.md.

    The loss is float32, of float64 logits float64. With ``reduction`` "mean" and
    "sum" its gradient is computed in the same pass over the logits; with
    ``in_place``, in their memory. Where no token counts, the mean is 0; where the
    weights of those that count sum to 0, it is the sum.

    With any of these, the result is a tuple of the loss and, in this order:

    - ``return_lse``: each token's log-sum-exp, which has no gradient unless
      ``reduction`` is "none"
    - ``return_correct``: whether no logit is larger than the target's
    - ``return_predicted``: the first class that has the largest logit, int64, or -1
      where the target is ``ignore_index``
    - ``return_z_loss``: the part of the loss that is ``z_loss`` times the square of
      the log-sum-exp, combined as ``reduction`` says and scaled as ``token_scaling``
      does, without a gradient
    - ``return_gradient``, where ``reduction`` is "none": the gradient of the sum of the
      losses with respect to ``input``, of the same pass, and with ``in_place`` in its
      memory; nothing has a gradient of its own then

    With ``check_targets``, a target that is no class and not ``ignore_index`` raises
    ``ValueError``, which waits for the GPU; otherwise it makes the loss NaN.
    """
    logits, columns = requests.take_logits(input, target)
    names = requests.names_of(
        return_lse, return_correct, return_predicted, return_z_loss
    )
    attributes = {
        "ignore_index": ignore_index,
        "label_smoothing": label_smoothing,
        "z_loss": z_loss,
        "soft_cap": soft_cap,
        "temperature": temperature,
        "token_scaling": token_scaling,
    }
    if check_targets:
        requests.check_targets("cross_entropy", target, logits.shape[-1], ignore_index)
    # The logits' memory may be the gradient's later on.
    of_target = None
    if return_z_loss and token_scaling:
        of_target = requests.logits_of_targets(logits, columns).reshape(target.shape)
    if return_gradient:
        if reduction != "none":
            raise ValueError(
                "cross_entropy: 'return_gradient' is for the losses of tokens, but "
                f"'reduction' is {reduction!r}"
            )
        results = requests.losses_and_gradient(
            input, logits, columns, weight, attributes, names, in_place
        )
    else:
        results = ops.cross_entropy(
            logits,
            columns,
            weight,
            reduction=reduction,
            **attributes,
            returns=names,
            together=None if reduction == "none" else True,
            in_place=in_place and reduction != "none",
        )
    results = results if isinstance(results, tuple) else (results,)
    made = dict(zip((*names, "gradient"), results))
    shape = target.shape
    loss = made.pop("loss")
    made["loss"] = reshape_result(loss, shape if reduction == "none" else ())
    for name in names[1:]:
        made[name] = reshape_result(made[name], shape)
    others = {
        "lse": return_lse,
        "correct": return_correct,
        "predicted": return_predicted,
        "z_loss": return_z_loss,
        "gradient": return_gradient,
    }
    return requests.answer(
        made, others, target, attributes, reduction, of_target=of_target
    )


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    z_loss: float = 0.0,
    soft_cap: float = 0.0,
    temperature: float = 1.0,
    token_scaling: bool = False,
    num_items: float | Tensor | None = None,
    skip_ignored: bool = False,
    budget: int | None = None,
    recompute: bool = False,
    return_lse: bool = False,
    return_correct: bool = False,
    return_predicted: bool = False,
    return_z_loss: bool = False,
    check_targets: bool = False,
) -> Any:
    """As ``cross_entropy(linear(input, linear_weight, linear_bias), target,
    weight)``, without all the logits at a time.

    The classes are the last dimension of the logits: ``target`` has the leading
    dimensions of ``input``. What the other arguments mean is said at
    ``bastile.ops.linear_cross_entropy``. With ``return_lse``, ``return_correct``,
    ``return_predicted`` and ``return_z_loss``, the result is a tuple, and
    ``check_targets`` raises an error, as in `cross_entropy`.
    """
    if check_targets:
        classes = linear_weight.shape[0]
        requests.check_targets("linear_cross_entropy", target, classes, ignore_index)
    names = requests.names_of(
        return_lse, return_correct, return_predicted, return_z_loss
    )
    settings = Settings(
        reduction,
        ignore_index,
        label_smoothing,
        z_loss,
        soft_cap,
        temperature,
        budget,
        recompute,
        token_scaling,
    )
    results = api.compute(
        Operands(input, linear_weight, target, linear_bias, weight),
        settings,
        names,
        num_items,
        skip_ignored,
    )
    others = {
        "lse": return_lse,
        "correct": return_correct,
        "predicted": return_predicted,
        "z_loss": return_z_loss,
    }
    of_target = None
    if return_z_loss and token_scaling:
        of_target = requests.linear_logits_of_targets(
            input, linear_weight, linear_bias, target
        )
    made = dict(zip(names, results))
    return requests.answer(
        *(made, others, target, settings.attributes, reduction, num_items, of_target)
    )


def quantize(
    input: Tensor,
    format: str | torch.dtype = "e4m3",
    *,
    group: int | None = None,
    **attributes: Any,
) -> tuple[Tensor, Tensor]:
    """8-bit floats of ``input`` [..., N], and the scales to multiply them by.

    ``format`` is ``"e4m3"`` or ``"e5m2"``, or PyTorch's type of either. There is a
    scale for each row or, with ``group``, for each ``group`` of neighbouring elements
    of a row, which has to divide N: [..., 1] or [..., N / group], float32 (float64 for
    float64).
    """
    length = input.shape[-1]
    scales = 1 if group is None else length // group
    if scales * (length if group is None else group) != length:
        raise ValueError(
            f"quantize: 'group' of {group} does not divide rows of {length}"
        )
    leading = [None] * (input.dim() - 1)
    wide = "f64" if input.dtype == torch.float64 else "f32"
    small = tensor_types.element_type(format)
    return ops.quantize(
        input,
        format=format,
        results=(
            tensor_types.tensor_type([*leading, length], small),
            tensor_types.tensor_type([*leading, scales], wide),
        ),
        **attributes,
    )


def dequantize(
    input: Tensor, scale: Tensor, dtype: torch.dtype = torch.bfloat16, **attributes: Any
) -> Tensor:
    """The product, as ``dtype``, of 8-bit floats [..., N] and their scales [..., 1] or
    [..., groups]."""
    sizes = [*[None] * (input.dim() - 1), input.shape[-1]]
    result = tensor_types.tensor_type(sizes, tensor_types.element_type(dtype))
    return ops.dequantize(input, scale, results=(result,), **attributes)


def _sizes(normalized_shape):
    if isinstance(normalized_shape, int):
        return (normalized_shape,)
    return tuple(normalized_shape)


def _take_rows(name, input, normalized_shape):
    """The dimensions to normalize as one, and the shape of the result where it
    is another."""
    sizes = _sizes(normalized_shape)
    if not sizes or tuple(input.shape[-len(sizes) :]) != sizes:
        raise ValueError(
            f"{name}: 'input' has shape {list(input.shape)}, but the last "
            f"dimensions must be {list(sizes)}"
        )
    if len(sizes) == 1 and input.dim() > 1:
        return input, None
    count = 1
    for size in sizes:
        count *= size
    return input.reshape(-1, count), input.shape


def _take_heads(name, input, normalized_shape, vectors):
    """As `_take_rows`, and the number of heads in a row: where the tensors of
    ``vectors``, which become flat, are those of each head, the heads of a token are
    one row."""
    sizes = _sizes(normalized_shape)
    present = [x for x in vectors.values() if x is not None]
    if all(x.dim() == len(sizes) for x in present):
        for operand, tensor in vectors.items():
            vectors[operand] = _flat(name, operand, tensor, normalized_shape)
        return *_take_rows(name, input, normalized_shape), 1
    every = (*input.shape[-1 - len(sizes) : -len(sizes)], *sizes)
    rows, shape = _take_rows(name, input, every)
    for operand, tensor in vectors.items():
        vectors[operand] = _flat(name, operand, tensor, every)
    return rows, shape, every[0]


def _flat(name, operand, tensor, normalized_shape):
    sizes = _sizes(normalized_shape)
    if tensor is None:
        return None
    if tuple(tensor.shape) != sizes:
        raise ValueError(
            f"{name}: '{operand}' has shape {list(tensor.shape)}, but "
            f"'normalized_shape' is {list(sizes)}"
        )
    return tensor if len(sizes) == 1 else tensor.flatten()


def _along_rows(function, name, input, dim, dtype):
    check_last(name, dim)
    if dim not in (-1, input.dim() - 1):
        raise ValueError(
            f"{name}: 'dim' must be the last dimension, but is {dim} of {input.dim()}"
        )
    return _elementwise(function, input if dtype is None else input.to(dtype))


def check_last(name: str, dim: int) -> None:
    """Raises for a dimension that is not the last of any tensor."""
    if dim is None or dim < -1:
        raise ValueError(f"{name}: 'dim' must be the last dimension, but is {dim}")


def _elementwise(function, *tensors, **attributes):
    """Calls an op whose operands may be single rows."""
    if tensors[0].dim() > 1:
        return function(*tensors, **attributes)
    shape = tensors[0].shape
    rows = (
        x.reshape(1, -1) if isinstance(x, torch.Tensor) and x.shape == shape else x
        for x in tensors
    )
    return function(*rows, **attributes).reshape(shape)

# Part of Bastile, under the MIT License. See LICENSE.
"""The ops that are measured, with their shapes, inputs and the bytes that they move."""

import dataclasses
import math
from collections.abc import Callable

NORMS = {
    "small": [(1024, 2048), (256, 2048), (64, 4096), (8, 4096)],
    "models": [
        (1024, 2048),
        (8192, 2560),
        (8192, 2880),
        (8192, 4096),
        (16384, 8192),
        (4096, 16384),
        (2048, 65536),
    ],
    "large": [(65536, 8192), (262144, 128)],
}
OTHER_NORMS = {
    "small": [(1024, 2048)],
    "models": [(8192, 2880), (8192, 4096), (16384, 8192)],
}
GATES = {"small": [(1024, 2880)], "models": [(8192, 2880)], "large": [(32768, 2880)]}
WIDE = {"more": [(8192, 11008)]}
LOGITS = {
    "small": [(256, 32000)],
    "models": [
        (4096, 32000),
        (16384, 32000),
        (8192, 128256),
        (8192, 151936),
        (4096, 201088),
        (4096, 262144),
    ],
    "more": [(4096, 50257)],
}
QUANTIZED = {"small": [(1024, 4096)], "models": [(16384, 4096)]}

PRESETS = {
    "small": "a few rows, where the host's time decides",
    "models": "shapes of current models, up to 16384 rows",
    "large": "many rows",
    "more": "the rest of the ops",
}


@dataclasses.dataclass(frozen=True)
class Op:
    """An op as it is measured; tensors are described by ``_inputs.make``."""

    name: str
    #: One sentence for those who do not know it.
    about: str
    #: Shapes by preset.
    presets: dict
    #: The kind of each input by its name: see ``_inputs``.
    inputs: dict
    #: The shapes of the results; () is a loss.
    results: Callable
    #: Elements that have to be read and written, at least, by the forward and by the
    #: backward; 8-bit results are counted by ``bytes``.
    forward: Callable
    backward: "Callable | None" = None
    #: Inputs that have gradients.
    gradients: tuple = ()
    #: Whether the loss and its gradient are computed together and timed as one.
    together: bool = False
    #: A shape for the host's time: so small that the device has finished at once.
    tiny: tuple = (4, 64)
    #: What `--shapes` must look like.
    shape_names: tuple = ("rows", "columns")

    @property
    def is_quantization(self) -> bool:
        """Whether its results are 8-bit floats and their scales."""
        return self.name.startswith("quantize")

    @property
    def reference(self) -> Callable:
        """The op as a formula of PyTorch, for tensors of any type."""
        from bastile_bench import _formulas

        return getattr(_formulas, self.name)

    @property
    def directions(self) -> tuple:
        if self.together:
            return ("both",)
        return ("forward", "backward", "both") if self.gradients else ("forward",)

    def bytes(self, direction: str, shape, size: int) -> int:
        """Bytes that ``direction`` has to move, of elements of ``size`` bytes."""
        if self.is_quantization:
            small, scales = self.results(shape)
            return math.prod(shape) * size + math.prod(small) + 4 * math.prod(scales)
        if direction in ("forward", "inference"):
            return self.forward(shape) * size
        if direction == "backward":
            return self.backward(shape) * size
        backward = self.backward(shape) if self.backward else 0
        return (self.forward(shape) + backward) * size

    def shapes(self, presets) -> list:
        return [shape for preset in presets for shape in self.presets.get(preset, ())]


def _times(count):
    """``count`` passes over tensors of the shape."""
    return lambda shape: count * math.prod(shape)


def _same(count=1):
    return lambda shape: [shape] * count


def _rope_elements(shape):
    batch, positions, heads, kv_heads, length = shape
    return 2 * batch * positions * (heads + kv_heads) * length


def _rope_results(shape):
    batch, positions, heads, kv_heads, length = shape
    return [(batch, positions, count, length) for count in (heads, kv_heads)]


def _gated(name, about, presets):
    return Op(
        name,
        about,
        presets,
        {"gate": "rows", "up": "rows"},
        _same(),
        _times(3),
        _times(5),
        ("gate", "up"),
    )


def _of_rows(name, about, presets):
    return Op(
        name, about, presets, {"x": "rows"}, _same(), _times(2), _times(3), ("x",)
    )


def _quantization(name, about, groups):
    return Op(
        name,
        about,
        QUANTIZED,
        {"x": "rows"},
        lambda shape: [shape, (*shape[:-1], groups(shape))],
        _times(1),
        tiny=(4, 128),
    )


_ALL = [
    Op(
        "rms_norm",
        "divides each row by its root mean square, times a weight",
        NORMS,
        {"x": "rows", "weight": "weight"},
        _same(),
        _times(2),
        _times(3),
        ("x", "weight"),
    ),
    Op(
        "add_rms_norm",
        "adds a residual and normalizes the sum, which it returns as well",
        OTHER_NORMS,
        {"x": "rows", "residual": "rows", "weight": "weight"},
        _same(2),
        _times(4),
        _times(4),
        ("x", "residual", "weight"),
    ),
    Op(
        "layer_norm",
        "shifts and scales each row to mean 0 and variance 1",
        OTHER_NORMS,
        {"x": "rows", "weight": "weight", "bias": "weight"},
        _same(),
        _times(2),
        _times(3),
        ("x", "weight", "bias"),
    ),
    _gated("geglu", "GPT-OSS's gated activation, gate and up apart", GATES),
    Op(
        "geglu_interleaved",
        "GPT-OSS's gated activation, gate and up in turn in one tensor",
        GATES,
        {"gate_up": "pairs"},
        _same(),
        _times(3),
        _times(5),
        ("gate_up",),
    ),
    _gated(
        "geglu_tanh",
        "GELU (by tanh) of the gate, times up",
        {"models": [(8192, 11008)]},
    ),
    _gated(
        "swiglu",
        "SiLU of the gate, times up",
        {"small": [(1024, 2048)], "models": [(8192, 6912), (16384, 14336)]},
    ),
    Op(
        "rope",
        "turns queries and keys by the angles of their positions",
        {
            "small": [(1, 256, 16, 8, 128)],
            "models": [
                (4, 2048, 32, 8, 128),
                (8, 1024, 32, 8, 128),
                (4, 4096, 64, 8, 64),
                (1, 16384, 32, 8, 128),
            ],
        },
        {"q": "heads", "k": "kv_heads", "cosine": "cosine", "sine": "sine"},
        _rope_results,
        _rope_elements,
        _rope_elements,
        ("q", "k"),
        tiny=(1, 4, 2, 1, 64),
        shape_names=("batch", "positions", "query heads", "key heads", "length"),
    ),
    _of_rows(
        "softmax",
        "the softmax of each row",
        {"small": [(1024, 2048)], "models": [(8192, 4096), (8192, 32768)]},
    ),
    _quantization(
        "quantize_rows", "8-bit floats with a scale for each row", lambda shape: 1
    ),
    _quantization(
        "quantize_blocks",
        "8-bit floats with a scale for 128 neighbours",
        lambda shape: shape[-1] // 128,
    ),
    Op(
        "cross_entropy",
        "the loss of logits and its gradient, which may take the logits' place",
        LOGITS,
        {"logits": "rows", "targets": "targets"},
        lambda shape: [()],
        _times(1),
        _times(1),
        ("logits",),
        together=True,
    ),
    Op(
        "cross_entropy_loss",
        "the loss of logits alone",
        {key: LOGITS[key] for key in ("small", "models")},
        {"logits": "rows", "targets": "targets"},
        lambda shape: [()],
        _times(1),
    ),
    _gated("geglu_erf", "GELU of the gate, times up", WIDE),
    _gated("reglu", "the gate's positive part, times up", WIDE),
    _of_rows("relu_squared", "the square of the positive part", WIDE),
    _of_rows("gelu", "x times the normal distribution of x", WIDE),
    _of_rows("silu", "x * sigmoid(x)", WIDE),
    _of_rows("log_softmax", "the logarithm of each row's softmax", WIDE),
]

#: By name, in the order of reports.
OPS = {op.name: op for op in _ALL}


def parse_shape(text: str) -> tuple:
    """``8192x2880`` as numbers. Raises ``ValueError``."""
    try:
        shape = tuple(int(size) for size in text.split("x"))
    except ValueError:
        shape = ()
    if len(shape) < 2 or min(shape) < 1:
        raise ValueError(
            f"'{text}' is no shape: give sizes of at least 1 with an x between, as in "
            "8192x2880"
        )
    return shape


def check_shape(op: Op, shape) -> None:
    """Raises ``ValueError`` if ``op`` does not have such shapes."""
    if len(shape) != len(op.shape_names):
        raise ValueError(
            f"{op.name} takes shapes of {len(op.shape_names)} sizes, "
            f"{', '.join(op.shape_names)}; {'x'.join(map(str, shape))} has {len(shape)}"
        )
    if op.name == "quantize_blocks" and shape[-1] % 128:
        raise ValueError(
            f"quantize_blocks needs columns in groups of 128, but has {shape[-1]}"
        )
    if op.name == "rope" and shape[-1] % 2:
        raise ValueError(f"rope needs heads of even length, but has {shape[-1]}")

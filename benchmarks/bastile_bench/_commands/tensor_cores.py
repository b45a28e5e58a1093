# Part of Bastile, under the MIT License. See LICENSE.
"""Time kernels on tensor cores, written by hand and from formulas, beside PyTorch's calls.

The programs are those of examples/tensor-cores (docs/tensor-cores.md). Beside a product
stands `torch.nn.functional.linear`, beside the gated product one `linear` of both weights
(its activation left out), beside the split product one with a float32 result, beside
attention the flash and cuDNN kernels of `scaled_dot_product_attention` and, where its wheel
(`fa3-fwd`) is installed, FlashAttention-3. "bastile mma" are the variants for GPUs without
`wgmma`; "bastile formula" are the kernels of Python functions that compute the same, and
the gradients of a product are measured by such functions alone. Rows of a case take turns, call by call, so that
each has the same clock; "share" is the fastest other row's time divided by a row's, for
Bastile's rows the fastest of other libraries. With ``--first-calls``, the first call of
each program in a new process is timed as well, with all caches empty, and what of it is
the driver's. Errors are the largest against float32 of
PyTorch over the largest number; "runs" are how many calls gave the same bits as the first
one.
"""

import argparse
import functools
import importlib.util
import math
import pathlib

from bastile_bench import _environment, _first_call, _options
from bastile_bench._report import (
    Column,
    Report,
    describe_environment,
    format_table,
    shape_text,
)
from bastile_bench._statistics import spread_text, summarize

_PROGRAMS = pathlib.Path(__file__).resolve().parents[3] / "examples" / "tensor-cores"
#: m, n, k.
PRODUCTS = (
    (8192, 8192, 8192),
    (8192, 28672, 4096),
    (8192, 4096, 14336),
    (8192, 6144, 1024),
    (8200, 4104, 2888),
    # No variant takes these rows but those for any alignment.
    (4096, 4095, 4095),
)
#: m, n, k of products whose k is summed in parts.
SPLIT_PRODUCTS = ((256, 512, 16384), (128, 256, 65536), (300, 200, 9992))
#: Batch, sequence, heads of queries and of keys, length of a head.
ATTENTIONS = (
    (4, 2048, 32, 8, 64),
    (4, 2048, 32, 8, 128),
    (1, 16384, 32, 8, 128),
    (4, 2048, 16, 8, 128),
    (3, 1000, 8, 2, 128),
)


def add_arguments(parser) -> None:
    _add_sizes(parser, "--products", "MxNxK", PRODUCTS)
    _add_sizes(parser, "--split-products", "MxNxK", SPLIT_PRODUCTS)
    _add_sizes(
        parser,
        "--attentions",
        "BxSxHxGxD",
        ATTENTIONS,
        "batch, sequence, heads of queries, of keys, length of a head ",
    )
    parser.add_argument(
        "--rounds", type=int, default=30, help="timed calls of a row (30)"
    )
    parser.add_argument(
        "--repeats", type=int, default=100, help="calls whose bits are compared (100)"
    )
    parser.add_argument(
        "--first-calls", action="store_true", help="time first calls, in processes"
    )
    parser.add_argument("--device", default="cuda", help="cuda or cuda:1 (cuda)")
    _options.add_folder(parser)


def of_preset(arguments) -> argparse.Namespace:
    """The arguments of this command for those of `kernels` with the preset of products."""
    words = ["--split-products", "--attentions"]
    return _options.of_preset(add_arguments, words, arguments, ("device", "out"))


def _add_sizes(parser, name, form, default, what=""):
    parser.add_argument(
        name,
        nargs="*",
        type=functools.partial(_sizes, count=form.count("x") + 1),
        metavar=form,
        default=list(default),
        help=f"{what}({' '.join(map(shape_text, default))})",
    )


def _sizes(text, count):
    try:
        sizes = tuple(int(size) for size in text.split("x"))
    except ValueError:
        sizes = ()
    if len(sizes) != count or min(sizes) < 1:
        raise argparse.ArgumentTypeError(
            f"'{text}' is not {count} sizes with an x between them"
        )
    return sizes


def run(arguments) -> int:
    """Measures, prints and writes; 1 if a program of Bastile's failed."""
    torch = _options.require_torch()
    if not torch.cuda.is_available():
        raise RuntimeError("PyTorch finds no GPU; `bastile doctor` says why")
    environment = _environment.describe(arguments.device)
    report = Report("tensor-cores", environment, arguments.out)
    print(describe_environment(environment))
    with torch.cuda.device(arguments.device), torch.no_grad():
        cases = [_product(torch, *shape) for shape in arguments.products]
        cases += [_gated(torch, *shape) for shape in arguments.products]
        for of in ("x", "w"):
            cases += [_gradient(torch, of, *shape) for shape in arguments.products]
        cases += [_split(torch, *shape) for shape in arguments.split_products]
        cases += [_attention(torch, *shape) for shape in arguments.attentions]
        for case in cases:
            report.add(*_measure(torch, case(), arguments))
    print(format_table(report.rows, COLUMNS))
    if arguments.first_calls:
        calls = [
            {"op": "first call", "kernel": name, "status": "ok"}
            | _first_call.measure(name)
            for name in _first_call.NAMES
        ]
        report.add(*calls)
        print("\n" + format_table(calls, FIRST_CALL_COLUMNS))
    print(f"\nresults: {report.path} and {report.path.with_suffix('.csv')}")
    failed = [row for row in report.rows if row["status"] == "failed"]
    return 1 if any(row["provider"] == "bastile" for row in failed) else 0


class _Case:
    """Calls that compute the same, by name, and what they are measured by."""

    def __init__(self, op, shape, operations, calls, expected):
        self.op, self.shape = op, shape
        self.operations, self.calls, self.expected = operations, calls, expected


@functools.cache
def compiled(name, without=None):
    """The program of a file, without the variant that its launch names first."""
    import bastile

    text = (_PROGRAMS / f"{name}.mlir").read_text()
    if without:
        launch = f"tile.launch [@{without}, "
        if launch not in text:
            raise ValueError(f"{name}.mlir does not begin its launch with @{without}")
        text = text.replace(launch, "tile.launch [")
    return bastile.compile(text)


def _programs(name, first, operands):
    """The calls of a program's variants: all of them, and those without `wgmma`."""
    return {
        "bastile": lambda: compiled(name)(*operands),
        "bastile mma": lambda: compiled(name, f"{first}_wgmma")(*operands),
    }


def _linear(x, w, bias):
    return x @ w.mT + bias


def _gated_linear(x, gate, up, gate_bias, up_bias):
    from bastile.functions import silu

    return silu(x @ gate.mT + gate_bias) * (x @ up.mT + up_bias)


def _of_x(dy, w):
    return dy @ w


def _of_w(dy, x):
    return dy.mT @ x


@functools.cache
def _compile_formula(function):
    import bastile

    return bastile.compile(function)


def _formula(function, operands):
    """The call of the kernels of a Python function."""
    return {"bastile formula": lambda: _compile_formula(function)(*operands)}


def _random(torch, *sizes, scale=1.0):
    return (torch.randn(sizes, device="cuda") * scale).bfloat16()


def _product(torch, m, n, k):
    def make():
        x, w = _random(torch, m, k), _random(torch, n, k, scale=k**-0.5)
        bias = _random(torch, n)
        linear = torch.nn.functional.linear
        return _Case(
            "product",
            (m, n, k),
            2 * m * n * k,
            {
                **_programs("product", "product", (x, w, bias)),
                **_formula(_linear, (x, w, bias)),
                "cublas": lambda: linear(x, w, bias),
            },
            lambda: linear(x[:512].float(), w.float(), bias.float()),
        )

    return make


def _gated(torch, m, n, k):
    def make():
        half = n // 2 // 8 * 8
        x = _random(torch, m, k)
        both = _random(torch, 2 * half, k, scale=k**-0.5)
        gate, up = both[:half], both[half:]
        biases = _random(torch, half), _random(torch, half)
        linear = torch.nn.functional.linear

        def expected():
            g = linear(x[:512].float(), gate.float(), biases[0].float())
            u = linear(x[:512].float(), up.float(), biases[1].float())
            return torch.nn.functional.silu(g) * u

        return _Case(
            "gated product",
            (m, 2 * half, k),
            4 * m * half * k,
            {
                **_programs("gated_product", "gated_product", (x, gate, up, *biases)),
                **_formula(_gated_linear, (x, gate, up, *biases)),
                "cublas": lambda: linear(x, both),
            },
            expected,
        )

    return make


def _gradient(torch, of, m, n, k):
    def make():
        dy = _random(torch, m, n)
        if of == "x":
            function, rows = _of_x, dy[:512]
            other = _random(torch, n, k, scale=n**-0.5)
        else:
            function, rows = _of_w, dy[:, :512]
            other = _random(torch, m, k, scale=m**-0.5)
        return _Case(
            f"gradient of {of}",
            (m, n, k),
            2 * m * n * k,
            {
                **_formula(function, (dy, other)),
                "cublas": lambda: function(dy, other),
            },
            lambda: function(rows.float(), other.float()),
        )

    return make


def _split(torch, m, n, k):
    def make():
        x, w = _random(torch, m, k), _random(torch, n, k, scale=k**-0.5)
        return _Case(
            "split product",
            (m, n, k),
            2 * m * n * k,
            {
                **_programs("split_product", "split_product", (x, w)),
                "cublas": lambda: torch.mm(x, w.t(), out_dtype=torch.float32),
            },
            lambda: torch.nn.functional.linear(x[:512].float(), w.float()),
        )

    return make


def _attention(torch, batch, length, heads, groups, size):
    def make():
        from torch.nn.attention import SDPBackend, sdpa_kernel

        q = _random(torch, batch, length, heads, size).transpose(1, 2)
        k = _random(torch, batch, length, groups, size).transpose(1, 2)
        v = _random(torch, batch, length, groups, size).transpose(1, 2)
        attend = functools.partial(
            torch.nn.functional.scaled_dot_product_attention,
            is_causal=True,
            enable_gqa=True,
        )

        def backend(kind):
            def call():
                with sdpa_kernel(kind):
                    return attend(q, k, v)

            return call

        def expected():
            last = q[:1, :, -128:].float()
            keys = k[:1].float().repeat_interleave(heads // groups, 1)
            values = v[:1].float().repeat_interleave(heads // groups, 1)
            scores = last @ keys.transpose(-1, -2) / math.sqrt(size)
            rows = min(128, length)
            seen = torch.ones(rows, length, device="cuda", dtype=torch.bool)
            scores.masked_fill_(~seen.tril(length - rows), -math.inf)
            return scores.softmax(-1) @ values

        return _Case(
            "causal attention",
            (batch, length, heads, groups, size),
            2 * batch * heads * length * length * size,
            {
                **_programs(f"flash_{size}", "flash", (q, k, v)),
                "flash": backend(SDPBackend.FLASH_ATTENTION),
                "cudnn": backend(SDPBackend.CUDNN_ATTENTION),
                **_flash_attention_3(q, k, v),
            },
            expected,
        )

    return make


def _flash_attention_3(q, k, v):
    """FlashAttention-3's forward by name, where it is installed."""
    if importlib.util.find_spec("fa3_fwd_interface") is None:
        return {}
    attend = importlib.import_module("fa3_fwd_interface").flash_attn_func
    rows = [operand.transpose(1, 2) for operand in (q, k, v)]

    def call():
        return _first(attend(*rows, causal=True)).transpose(1, 2)

    return {"fa3": call}


def _compared(case, result):
    """The part of a result that `expected` computes."""
    if case.op == "causal attention":
        return result[:1, :, -128:]
    return result[:512]


def _first(result):
    """The result, or the first of several, as attention has its statistics too."""
    return result[0] if isinstance(result, tuple) else result


def _measure(torch, case, arguments):
    """A row for each call of the case."""
    rows, times, ready = {}, {}, {}
    expected = case.expected()
    for name, call in case.calls.items():
        row = {
            "op": case.op,
            "shape": list(case.shape),
            "dtype": "bfloat16",
            "direction": "forward",
            "provider": "bastile" if name.startswith("bastile") else "torch",
            "kernel": name,
        }
        rows[name] = row
        try:
            first = _first(call())
            torch.cuda.synchronize()
        except Exception as error:  # whatever a library raises
            text = f"{type(error).__name__}: {error}".splitlines()[0][:300]
            row.update(status="failed", error=text)
            continue
        row.update(status="ok")
        compared = _compared(case, first)
        # Products without their activation are no results to compare.
        if compared.shape == expected.shape:
            difference = (compared.float() - expected).abs().max()
            row.update(max_error=(difference / expected.abs().max()).item())
        ready[name], times[name] = call, []
        if row["provider"] == "bastile":
            row["same"] = sum(
                torch.equal(_first(call()), first) for _ in range(arguments.repeats)
            )
    for _ in range(3 + arguments.rounds):
        for name, call in ready.items():
            times[name].append(_seconds(torch, call))
    medians = {}
    for name in ready:
        found = summarize([1e6 * one for one in times[name][3:]])
        medians[name] = found["median"]
        rows[name].update(
            device_us=found, tflops=case.operations / found["median"] / 1e6
        )
    for name in ready:
        # Bastile's variants are compared with other libraries, not with each other.
        is_own = rows[name]["provider"] == "bastile"
        others = [
            time
            for other, time in medians.items()
            if other != name and not (is_own and rows[other]["provider"] == "bastile")
        ]
        if others:
            rows[name]["share"] = min(others) / medians[name]
    return rows.values()


def _seconds(torch, call):
    """The time of a call on the device, between two events."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    # Behind this the call is in the queue before the device begins it, also a slow one.
    torch.cuda._sleep(1_000_000)
    begin.record()
    call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1e3


def _text(key, form):
    def text(row):
        value = row.get(key)
        return "" if value is None else format(value, form)

    return text


COLUMNS = [
    Column("what", "op", False),
    Column("shape", lambda row: shape_text(row["shape"]), False),
    Column("kernel", "kernel", False),
    Column(
        "us",
        lambda row: spread_text(row["device_us"], 1) if "device_us" in row else "",
    ),
    Column("TFLOP/s", _text("tflops", ".0f")),
    Column("share", _text("share", ".2f")),
    Column("error", _text("max_error", ".1e")),
    Column("runs", _text("same", "d")),
    Column("", lambda row: row.get("error", ""), False),
]

FIRST_CALL_COLUMNS = [
    Column("first call", "kernel", False),
    Column("ms", _text("first_ms", ".0f")),
    Column("of it the driver, ms", _text("driver_ms", ".0f")),
]

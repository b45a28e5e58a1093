# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""python -m bastile_bench formulas: random formulas, what they take at least, and the
command."""

import collections
import math
import pathlib
import types

import pytest

torch = pytest.importorskip("torch")

from bastile_bench import (  # noqa: E402
    __main__,
    _device,
    _errors,
    _inputs,
    _measure,
    _providers,
    _report,
)
from bastile_bench._commands import formulas as command  # noqa: E402
from bastile_bench._random_formulas import (  # noqa: E402
    costs,
    derivatives,
    expansion,
    generate,
    in_torch,
    measured,
    nodes,
    text,
)
from bastile_bench._random_formulas.nodes import Kind  # noqa: E402

# The cores are others' as well: threads would wait for each other.
torch.set_num_threads(1)

#: Functions that the GPU has a unit for.
SPECIAL = set(
    "cos erf exp gelu gelu_tanh log1p rsqrt sigmoid silu sin softplus sqrt tanh".split()
)


DIRECTIONS = ("forward", "backward")


def make(number, seed=0, least_bytes=1.0):
    return generate.make(seed, number, least_bytes)


def rows_of(formula):
    return [x for x in formula.operands.values() if x.kind == Kind.ROWS]


def is_special(node):
    if node.op == "divide":
        return node.inputs[1].kind == Kind.ROWS
    return node.kind == Kind.ROWS and node.op in SPECIAL


def test_formulas_are_of_what_was_asked_for():
    seen = collections.defaultdict(collections.Counter)
    for number in range(300):
        formula = make(number, least_bytes=64e6)
        found = nodes.visit(formula.results)
        assert all(x in found for x in formula.operands.values())
        counts = {
            "rows": len(rows_of(formula)),
            "reductions": sum(x.op in nodes.REDUCTIONS for x in found),
            "special": sum(map(is_special, found)),
            "results": len(formula.results),
            "weights": sum(x.kind == Kind.VECTOR for x in formula.operands.values()),
            "leading": len(formula.shape) - 1,
            "dtype": formula.dtype,
        }
        for name, count in counts.items():
            seen[name][count] += 1
        assert not any(x.op == "operand" for x in formula.results)
        moved = costs.forward_work(formula).bytes
        assert 64e6 <= moved < 64e6 * 2.2, formula.text
    assert {name: set(counts) for name, counts in seen.items()} == {
        "rows": {1, 2, 3, 4, 5},
        "reductions": {1, 2},
        "special": {0, 1, 2, 3, 4, 5, 6},
        "results": {1, 2, 3},
        "weights": {0, 1, 2, 3},
        "leading": {1, 2, 3},
        "dtype": set(generate.DTYPES),
    }
    assert seen["dtype"]["bfloat16"] > 150


def test_a_formula_follows_from_its_seed_and_number():
    first, again = make(7), make(7)
    assert (first.text, first.shape, first.dtype) == (
        again.text,
        again.shape,
        again.dtype,
    )
    # Documents and reports name formulas by these.
    docs = pathlib.Path(__file__).resolve().parents[3] / "docs" / "benchmarks.md"
    assert make(4).text in docs.read_text()
    assert len({make(7, seed).text.partition("(")[2] for seed in range(20)}) > 15


#: What gradients are made of beside the functions of formulas.
DERIVED = {
    "equal": lambda x, y: (x == y).to(x.dtype),
    "reciprocal": torch.reciprocal,
    "sign": torch.sign,
    "sum_of_rows": lambda x: x.reshape(-1, x.shape[-1]).sum(0),
}


@pytest.mark.parametrize("seed", range(4))
def test_gradients_of_formulas_are_those_of_autograd(seed):
    """The costs are counted of gradients that are right, and each operand has a part in
    them."""
    for number in range(40):
        formula = make(number, seed)
        op = measured.FormulaOp(formula)
        inputs = _inputs.make(op, formula.shape, torch.float64, "cpu")
        results = op.reference(*inputs.tensors.values())
        results = results if isinstance(results, tuple) else (results,)
        shapes = [tuple(x.shape) for x in results]
        assert shapes == [tuple(shape) for shape in op.results(formula.shape)]
        expected = torch.autograd.grad(results, inputs.wanted(), inputs.upstream)
        names = [*formula.operands, *(x.value for x in formula.upstream)]
        scope = {**in_torch.FUNCTIONS, **DERIVED}
        exec(text.write("derived", names, formula.gradients), scope)
        found = scope["derived"](*inputs.tensors.values(), *inputs.upstream)
        found = found if isinstance(found, tuple) else (found,)
        for name, one, other in zip(formula.operands, found, expected):
            one = one.expand_as(other)
            torch.testing.assert_close(
                one, other, rtol=1e-9, atol=1e-12, msg=f"{name} of {formula.text}"
            )
            assert other.norm() > 1e-5 * math.sqrt(other.numel()), (name, formula.text)


def test_a_gradient_that_is_wrong_is_found(monkeypatch):
    monkeypatch.setitem(derivatives._RULES, "tanh", derivatives._RULES["sigmoid"])
    with pytest.raises(AssertionError, match="tanh"):
        test_gradients_of_formulas_are_those_of_autograd(0)


def build(results_of, dtype="bfloat16", rows="ab", vectors="", columns=1024):
    """The formula of 64 rows that ``results_of(graph, *operands)`` puts together."""
    graph = nodes.Graph()
    kinds = {**dict.fromkeys(rows, Kind.ROWS), **dict.fromkeys(vectors, Kind.VECTOR)}
    operands = {name: graph.operand(name, kind) for name, kind in kinds.items()}
    results = results_of(graph, *operands.values())
    upstream = [graph.operand(f"g{i}", x.kind) for i, x in enumerate(results)]
    inputs = {name: "rows" if name in rows else "weight" for name in kinds}
    return generate.Formula(
        "built", dtype, (64, columns), operands, inputs, results, tuple(upstream)
    )


def passes(work, formula):
    """How often a row tensor is moved."""
    return round(work.bytes / formula.bytes_of(rows_of(formula)[0]), 1)


def test_bytes_are_the_fewest():
    def gate(graph, a, b):
        return (a * graph.apply("sigmoid", b),)

    def add_norm(graph, a, b, w):
        total = a + b
        scale = graph.apply("rsqrt", graph.apply("row_mean", total * total) + 1e-6)
        return total * scale * w, total

    def residual(graph, a, b):
        return (a + graph.apply("tanh", b),)

    def squash(graph, a):
        return (graph.apply("exp", graph.apply("tanh", a)),)

    for results_of, operands, forward, backward in (
        # Both operands and the upstream gradient are read, two gradients written.
        (gate, {}, 3, 5),
        # The sum takes the place of the operands, unless it is rounded. They have one
        # gradient.
        (add_norm, {"vectors": "w", "dtype": "float32"}, 4, 4),
        (add_norm, {"vectors": "w"}, 4, 5),
        # The gradient of a is that of the result, and nothing reads a.
        (residual, {}, 3, 3),
        (squash, {"rows": "a"}, 2, 3),
    ):
        formula = build(results_of, **operands)
        assert passes(costs.forward_work(formula), formula) == forward
        assert passes(costs.backward_work(formula), formula) == backward


def test_instructions_are_counted_once():
    def gate(graph, a, b):
        s = graph.apply("sigmoid", b)
        return (a * s + b, s)

    formula = build(gate, "float32")
    assert passes(costs.backward_work(formula), formula) == 6
    forward, backward = costs.forward_work(formula), costs.backward_work(formula)
    # An exponential, with a product inside, and a reciprocal; two additions. The product
    # before one is none.
    assert (forward.special, forward.other) == (2, 3)
    # The sigmoid is a result, which is read.
    assert backward.special == 0
    narrow = costs.forward_work(build(gate))
    assert (narrow.special, narrow.other) == (2, 3 + 4 - 1)


@pytest.mark.parametrize(
    "op, dtype, forward, backward",
    [
        ("tanh", "bfloat16", 1, 1),
        ("tanh", "float32", 2, 0),
        # One sigmoid or exponential for the function and its derivative.
        ("silu", "bfloat16", 2, 2),
        ("gelu", "bfloat16", 1, 1),
        ("gelu_tanh", "bfloat16", 2, 2),
        ("erf", "bfloat16", 1, 1),
        ("sqrt", "bfloat16", 1, 1),
        ("log1p", "bfloat16", 1, 1),
    ],
)
def test_special_functions_of(op, dtype, forward, backward):
    formula = build(lambda graph, a: (graph.apply(op, a),), dtype, rows="a")
    assert costs.forward_work(formula).special == forward
    assert costs.backward_work(formula).special == backward


def test_what_functions_become_is_the_same():
    """Counts are of what computes the same numbers."""
    scope = {
        **in_torch.FUNCTIONS,
        **DERIVED,
        "erf_of": lambda x, power: torch.erf(x),
        "log": torch.log,
    }
    for number in range(30):
        formula = make(number)
        op = measured.FormulaOp(formula)
        inputs = _inputs.make(op, formula.shape, torch.float64, "cpu")
        values = [x.detach() for x in inputs.tensors.values()]
        expected = op.reference(*values)
        expected = expected if isinstance(expected, tuple) else (expected,)
        for accurate in (False, True):
            expanded = expansion.expand(formula.results, accurate)
            outputs = [expanded[x] for x in formula.results]
            assert not {"gelu", "silu", "sigmoid", "sqrt"} & {
                x.op for x in nodes.visit(outputs) if x.kind == Kind.ROWS
            }
            exec(text.write("expanded", formula.operands, outputs), scope)
            found = scope["expanded"](*values)
            found = found if isinstance(found, tuple) else (found,)
            torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)


def test_the_limit_is_the_larger_of_both_times():
    rates = costs.rates_of(
        {
            "compute_capability": "9.0",
            "max_sm_clock_mhz": 2000.0,
            "multiprocessors": 100,
        }
    )
    # 3.2e12 special functions a second.
    work = costs.Work(bytes=1, special=8, other=0)
    assert rates.seconds(work, 4 * 10**8) == pytest.approx(1e-3)
    # 2.56e13 instructions.
    work = costs.Work(bytes=1, special=1, other=63)
    assert rates.seconds(work, 4 * 10**8) == pytest.approx(1e-3)
    assert costs.rates_of({"device": "cpu"}) is None
    formula = build(lambda graph, a, b: (a * b,))
    arithmetic = 1e6 * 64 * 1024 * 8 / 3.2e12
    for copy, limit in ((0.1, arithmetic), (1.0, 1.0)):
        row = {
            "direction": "forward",
            "status": "ok",
            "copy_us": {"median": copy},
            "device_us": {"median": 4.0},
        }
        work = {"forward": costs.Work(bytes=1, special=8, other=0)}
        command.add_limits([row], work, formula, rates)
        assert row["limit_us"] == pytest.approx(limit)
        assert row["limit_share"] == pytest.approx(limit / 4)


def errors_of(formula, provider):
    loaded = _providers.PROVIDERS[provider].load().with_formula(formula)
    op, dtype = measured.FormulaOp(formula), getattr(torch, formula.dtype)
    case = _measure.Case(op, formula.shape, dtype, DIRECTIONS)
    torch.manual_seed(0)
    inputs = _inputs.make(op, formula.shape, dtype, "cpu")
    subject = _measure.Subject(case, loaded, loaded.function(formula.name))
    results, gradients = subject.call("both", inputs)
    return _errors.find_errors(op, inputs, results, gradients)


def check_errors(seed, numbers):
    """Bastile's errors are those of rounding, as PyTorch's are."""
    checked = 0
    for number in numbers:
        formula = make(number, seed, least_bytes=5e4)
        ours, theirs = (errors_of(formula, name) for name in ("bastile", "torch"))
        for name, error in ours.items():
            for one, other in zip(error, theirs[name]):
                assert one < max(4 * other, 5e-6), (name, ours, theirs, formula.text)
        checked += 1
    assert checked


def test_formulas_on_the_host():
    # Odd lengths make long programs, which take seconds each to compile.
    short = [i for i in range(30) if make(i).shape[-1] in (64, 128, 256, 512, 1024)]
    check_errors(0, short)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 5))
def test_more_formulas_on_the_host(seed):
    check_errors(seed, range(40))


@pytest.fixture
def few_sets(monkeypatch):
    monkeypatch.setattr(_device.Cpu, "cached_bytes", 1000)
    monkeypatch.setattr(_measure, "_ROUNDS", (5, 5))


def run(tmp_path, words):
    options = f"formulas --device cpu --megabytes 0.05 --out {tmp_path} {words}"
    return __main__.main(options.split())


def test_the_command(tmp_path, capsys, few_sets):
    words = "--seed 0 --only 2 5 --providers bastile,torch"
    assert run(tmp_path, words) == 0
    document = _report.read(tmp_path / "formulas.json")
    rows = document["rows"]
    assert [(row["op"], row["direction"], row["provider"]) for row in rows] == [
        (f"formula_0_{number}", direction, provider)
        for number in (2, 5)
        for direction in ("forward", "backward")
        for provider in ("bastile", "torch")
    ]
    for row in rows:
        assert row["status"] == "ok"
        assert row["limit_us"] == row["copy_us"]["median"]
        assert row["limit_share"] * row["device_us"]["median"] == pytest.approx(
            row["limit_us"]
        )
        assert row["formula"].startswith(f"def {row['op']}(a, b, u")
        assert 0 < row["norm_error"] < row["max_error"] < 1e-2
        assert ("max_error_ratio" in row) == (row["provider"] == "bastile")
    shown = capsys.readouterr().out
    assert rows[0]["formula"] in shown and "Farthest from the limit" in shown
    found = {(x["direction"], x["provider"]): x for x in document["summary"]}
    assert found["all", "bastile"]["count"] == 4
    assert found["forward", "torch"]["count"] == 2


def test_wrong_numbers_end_the_command_with_1(tmp_path, capsys, few_sets, monkeypatch):
    from bastile_bench._providers import of_bastile, of_torch

    def wrong(formula):
        right = of_torch.make(formula)

        return lambda *tensors: right(*tensors) + 0.1

    monkeypatch.setattr(of_bastile, "make", wrong)
    assert run(tmp_path, "--only 5 --providers bastile,torch --forward-only") == 1
    assert "formula_0_5 forward: WRONG" in capsys.readouterr().err


def test_errors_of_rounding_are_not_wrong():
    def row(provider, error, ratio):
        keys = ("max_error", "norm_error")
        ratios = {f"{key}_ratio": ratio for key in keys}
        return {"provider": provider, **dict.fromkeys(keys, error), **ratios}

    wrong = row("bastile", 1e-2, 9.0)
    rows = [
        wrong,
        row("bastile", 1e-2, 7.0),
        row("bastile", 2e-6, 9.0),
        row("compile", 1e-2, 9.0),
        {"provider": "bastile", "status": "failed"},
    ]
    assert command.find_wrong(rows) == [wrong]


def test_formulas_are_listed_without_being_measured(tmp_path, capsys):
    assert run(tmp_path / "none", "--seed 3 --random 2 --list") == 0
    shown = capsys.readouterr().out
    for number in (0, 1):
        assert make(number, 3).text in shown
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    "words, message, status",
    [
        ("--random 0", "'0' is not at least 1", 2),
        ("--providers liger", "Liger has no such functions", 2),
        ("--only -1", "take no negative numbers", 1),
    ],
)
def test_mistakes_are_said_in_one_line(words, message, status, tmp_path, capsys):
    try:
        found = run(tmp_path, words)
    except SystemExit as error:
        found = error.code
    assert found == status
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_kernels_are_described_in_the_rows_of_their_direction(monkeypatch):
    """Those that a call with gradients runs, of Bastile's rows alone."""
    from bastile_bench import _resources

    plain, derived = (types.SimpleNamespace(has_gradients=x) for x in (False, True))
    monkeypatch.setattr(
        _resources,
        "of_directions",
        lambda kernel, ordinal: {x: (kernel, x, ordinal) for x in DIRECTIONS},
    )
    functions = {"f": types.SimpleNamespace(kernels=(plain, derived))}
    loaded = [
        _providers.Loaded(_providers.PROVIDERS[name], None, functions)
        for name in ("torch", "bastile")
    ]
    rows = [
        {"provider": name, "direction": direction, "status": "ok"}
        for direction in DIRECTIONS
        for name in ("torch", "bastile")
    ]
    command._add_kernels(rows, loaded, "f", 1)
    assert [row.get("kernels") for row in rows] == [
        None,
        (derived, "forward", 1),
        None,
        (derived, "backward", 1),
    ]


def row(number, provider, time, share, spread=0.1):
    return {
        "op": f"formula_0_{number}",
        "direction": "forward",
        "provider": provider,
        "status": "ok",
        "device_us": {"median": time, "low": time - spread, "high": time + spread},
        "limit_share": share,
    }


def test_the_summary_counts_what_is_slower_than_torch_compile():
    rows = [
        row(0, "bastile", 10.0, 0.8),
        row(0, "compile", 20.0, 0.4),
        row(1, "bastile", 12.0, 0.5),
        row(1, "compile", 6.0, 1.0),
        row(2, "bastile", 10.1, 1.0),
        row(2, "compile", 10.0, 1.0),
    ]
    summary = {(x["direction"], x["provider"]): x for x in command.summarize(rows)}
    assert summary["all", "bastile"]["limit_share"] == pytest.approx(0.4 ** (1 / 3))
    assert summary["all", "bastile"]["least_share"] == 0.5
    assert summary["all", "compile"]["speedup"] == pytest.approx((10 / 10.1) ** (1 / 3))
    assert summary["all", "compile"]["slower"] == 2
    slower = command.find_slower(rows)
    assert [(x["op"], x["beyond"]) for x in slower] == [
        ("formula_0_1", True),
        ("formula_0_2", False),
    ]

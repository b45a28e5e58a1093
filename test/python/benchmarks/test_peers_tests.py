# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""python -m peers_tests, on small checkouts that stand for the peers'."""

import json
import os
import subprocess
import sys
import textwrap
import types

import pytest

pytest.importorskip("torch")

import peers_tests  # noqa: E402
from peers_tests import (  # noqa: E402
    memory,
    misses,
    report,
    selection,
    stand_ins,
    texts,
)

SOURCE = """
    import cutlass

    def rmsnorm(x, weight):
        raise AssertionError("the peer's own kernel ran")

    def rmsnorm_ref(x, w=None, eps=1e-6):
        norm = x / torch.sqrt(torch.mean(x.square(), dim=-1, keepdim=True) + eps)
        return norm if w is None else norm * w

    def rmsnorm_bwd_ref(): pass
    def layernorm_ref(): pass
    def layernorm_rstd_ref(): pass
    def layernorm_mean_ref(): pass
"""
TESTS = """
    import os, pytest, torch
    from quack.rmsnorm import rmsnorm, rmsnorm_fwd_tuned, rmsnorm_ref

    @pytest.mark.parametrize("M", [1, 3])
    def test_norm(M):
        x = torch.randn(M, 8, device="cuda")
        torch.testing.assert_close(rmsnorm(x), rmsnorm_ref(x))

    def test_norm_tuned_alone():
        rmsnorm_fwd_tuned.fn(1)

    def test_wrong():
        assert 1 == 2, "something else"

    def test_death():
        os.abort()

    def test_skipped():
        pytest.skip("no reason")
"""


def write(folder, files):
    for name, text in files.items():
        path = folder / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))


def run(*arguments):
    """The status and what a run says."""
    path = os.pathsep.join([os.path.dirname(peers_tests.__path__[0]), *sys.path])
    done = subprocess.run(
        [sys.executable, "-m", "peers_tests", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert not done.stderr, done.stderr
    return done.returncode, done.stdout


def outcomes(folder):
    found = json.loads((folder / "results.json").read_text())
    return {
        test.rpartition("::")[2]: (x["outcome"], x.get("message", ""))
        for test, x in found.items()
    }


@pytest.mark.long
def test_a_run_of_quacks_tests(tmp_path):
    others = ("layernorm", "softmax", "rotary", "cross_entropy")
    files = {"quack/rmsnorm": SOURCE, "tests/test_rmsnorm": TESTS}
    write(tmp_path, files | {f"tests/test_{name}": "" for name in others})
    status, said = run(
        *("quack", tmp_path, "--cpu", "--processes", 2, "--out", tmp_path)
    )
    found = outcomes(tmp_path / "results-quack")
    assert found["test_norm[1]"][0] == found["test_norm[3]"][0] == "passed"
    assert found["test_skipped"][0] == "skipped"
    assert found["test_norm_tuned_alone"] == (
        "failed",
        "peers_tests.stand_ins.NoCounterpart: Bastile has no counterpart of "
        "quack.rmsnorm.rmsnorm_fwd_tuned",
    )
    assert "something else" in found["test_wrong"][1]
    assert found["test_death"] == ("failed", "the process ended with -6")
    assert status == 1
    assert said.startswith("quack: 40.0% of tests that count and were not skipped")
    assert "test_wrong (NEW)" in said
    assert "test_norm_tuned_alone (known: " in said

    # What was reached is kept, and the rest is run.
    path = tmp_path / "results-quack/results.json"
    results = json.loads(path.read_text())
    kept = "tests/test_rmsnorm.py::test_wrong"
    results[kept]["message"] = "of the first run"
    for test in results:
        if test != kept:
            results[test] = {"outcome": "not run"}
    path.write_text(json.dumps(results))
    arguments = ("quack", tmp_path, "--cpu", "--processes", 1, "--out", tmp_path)
    run(*arguments, "--resume", "-k", "test_norm or test_wrong")
    again = outcomes(tmp_path / "results-quack")
    assert again["test_wrong"] == ("failed", "of the first run")
    assert again["test_norm[1]"][0] == "passed"
    assert again["test_death"][0] == "not run"


MONKEY_PATCH = """
    def apply_liger_kernel_to_llama(rope=True, layer_norm=True, model=None):
        raise AssertionError("Liger's own patch ran")

    MODEL_TYPE_TO_APPLY_LIGER_FN = {"llama": apply_liger_kernel_to_llama}
"""
LIGER_LAYERS = """
    class LigerRMSNorm:
        def forward(self): pass
"""
LIGER_TESTS = """
    import inspect, bastile, torch, transformers
    import liger_kernel.transformers.layers as layers
    from liger_kernel.ops.rms_norm import LigerRMSNormFunction
    from liger_kernel.ops.utils import is_hip
    from liger_kernel.ops import LigerSparsemaxFunction
    from liger_kernel.transformers.model.llama import lce_forward
    from liger_kernel.transformers.monkey_patch import (
        MODEL_TYPE_TO_APPLY_LIGER_FN, apply_liger_kernel_to_llama
    )

    def test_norm():
        x, weight = torch.randn(3, 8), torch.ones(8)
        result = LigerRMSNormFunction.apply(x, weight, 1e-6, 1.0, "gemma")
        torch.testing.assert_close(
            result, torch.nn.functional.rms_norm(x, (8,), 1 + weight, 1e-6)
        )
        assert not is_hip()

    def test_sparsemax():
        LigerSparsemaxFunction.apply(torch.randn(3, 8))

    def test_patch():
        settings = dict(hidden_size=8, intermediate_size=8, num_hidden_layers=1)
        model = transformers.LlamaForCausalLM(
            transformers.LlamaConfig(num_attention_heads=2, vocab_size=8, **settings)
        )
        norm = model.model.norm
        layer = inspect.getsource(layers.LigerRMSNorm.forward)
        forward = inspect.getsource(lce_forward)
        assert inspect.getsource(norm.forward) != layer
        assert inspect.getsource(model.forward) != forward
        assert MODEL_TYPE_TO_APPLY_LIGER_FN == {"llama": apply_liger_kernel_to_llama}
        apply_liger_kernel_to_llama(rope=False, model=model)
        assert inspect.getsource(norm.forward) == layer
        assert inspect.getsource(model.forward) == forward
        assert "rope" not in bastile.get_patched_ops(model)["llama"]
"""


@pytest.mark.long
def test_a_run_of_ligers_tests(tmp_path):
    pytest.importorskip("transformers")
    package = "src/liger_kernel/"
    files = {
        "__init__": "",
        "ops": "raise AssertionError('a kernel of the peer')",
        "transformers/__init__": "",
        "transformers/monkey_patch": MONKEY_PATCH,
        "transformers/layers": LIGER_LAYERS,
    }
    write(tmp_path, {package + name: text for name, text in files.items()})
    tests = {"test_monkey_patch": LIGER_TESTS, "test_mhc": "def test_other(): pass"}
    write(tmp_path / "test/transformers", tests)
    _, said = run("liger", tmp_path, "--processes", 1, "--out", tmp_path)
    found = outcomes(tmp_path / "results-liger")
    assert {test: x[0] for test, x in found.items()} == {
        "test_norm": "passed",
        "test_sparsemax": "failed",
        "test_patch": "passed",
        "test_other": "not counted",
    }, found
    assert "liger_kernel.ops.LigerSparsemaxFunction" in found["test_sparsemax"][1]
    assert said.startswith("liger: 66.7% of tests")


def test_rotary_modules_take_a_device():
    pytest.importorskip("transformers")
    from peers_tests.liger import patches
    from transformers import LlamaConfig
    from transformers.models.llama import modeling_llama

    module = types.ModuleType("test_rope")
    module.LlamaRotaryEmbedding = modeling_llama.LlamaRotaryEmbedding
    patches.tell(module)
    rotary = module.LlamaRotaryEmbedding(config=LlamaConfig(), device="cpu")
    assert isinstance(rotary, modeling_llama.LlamaRotaryEmbedding)


def test_a_folder_of_somebody_else_is_left_alone(tmp_path, monkeypatch, capsys):
    from peers_tests import __main__

    (tmp_path / "results-quack").mkdir()
    write(tmp_path, {name[:-3]: "" for name in selection.FILES["quack"]})
    arguments = ["", "quack", str(tmp_path), "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", arguments)
    with pytest.raises(SystemExit):
        __main__.main()
    assert "was not written by this command" in capsys.readouterr().err
    assert (tmp_path / "results-quack").exists()


def test_a_missing_name_fails_where_it_is_used():
    module = stand_ins.Finder("peer", lambda name: {"there": 1}).create_module(
        type("Spec", (), {"name": "peer.kernels"})
    )
    missing = module.kernel
    uses = (
        lambda: missing(1),
        lambda: missing.apply,
        lambda: missing[(4,)],
        lambda: list(missing),
    )
    for use in uses:
        with pytest.raises(stand_ins.NoCounterpart, match="peer.kernels.kernel"):
            use()


def test_a_package_that_was_imported_is_not_replaced():
    with pytest.raises(RuntimeError, match="json has been imported already"):
        stand_ins.install(stand_ins.Finder("json", lambda name: {}))


def test_memory_is_shared_by_pieces(tmp_path):
    size = memory.needed({"M": 32 * 1024, "N": 262144, "dtype": None})
    assert size == 2**33 * 4 * 8
    with memory.share(tmp_path, 3, size):
        with memory.share(tmp_path, 3, 0):
            pass
    with memory.share(tmp_path, 3, 2 * memory.PIECE):
        with memory.share(tmp_path, 3, memory.PIECE):
            pass


def test_tokens_of_a_text(tmp_path):
    datasets = pytest.importorskip("datasets")
    resources = tmp_path / "test/resources"
    (resources / "tiny_shakespeare_tokenized").mkdir(parents=True)
    (resources / "tiny_shakespeare.txt").write_bytes(b"To be,\n" + b"x" * 200)
    assert not texts.are_there(tmp_path)
    texts.write(tmp_path, tmp_path / "made")
    short, long = datasets.load_from_disk(tmp_path / "made")
    assert short["input_ids"][:7] == [byte + 3 for byte in b"To be,"] + [2]
    assert sum(short["attention_mask"]) == 6
    assert [len(short["input_ids"]), sum(long["attention_mask"])] == [128, 128]
    (resources / "tiny_shakespeare_tokenized/data.arrow").touch()
    assert texts.are_there(tmp_path)


def test_patterns_name_tests():
    test = "tests/test_rmsnorm.py::test_rmsnorm_fwd_tuned_config[128-32-1-None]"
    assert misses.why("quack", test)
    assert not misses.why("quack", "tests/test_rmsnorm.py::test_rmsnorm_qk[1]")
    assert selection.why_not_counted("liger", "test/transformers/test_mhc.py::test_a")
    files = "test_mini_models.py", "test_mini_models_with_logits.py"
    for file in files:
        model = f"{file}::test_mini_model[mini_gemma4_text-32-1e-05-dtype2]"
        assert misses.why("liger-convergence", f"test/convergence/bf16/{model}")
        assert not misses.why("liger-convergence", f"test/convergence/fp32/{model}")
    bracketed = (("*::test_a[1-*]", "a reason"),)
    assert selection.find(bracketed, "f.py::test_a[1-2]") == "a reason"
    assert selection.find(bracketed, "f.py::test_a1") is None


def test_what_was_not_reached_did_not_pass():
    results = {
        "a": {"outcome": "passed"},
        "b": {"outcome": "not run"},
        "c": {"outcome": "skipped"},
        "d": {"outcome": "not counted"},
    }
    assert report.summary("quack", results)["share"] == 0.5

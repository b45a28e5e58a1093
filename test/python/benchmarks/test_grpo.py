# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""grpo of python -m bastile_bench, on a tiny model."""

import argparse
import json
import sys

import bastile
import pytest

pytest.importorskip("trl")
torch = pytest.importorskip("torch")

from bastile_bench._commands import grpo  # noqa: E402
from bastile_bench._end_to_end import grpo_task, jobs, worker  # noqa: E402


@pytest.fixture(autouse=True)
def leave_nothing():
    torch.set_num_threads(1)
    yield
    bastile.reset()


def parse(text):
    parser = argparse.ArgumentParser()
    grpo.add_arguments(parser)
    return parser.parse_args(text.split())


COMMAND = (
    "--model tiny-qwen3 --device cpu --dtype float32 --layers 1 --batch 2 --prompt 4 "
    "--completion 6 --warmup 1 --steps 1"
)


def run_here(job, budget, keep_caches):
    """As `jobs.run`, in this process."""
    try:
        return jobs.Outcome(**{"values": {}, **worker.work(job, lambda stage: None)})
    finally:
        bastile.reset()


def test_libraries_agree(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(jobs, "run", run_here)
    arguments = parse(f"{COMMAND} --output {tmp_path / 'grpo.json'}")
    assert grpo.run(arguments) == 0
    rows = json.loads((tmp_path / "grpo.json").read_text())["rows"]
    by_name = {row["provider"]: row for row in rows}
    assert list(by_name) == list(grpo_task.RUNNERS)
    baseline = by_name["trl"]
    assert len(baseline["losses"]) == 2 and baseline["gradient_norm"] > 0
    for name in ("bastile-head", "bastile"):
        row = by_name[name]
        assert row["losses"] == pytest.approx(baseline["losses"], rel=1e-4)
        assert row["gradient"] == pytest.approx(1.0, rel=1e-4)
        assert row["agrees"]
    printed = capsys.readouterr().out
    assert "bastile-head" in printed and "agrees" in printed


def test_another_gradient_disagrees(monkeypatch, tmp_path):
    def wrong(job, budget, keep_caches):
        made = run_here(job, budget, keep_caches)
        if job["provider"] == "bastile":
            made.values["gradient_norm"] *= 1.1
        return made

    monkeypatch.setattr(jobs, "run", wrong)
    text = f"{COMMAND} --providers trl,bastile --output {tmp_path / 'grpo.json'}"
    assert grpo.run(parse(text)) == 1


def test_a_library_that_is_not_there(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "trl.trainer.utils", None)
    monkeypatch.setattr(jobs, "run", run_here)
    text = f"{COMMAND} --providers trl --output {tmp_path / 'grpo.json'}"
    grpo.run(parse(text))
    assert "trl: left out: TRL cannot be imported" in capsys.readouterr().out


@pytest.mark.parametrize(
    "text, message",
    [
        ("--providers hf", "there is no provider 'hf'"),
        ("--model qwen3,llama", "one model at a time"),
        ("--plots folder", "grpo draws none"),
    ],
)
def test_what_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        grpo.run(parse(text))

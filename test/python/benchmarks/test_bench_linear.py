# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""python -m bastile_bench linear-cross-entropy, on the CPU."""

import pytest
from bastile_bench import __main__, _linear_losses, _report
from bastile_bench._commands import linear_cross_entropy as command
from bastile_bench._linear_losses import Measured

ROWS = "products bastile recompute budget torch"


def run(folder, arguments):
    words = ["linear-cross-entropy", "--device", "cpu", *arguments.split()]
    status = __main__.main([*words, "--out", str(folder)])
    return status, _report.read(folder / "linear-cross-entropy.json")["rows"]


def test_rows(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(command, "_CHECKED", (64, 300))
    status, rows = run(tmp_path, f"--shapes 96x16x500 --rows {ROWS} --rounds 3")
    assert status == 0
    assert {row["status"] for row in rows} == {"ok"}
    assert [row["provider"] for row in rows] == ["torch", *["bastile"] * 3, "torch"]
    products, *others = rows
    assert products["share"] == 1
    assert "max_error" not in products
    for row in others:
        assert row["shape"] == [96, 16, 500]
        assert row["device_us"]["count"] == 3
        assert row["error_ratio"] < 1.5
    text = capsys.readouterr().out
    assert "96x16x500" in text
    assert "linear_cross_entropy, recompute" in text


def test_a_row_that_fails_leaves_the_others(tmp_path, capsys, monkeypatch):
    def fail(case, inputs, chunks):
        raise RuntimeError("no such thing\nat all")

    monkeypatch.setitem(_linear_losses._MAKERS, "torch", fail)
    monkeypatch.setattr(command, "_CHECKED", (64, 300))
    status, rows = run(tmp_path, "--shapes 8x16x50 --rows bastile torch --rounds 1")
    assert status == 0
    assert [row["status"] for row in rows] == ["ok", "failed"]
    assert rows[1]["error"] == "RuntimeError: no such thing"
    assert "error_ratio" not in rows[0] or rows[0]["error_ratio"] is None


def test_a_failure_of_ours_is_the_exit_status(tmp_path, capsys, monkeypatch):
    broken = Measured(error="RuntimeError: broken")
    monkeypatch.setattr(_linear_losses, "measure", lambda *rest: {"bastile": broken})
    status, _ = run(tmp_path, "--shapes 8x16x50 --rows bastile")
    assert status == 1


def test_mistakes(tmp_path, capsys):
    for arguments, text in (
        ("--shapes 8x16", "'8x16' is not tokens x length x classes"),
        ("--shapes 8x0x3", "'8x0x3' is not tokens"),
        ("--rows fast", "invalid choice: 'fast'"),
    ):
        with pytest.raises(SystemExit):
            run(tmp_path, arguments)
        assert text in capsys.readouterr().err

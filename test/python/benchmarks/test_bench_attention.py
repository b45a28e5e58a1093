# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""python -m bastile_bench attention, on the CPU."""

import pytest
from bastile_bench import __main__, _attentions, _report
from bastile_bench._commands import attention as command


def run(folder, arguments):
    words = arguments.split()
    status = __main__.main([*words, "--device", "cpu", "--out", str(folder)])
    return status, _report.read(folder / "attention.json")["rows"]


@pytest.fixture
def tiny(monkeypatch):
    cases = {
        "gpt-oss-window": ((1, 40, 4, 2, 16), {"sinks": True, "window": 8}),
        "full": ((1, 33, 2, 2, 16), {"causal": False}),
    }
    monkeypatch.setattr(command, "CASES", cases)
    monkeypatch.setattr(command, "_TOKENS", 64)
    return cases


def test_rows(tmp_path, capsys, tiny):
    status, rows = run(
        tmp_path,
        "attention --dtype f32 --rounds 2 --cases gpt-oss-window full --lengths 31",
    )
    assert status == 0
    assert [row["status"] for row in rows] == ["ok"] * 12
    assert [row["provider"] for row in rows] == ["bastile", "torch"] * 6
    assert [row["direction"] for row in rows[:4]] == ["forward"] * 2 + ["backward"] * 2
    for row in rows:
        assert row["device_us"]["count"] == 2 and row["first_ms"] > 0
        assert row["tflops"] > 0 and row["share"] > 0
        assert row["max_error"] < 1e-5
    text = capsys.readouterr().out
    assert "gpt-oss-window causal window 8 sinks" in text and "2x31x32x8x128" in text


def test_a_plot_over_lengths(tmp_path, tiny, capsys):
    pytest.importorskip("matplotlib")
    pytest.importorskip("jinja2")
    options = "--cases --lengths 8 15 --rounds 1 --forward-only --dtype f32"
    assert run(tmp_path, f"attention {options}")[0] == 0
    assert "1 PNG beside it" in capsys.readouterr().out
    assert (tmp_path / "attention-lengths.png").stat().st_size > 1000
    page = (tmp_path / "attention.html").read_text()
    assert "length of a sequence" in page and "written out" in page


def test_the_preset_of_kernels(tmp_path, tiny, monkeypatch):
    monkeypatch.setattr(command, "LENGTHS", ())
    words = "kernels --preset attention --forward-only --dtype f32"
    status, rows = run(tmp_path, words)
    assert status == 0
    assert {row["direction"] for row in rows} == {"forward"}
    assert [row["op"] for row in rows] == ["gpt-oss-window"] * 2 + ["full"] * 2


def test_a_row_that_fails_leaves_the_others(tmp_path, tiny, monkeypatch):
    def fail(case, inputs):
        raise RuntimeError("no such thing\nat all")

    monkeypatch.setitem(_attentions.MAKERS, "written", fail)
    options = "--forward-only --cases full --lengths --rounds 1 --dtype f32"
    status, rows = run(tmp_path, f"attention {options}")
    assert status == 0
    assert [row["status"] for row in rows] == ["ok", "failed"]
    assert rows[1]["error"] == "RuntimeError: no such thing"
    monkeypatch.setitem(_attentions.MAKERS, "bastile", fail)
    assert run(tmp_path, f"attention {options}")[0] == 1


def test_operations():
    causal = _attentions.Case("", 4, 2048, 32, 8, 64)
    assert causal.operations == 4 * 4 * 32 * 64 * 2048**2 / 2
    window = _attentions.Case("", 1, 4, 1, 1, 1, window=2)
    # As causal attention, it counts half of the scores on the diagonals that bound it.
    assert window.operations == 4 * 6


def test_what_libraries_have():
    plain = _attentions.Case("", 4, 2048, 32, 8, 64)
    sinks = _attentions.Case("", 4, 2048, 32, 8, 64, sinks=True)
    names = [name for name in command.ROWS if _attentions.can_have(name, plain, "cuda")]
    assert names == list(command.ROWS)
    names = [name for name in command.ROWS if _attentions.can_have(name, sinks, "cuda")]
    assert names == ["bastile", "written", "flex", "fa4"]


def test_mistakes(tmp_path, capsys):
    for arguments, text in (
        ("attention --lengths 0", "'0' is no length"),
        ("attention --shapes 1x2x3x2x8", "'1x2x3x2x8' is not batch"),
        ("attention --rows fast", "invalid choice: 'fast'"),
    ):
        with pytest.raises(SystemExit):
            run(tmp_path, arguments)
        assert text in capsys.readouterr().err
    words = "kernels --preset attention small --device cpu --out"
    assert __main__.main([*words.split(), str(tmp_path)]) == 1
    assert "stands alone" in capsys.readouterr().err

# Part of Bastile, under the MIT License. See LICENSE.
# RUN: %package-test %s
"""python -m bastile_bench: what is made of the files that measuring writes."""

import copy
import csv
import json
import pathlib

import pytest

torch = pytest.importorskip("torch")

from bastile_bench import __main__, _report, _summary  # noqa: E402
from bastile_bench._commands import compare, tables  # noqa: E402
from bastile_bench._statistics import geometric_mean, summarize  # noqa: E402

# The cores are others' as well: threads would wait for each other.
torch.set_num_threads(1)

ROOT = pathlib.Path(__file__).resolve().parents[3]


def read(results):
    return _report.read(results[0] / "kernels.json")


def test_csv_has_a_line_for_each_row(results):
    with open(results[0] / "kernels.csv") as file:
        lines = list(csv.DictReader(file))
    rows = read(results)["rows"]
    assert len(lines) == len(rows)
    assert float(lines[0]["device_us"]) == rows[0]["device_us"]["median"]
    assert float(lines[0]["device_us_low"]) == rows[0]["device_us"]["low"]


def change(document, factor):
    document = copy.deepcopy(document)
    for row in document["rows"]:
        for key in ("median", "low", "high"):
            row["device_us"][key] *= factor
    return document


def compare_with(results, tmp_path, factor, *options):
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(change(read(results), factor)))
    return __main__.main(
        ["compare", str(results[0] / "kernels.json"), str(changed), *options]
    )


def test_compare_finds_what_is_slower(results, tmp_path, capsys):
    assert compare_with(results, tmp_path, 100) == 1
    assert "5 slower by more than 5%" in capsys.readouterr().out


def test_compare_finds_what_is_faster(results, tmp_path, capsys):
    assert compare_with(results, tmp_path, 0.01) == 0
    assert "5 faster by more than 5%" in capsys.readouterr().out


def test_compare_obeys_the_threshold(results, tmp_path, capsys):
    assert compare_with(results, tmp_path, 100, "--threshold", "200") == 0
    assert compare_with(results, tmp_path, 1) == 0


def test_compare_tells_what_fails_now(results, tmp_path, capsys):
    document = read(results)
    document["rows"][0] = {**document["rows"][0], "status": "failed"}
    (tmp_path / "b.json").write_text(json.dumps(document))
    files = [str(results[0] / "kernels.json"), str(tmp_path / "b.json")]
    assert __main__.main(["compare", *files]) == 1
    assert "rms_norm 16x256 bf16 forward fails now" in capsys.readouterr().out


def test_a_difference_within_the_spread_does_not_count():
    def difference(before, after):
        return compare.Difference((), "device_us", summarize(before), summarize(after))

    assert not difference([1, 2, 3], [1.5, 2.5, 3.5]).is_beyond_spread
    assert difference([1, 1.1, 1.2], [2, 2.1, 2.2]).is_beyond_spread


@pytest.mark.parametrize("text", ["{}", "[1]", "nothing"])
def test_what_is_no_result_file_is_refused(text, tmp_path, capsys):
    (tmp_path / "file.json").write_text(text)
    assert __main__.main(["plot", str(tmp_path / "file.json")]) == 1
    assert str(tmp_path / "file.json") in capsys.readouterr().err


def test_plot(results, tmp_path):
    pytest.importorskip("matplotlib")
    pytest.importorskip("jinja2")
    source = str(results[0] / "kernels.json")
    assert __main__.main(["plot", source, "--out", str(tmp_path)]) == 0
    page = (tmp_path / "kernels.html").read_text()
    assert page.count("<svg") == 4 and "How to read it" in page
    assert "<script" not in page and 'src="http' not in page
    pictures = list(tmp_path.glob("*.png"))
    assert len(pictures) == 4
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in pictures)


def test_summary_is_the_geometric_mean():
    def row(provider, time, direction="forward"):
        measured = summarize([time])
        return {
            "op": "rms_norm",
            "shape": [1, 2],
            "dtype": "bf16",
            "direction": direction,
            "provider": provider,
            "status": "ok",
            "device_us": measured,
            "wall_us": measured,
        }

    rows = [row("bastile", 1), row("liger", 2)]
    rows += [row("bastile", 1, "backward"), row("liger", 8, "backward")]
    found = {one["group"]: one for one in _summary.summarize_speedups(rows)}
    assert found["all"]["device_speedup"] == pytest.approx(4)
    assert found["norms' backward"]["wall_speedup"] == pytest.approx(8)
    assert found["all"]["host_speedup"] is None


def test_statistics():
    found = summarize([4, 1, 3, 2, 5])
    assert found == {"median": 3, "low": 2, "high": 4, "count": 5}
    assert geometric_mean([1, 4]) == pytest.approx(2)
    assert geometric_mean([]) is None


@pytest.mark.parametrize("name", tables.FILES)
def test_tables_have_the_committed_figures(name):
    path = ROOT / name
    text = path.read_text()
    assert tables.replace_tables(text, path.parent) == text, (
        "run python -m bastile_bench tables --write"
    )


@pytest.mark.parametrize(
    "text",
    [
        "nothing",
        "<!-- bastile_bench tables: a.json all -->\n",
        "<!-- bastile_bench tables: end -->",
    ],
)
def test_markers_come_in_pairs(text):
    with pytest.raises(ValueError, match="markers must come in pairs"):
        tables.replace_tables(text, ROOT)


def test_an_unknown_table_is_refused():
    text = (
        "<!-- bastile_bench tables: a.json some -->\n<!-- bastile_bench tables: end -->"
    )
    with pytest.raises(
        ValueError, match="asks for 'some' of a.json; there are selected"
    ):
        tables.replace_tables(text, ROOT)


def test_a_table_of_everything():
    def row(direction, provider, time, **more):
        return {
            "op": "silu",
            "shape": [8, 64],
            "dtype": "bf16",
            "direction": direction,
            "provider": provider,
            "status": "ok",
            "device_us": {"median": time},
            "copy_us": {"median": 4.0},
            "share": 4.0 / time,
            **more,
        }

    kernels = [
        {"registers": 30, "spilled_bytes": 0},
        {"registers": 64, "spilled_bytes": 8},
    ]
    rows = [
        row("forward", "bastile", 5.0, kernels=kernels),
        row("forward", "torch", 8.0, method="events"),
        row("both", "bastile", 9.0),
    ]
    made = tables._make_all({"rows": rows, "environment": {"processor": "CPU"}})
    assert made.endswith(
        "| silu | 8x64 | forward | 4.0 | 5.0 | 0.80 | 8.0* | 30+64, spills |"
    )


def test_merge_takes_the_last_of_equal_rows(results, tmp_path, capsys):
    before = str(results[0] / "kernels.json")
    changed = change(read(results), 2)
    del changed["rows"][1:]
    (tmp_path / "b.json").write_text(json.dumps(changed))
    out = tmp_path / "joined.json"
    files = [before, str(tmp_path / "b.json")]
    assert __main__.main(["merge", *files, "--out", str(out)]) == 0
    joined = _report.read(out)
    assert len(joined["rows"]) == len(read(results)["rows"])
    assert joined["rows"][0] == changed["rows"][0] != read(results)["rows"][0]
    assert joined["summary"]


@pytest.mark.parametrize("name", ["h200-train", "h200-tensor-cores"])
def test_merge_of_parts_is_the_whole(name, tmp_path):
    """Also of rows of models, and of rows of several kernels of one library."""
    whole = _report.read(ROOT / f"benchmarks/results/{name}.json")
    files = []
    for part in range(2):
        file = tmp_path / f"{part}.json"
        rows = whole["rows"][part::2]
        _report.write_json(file, {**whole, "rows": rows, "summary": []})
        files.append(str(file))
    out = tmp_path / "joined.json"
    assert __main__.main(["merge", *files, "--out", str(out)]) == 0
    joined = _report.read(out)

    def order(row):
        return json.dumps(row, sort_keys=True)

    assert sorted(joined["rows"], key=order) == sorted(whole["rows"], key=order)
    assert sorted(joined["summary"], key=order) == sorted(whole["summary"], key=order)


def test_merge_refuses_other_machines(results, tmp_path, capsys):
    other = read(results)
    other["environment"]["gpu"] = "another"
    (tmp_path / "b.json").write_text(json.dumps(other))
    files = [str(results[0] / "kernels.json"), str(tmp_path / "b.json")]
    assert __main__.main(["merge", *files, "--out", str(tmp_path / "c.json")]) == 1
    assert "gpu is None and another" in capsys.readouterr().err
    assert not (tmp_path / "c.json").exists()

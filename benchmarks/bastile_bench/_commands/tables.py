# Part of Bastile, under the MIT License. See LICENSE.
"""Write tables of results into Markdown files, each between its two markers.

The first marker names a result file, from where the Markdown lies, and what to show:

    <!-- bastile_bench tables: benchmarks/results/h100.json selected -->
    <!-- bastile_bench tables: end -->

"selected" are rows for a first look, "all" every row with the registers of the
kernels, and "speedups" the geometric means; of a file of `tensor-cores`, "programs" are
its programs beside the fastest other library, and "first-calls" their first calls.
Without --write, the command says which
files differ from their results: the exit status is 1 if any does.
"""

import pathlib
import re

from bastile_bench import _report
from bastile_bench._providers import PROVIDERS
from bastile_bench._summary import summarize_speedups

_END = "<!-- bastile_bench tables: end -->"
_MARKED = re.compile(
    r"(<!-- bastile_bench tables: (\S+) (\S+) -->\n)(.*?)(" + _END + ")", re.DOTALL
)

#: What "selected" shows: op, shape, direction.
SELECTED = (
    ("rms_norm", (8192, 2880), "forward"),
    ("rms_norm", (16384, 8192), "forward"),
    ("rms_norm", (8192, 2880), "backward"),
    ("rms_norm", (16384, 8192), "backward"),
    ("layer_norm", (16384, 8192), "backward"),
    ("geglu", (8192, 2880), "forward"),
    ("geglu_interleaved", (8192, 2880), "backward"),
    ("swiglu", (16384, 14336), "backward"),
    ("softmax", (8192, 32768), "forward"),
    ("rope", (4, 2048, 32, 8, 128), "forward"),
    ("quantize_blocks", (16384, 4096), "forward"),
    ("cross_entropy", (8192, 128256), "both"),
    ("cross_entropy", (4096, 262144), "both"),
)
#: The files that have tables.
FILES = (
    "README.md",
    "docs/benchmarks.md",
    "docs/benchmarks-h200.md",
    "docs/tensor-cores.md",
)
_DIRECTIONS = {"both": "loss and gradient"}


def add_arguments(parser) -> None:
    parser.add_argument(
        "files",
        nargs="*",
        default=list(FILES),
        metavar="FILE.md",
        help=f"({' '.join(FILES)})",
    )
    parser.add_argument("--write", action="store_true", help="write them")


def run(arguments) -> int:
    """Writes or checks the tables."""
    status = 0
    for name in arguments.files:
        path = pathlib.Path(name)
        before = path.read_text()
        after = replace_tables(before, path.parent)
        if before == after:
            print(f"{path} has what its results give")
        elif arguments.write:
            path.write_text(after)
            print(f"wrote the tables of {path}")
        else:
            print(f"{path} differs from what its results give: use --write")
            status = 1
    return status


def replace_tables(text: str, folder: pathlib.Path) -> str:
    """``text`` with the tables that its markers ask for; result files are named from
    ``folder``. Raises ``ValueError`` for markers without a table."""
    begun, ended = text.count("<!-- bastile_bench tables: "), text.count(_END)
    found = len(_MARKED.findall(text))
    if found == 0 or begun != 2 * found or ended != found:
        raise ValueError(
            "markers must come in pairs, as '<!-- bastile_bench tables: FILE.json all "
            f"-->' and '{_END}', on lines of their own"
        )

    def replace(match):
        begin, name, what, _, end = match.groups()
        if what not in _MAKERS:
            raise ValueError(
                f"a marker asks for '{what}' of {name}; there are {', '.join(_MAKERS)}"
            )
        return f"{begin}{_MAKERS[what](_report.read(folder / name))}\n{end}"

    return _MARKED.sub(replace, text)


def _make_selected(document):
    rows = _rows(document)
    shown = [key for key in SELECTED if (*key, "bastile") in rows]
    if not shown:
        raise ValueError("the result file has none of the rows that are selected")
    return _make_table(document, rows, shown)


def _make_all(document):
    rows = _rows(document)
    ours = [key[:3] for key in rows if key[3] == "bastile"]
    # Where a backward is known apart, both together say nothing new.
    apart = {key[:2] for key in ours if key[2] != "both"}
    shown = [key for key in ours if key[2] != "both" or key[:2] not in apart]
    return _make_table(document, rows, shown, has_registers=True)


def _make_speedups(document):
    titles = ["beside", "rows", "device", "wall", "host"]
    lines = [_line(titles), _line(["---"] * len(titles))]
    for row in summarize_speedups(document["rows"]):
        times = (row[f"{key}_speedup"] for key in ("device", "wall", "host"))
        title = f"{row['group']}, {PROVIDERS[row['provider']].title}"
        cells = ("" if time is None else f"{time:.2f}" for time in times)
        lines.append(_line([title, str(row["count"]), *cells]))
    return "\n".join(lines)


#: Titles of Bastile's kernels, by their names in rows.
_OWN_KERNELS = {
    "bastile": "by hand",
    "bastile mma": "by hand, without `wgmma`",
    "bastile formula": "from a formula",
}


def _make_programs(document):
    """A line for each case: TFLOP/s and share of each of Bastile's kernels, and the
    fastest other library."""
    cases = {}
    for row in document["rows"]:
        if row["status"] == "ok" and "tflops" in row:
            case = cases.setdefault((row["op"], tuple(row["shape"])), {})
            case[row["kernel"]] = row
    own = [
        name for name in _OWN_KERNELS if any(name in rows for rows in cases.values())
    ]
    titles = ["what", "shape"]
    for name in own:
        titles += [_OWN_KERNELS[name], "share"]
    titles += ["fastest other", "TFLOP/s"]
    lines = [
        _report.describe_environment(document["environment"]) + ", TFLOP/s:",
        "",
        _line(titles),
        _line(["---"] * len(titles)),
    ]
    for (op, shape), rows in cases.items():
        cells = [op, _report.shape_text(shape)]
        for name in own:
            row = rows.pop(name, None)
            cells += (
                [f"{row['tflops']:.0f}", f"{row['share']:.2f}"] if row else ["", ""]
            )
        other = max(rows.values(), key=lambda row: row["tflops"])
        lines.append(_line([*cells, other["kernel"], f"{other['tflops']:.0f}"]))
    return "\n".join(lines)


def _make_first_calls(document):
    titles = ["program", "first call, ms", "of it the driver, ms"]
    lines = [_line(titles), _line(["---"] * len(titles))]
    for row in document["rows"]:
        if "first_ms" in row:
            times = (f"{row[key]:.0f}" for key in ("first_ms", "driver_ms"))
            lines.append(_line([f"`{row['kernel']}.mlir`", *times]))
    return "\n".join(lines)


_MAKERS = {
    "selected": _make_selected,
    "all": _make_all,
    "speedups": _make_speedups,
    "programs": _make_programs,
    "first-calls": _make_first_calls,
}


def _rows(document):
    return {
        (row["op"], tuple(row["shape"]), row["direction"], row["provider"]): row
        for row in document["rows"]
        if row["status"] == "ok"
    }


def _make_table(document, rows, shown, has_registers=False):
    """The rows of the keys ``shown``, with a line above of what was measured on."""
    others = [
        name
        for name in PROVIDERS
        if name != "bastile" and any((*key, name) in rows for key in shown)
    ]
    titles = [
        "op",
        "shape",
        "direction",
        "copy",
        "Bastile",
        "share of the copy's speed",
    ]
    titles += [PROVIDERS[name].title for name in others]
    if has_registers:
        titles.append("registers")
    lines = [
        _report.describe_environment(document["environment"]) + "; microseconds:",
        "",
        _line(titles),
        _line(["---"] * len(titles)),
    ]
    for key in shown:
        cells = _cells(rows, key, others)
        if has_registers:
            cells.append(_registers(rows[(*key, "bastile")]))
        lines.append(_line(cells))
    return "\n".join(lines)


def _cells(rows, key, others):
    op, shape, direction = key
    ours = rows[(*key, "bastile")]
    cells = [
        op,
        _report.shape_text(shape),
        _DIRECTIONS.get(direction, direction),
        f"{ours['copy_us']['median']:.1f}",
        _time(ours),
        f"{ours['share']:.2f}",
    ]
    for name in others:
        row = rows.get((*key, name))
        cells.append(_time(row) if row else "")
    return cells


def _time(row):
    # A star for what no graph can replay.
    star = "*" if row.get("method") == "events" else ""
    return f"{row['device_us']['median']:.1f}{star}"


def _registers(row):
    kernels = row.get("kernels") or []
    text = "+".join(str(kernel["registers"]) for kernel in kernels)
    return text + (", spills" if any(k["spilled_bytes"] for k in kernels) else "")


def _line(cells):
    return f"| {' | '.join(cells)} |"
